//! `chancery audit export`: a trail in the order of its tree, in one snapshot, row by row.

use std::{
    fmt,
    io::{self, Write},
};

use chancery_auth::{ensure_keys, load_store_context};
use chancery_ledger::{TILE, write_end, write_entry, write_head, write_tile};
use chancery_record::{Timestamp, Value};
use chancery_resource::{
    EntryPosition, MasterKey, Scope, Tree, next_leaf, origin, read_entries, read_leaves, read_stray_entries,
};
use chancery_store::{Error, Mode, Store, Tx, selectable};
use chancery_userstore::audit_trail::AUDIT_TRAIL;

/// The names by which the configuration's trail is selected.
const CONFIGURATION: [&str; 2] = ["management", "configuration"];

/// A summary of an export.
#[derive(Debug)]
pub struct ExportSummary {
    /// The tree's origin, as its checkpoints name it.
    pub origin: String,
    /// The number of entries that the newest checkpoint covers.
    pub entries: u64,
    /// The number of entries that it does not cover yet.
    pub waiting: u64,
    /// Whether deletions of users are among those. In the file, the contents that they erased look as if
    /// they were not erased.
    pub deletions_wait: bool,
}

/// Why a trail cannot be exported.
#[derive(Debug)]
pub enum ExportError {
    /// No user store has this name or id.
    NoStore(String),
    /// The transaction was repeated, and the written output cannot be taken back.
    Interrupted,
    /// The output cannot be written.
    Write(io::Error),
    /// The store failed.
    Store(Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStore(name) => write!(formatter, "there is no user store {name:?}"),
            Self::Interrupted => formatter.write_str("the connection to the database broke; export again"),
            Self::Write(error) => write!(formatter, "cannot write the export: {error}"),
            Self::Store(error) => write!(formatter, "cannot read the trail: {error}"),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<Error> for ExportError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Exports the trail of a user store, or of the configuration, up to its newest checkpoint. `progress`
/// gets the number of entries written and their total.
///
/// # Errors
/// Every [`ExportError`]; the output is then incomplete, which verification reports.
pub async fn export<W: Write + Send + 'static>(
    store: &Store,
    master: &MasterKey,
    name: &str,
    now: Timestamp,
    out: W,
    mut progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<(W, ExportSummary), ExportError> {
    let (master, name) = (master.clone(), name.to_owned());
    let mut out = Some(out);
    let run = move |tx: &mut Tx<'_>| {
        let scope = find(tx, &name)?;
        // fails with the key of another database, under which all contents would look erased
        ensure_keys(tx, &master, now)?;
        // a transaction may run again, but output cannot be undone
        let out = out.take().ok_or(ExportError::Interrupted)?;
        let mut file = File { out, line: Vec::new(), failed: None };
        let outcome = write(tx, &scope, &master, now, &mut file, &mut progress);
        match (outcome, file.failed) {
            (Ok(exported), None) => Ok((file.out, exported)),
            (_, Some(error)) => Err(ExportError::Write(error)),
            (Err(error), None) => Err(ExportError::Store(error)),
        }
    };
    store.run("ExportAudit", Mode::Long, None, run).await
}

/// Whether there are deleted users whose deletion is in no tree yet.
pub async fn deletions_wait(store: &Store, name: &str) -> Result<bool, ExportError> {
    let name = name.to_owned();
    let look = move |tx: &mut Tx<'_>| {
        let scope = find(tx, &name)?;
        Ok(waiting(tx, scope.store())?.deletions > 0)
    };
    store.run("FindDeletions", Mode::Long, None, look).await
}

fn find(tx: &mut Tx<'_>, name: &str) -> Result<Scope, ExportError> {
    if CONFIGURATION.contains(&name) {
        return Ok(Scope::Everything);
    }
    let store = load_store_context(tx, name)?;
    store.map(|store| Scope::Store(store.scope)).ok_or_else(|| ExportError::NoStore(name.to_owned()))
}

