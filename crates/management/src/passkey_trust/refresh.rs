//! Activates a verified snapshot, or records why a refresh failed.

use chancery_record::{Name, Record as _, ShortText, Value};
use chancery_resource::{
    AuditAction, Call, Context, Problem, StateTable, StoreError, StoredRow, Tx, event_name,
    update_unversioned,
};
use chancery_trust::{SnapshotOrder, accepts};

use super::{PasskeyTrustStatus, SOURCE, TRUST_SNAPSHOT, TrustSnapshot, VerifiedSnapshot, row};

/// The longest reason that is stored, in characters.
const REASON: usize = 1000;

/// The result of a refresh.
pub struct RefreshResult {
    /// The status after it.
    pub status: PasskeyTrustStatus,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

fn fault<E>(_: E) -> Problem {
    StoreError::Internal("a text of the metadata's own is not valid".into()).into()
}

pub fn status_of(values: Vec<Value>) -> Result<PasskeyTrustStatus, Problem> {
    let row = TrustSnapshot::from_values(values)?;
    Ok(PasskeyTrustStatus {
        has_last_known_good_snapshot: row.snapshot_number.is_some(),
        snapshot_number: row
            .snapshot_number
            .map(|no| Name::new(no.to_string()))
            .transpose()
            .map_err(fault)?,
        snapshot_version: row.snapshot_version,
        refreshed_on: row.refreshed_on,
        next_update_on: row.next_update_on,
        entry_count: row.entry_count,
        last_refresh_error: row.last_refresh_error,
    })
}

/// Ends a refresh. A failed one leaves the snapshot in use and records the reason.
pub fn finish(
    context: &Context,
    tx: &mut Tx<'_>,
    result: &Result<VerifiedSnapshot, String>,
) -> Result<RefreshResult, Problem> {
    let was = row(context, tx)?;
    let mut record = TrustSnapshot::from_values(was.values.clone())?;
    let failure = match result {
        Err(why) => Some(why.clone()),
        Ok(verified) => match accepts(record.snapshot_number, &verified.snapshot) {
            SnapshotOrder::Newer => {
                return activate(context, tx, &was, verified)
                    .map(|status| RefreshResult { status, failure: None });
            }
            SnapshotOrder::Same => None,
            SnapshotOrder::Older => Some(older(record.snapshot_number, verified)),
        },
    };
    let reason = failure.as_ref().map(|why| why.chars().take(REASON).collect::<String>());
    record.last_refresh_error = reason.map(ShortText::new).transpose().map_err(fault)?;
    let values = record.into_values();
    update_unversioned(context, tx, &TRUST_SNAPSHOT, &was, &values, AuditAction::UPDATED)?;
    Ok(RefreshResult { status: status_of(values)?, failure })
}

/// Ends an import.
///
/// # Errors
/// Conflict: the snapshot is older than the one in use.
pub fn import(
    call: &Call,
    tx: &mut Tx<'_>,
    verified: &VerifiedSnapshot,
) -> Result<PasskeyTrustStatus, Problem> {
    let was = row(&call.context, tx)?;
    let current = TrustSnapshot::from_values(was.values.clone())?.snapshot_number;
    match accepts(current, &verified.snapshot) {
        SnapshotOrder::Newer => activate(&call.context, tx, &was, verified),
        SnapshotOrder::Same => status_of(was.values),
        SnapshotOrder::Older => Err(Problem::conflict(older(current, verified))),
    }
}

fn older(current: Option<i64>, verified: &VerifiedSnapshot) -> String {
    let (current, number) = (current.unwrap_or_default(), verified.snapshot.no);
    format!(
        "Snapshot {number} is older than snapshot {current}, which is in use: what is known would be forgotten."
    )
}

/// Activates a snapshot: in every process, from the next operation on.
fn activate(
    context: &Context,
    tx: &mut Tx<'_>,
    was: &StoredRow,
    verified: &VerifiedSnapshot,
) -> Result<PasskeyTrustStatus, Problem> {
    let snapshot = &verified.snapshot;
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let because = snapshot.reasons.join("; ").chars().take(REASON).collect::<String>();
    let record = TrustSnapshot {
        source: Name::new(SOURCE).map_err(fault)?,
        snapshot_number: Some(snapshot.no),
        snapshot_version: Some(Name::new(snapshot.version.as_str()).map_err(fault)?),
        refreshed_on: Some(context.now),
        next_update_on: Some(snapshot.next_update),
        entry_count: number(snapshot.entries.saturating_sub(snapshot.skipped)),
        skipped_entry_count: number(snapshot.skipped),
        skipped_certificate_count: number(snapshot.skipped_roots),
        skipped_because: Some(because)
            .filter(|text| !text.is_empty())
            .map(ShortText::new)
            .transpose()
            .map_err(fault)?,
        last_refresh_error: None,
    };
    let values = record.into_values();
    update_unversioned(
        context,
        tx,
        &TRUST_SNAPSHOT,
        was,
        &values,
        AuditAction::Modified(event_name!("refreshed")),
    )?;
    tx.queue(
        &StateTable::PasskeyTrustSnapshot.insert("(source, snapshot_number, content) VALUES (?1, ?2, ?3) \
         ON CONFLICT (source) DO UPDATE SET snapshot_number = excluded.snapshot_number, content = excluded.content"),
        vec![SOURCE.into(), snapshot.no.into(), verified.bytes.clone().into()],
    )?;
    tx.advance_epoch()?;
    status_of(values)
}
