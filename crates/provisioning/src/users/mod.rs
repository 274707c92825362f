//! Users: read, created, replaced, changed and deleted by a directory.

mod identity;
pub mod me;
mod password;
mod removal;
mod restore;

pub use removal::{prune_removal_refusals, stopped};

use chancery_record::Value;
use chancery_resource::{Answer, Call, Problem, ProblemKind, StoredRow, Tx, delete_one, load};
use chancery_scim::{Fields, Patch, Resource, ScimError, ScimType, Target};
use chancery_userstore::user::User;
use serde_json::Value as Serde;
use uuid::Uuid;

use crate::{
    form::Form,
    reach::{self, directory, forbid_administrator, id_in_path},
    render::{
        answer, answer_named, answer_new, body_of, check_version, fields_in, resource_of, with_external_id,
    },
    write::{self, Body, changes, confirm, new_body},
};

/// Reads a user.
///
/// # Errors
/// Not found.
pub fn read(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    answer_named(call, tx, form, id_in_path(call, form)?)
}

/// Creates a user, or restores one who is in quarantine or takes over one who signed in already.
///
/// # Errors
/// An invalid body.
pub fn create(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let resource = body_of(call, form)?;
    let fields = fields_in(form, &resource)?;
    check_manager(call, tx, form, &Fields::default(), &fields)?;
    if form.target == Target::Provider {
        let row = identity::create(call, tx, form, &fields)?;
        return answer(call, tx, form, &row, 201);
    }
    let password = match password::hash_step(call, tx, form, None, &fields)? {
        password::HashStep::NeedsHash(answer) => return Ok(answer),
        password::HashStep::Ready(password) => password,
    };
    // quarantine is searched only where the name turned out to be taken
    if call.steps.diagnose
        && let Some(mut row) = restore::restore(call, tx, form, &fields)?
    {
        write::entries(call, tx, form, &row, &Fields::default(), &fields)?;
        if let Some(password) = password {
            row = password.set(call, tx, form, row)?;
        }
        return answer(call, tx, form, &row, 201);
    }
    let mut body = new_body(&fields);
    let owner = directory(&call.context).owner.map(|owner| owner.to_string());
    body.insert(User::SCIM_OWNER.field().wire().into(), owner.into());
    confirm(call, &mut body);
    let mut row = write::create(call, tx, body)?;
    if password.is_some() || fields.entries.values().any(|value| !value.is_null()) {
        row = write::read_back(call, tx, form, &row)?;
    }
    let entries = write::new_entries(call, tx, form, &row, &fields)?;
    if let Some(password) = password {
        row = password.set(call, tx, form, row)?;
    }
    answer_new(call, form, &row, entries)
}

/// Replaces a user. Attributes that the body omits become empty, except those that cannot.
///
/// # Errors
/// Not found; an invalid body.
pub fn replace(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let resource = body_of(call, form)?;
    let id = id_in_path(call, form)?;
    rewrite(call, tx, form, id, |before| Ok(with_external_id(resource, before)))
}

/// Changes a user (RFC 7644, section 3.5.2).
///
/// # Errors
/// Not found; the first operation that fails.
pub fn patch(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let patch = Patch::read(form.of, form.target, call.request.body()?)?;
    let id = id_in_path(call, form)?;
    rewrite(call, tx, form, id, |before| Ok(patch.apply(before)?.resource))
}

/// Writes the differences between the current and the requested user.
fn rewrite(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    id: Uuid,
    change: impl FnOnce(&Resource) -> Result<Resource, Problem>,
) -> Result<Answer, Problem> {
    let was = reach::find(&call.context, tx, form, id)?;
    let before = resource_of(call, tx, form, &was, None)?;
    check_version(call, &before)?;
    let after = change(&before)?;
    let (before, after) = (fields_in(form, &before)?, fields_in(form, &after)?);
    let mut body = changes(&before, &after);
    if deactivates(&body) {
        if let Some(refused) = removal::refuse_administrator(call, tx, &was)? {
            return Ok(refused);
        }
    } else if touches_account(&body) || !after.secrets.is_empty() {
        forbid_administrator(&call.context, tx, form, was.as_owner(form.shape)?.id)?;
    }
    check_manager(call, tx, form, &before, &after)?;
    let password = match password::hash_step(call, tx, form, Some(&was), &after)? {
        password::HashStep::NeedsHash(answer) => return Ok(answer),
        password::HashStep::Ready(password) => password,
    };
    if deactivates(&body)
        && let Some(stopped) = removal::guard_rate(call, tx)?
    {
        return Ok(stopped);
    }
    let mut row = was.clone();
    if !body.is_empty() {
        confirm(call, &mut body);
        row = write::change(call, tx, form, &was, body)?;
    }
    if form.stores_entries() {
        write::entries(call, tx, form, &row, &before, &after)?;
    } else {
        identity::update_identity(call, tx, form, &row)?;
    }
    if let Some(password) = password {
        row = password.set(call, tx, form, row)?;
    }
    answer(call, tx, form, &row, 200)
}

/// Deletes a user: into quarantine, if that is on.
///
/// # Errors
/// Not found; the user is an administrator; something refers to the person.
pub fn delete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form = Form::of(call);
    let row = reach::find_in_path(call, tx, form)?;
    if call.request.preconditions.if_match.is_some() {
        check_version(call, &resource_of(call, tx, form, &row, None)?)?;
    }
    let id = row.as_owner(form.shape)?.id;
    if let Some(refused) = removal::refuse_administrator(call, tx, &row)? {
        return Ok(refused);
    }
    if form.target == Target::Provider {
        removal::check_references(call, tx, id)?;
    }
    if let Some(stopped) = removal::guard_rate(call, tx)? {
        return Ok(stopped);
    }
    if form.target == Target::Provider {
        removal::remove_roles(call, tx, id)?;
    }
    delete_one(&mut call.context, tx, form.shape, row)?;
    Ok(Answer::new(call.request.op.status))
}

/// Whether a change could give somebody access as the user, or lock the user out.
fn touches_account(body: &Body) -> bool {
    let account_fields = ["loginName", "emailAddress", "isUserActive", "userName", "isActive"];
    account_fields.iter().any(|name| body.contains_key(*name))
}

fn deactivates(body: &Body) -> bool {
    ["isUserActive", "isActive"].iter().any(|name| body.get(*name) == Some(&Serde::Bool(false)))
}

/// Checks that a new manager is within the directory's reach.
fn check_manager(
    call: &Call,
    tx: &mut Tx<'_>,
    form: Form,
    before: &Fields,
    after: &Fields,
) -> Result<(), Problem> {
    let named = |fields: &Fields| {
        let value = fields.entries.get("manager").or_else(|| fields.fields.get("managerId"));
        value.and_then(Serde::as_str).map(str::to_owned)
    };
    let Some(manager) = named(after).filter(|manager| named(before).as_ref() != Some(manager)) else {
        return Ok(());
    };
    let id = Uuid::try_parse(&manager).ok();
    let is_there = match id {
        Some(id) => !reach::visible(&call.context, tx, form, &[id])?.is_empty(),
        None => false,
    };
    if is_there {
        return Ok(());
    }
    Err(ScimError::new(ScimType::InvalidValue, "manager names no user here").into())
}

/// Loads a user by its id.
fn load_user(call: &Call, tx: &mut Tx<'_>, form: Form, id: Uuid) -> Result<StoredRow, Problem> {
    load(&call.context, tx, form.shape, None, Value::Id(id))
}

/// Refuses what a directory may not do.
fn forbidden(detail: &str) -> Problem {
    Problem::new(ProblemKind::Forbidden, detail)
}
