//! Grows the Merkle trees over the audit trails from the sequenced leaves: in the background, so that writes do
//! not wait for it, and apart from sequencing, so that a tampered tree delays no event.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chancery_ledger::{Checkpoint, Frontier, Hash, Stamp, leaf_data, leaf_hash};
use chancery_record::{Timestamp, Value};
use chancery_resource::{
    AppContext, AuditSigner, EntryPosition, LIST, Sql, Tree, number, origin, with_nodes,
};
use chancery_store::{
    Class, Error, Figure, FigureSource, FigureUnit, Mode, StateTable, Store, Tx, selectable,
};
use chancery_web::App;
use uuid::Uuid;

use super::{
    Job,
    sequence::{Leaves, insert, sequence_pending},
};

use crate::start_error::BoxError;

/// The metrics of the audit trails.
pub static FIGURES: [Figure; 3] = [
    Figure {
        name: "audit_certificates_broken",
        help: "Certificates for the audit trail whose private keys cannot be opened, so that others sign",
        unit: FigureUnit::Count,
        source: FigureSource::Recorded,
    },
    Figure {
        name: "audit_unlogged",
        help: "Audit entries that have a place and are in no tree yet",
        unit: FigureUnit::Count,
        source: FigureSource::Query(
            "SELECT coalesce(CAST(sum(leaves - coalesce(size, 0)) AS BIGINT), 0) \
             FROM event_trail LEFT JOIN audit_tree ON store = trail WHERE leaves > coalesce(size, 0)",
        ),
    },
    Figure {
        name: "audit_checkpoint_time",
        help: "When the newest checkpoint of an audit trail was made",
        unit: FigureUnit::Time,
        source: FigureSource::Query("SELECT coalesce(max(made_on), 0) FROM audit_tree"),
    },
];

/// The interval between checks for new entries.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval while this process commits nothing.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);
/// Entries appended in one transaction, so that others do not wait.
const BATCH: usize = 1000;
/// Transactions for one tree before the next tree is processed.
const BATCHES: usize = 64;

/// Grows the trees.
pub fn job(app: &Arc<App>, now: fn() -> Timestamp) -> Job {
    let (app, store) = (Arc::clone(app), &app.store);
    let work = move || {
        let app = Arc::clone(&app);
        async move { grow_trees(&app, now()).await.map(drop).map_err(BoxError::from) }
    };
    Job::new("growing", INTERVAL, work).after_commits(store, IDLE_INTERVAL).exclusive()
}

/// Loads the current signing certificates, in each process: another one may be appending the leaves.
pub fn certify(app: &Arc<App>, now: fn() -> Timestamp) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            learn_certificates(&app, &store, now()).await.map_err(BoxError::from)
        }
    };
    Job::new("certify", INTERVAL, work).idle(IDLE_INTERVAL)
}

/// Loads the current signing certificates.
pub async fn learn_certificates(app: &App, store: &Store, now: Timestamp) -> Result<(), Error> {
    app.token_service.certify(store, &app.context.audit_signer, now).await?;
    let broken = app.context.audit_signer.broken().len();
    app.note_figure(&FIGURES[0], i64::try_from(broken).unwrap_or(i64::MAX));
    Ok(())
}

/// Sequences events committed before the call, and appends them to the trees: entries that were pending before the call are in a
/// tree after it, whichever process did it, up to a bound. Returns the number of entries appended.
///
/// # Errors
/// A tree differs from its last checkpoint.
pub async fn append_pending(app: &App, now: Timestamp) -> Result<u64, Error> {
    sequence_pending(&app.store.with(Class::Background)).await?;
    grow_trees(app, now).await
}

