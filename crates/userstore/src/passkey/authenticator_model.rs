//! Metadata of authenticator models: the snapshot in use, read once by each process.

use std::sync::Arc;

use chancery_resource::{Context, Problem, StoreError, Tx};
use chancery_trust::Snapshot;

/// The snapshot in use, if there is one. The store's options name it, as of the same
/// security epoch.
pub fn snapshot(context: &Context, tx: &mut Tx<'_>) -> Result<Option<Arc<Snapshot>>, Problem> {
    let Some(number) = context.scope.of_store()?.metadata else { return Ok(None) };
    if let Some(known) = context.app.snapshot.recall(number) {
        return Ok(Some(known));
    }
    let text = "SELECT content FROM passkey_trust_snapshot WHERE source = 'mds' AND snapshot_number = ?1";
    let snapshot = tx.one(text, &[number.into()], |row| Ok(row.bytes(0)?.to_vec()))?;
    // a newer snapshot replaced it, so the epoch of this call has ended
    let snapshot = snapshot.ok_or(StoreError::Stale)?;
    let snapshot = Snapshot::from_bytes(&snapshot).map_err(|refusal| StoreError::Internal(refusal.detail))?;
    let snapshot = Arc::new(snapshot);
    context.app.snapshot.remember(number, Arc::clone(&snapshot));
    Ok(Some(snapshot))
}
