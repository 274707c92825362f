//! Persons of an identity provider instance: each is known there by one identity, under the directory's id of the person.

use chancery_application::{
    APPLICATION_IDENTITY, APPLICATION_USER, ApplicationIdentity, ApplicationIdentityId, ApplicationUser,
    EndOf, LifecycleStatus, sign_out,
};
use chancery_record::{Name, OptionValue, Record as _, Value};
use chancery_resource::{
    AuditAction, Call, Problem, StoreError, StoredRow, Tx, insert, load_found, select_of, update_unversioned,
};
use chancery_scim::{Fields, Refusal, ScimType};
use serde_json::Value as Serde;
use uuid::Uuid;

use crate::{
    form::Form,
    reach::directory,
    shown::{fields_in, resource_of},
    write::{self, changes, new_body},
};

/// The subject that a person has at the instance: the directory's id, else the name.
fn subject_of(text: impl Fn(&str) -> Option<String>) -> Result<Name, Problem> {
    let subject = text("externalId").or_else(|| text("userName")).unwrap_or_default();
    Name::new(subject).map_err(|wrong| {
        Refusal::wrong(ScimType::InvalidValue, format!("externalId, else userName, {wrong}")).into()
    })
}

/// The instance, its subscription, and what it calls itself.
struct Instance {
    id: Uuid,
    subscription: Uuid,
    issuer: OptionValue,
}

fn instance_of(call: &Call, tx: &mut Tx<'_>) -> Result<Instance, Problem> {
    let id = directory(&call.context).owner.unwrap_or_default();
    let text = "SELECT i.subscription_id, (SELECT o.value FROM option_value o WHERE o.apply_to_idp_instance_id = i.id \
        AND o.name = 'Authority') FROM idp_instance i WHERE i.id = ?1";
    let found = tx.one(text, &[id.into()], |row| {
        let issuer = if row.is_null(1)? { String::new() } else { row.text(1)?.to_owned() };
        Ok((row.id(0)?, issuer))
    })?;
    let (subscription, issuer) = found.ok_or_else(|| Problem::not_found("identity provider instance"))?;
    Ok(Instance { id, subscription, issuer: OptionValue::new(issuer).map_err(StoreError::Internal)? })
}

/// Creates a person with an identity. Whoever signed in there already under this subject is that person.
///
/// # Errors
/// What is wrong with the fields; the subject is somebody else's.
pub fn create(call: &mut Call, tx: &mut Tx<'_>, form: Form, fields: &Fields) -> Result<StoredRow, Problem> {
    let instance = instance_of(call, tx)?;
    let subject = subject_of(|name| fields.fields.get(name).and_then(Serde::as_str).map(str::to_owned))?;
    if let Some(known) = person_of(tx, instance.id, &subject)? {
        return take_over(call, tx, form, (known, &subject), fields);
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
    };
    insert(&call.context, tx, &APPLICATION_IDENTITY, Some(&owner), &identity.into_values())?;
    Ok(row)
}

/// The person whose subject this is at the instance, and whether the directory may take the person over: the subject neither
/// waits for the person, nor is it one that the person had before, and no directory provisions the person.
fn person_of(tx: &mut Tx<'_>, instance: Uuid, subject: &Name) -> Result<Option<(Uuid, bool)>, StoreError> {
    let text = "SELECT u.id, u.user_name_key, i.lifecycle_status FROM application_identity i \
        JOIN application_user u ON u.rid = i.application_user_rid WHERE i.idp_instance_id = ?1 AND i.subject = ?2";
    tx.one(text, &[instance.into(), subject.as_str().into()], |row| {
        let is_open = row.is_null(1)? && row.text(2)? == LifecycleStatus::Active.name();
        Ok((row.id(0)?, is_open))
    })
}

fn take_over(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    ((id, is_open), subject): ((Uuid, bool), &Name),
    fields: &Fields,
) -> Result<StoredRow, Problem> {
    let taken = || {
        let detail = format!("{} is there already, as externalId or userName", subject.as_str());
        Problem::from(Refusal::wrong(ScimType::Uniqueness, detail))
    };
    if !is_open {
        return Err(taken());
    }
    // whom the instance does not reach, its directory does not take over
    let row = super::load_user(call, tx, form, id);
    let row = row.map_err(|problem| if problem.status() == 404 { taken() } else { problem })?;
    let was = resource_of(call, tx, form, &row, None)?;
    let body = changes(&fields_in(form, &was)?, fields);
    write::change(call, tx, form, &row, body)
}

/// Makes the identity follow the person: another id at the directory is another subject, and who is not active is signed
/// out.
///
/// # Errors
/// The subject is somebody else's.
pub fn follow(call: &mut Call, tx: &mut Tx<'_>, form: Form, row: &StoredRow) -> Result<(), Problem> {
    let text = |name: &str| {
        let field = form.shape.fields.iter().find(|field| field.is_named(name))?;
        if let Value::Text(text) = field.value(&row.values) { Some(text.clone()) } else { None }
    };
    let subject = subject_of(text)?;
    let owner = row.as_owner(&APPLICATION_USER)?;
    // parts are reached through their owner, which the directory reaches
    let own = call.context.on_configuration(|context| {
        let own = select_of(context, &APPLICATION_IDENTITY, &owner);
        load_found(context, tx, &APPLICATION_IDENTITY, &[own])
    });
    for (_, was) in own? {
        let was = StoredRow { owner: Some(owner.clone()), ..was };
        let is_here = was.get(ApplicationIdentity::IDP_INSTANCE_ID)?
            == directory(&call.context).owner.unwrap_or_default();
        if is_here && was.get(ApplicationIdentity::SUBJECT)? != subject {
            let mut values = was.values.clone();
            ApplicationIdentity::SUBJECT.set(&mut values, subject.clone())?;
            let telling = AuditAction::As("Modified", "updated");
            update_unversioned(&call.context, tx, &APPLICATION_IDENTITY, &was, &values, telling)?;
        }
    }
    if row.get(ApplicationUser::IS_ACTIVE)? {
        Ok(())
    } else {
        sign_out(&call.context, tx, EndOf::People(&[owner.id]))
    }
}
