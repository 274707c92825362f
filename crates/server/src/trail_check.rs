//! Verifies the audit trails of a database against their last checkpoints.

use chancery_auth::{all_audit_keys, ensure_keys};
use chancery_ledger::{AuditKeys, Checkpoint, Frontier, TILE};
use chancery_resource::{MasterKey, read_leaves};
use chancery_store::{Error, Mode, Store, Tx, selectable};
use chancery_web::now;

use crate::{StartError, installation, jobs::ledger::entry_hashes};

selectable! {
    /// The tree of a trail.
    struct TreeOfStore from "FROM audit_tree ORDER BY store" {
        store: i64 = "store",
        size: u64 = "size",
        checkpoint: Option<String> = "checkpoint",
    }
}

/// Checks that each trail has exactly the entries that its last checkpoint covers. The time grows with the trails. Returns the
/// checkpoints.
///
/// # Errors
/// A trail does not match its checkpoint; the master key is not that of the database.
pub async fn check_trails(store: &Store, master: &MasterKey) -> Result<Vec<String>, StartError> {
    let master = master.clone();
    let checked = store.run("CheckTrails", Mode::Long, None, move |tx| {
        let keys = trail_keys(tx, &master)?;
        let mut trees = Vec::new();
        tx.query(TreeOfStore::SELECT, &[], |row| {
            trees.push(TreeOfStore::read(row)?);
            Ok(())
        })?;
        let mut checkpoints = Vec::new();
        for TreeOfStore { store, size, checkpoint } in trees {
            let Some(note) = checkpoint.filter(|_| size > 0) else { continue };
            check_trail(tx, store, size, &note, &keys)?;
            checkpoints.push(note);
        }
        Ok::<_, Error>(checkpoints)
    });
    checked.await.map_err(|error| StartError::new("the database is not what its audit trails say", error))
}

/// All keys that have signed the trails.
///
/// # Errors
/// The master key does not match.
pub fn trail_keys(tx: &mut Tx<'_>, master: &MasterKey) -> Result<AuditKeys, Error> {
    let (keyring, _) = ensure_keys(tx, master, now())?;
    AuditKeys::from_jwks(&all_audit_keys(tx, keyring.audit_jwks)?)
        .map_err(|error| Error::Internal(format!("the keys of the audit trail: {error}")))
}

fn check_trail(tx: &mut Tx<'_>, tree: i64, size: u64, note: &str, keys: &AuditKeys) -> Result<(), Error> {
    let wrong = |why: String| Error::Unavailable(format!("the audit trail of store {tree} {why}"));
    let checkpoint = Checkpoint::open(note, keys)
        .map_err(|error| wrong(format!("has a checkpoint that cannot be trusted: {error}")))?;
    if checkpoint.size != size {
        return Err(wrong(format!("has {size} entries, and its checkpoint is over {}", checkpoint.size)));
    }
    let mut whole = Frontier::default();
    for start in (0..size).step_by(usize::try_from(TILE).unwrap_or(usize::MAX)) {
        let end = size.min(start + TILE);
        let (placed, _) = read_leaves(tx, tree, start, end)?;
        let entries: Vec<i64> = placed.iter().map(|one| one.entry).collect();
        let hashes_by_entry = entry_hashes(tx, &entries)?;
        let hashes = placed.iter().map_while(|one| hashes_by_entry.get(&one.entry));
        let count = hashes.map(|hash| whole.push(*hash)).count();
        if count as u64 != end - start {
            return Err(wrong(format!("lacks an entry between {start} and {end}")));
        }
    }
    if whole.root() == checkpoint.root {
        Ok(())
    } else {
        Err(wrong("has other entries than its checkpoint was signed over".to_owned()))
    }
}

/// Checks that a database file is undamaged: a copy in full at its first start, and otherwise by the last entries of each trail.
///
/// # Errors
/// A missing or different entry.
pub async fn check_whole(store: &Store, master: &MasterKey) -> Result<(), StartError> {
    if store.is_copied() {
        check_trails(store, master).await?;
        let noted = installation::note_checked(store).await;
        return noted.map_err(|error| StartError::new("cannot write to the database", error));
    }
    check_ends(store).await
}

/// Checks that the last entries of each trail exist. The cost does not grow with the trails.
async fn check_ends(store: &Store) -> Result<(), StartError> {
    let read = store.run("CheckTrailEnds", Mode::Quick, None, |tx| {
        let text = "SELECT t.store FROM audit_tree t WHERE t.size > 0 AND NOT EXISTS \
            (SELECT 1 FROM audit_leaf l JOIN audit_entry e ON e.rid = l.entry \
            WHERE l.store = t.store AND l.position = t.size - 1)";
        tx.one(text, &[], |row| row.int(0))
    });
    let failed = |error: Error| StartError::new("cannot read the database", error);
    let Some(tree) = read.await.map_err(failed)? else { return Ok(()) };
    let why =
        format!("the audit trail of store {tree} lacks the last entry that its checkpoint was signed over");
    if store.engine() == "sqlite" {
        let why = format!(
            "{why}. A plain copy of a running server's file is not whole: restore a backup that `chancery backup` made"
        );
        return Err(StartError::new("the database is torn or damaged", why));
    }
    // on PostgreSQL a copied file is not the cause: the trail was tampered with, and the rest can be served
    tracing::error!(why, "the database is damaged");
    Ok(())
}