/// Loads the current signing certificates, and appends the sequenced leaves to the trees of their stores, with a new signed
/// checkpoint each. A tree that fails does not delay others.
async fn grow_trees(app: &App, now: Timestamp) -> Result<u64, Error> {
    let (store, context) = (&app.store.with(Class::Background), &app.context);
    learn_certificates(app, store, now).await?;
    let (mut appended, mut failure) = (0, None);
    for tree in short_trees(store).await? {
        match grow_tree(store, context, tree, now).await {
            Ok(count) => appended += count,
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(appended), Err)
}

/// The trees that lack leaves.
async fn short_trees(store: &Store) -> Result<Vec<i64>, Error> {
    let read = store.run("FindUnlogged", Mode::Quick, None, move |tx| {
        let text = "SELECT t.trail FROM event_trail t LEFT JOIN audit_tree a ON a.store = t.trail \
             WHERE t.leaves <> coalesce(a.size, 0) ORDER BY t.trail";
        let mut trees = Vec::new();
        tx.query(text, &[], |row| {
            trees.push(row.int(0)?);
            Ok(())
        })?;
        Ok::<_, Error>(trees)
    });
    read.await
}

async fn grow_tree(
    store: &Store,
    context: &Arc<AppContext>,
    tree: i64,
    now: Timestamp,
) -> Result<u64, Error> {
    let mut appended = 0;
    for _ in 0..BATCHES {
        // read in a transaction of its own: within a write, every leaf that is added meanwhile would be a conflict
        let waiting = store.run("ReadUnlogged", Mode::Long, None, move |tx| Waiting::read(tx, tree)).await?;
        let count = waiting.leaves.len();
        if waiting.size == waiting.end {
            break;
        }
        let context = Arc::clone(context);
        let grow = move |tx: &mut Tx<'_>| waiting.add(tx, &context.audit_signer, tree, now);
        // where another process was quicker, the unlogged leaves are read again
        if store.run("GrowTree", Mode::Write, None, grow).await? {
            appended += count as u64;
            if count < BATCH {
                break;
            }
        }
    }
    Ok(appended)
}

/// Leaves for a tree of this size, and the number of sequenced leaves.
struct Waiting {
    size: u64,
    end: u64,
    leaves: Vec<Hash>,
}

selectable! {
    /// An audit entry, as far as its leaf covers it.
    struct StoredEntry<'r> from "FROM audit_entry WHERE rid IN " {
        rid: i64 = "rid",
        timestamp: Timestamp = "timestamp",
        actor: Option<&'r str> = "actor",
        area: &'r str = "area",
        primary_key: &'r str = "primary_key",
        category: &'r str = "category",
        action: &'r str = "action",
        data_source: &'r str = "data_source",
        original_digest: Option<&'r [u8]> = "original_digest",
        current_digest: Option<&'r [u8]> = "current_digest",
        signature: &'r [u8] = "signature",
        signature_public_key_info: &'r [u8] = "signature_public_key_info",
        person: Option<Uuid> = "person",
    }
}

impl Waiting {
    fn read(tx: &mut Tx<'_>, tree: i64) -> Result<Self, Error> {
        let size = Tree::load(tx, tree)?.size;
        let counted = "SELECT leaves FROM event_trail WHERE trail = ?1";
        let mut end = tx.one(counted, &[Value::Int(tree)], |row| row.get(0))?.unwrap_or(0);
        if end < size {
            // a program before 0.2.0 appends leaves to the tree without counting them
            end = Leaves::load(tx, tree)?.end;
        }
        let (mut entries, mut next) = (Vec::new(), size);
        let text = format!(
            "SELECT {} FROM audit_leaf WHERE store = ?1 AND position >= ?2 AND position < ?3 ORDER BY position LIMIT {BATCH}",
            EntryPosition::COLUMNS
        );
        tx.query(&text, &[Value::Int(tree), number(size), number(end)], |row| {
            let EntryPosition { position, entry } = EntryPosition::read(row)?;
            // a missing leaf must not be skipped
            if position == next {
                entries.push(entry);
                next += 1;
            }
            Ok(())
        })?;
        let hashes = entry_hashes(tx, &entries)?;
        // nor one without an entry
        let leaves = entries.iter().map_while(|entry| hashes.get(entry).copied()).collect();
        Ok(Self { size, end, leaves })
    }

