//! `/Me`: people read and change their own user (RFC 7644, section 3.11).

use chancery_auth::may_sign_in;
use chancery_resource::{Answer, Call, Problem, ProblemKind, Tx};
use chancery_scim::{Patch, Resource, ScimError, ScimType};
use uuid::Uuid;

use super::rewrite;
use crate::{
    form::Form,
    render::{answer_named, body_of},
};

/// The attributes that people may change themselves.
const WRITABLE: &[&str] = &["name", "nickName", "photos", "locale", "timezone", "preferredLanguage"];

/// Reads the caller's user.
///
/// # Errors
/// The caller is no user of this store.
pub fn read(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let user = own_user(call, tx)?;
    answer_named(call, tx, Form::of(call), user)
}

/// Replaces the attributes that the caller may change. Others in the body are ignored.
///
/// # Errors
/// As [`read`]; an invalid body.
pub fn replace(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (form, user) = (Form::of(call), own_user(call, tx)?);
    let resource = body_of(call, form)?;
    rewrite(call, tx, form, user, |before| Ok(with_writable(before, &resource)))
}

/// Changes the attributes that the caller may change.
///
/// # Errors
/// As [`read`]; an operation on another attribute.
pub fn patch(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (form, user) = (Form::of(call), own_user(call, tx)?);
    let patch = Patch::read(form.of, form.target, call.request.body()?)?;
    rewrite(call, tx, form, user, |before| {
        let after = patch.apply(before)?.resource;
        let allowed = with_writable(before, &after);
        let names = after.keys().chain(allowed.keys());
        if let Some(name) = names.into_iter().find(|name| after.get(*name) != allowed.get(*name)) {
            let detail =
                format!("/{name} is an administrator's to change; yours are {}", WRITABLE.join(", "));
            return Err(ScimError::new(ScimType::Mutability, detail).into());
        }
        Ok(after)
    })
}

/// The user with the writable attributes of `after`.
fn with_writable(before: &Resource, after: &Resource) -> Resource {
    let mut allowed = before.clone();
    for name in WRITABLE {
        match after.get(*name) {
            Some(value) => allowed.insert((*name).to_owned(), value.clone()),
            None => allowed.remove(*name),
        };
    }
    allowed
}

/// The caller is no user of a store, or the store does not exist: the same error, so that stores are not
/// revealed.
pub fn not_found() -> Problem {
    Problem::new(ProblemKind::NotFound, "You are no user of a store of this name.")
}

/// The caller's user at this store.
fn own_user(call: &Call, tx: &mut Tx<'_>) -> Result<Uuid, Problem> {
    let store = call.context.scope.of_store()?.id;
    let person = call.context.actor.unwrap_or_default();
    let text = "SELECT i.subject FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.lifecycle_status = 'Active' \
        WHERE u.id = ?1 AND i.idp_instance_id = ?2 AND u.hidden_on IS NULL AND i.is_user_store_identity \
        ORDER BY i.rid LIMIT 1";
    let subject =
        tx.one(text, &[person.into(), store.into()], |row| Ok(Uuid::try_parse(row.text(0)?).ok()))?;
    let user = subject.flatten().ok_or_else(not_found)?;
    // the person may have signed in by another instance
    if !may_sign_in(tx, store, user, call.context.now)? {
        return Err(not_found());
    }
    Ok(user)
}
