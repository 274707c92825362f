//! Persons of an identity provider instance: each has one identity there, whose subject is the directory's id
//! of the person.

use chancery_application::{
    APPLICATION_IDENTITY, APPLICATION_USER, ApplicationIdentity, ApplicationIdentityId, ApplicationUser,
    LifecycleStatus, SignOutScope, sign_out,
};
use chancery_record::{Name, OptionValue, Record as _, Value};
use chancery_resource::{
    AuditAction, Call, Problem, StoreError, StoredRow, Tx, insert, load_statements, select_of, selectable,
    update_unversioned,
};
use chancery_scim::{Fields, ScimError, ScimType};
use serde_json::Value as Serde;
use uuid::Uuid;

use crate::{
    form::Form,
    reach::directory,
    render::{fields_in, resource_of},
    write::{self, changes, new_body},
};

/// The subject of a person at the instance: `externalId`, else `userName`.
fn subject_of(text: impl Fn(&str) -> Option<String>) -> Result<Name, Problem> {
    let subject = text("externalId").or_else(|| text("userName")).unwrap_or_default();
    Name::new(subject).map_err(|wrong| {
        ScimError::new(ScimType::InvalidValue, format!("externalId, else userName, {wrong}")).into()
    })
}

/// The instance, its subscription, and its issuer.
struct Instance {
    id: Uuid,
    subscription: Uuid,
    issuer: OptionValue,
}

selectable! {
    /// The subscription of an instance, and its option `Authority`.
    struct StoredInstance from "FROM idp_instance i WHERE i.id = ?1" {
        subscription: Uuid = "i.subscription_id",
        issuer: Option<String> = "(SELECT o.value FROM option_value o WHERE o.apply_to_idp_instance_id = i.id \
            AND o.name = 'Authority')",
    }
}

fn instance_of(call: &Call, tx: &mut Tx<'_>) -> Result<Instance, Problem> {
    let id = directory(&call.context).owner.unwrap_or_default();
    let stored = tx.one(StoredInstance::SELECT, &[id.into()], StoredInstance::read)?;
    let StoredInstance { subscription, issuer } =
        stored.ok_or_else(|| Problem::not_found("identity provider instance"))?;
    let issuer = OptionValue::new(issuer.unwrap_or_default()).map_err(StoreError::Internal)?;
    Ok(Instance { id, subscription, issuer })
}

/// Creates a person with an identity. A person who already signed in with this subject is taken over.
///
/// # Errors
/// Invalid fields; the subject belongs to another person.
pub fn create(call: &mut Call, tx: &mut Tx<'_>, form: Form, fields: &Fields) -> Result<StoredRow, Problem> {
    let instance = instance_of(call, tx)?;
    let subject = subject_of(|name| fields.fields.get(name).and_then(Serde::as_str).map(str::to_owned))?;
    if let Some(existing) = person_of(tx, instance.id, &subject)? {
        return take_over(call, tx, form, &existing, &subject, fields);
    }
    let mut body = new_body(fields);
    body.insert(
        ApplicationUser::SUBSCRIPTION_ID.field().wire().into(),
        instance.subscription.to_string().into(),
    );
    body.insert(ApplicationUser::IDP_INSTANCE_ID.field().wire().into(), instance.id.to_string().into());
    let row = write::create(call, tx, body)?;
    let row = write::read_back(call, tx, form, &row)?;
    let owner = row.as_owner(&APPLICATION_USER)?;
    let identity = ApplicationIdentity {
        id: ApplicationIdentityId(call.context.new_id()),
        owner_id: owner.id,
        idp_instance_id: instance.id,
        issuer: instance.issuer,
        subject,
        is_user_store_identity: false,
        lifecycle_status: LifecycleStatus::Active,
        set_by: None,
        set_on: None,
    };
    insert(&call.context, tx, &APPLICATION_IDENTITY, Some(&owner), &identity.into_values())?;
    Ok(row)
}

selectable! {
    /// A person with an identity at the instance.
    struct Person from "FROM application_identity i \
        JOIN application_user u ON u.rid = i.application_user_rid WHERE i.idp_instance_id = ?1 AND i.subject = ?2" {
        id: Uuid = "u.id",
        user_name_key: Option<String> = "u.user_name_key",
        identity_status: String = "i.lifecycle_status",
    }
}

impl Person {
    /// Whether the directory may take the person over: the subject is neither pending nor a former one, and no directory
    /// provisions the person.
    fn is_available(&self) -> bool {
        self.user_name_key.is_none() && self.identity_status == LifecycleStatus::Active.name()
    }
}

/// The person with this subject at the instance.
fn person_of(tx: &mut Tx<'_>, instance: Uuid, subject: &Name) -> Result<Option<Person>, StoreError> {
    tx.one(Person::SELECT, &[instance.into(), subject.as_str().into()], Person::read)
}

fn take_over(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    existing: &Person,
    subject: &Name,
    fields: &Fields,
) -> Result<StoredRow, Problem> {
    let taken = || {
        let detail = format!("{} is there already, as externalId or userName", subject.as_str());
        Problem::from(ScimError::new(ScimType::Uniqueness, detail))
    };
    if !existing.is_available() {
        return Err(taken());
    }
    // a person outside of the instance's reach is not taken over
    let row = super::load_user(call, tx, form, existing.id);
    let row = row.map_err(|problem| if problem.status() == 404 { taken() } else { problem })?;
    let was = resource_of(call, tx, form, &row, None)?;
    let body = changes(&fields_in(form, &was)?, fields);
    write::change(call, tx, form, &row, body)
}

/// Updates the identity after a change of the person: another id at the directory is another subject, and an inactive
/// person is signed out.
///
/// # Errors
/// The subject belongs to another person.
pub fn update_identity(call: &mut Call, tx: &mut Tx<'_>, form: Form, row: &StoredRow) -> Result<(), Problem> {
    let text = |name: &str| {
        let field = form.shape.fields.iter().find(|field| field.is_named(name))?;
        if let Value::Text(text) = field.value(&row.values) { Some(text.clone()) } else { None }
    };
    let subject = subject_of(text)?;
    let owner = row.as_owner(&APPLICATION_USER)?;
    // identities are reached through their owner, which the directory reaches
    let own = call.context.on_configuration(|context| {
        let own = select_of(context, &APPLICATION_IDENTITY, &owner);
        load_statements(context, tx, &APPLICATION_IDENTITY, &[own])
    });
    for (_, was) in own? {
        let was = StoredRow { owner: Some(owner.clone()), ..was };
        let is_here = was.get(ApplicationIdentity::IDP_INSTANCE_ID)?
            == directory(&call.context).owner.unwrap_or_default();
        if is_here && was.get(ApplicationIdentity::SUBJECT)? != subject {
            let mut values = was.values.clone();
            ApplicationIdentity::SUBJECT.set(&mut values, subject.clone())?;
            let action = AuditAction::UPDATED;
            update_unversioned(&call.context, tx, &APPLICATION_IDENTITY, &was, &values, action)?;
        }
    }
    if row.get(ApplicationUser::IS_ACTIVE)? {
        Ok(())
    } else {
        sign_out(&call.context, tx, SignOutScope::People(&[owner.id]))
    }
}
