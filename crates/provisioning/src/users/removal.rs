//! The rate limit on deactivations and deletions by a directory, and the checks before removing a person.

use chancery_application::APPLICATION_USER;
use chancery_management::role_assignment::{ROLE_ASSIGNMENT, RoleAssignment};
use chancery_record::{Timestamp, Value, format_timestamp};
use chancery_resource::{
    Answer, AuditAction, Call, Problem, StateTable, StoreError, StoredRow, Tx, audit_state, delete,
    event_name, load, load_statements, select_where, update_unversioned,
};
use chancery_scim::Target;
use chancery_userstore::{
    scim_token::{SCIM_TOKEN, ScimToken},
    user::USER,
};
use uuid::Uuid;

use crate::{
    form::Form,
    reach::{directory, forbid_administrator},
};

/// The time window of the limit, in ms.
const HOUR: i64 = 3_600_000;

/// Counts a deactivation or deletion. With too many within an hour the token is stopped: the returned refusal commits
/// that, so nothing else may have been written.
pub fn guard_rate(call: &mut Call, tx: &mut Tx<'_>) -> Result<Option<Answer>, Problem> {
    let now = call.context.now;
    let (token, limit) = (directory(&call.context).token, directory(&call.context).mass_limit);
    let Some(token) = token else { return Ok(None) };
    let since = Value::Int(now.0 - HOUR);
    let text = "SELECT count(*) FROM scim_removal WHERE token_id = ?1 AND removed_on > ?2";
    let count = tx.one(text, &[token.into(), since.clone()], |row| row.int(0))?.unwrap_or(0);
    if count < limit {
        let expired = StateTable::ScimRemoval.delete("WHERE token_id = ?1 AND removed_on <= ?2");
        tx.queue(&expired, vec![token.into(), since])?;
        let added = StateTable::ScimRemoval.insert("(token_id, removed_on) VALUES (?1, ?2)");
        tx.queue(&added, vec![token.into(), now.0.into()])?;
        return Ok(None);
    }
    stop(call, tx, token)?;
    Ok(Some(Answer::refusing(stopped(now, limit))))
}

/// The problem of a stopped token.
pub fn stopped(since: Timestamp, limit: i64) -> Problem {
    let mut time = Vec::new();
    format_timestamp(since, &mut time);
    let time = String::from_utf8(time).unwrap_or_default();
    super::forbidden(&format!(
        "The token writes no more since {time}: it deactivated or deleted more than {limit} users within an hour. \
         An administrator lets it go on."
    ))
}

fn stop(call: &mut Call, tx: &mut Tx<'_>, token: Uuid) -> Result<(), Problem> {
    let expired = StateTable::ScimRemoval.delete("WHERE token_id = ?1");
    tx.queue(&expired, vec![token.into()])?;
    let now = call.context.now;
    if Form::of(call).target == Target::Store {
        let was = load(&call.context, tx, &SCIM_TOKEN, None, Value::Id(token))?;
        let mut values = was.values.clone();
        ScimToken::STOPPED_ON.set(&mut values, Some(now))?;
        let action = AuditAction::Modified(event_name!("stopped"));
        let context = &mut call.context;
        return context
            .by_itself(|context| update_unversioned(context, tx, &SCIM_TOKEN, &was, &values, action));
    }
    let instance = directory(&call.context).owner.unwrap_or_default();
    let stopped = StateTable::ScimInstanceToken.update("SET stopped_on = ?1 WHERE idp_instance_id = ?2");
    tx.queue(&stopped, vec![now.0.into(), instance.into()])?;
    tx.advance_epoch()?;
    let shape = &chancery_management::idp_instance::IDP_INSTANCE;
    let was = load(&call.context, tx, shape, None, Value::Id(instance))?;
    audit_state(&call.context, tx, shape, &was, &was.values, event_name!("scim-stopped"))
}

/// After how much time a refused removal is reported again, in ms.
const DAY: i64 = 24 * HOUR;
/// How long a reported refusal is listed, in ms.
const LISTED: i64 = 30 * DAY;

