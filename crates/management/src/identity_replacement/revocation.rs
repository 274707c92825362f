//! Revocations: once an identity was replaced, a background job ends its sessions
//! and tokens, and retries until that succeeds.

use chancery_application::{SignOutScope, sign_out};
use chancery_record::{Record as _, Timestamp, Uuid, Value};
use chancery_resource::{
    AuditAction, Context, Problem, StateTable, StoreError, Tx, advance, event_name, load_rows,
    update_unversioned,
};

use super::{
    IDENTITY_REPLACEMENT,
    record::{IdentityReplacement, ReplacementStatus as Status},
    transition::expire,
};

/// How long the lease of a revocation lasts, in milliseconds.
const LEASE: i64 = 120_000;
/// The delay after the first failure, in milliseconds; it doubles with each further one.
const RETRY_DELAY: i64 = 10_000;
/// The longest delay, in milliseconds.
const MAX_RETRY_DELAY: i64 = 3_600_000;

/// A replaced identity and its platform user.
#[derive(Clone, Copy, Debug)]
pub struct ReplacedIdentity {
    /// The platform user.
    pub platform_user: Uuid,
    /// The identity that was replaced.
    pub identity: Uuid,
}

/// Ends one kind of access of a replaced identity. It must be idempotent: it can run again.
pub type RevocationStep = fn(&Context, &mut Tx<'_>, ReplacedIdentity) -> Result<(), Problem>;

/// The steps of a revocation, all in one transaction: the person is signed out.
pub static REVOCATION_STEPS: &[RevocationStep] =
    &[|context, tx, replaced| sign_out(context, tx, SignOutScope::People(&[replaced.platform_user]))];

/// Queues the revocation for the job.
pub(super) fn begin(tx: &mut Tx<'_>, rid: i64, now: Timestamp) -> Result<(), StoreError> {
    tx.queue(
        &StateTable::IdentityRevocation
            .insert("(replacement_rid, due_on, attempts, leased_until) VALUES (?1, ?2, 0, 0)"),
        vec![Value::Int(rid), Value::Int(now.0)],
    )
}

/// Revocations that are due and not leased, the oldest first, at most `limit`.
pub fn due(tx: &mut Tx<'_>, now: Timestamp, limit: usize) -> Result<Vec<i64>, StoreError> {
    let mut rids = Vec::new();
    let text = format!(
        "SELECT replacement_rid FROM identity_revocation WHERE due_on <= ?1 AND leased_until <= ?1 \
         ORDER BY due_on, replacement_rid LIMIT {limit}"
    );
    tx.query(&text, &[Value::Int(now.0)], |row| {
        rids.push(row.int(0)?);
        Ok(())
    })?;
    Ok(rids)
}

/// Leases a revocation and counts the attempt, so that one that kills its process is counted too. Returns
/// whether the revocation was still free.
pub fn lease(tx: &mut Tx<'_>, rid: i64, lease: Uuid, now: Timestamp) -> Result<bool, StoreError> {
    let changed = tx.execute(
        &StateTable::IdentityRevocation.update(
            "SET lease = ?1, leased_until = ?2, attempts = attempts + 1 \
         WHERE replacement_rid = ?3 AND due_on <= ?4 AND leased_until <= ?4",
        ),
        &[Value::Id(lease), Value::Int(now.plus(LEASE).0), Value::Int(rid), Value::Int(now.0)],
    )?;
    Ok(changed == 1)
}

/// The attempts at a revocation, if the lease still holds.
fn attempts(tx: &mut Tx<'_>, rid: i64, lease: Uuid) -> Result<Option<i64>, StoreError> {
    let text = "SELECT attempts FROM identity_revocation WHERE replacement_rid = ?1 AND lease = ?2";
    tx.one(text, &[Value::Int(rid), Value::Id(lease)], |row| row.int(0))
}

/// Runs the steps of a leased revocation, and with them completes the replacement. Returns whether the lease
/// still held.
///
/// # Errors
/// The error of a step, and then no step has any effect. Errors of the store.
pub fn complete(
    context: &Context,
    tx: &mut Tx<'_>,
    rid: i64,
    lease: Uuid,
    steps: &[RevocationStep],
) -> Result<bool, Problem> {
    let Some(attempts) = attempts(tx, rid, lease)? else { return Ok(false) };
    let Some(was) = load_rows(context, tx, &IDENTITY_REPLACEMENT, &[rid])?.pop() else {
        return Ok(false);
    };
    let mut replacement = IdentityReplacement::from_values(was.values.clone())?;
    let replaced = ReplacedIdentity {
        platform_user: replacement.platform_user_id.0,
        identity: replacement.current_identity_id.0,
    };
    steps.iter().try_for_each(|step| step(context, tx, replaced))?;
    replacement.status = Status::Completed;
    replacement.revocation_completed_on = Some(context.now);
    replacement.revocation_attempts = attempts;
    let text = StateTable::IdentityRevocation.delete("WHERE replacement_rid = ?1 AND lease = ?2");
    tx.queue_one(&text, vec![Value::Int(rid), Value::Id(lease)])?;
    advance(context, tx, &IDENTITY_REPLACEMENT, &was, replacement.into_values(), event_name!("completed"))?;
    Ok(true)
}

/// Delays a revocation that failed, longer each time. Returns whether the lease still held.
pub fn fail(context: &Context, tx: &mut Tx<'_>, rid: i64, lease: Uuid, why: &str) -> Result<bool, Problem> {
    let Some(attempts) = attempts(tx, rid, lease)? else { return Ok(false) };
    let Some(was) = load_rows(context, tx, &IDENTITY_REPLACEMENT, &[rid])?.pop() else { return Ok(false) };
    tx.queue_one(
        &StateTable::IdentityRevocation.update(
            "SET due_on = ?1, lease = NULL, leased_until = 0, last_error = ?2 \
         WHERE replacement_rid = ?3 AND lease = ?4",
        ),
        vec![
            Value::Int(context.now.plus(retry_delay(attempts)).0),
            why.into(),
            Value::Int(rid),
            Value::Id(lease),
        ],
    )?;
    let mut replacement = IdentityReplacement::from_values(was.values.clone())?;
    let had_failed = replacement.status == Status::RevocationFailed;
    replacement.status = Status::RevocationFailed;
    replacement.revocation_attempts = attempts;
    let values = replacement.into_values();
    if had_failed {
        // the number of attempts is a counter: it is not audited
        update_unversioned(context, tx, &IDENTITY_REPLACEMENT, &was, &values, AuditAction::Silent)?;
    } else {
        advance(context, tx, &IDENTITY_REPLACEMENT, &was, values, event_name!("revocationfailed"))?;
    }
    Ok(true)
}

/// The delay after so many attempts, in milliseconds.
fn retry_delay(attempts: i64) -> i64 {
    let doublings = u32::try_from(attempts.saturating_sub(1).clamp(0, 20)).unwrap_or(0);
    (RETRY_DELAY << doublings).min(MAX_RETRY_DELAY)
}

/// Whether there are open requests that have expired.
pub fn is_overdue(tx: &mut Tx<'_>, now: Timestamp) -> Result<bool, StoreError> {
    let text =
        "SELECT 1 FROM identity_replacement WHERE open_user_id IS NOT NULL AND expires_on <= ?1 LIMIT 1";
    Ok(tx.one(text, &[Value::Int(now.0)], |_| Ok(()))?.is_some())
}

/// Closes expired requests, at most `limit`, and releases their identities. Returns how many it closed.
pub fn expire_due(context: &mut Context, tx: &mut Tx<'_>, limit: usize) -> Result<usize, Problem> {
    let mut rids = Vec::new();
    let text = format!(
        "SELECT rid FROM identity_replacement WHERE open_user_id IS NOT NULL AND expires_on <= ?1 \
         ORDER BY expires_on LIMIT {limit}"
    );
    tx.query(&text, &[Value::Int(context.now.0)], |row| {
        rids.push(row.int(0)?);
        Ok(())
    })?;
    for was in load_rows(context, tx, &IDENTITY_REPLACEMENT, &rids)? {
        let replacement = IdentityReplacement::from_values(was.values.clone())?;
        expire(context, tx, &was, replacement)?;
    }
    Ok(rids.len())
}

#[cfg(test)]
mod tests {
    use super::{MAX_RETRY_DELAY, RETRY_DELAY, retry_delay};

    #[test]
    fn retry_delays_grow_up_to_a_bound() {
        assert_eq!(
            [0, 1, 2, 3].map(retry_delay),
            [RETRY_DELAY, RETRY_DELAY, 2 * RETRY_DELAY, 4 * RETRY_DELAY]
        );
        assert_eq!([20, 64, i64::MAX].map(retry_delay), [MAX_RETRY_DELAY; 3]);
    }
}
