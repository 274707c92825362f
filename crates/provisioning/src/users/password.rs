//! Passwords set by a directory: by the rules of an administrator's reset.

use std::sync::Arc;

use chancery_record::{Form as BodyForm, Json, Others, Provided, Record as _, Secret, Value, read_draft};
use chancery_resource::{Answer, AuditAction, Call, Problem, Purpose, StoredRow, Tx, Work, event_name};
use chancery_scim::Fields;
use chancery_userstore::{
    password::{HashOutcome, hashing_work, put_new},
    user::{User, UserForUpdate},
};
use serde_json::Value as Serde;
use uuid::Uuid;

use crate::{form::Form, write::new_body};

/// The attribute of a resource that has it.
const MEMBER: &str = "password";

/// The state of a call that may set a password.
pub enum HashStep {
    /// The password must be hashed first, outside of the transaction.
    NeedsHash(Answer),
    /// The hash, if a password was sent.
    Ready(Option<NewPassword>),
}

/// A hashed password.
pub struct NewPassword(Arc<HashOutcome>);

/// Hashes the password of the fields, if they have one; `was` is its user, `None` for a new one.
pub fn hash_step(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    was: Option<&StoredRow>,
    fields: &Fields,
) -> Result<HashStep, Problem> {
    let Some(Serde::String(password)) = fields.secrets.get(MEMBER) else { return Ok(HashStep::Ready(None)) };
    if let Some(outcome) = call.result::<HashOutcome>() {
        outcome.hash(MEMBER)?;
        return Ok(HashStep::Ready(Some(NewPassword(outcome))));
    }
    let user = match was {
        Some(was) => UserForUpdate::new(was.clone())?,
        None => proposed(call, form, fields)?,
    };
    let password = Secret::new(password.as_bytes().to_vec());
    Ok(HashStep::NeedsHash(Answer::after(Work::new(
        Purpose::Password,
        hashing_work(&call.context, tx, &user, password)?,
    ))))
}

/// A user who does not exist yet, for the password rules.
fn proposed(call: &Call, form: Form, fields: &Fields) -> Result<UserForUpdate, Problem> {
    let body = Json::from_serde(Serde::Object(new_body(fields)));
    let draft = read_draft(form.shape.fields, Others::Any, BodyForm::Create, &body, "");
    let mut draft = draft.map_err(Problem::wrong)?;
    for (field, slot) in form.shape.fields.iter().zip(&mut draft.0) {
        if field.access.key || field.is(User::INSTANCE_ID.field()) {
            *slot = Provided::Value(Value::Id(Uuid::nil()));
        } else if field.is_token() {
            *slot = Provided::Value(call.context.new_token());
        }
    }
    let values = draft.to_new(form.shape.fields);
    let was = StoredRow { rid: 0, last_entry: 0, values: values.clone(), owner: None };
    Ok(UserForUpdate { was, user: User::from_values(values)? })
}

impl NewPassword {
    /// Sets the password.
    ///
    /// # Errors
    /// It violates the store's rules.
    pub fn set(self, call: &Call, tx: &mut Tx<'_>, form: Form, row: StoredRow) -> Result<StoredRow, Problem> {
        let mut user = UserForUpdate::new(row)?;
        put_new(&call.context, tx, &mut user, &self.0, MEMBER)?;
        let id = user.user.id;
        user.save(&call.context, tx, AuditAction::Modified(event_name!("password-reset")))?;
        super::load_user(call, tx, form, id.0)
    }
}