    /// Appends the leaves, if the tree still has the size that was read. Once the tree's row is written, any
    /// other process that appends at the same time is refused.
    fn add(&self, tx: &mut Tx<'_>, signer: &AuditSigner, tree: i64, now: Timestamp) -> Result<bool, Error> {
        let was = Tree::load(tx, tree)?;
        if was.size != self.size {
            return Ok(false);
        }
        let mut frontier = with_nodes(tx, tree, |mut read_node| Frontier::restore(was.size, &mut read_node))?;
        let origin = name(tx, signer, tree, &was, &frontier)?;
        if self.leaves.is_empty() {
            return Err(refused(tree, &format!("its leaf {} is missing, or the entry of that", was.size)));
        }
        let nodes: Vec<_> = self.leaves.iter().flat_map(|hash| frontier.push(*hash)).collect();
        let checkpoint = Checkpoint { origin, size: frontier.size(), root: frontier.root() };
        let note = signer.sign_checkpoint(&checkpoint).map_err(|error| Error::Internal(error.to_string()))?;
        if was.checkpoint.is_none() {
            let text = StateTable::AuditTree.insert("(store, size) VALUES (?1, 0) ON CONFLICT DO NOTHING");
            tx.queue(&text, vec![Value::Int(tree)])?;
        }
        let text = StateTable::AuditTree
            .update("SET size = ?1, checkpoint = ?2, made_on = ?3 WHERE store = ?4 AND size = ?5");
        let sizes = (number(checkpoint.size), number(was.size));
        tx.queue_one(&text, vec![sizes.0, note.into(), Value::Int(now.0), Value::Int(tree), sizes.1])?;
        let nodes = nodes.iter().map(|node| {
            let (level, hash) = (Value::Int(node.level.into()), Value::Bytes(node.hash.to_vec()));
            vec![Value::Int(tree), level, number(node.index), hash]
        });
        insert(tx, StateTable::AuditNode, "(store, level, position, hash)", &nodes.collect::<Vec<_>>())?;
        Ok(true)
    }
}

/// The hashes of audit entries, by their numbers.
pub fn entry_hashes(tx: &mut Tx<'_>, entries: &[i64]) -> Result<HashMap<i64, Hash>, Error> {
    // not joined to the leaves: with tables that look empty to PostgreSQL it would read all of the trail for each leaf
    let mut hashes = HashMap::with_capacity(entries.len());
    for some in entries.chunks(LIST) {
        let mut sql = Sql::new(StoredEntry::SELECT);
        sql.add_list(some.iter().copied().map(Value::Int));
        tx.query(&sql.text, &sql.parameters, |row| {
            let entry = StoredEntry::read(row)?;
            hashes.insert(entry.rid, entry.leaf_hash());
            Ok(())
        })?;
    }
    Ok(hashes)
}

impl StoredEntry<'_> {
    fn leaf_hash(&self) -> Hash {
        let stamp = Stamp {
            id: self.rid,
            timestamp: self.timestamp,
            user: self.actor,
            area: self.area,
            primary_key: self.primary_key,
            category: self.category,
            action: self.action,
            data_source: self.data_source,
            person: self.person,
        };
        let (original, current) = (self.original_digest, self.current_digest);
        leaf_hash(&leaf_data(&stamp, original, current, self.signature, self.signature_public_key_info))
    }
}

/// The tree's origin. The stored tree must match its last checkpoint: otherwise it was tampered with, and
/// the next checkpoint would vouch for the change.
fn name(
    tx: &mut Tx<'_>,
    signer: &AuditSigner,
    tree: i64,
    was: &Tree,
    frontier: &Frontier,
) -> Result<String, Error> {
    let refused = |why: String| refused(tree, &why);
    let own = if tree == 0 {
        Some(origin(None))
    } else {
        let text = "SELECT id FROM idp_instance WHERE rid = ?1";
        let id = tx.one(text, &[Value::Int(tree)], |row| row.id(0))?;
        id.map(|id| origin(Some(id)))
    };
    let last = was.checkpoint.as_ref().map(|note| signer.open_checkpoint(note)).transpose();
    let last = last.map_err(|error| refused(format!("its last checkpoint cannot be trusted: {error}")))?;
    let own = own.or_else(|| last.as_ref().map(|last| last.origin.clone()));
    let own = own.ok_or_else(|| refused("there is no such user store any more".to_owned()))?;
    let current = Checkpoint { origin: own, size: was.size, root: frontier.root() };
    if last.as_ref().map_or(was.size > 0, |last| *last != current) {
        return Err(refused("it is not the one of its last checkpoint".to_owned()));
    }
    Ok(current.origin)
}

fn refused(tree: i64, why: &str) -> Error {
    Error::Internal(format!("the audit tree of store {tree} does not grow: {why}"))
}