/// Refuses to deactivate or delete an administrator, and reports it to the administrators, so that leavers are not
/// forgotten. The returned refusal commits the report, so nothing else may have been written.
pub fn refuse_administrator(
    call: &Call,
    tx: &mut Tx<'_>,
    row: &StoredRow,
) -> Result<Option<Answer>, Problem> {
    let form = Form::of(call);
    let id = row.as_owner(form.shape)?.id;
    let Err(refusal) = forbid_administrator(&call.context, tx, form, id) else { return Ok(None) };
    if refusal.status() != 403 {
        return Err(refusal);
    }
    let (instance, shape) = match form.target {
        Target::Store => (call.context.scope.of_store()?.id, &USER),
        Target::Provider => (directory(&call.context).owner.unwrap_or_default(), &APPLICATION_USER),
    };
    let upsert = StateTable::DirectoryRefusal.insert(
        "(idp_instance_id, subject_id, told_on, id) VALUES (?1, ?2, ?3, ?5) ON CONFLICT (idp_instance_id, subject_id) \
         DO UPDATE SET told_on = excluded.told_on WHERE directory_refusal.told_on <= ?4",
    );
    let now = call.context.now;
    let new_id = call.context.new_id();
    let parameters = [instance.into(), id.into(), now.0.into(), (now.0 - DAY).into(), new_id.into()];
    if tx.execute(&upsert, &parameters)? == 1 {
        audit_state(&call.context, tx, shape, row, &row.values, event_name!("removal-refused"))?;
    }
    Ok(Some(Answer::refusing(refusal)))
}

/// Deletes at most `chunk` of the reports that are no longer listed.
pub fn prune_removal_refusals(tx: &mut Tx<'_>, now: Timestamp, chunk: u64) -> Result<u64, StoreError> {
    let old = StateTable::DirectoryRefusal.delete(format_args!(
        "WHERE (idp_instance_id, subject_id) IN (SELECT idp_instance_id, subject_id FROM directory_refusal \
         WHERE told_on <= ?1 LIMIT {chunk})"
    ));
    tx.execute(&old, &[(now.0 - LISTED).into()])
}

/// Refuses to delete a person who has a role without permits, or who is authorized by name at client apps, unless these
/// are deleted with the person.
///
/// # Errors
/// Something refers to the person.
pub fn check_references(call: &Call, tx: &mut Tx<'_>, id: Uuid) -> Result<(), Problem> {
    if directory(&call.context).deletes_cascade {
        return Ok(());
    }
    let text = "SELECT 1 FROM role_assignment WHERE principal_id = ?1 LIMIT 1";
    if tx.one(text, &[id.into()], |_| Ok(()))?.is_some() {
        let detail = "The person holds a role. Take it away first, or set the option ScimDeleteCascades.";
        return Err(Problem::conflict(detail));
    }
    let text = "SELECT 1 FROM client_app_authorized_user a JOIN application_user u ON u.rid = a.application_user_rid \
        WHERE u.id = ?1 LIMIT 1";
    if tx.one(text, &[id.into()], |_| Ok(()))?.is_none() {
        return Ok(());
    }
    let detail = "Client apps are open to this person by name. Close them first, or set the option ScimDeleteCascades.";
    Err(Problem::conflict(detail))
}

/// Deletes the roles of a deleted person. Only roles without permits are left, see [`check_references`].
pub fn remove_roles(call: &mut Call, tx: &mut Tx<'_>, id: Uuid) -> Result<(), Problem> {
    call.context.on_configuration(|context| {
        let of_person = select_where(context, &ROLE_ASSIGNMENT, RoleAssignment::PRINCIPAL_ID, id.into());
        for (_, was) in load_statements(context, tx, &ROLE_ASSIGNMENT, &[of_person])? {
            delete(context, tx, &ROLE_ASSIGNMENT, &was)?;
            tx.advance_epoch()?;
        }
        Ok(())
    })
}