selectable! {
    /// The entries in no tree yet.
    #[derive(Default)]
    struct WaitingEntries from "FROM (SELECT event FROM event_pending WHERE tree = ?1 \
        UNION ALL SELECT entry FROM audit_pending WHERE store = ?1 \
        UNION ALL SELECT l.entry FROM audit_leaf l WHERE l.store = ?1 \
        AND l.position >= coalesce((SELECT a.size FROM audit_tree a WHERE a.store = ?1), 0)) p \
        JOIN audit_entry e ON e.rid = p.event" {
        count: u64 = "count(*)",
        /// The deletions of users among them.
        deletions: u64 = "count(CASE WHEN e.area = 'User' AND e.action = 'Deleted' THEN 1 END)",
    }
}

fn waiting(tx: &mut Tx<'_>, store: i64) -> Result<WaitingEntries, Error> {
    Ok(tx.one(WaitingEntries::SELECT, &[Value::Int(store)], WaitingEntries::read)?.unwrap_or_default())
}

/// The output. A write error is remembered here, since the store's error type cannot hold it.
struct File<W> {
    out: W,
    line: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> File<W> {
    /// Writes the buffered line.
    fn put(&mut self) -> Result<(), Error> {
        let outcome = self.out.write_all(&self.line);
        self.line.clear();
        self.note(outcome)
    }

    fn entry(&mut self, position: u64, json: &[u8]) -> Result<(), Error> {
        write_entry(json, position, &mut self.line).map_err(|error| Error::Internal(error.to_string()))?;
        self.put()
    }

    fn note(&mut self, outcome: io::Result<()>) -> Result<(), Error> {
        outcome.map_err(|error| {
            let error_of_store = Error::Internal(error.to_string());
            self.failed = Some(error);
            error_of_store
        })
    }
}

fn write<W: Write>(
    tx: &mut Tx<'_>,
    scope: &Scope,
    master: &MasterKey,
    now: Timestamp,
    file: &mut File<W>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportSummary, Error> {
    let (store, origin) = (scope.store(), origin(scope.store_id()));
    let tree = Tree::load(tx, store)?;
    write_head(&origin, tree.checkpoint.as_deref(), tree.size, now, &mut file.line);
    file.put()?;
    let mut start = 0;
    while start < tree.size {
        let end = tree.size.min(start + TILE);
        let (placed, hashes) = read_leaves(tx, store, start, end)?;
        if placed.is_empty() {
            // a whole tile is missing, or the size is not the tree's
            let Some(next) = next_leaf(tx, store, end)? else { break };
            start = next - next % TILE;
            continue;
        }
        write_tile(start / TILE, &hashes, &mut file.line);
        file.put()?;
        let each = &mut |position, json: &[u8]| file.entry(position, json);
        read_entries(tx, &AUDIT_TRAIL, master, scope, &placed, each)?;
        progress(end, tree.size);
        start = end;
    }
    write_strays(tx, scope, master, tree.size, file)?;
    write_end(tree.size, &mut file.line);
    file.put()?;
    let flushed = file.out.flush();
    file.note(flushed)?;
    let waiting = waiting(tx, store)?;
    Ok(ExportSummary {
        origin,
        entries: tree.size,
        waiting: waiting.count,
        deletions_wait: waiting.deletions > 0,
    })
}

/// Writes entries of the trail that the tree does not contain, so that verification reports them.
fn write_strays<W: Write>(
    tx: &mut Tx<'_>,
    scope: &Scope,
    master: &MasterKey,
    size: u64,
    file: &mut File<W>,
) -> Result<(), Error> {
    let (mut last, mut position) = (i64::MIN, size);
    while let Some((strays, seen)) = read_stray_entries(tx, scope.store(), size, last)? {
        let placed = (position..).zip(strays).map(|(position, entry)| EntryPosition { position, entry });
        let placed: Vec<EntryPosition> = placed.collect();
        position += placed.len() as u64;
        let each = &mut |position, json: &[u8]| file.entry(position, json);
        read_entries(tx, &AUDIT_TRAIL, master, scope, &placed, each)?;
        last = seen;
    }
    Ok(())
}
