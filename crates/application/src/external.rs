//! Platform users who sign in by an external identity provider: created at the first sign-in, updated at later ones.

use chancery_record::{Email, Name, OptionValue, PersonalUrl, Record as _, Value};
use chancery_resource::{Context, Problem, StoreError, StoredRow, Tx, insert, load, new_row, update};
use uuid::Uuid;

use crate::{
    APPLICATION_IDENTITY, APPLICATION_USER, ApplicationIdentity, ApplicationIdentityId, ApplicationUser,
    LifecycleStatus,
};

/// An instance of an external identity provider.
#[derive(Clone, Copy, Debug)]
pub struct ExternalInstance {
    /// The instance.
    pub id: Uuid,
    /// Its subscription.
    pub subscription: Uuid,
}

/// The identity of a person at a provider.
#[derive(Clone, Debug)]
pub struct ExternalSubject {
    /// `iss`
    pub issuer: String,
    /// The subject, unique at the instance.
    pub subject: String,
}

/// The claims of a provider that set fields of a platform user. A claim that is missing, or that its field does not accept, is `None`.
#[derive(Clone, Debug, Default)]
pub struct ExternalProfile {
    /// `given_name`
    pub first_name: Option<Name>,
    /// `family_name`
    pub last_name: Option<Name>,
    /// `email`. It never identifies or links a person.
    pub email_address: Option<Email>,
    /// `organizational_unit`
    pub organizational_unit: Option<Name>,
    /// `picture`
    pub picture: Option<PersonalUrl>,
}

impl ExternalProfile {
    /// Sets the fields of a platform user for which there are claims. Other fields do not change.
    fn set(self, values: &mut [Value]) {
        let mut set = |field: &chancery_record::Field, value: Option<Value>| {
            if let Some(value) = value {
                field.set(values, value);
            }
        };
        let text = |text: &str| Value::from(text);
        set(ApplicationUser::FIRST_NAME.field(), self.first_name.map(|name| text(name.as_str())));
        set(ApplicationUser::LAST_NAME.field(), self.last_name.map(|name| text(name.as_str())));
        set(ApplicationUser::EMAIL_ADDRESS.field(), self.email_address.map(|email| text(email.as_str())));
        let unit = self.organizational_unit.map(|name| text(name.as_str()));
        set(ApplicationUser::ORGANIZATIONAL_UNIT.field(), unit);
        set(ApplicationUser::PICTURE.field(), self.picture.map(|url| text(url.as_str())));
    }
}

/// Creates the platform user at the first sign-in of a person; returns the user's id.
pub fn create_external(
    context: &Context,
    tx: &mut Tx<'_>,
    instance: ExternalInstance,
    identity_at_provider: &ExternalSubject,
    profile: ExternalProfile,
) -> Result<Uuid, Problem> {
    let mut values = vec![Value::Null; APPLICATION_USER.fields.len()];
    profile.set(&mut values);
    ApplicationUser::SUBSCRIPTION_ID.field().set(&mut values, instance.subscription.into());
    ApplicationUser::IDP_INSTANCE_ID.field().set(&mut values, instance.id.into());
    ApplicationUser::IS_ACTIVE.field().set(&mut values, true.into());
    let values = new_row(context, &APPLICATION_USER, None, values)?;
    insert(context, tx, &APPLICATION_USER, None, &values)?;
    let key = ApplicationUser::ID.field().value(&values).clone();
    let owner = load(context, tx, &APPLICATION_USER, None, key)?.as_owner(&APPLICATION_USER)?;
    let identity = ApplicationIdentity {
        id: ApplicationIdentityId(context.new_id()),
        owner_id: owner.id,
        idp_instance_id: instance.id,
        issuer: OptionValue::new(identity_at_provider.issuer.clone()).map_err(StoreError::Internal)?,
        subject: Name::new(identity_at_provider.subject.clone()).map_err(StoreError::Internal)?,
        is_user_store_identity: false,
        lifecycle_status: LifecycleStatus::Active,
        set_by: None,
        set_on: None,
    };
    let id = owner.id;
    insert(context, tx, &APPLICATION_IDENTITY, Some(&owner), &identity.into_values())?;
    Ok(id)
}

/// Updates a platform user by the current claims of the provider, if the user comes from this instance and no directory provisions the
/// user.
pub fn update_external(
    context: &Context,
    tx: &mut Tx<'_>,
    instance: Uuid,
    id: Uuid,
    profile: ExternalProfile,
) -> Result<(), Problem> {
    let row = load(context, tx, &APPLICATION_USER, None, id.into())?;
    if !follows(&row, instance) {
        return Ok(());
    }
    let mut values = row.values.clone();
    profile.set(&mut values);
    if values == row.values {
        return Ok(());
    }
    for field in APPLICATION_USER.fields.iter().filter(|field| field.is_token()) {
        field.set(&mut values, context.new_token());
    }
    update(context, tx, &APPLICATION_USER, &row, &values)
}

fn follows(row: &StoredRow, instance: Uuid) -> bool {
    let is_provisioned = [ApplicationUser::EXTERNAL_ID.field(), ApplicationUser::USER_NAME.field()]
        .into_iter()
        .any(|field| !field.value(&row.values).is_null());
    !is_provisioned && ApplicationUser::IDP_INSTANCE_ID.field().id(&row.values) == Some(instance)
}
