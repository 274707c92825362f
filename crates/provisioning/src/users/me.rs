//! Oneself: what people read and change of the user that they are (RFC 7644, section 3.11; `7-scim.md`, section 2).

use chancery_auth::may_sign_in;
use chancery_resource::{Answer, Call, Problem, ProblemKind, Tx};
use chancery_scim::{Patch, Refusal, Resource, ScimType};
use uuid::Uuid;

use super::rewrite;
use crate::{
    form::Form,
    shown::{answer_named, body_of},
};

/// What people change of themselves.
const OWN: &[&str] = &["name", "nickName", "photos", "locale", "timezone", "preferredLanguage"];

/// Reads the user that the caller is.
///
/// # Errors
/// The caller is none of this store's.
pub fn read(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let user = own_user(call, tx)?;
    answer_named(call, tx, Form::of(call), user)
}

/// Replaces what is the caller's own to change. What else the body says is for reading alone, and left as it is.
///
/// # Errors
/// As [`read`]; what is wrong with the body.
pub fn replace(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (form, user) = (Form::of(call), own_user(call, tx)?);
    let resource = body_of(call, form)?;
    rewrite(call, tx, (form, user), |before| Ok(with_own(before, &resource)))
}

/// Changes what is the caller's own to change.
///
/// # Errors
/// As [`read`]; an operation on something else.
pub fn patch(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (form, user) = (Form::of(call), own_user(call, tx)?);
    let patch = Patch::read(form.of, form.home, call.request.body()?)?;
    rewrite(call, tx, (form, user), |before| {
        let after = patch.apply(before)?.resource;
        let allowed = with_own(before, &after);
        let names = after.keys().chain(allowed.keys());
        if let Some(name) = names.into_iter().find(|name| after.get(*name) != allowed.get(*name)) {
            let detail = format!("/{name} is an administrator's to change; yours are {}", OWN.join(", "));
            return Err(Refusal::wrong(ScimType::Mutability, detail).into());
        }
        Ok(after)
    })
}

/// A user as before, with what is the user's own as it should be.
fn with_own(before: &Resource, after: &Resource) -> Resource {
    let mut allowed = before.clone();
    for name in OWN {
        match after.get(*name) {
            Some(value) => allowed.insert((*name).to_owned(), value.clone()),
            None => allowed.remove(*name),
        };
    }
    allowed
}

/// The refusal of who is no user of a store, and of who names none: nobody learns which stores there are.
pub fn nobody() -> Problem {
    Problem::new(ProblemKind::NotFound, "You are no user of a store of this name.")
}

/// The user that the caller is at this store.
fn own_user(call: &Call, tx: &mut Tx<'_>) -> Result<Uuid, Problem> {
    let store = call.context.scope.of_store()?.id;
    let person = call.context.actor.unwrap_or_default();
    let text = "SELECT i.subject FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.lifecycle_status = 'Active' \
        WHERE u.id = ?1 AND i.idp_instance_id = ?2 AND u.hidden_on IS NULL AND i.is_user_store_identity \
        ORDER BY i.rid LIMIT 1";
    let subject =
        tx.one(text, &[person.into(), store.into()], |row| Ok(Uuid::try_parse(row.text(0)?).ok()))?;
    let user = subject.flatten().ok_or_else(nobody)?;
    // the person may have signed in by another instance
    if !may_sign_in(tx, (store, user), call.context.now)? {
        return Err(nobody());
    }
    Ok(user)
}
