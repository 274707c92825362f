//! Removes the passwords of users who can sign in without, and restores them within thirty days; many at once, all or none.

use std::collections::{HashMap, HashSet};

use chancery_record::{FieldError, FieldErrors, Json, Uuid, Value};
use chancery_resource::{
    Action as A, Answer, AuditAction, Body, Call, Context, Custom, EventName, JsonForm, LIST, MAX_BATCH,
    Method as M, Op, Permit::UserStore, Problem, ProblemKind, Reply, Sql, StateTable, StoredRow, Tx,
    event_name, load_keys, write_all,
};
use serde_json::json;

use crate::{
    passkey::{SecurityEvent, blocking_reasons, record_security_event},
    user::{USER, UserForUpdate, elements_of, refuse_elements},
};

/// How long a password can be restored, in ms.
const RESTORABLE_MS: i64 = 30 * 24 * 3600 * 1000;

static USERS: JsonForm = JsonForm {
    name: "UserIds",
    schema: || {
        json!({
            "type": "array", "maxItems": MAX_BATCH, "description": "The ids of users. Each user is listed once.",
            "items": { "type": "string", "format": "uuid", "description": "The id of a user." },
        })
    },
};

const fn op(
    name: &'static str,
    path: &'static str,
    run: fn(&mut Call, &mut Tx<'_>) -> Result<Answer, Problem>,
    summary: &'static str,
) -> Op {
    let custom = Custom::writing(run).taking(Body::Json(&USERS)).replying(Reply::Many).in_batch();
    Op::new(name, M::Post, path, UserStore, &USER, A::Custom(custom), summary).sensitive().added()
}

/// The operations that remove and restore passwords.
pub static OPERATIONS: &[Op] = &[
    op(
        "RemovePasswordBatch",
        "/administration/User/password/remove/batch",
        remove,
        "Removes the passwords of users who are ready for sign-in without a password, all or none. They can be restored for 30 days.",
    ),
    op(
        "RestorePasswordBatch",
        "/administration/User/password/restore/batch",
        restore,
        "Restores the passwords that were removed from users in the last 30 days, all or none.",
    ),
];

fn remove(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let users = users_in_body(call, tx)?;
    let mut reasons = HashMap::new();
    for rids in rids(&users).chunks(LIST) {
        reasons.extend(blocking_reasons(&call.context, tx, rids)?);
    }
    let unready = users.iter().enumerate().filter_map(|(at, one)| {
        let reasons = reasons.get(&one.was.rid).filter(|reasons| !reasons.is_empty())?;
        let detail = format!("is not ready to live without a password: {}", reasons.join(", "));
        Some(FieldError::new(format!("/{at}"), detail))
    });
    refuse_elements(unready, ProblemKind::Conflict)?;
    for rids in rids(&users).chunks(LIST) {
        remove_passwords(&call.context, tx, rids)?;
    }
    audit_and_respond(call, tx, users, event_name!("password-removed"), SecurityEvent::PasswordRemoved)
}

fn restore(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let users = users_in_body(call, tx)?;
    let (mut removed, mut set) = (HashSet::new(), HashSet::new());
    for rids in rids(&users).chunks(LIST) {
        let restorable = of_users("SELECT user_rid FROM removed_password WHERE user_rid IN ", rids)
            .push(" AND expires_on > ")
            .bind(call.context.now.0);
        tx.query(&restorable.text, &restorable.parameters, |row| Ok(_ = removed.insert(row.int(0)?)))?;
        let own = of_users("SELECT user_rid FROM user_password WHERE user_rid IN ", rids);
        tx.query(&own.text, &own.parameters, |row| Ok(_ = set.insert(row.int(0)?)))?;
    }
    let fault = users.iter().enumerate().filter_map(|(at, one)| {
        let detail = if set.contains(&one.was.rid) {
            "has a password"
        } else if removed.contains(&one.was.rid) {
            return None;
        } else {
            "has no password that was taken away in the last 30 days"
        };
        Some(FieldError::new(format!("/{at}"), detail))
    });
    refuse_elements(fault, ProblemKind::Conflict)?;
    for rids in rids(&users).chunks(LIST) {
        restore_passwords(tx, rids)?;
    }
    audit_and_respond(call, tx, users, event_name!("password-restored"), SecurityEvent::PasswordRestored)
}

/// The users in the body.
fn users_in_body(call: &Call, tx: &mut Tx<'_>) -> Result<Vec<UserForUpdate>, Problem> {
    let ids = read(call.request.body()?)?;
    let keys: Vec<Value> = ids.iter().copied().map(Value::Id).collect();
    let mut loaded = load_keys(&call.context, tx, &USER, None, &keys)?;
    let rows: Vec<Option<StoredRow>> = ids.iter().map(|id| loaded.remove(&id.to_string())).collect();
    let unknown = rows.iter().enumerate().filter(|(_, row)| row.is_none());
    let unknown = unknown.map(|(at, _)| FieldError::new(format!("/{at}"), "names no User"));
    refuse_elements(unknown, ProblemKind::NotFound)?;
    rows.into_iter().flatten().map(UserForUpdate::new).collect()
}

/// The ids of the body.
fn read(body: &Json) -> Result<Vec<Uuid>, Problem> {
    let (mut ids, mut seen, mut errors) = (Vec::new(), HashSet::new(), FieldErrors::default());
    for (at, element) in elements_of(body)?.iter().enumerate() {
        let id = if let Json::Text(text) = element { Uuid::try_parse(text).ok() } else { None };
        let fault = match id {
            None => "must be the id of a user",
            Some(id) if !seen.insert(id) => "is in this batch twice",
            Some(id) => {
                ids.push(id);
                continue;
            }
        };
        errors.note(|| FieldError::new(format!("/{at}"), fault));
    }
    if errors.all() == 0 { Ok(ids) } else { Err(Problem::wrong(errors)) }
}

fn rids(users: &[UserForUpdate]) -> Vec<i64> {
    users.iter().map(|one| one.was.rid).collect()
}

/// A statement about these users, at most `LIST` of them.
fn of_users(text: &str, rids: &[i64]) -> Sql {
    let mut sql = Sql::new(text);
    sql.add_list(rids.iter().copied().map(Value::Int));
    sql
}

/// Moves the passwords of users to `removed_password`, and deletes their reset tokens.
fn remove_passwords(context: &Context, tx: &mut Tx<'_>, rids: &[i64]) -> Result<(), Problem> {
    let rows = Sql::new(
        "(user_rid, hash, changed_on, set_by, expires_on) SELECT user_rid, hash, changed_on, set_by, ",
    )
    .bind(context.now.0.saturating_add(RESTORABLE_MS));
    let mut rows = rows.push(" FROM user_password WHERE user_rid IN ");
    rows.add_list(rids.iter().copied().map(Value::Int));
    // the release before this one sets passwords and does not delete removed ones
    rows.add(" ON CONFLICT (user_rid) DO UPDATE SET hash = excluded.hash, changed_on = excluded.changed_on, set_by = excluded.set_by, expires_on = excluded.expires_on");
    tx.queue(&StateTable::RemovedPassword.insert(&rows.text), rows.parameters)?;
    for table in [StateTable::UserPassword, StateTable::PasswordReset] {
        let of_these_users = of_users("WHERE user_rid IN ", rids);
        tx.queue(&table.delete(&of_these_users.text), of_these_users.parameters)?;
    }
    Ok(())
}

/// Moves the removed passwords of users back.
fn restore_passwords(tx: &mut Tx<'_>, rids: &[i64]) -> Result<(), Problem> {
    let text = "(user_rid, hash, changed_on, set_by) SELECT user_rid, hash, changed_on, set_by FROM removed_password WHERE user_rid IN ";
    let restored = of_users(text, rids);
    tx.queue(&StateTable::UserPassword.insert(&restored.text), restored.parameters)?;
    let of_these_users = of_users("WHERE user_rid IN ", rids);
    Ok(tx.queue(&StateTable::RemovedPassword.delete(&of_these_users.text), of_these_users.parameters)?)
}

/// Audits the change of each user's password, and responds with the users.
fn audit_and_respond(
    call: &mut Call,
    tx: &mut Tx<'_>,
    users: Vec<UserForUpdate>,
    action: EventName,
    event: SecurityEvent,
) -> Result<Answer, Problem> {
    let mut done = Vec::with_capacity(users.len());
    for mut loaded in users {
        loaded.user.renew_token(&call.context)?;
        record_security_event(&call.context, tx, loaded.user.id, event, None, None)?;
        done.push(loaded.save(&call.context, tx, AuditAction::Modified(action))?);
    }
    if !call.request.minimal {
        write_all(call, tx, &USER, &done)?;
    }
    Ok(Answer::new(call.request.op.status))
}
