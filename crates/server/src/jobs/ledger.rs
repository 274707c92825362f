//! Appends leaves to the Merkle trees over the audit trails: in the background, for committed entries, so
//! that writes do not wait for it.

use std::{sync::Arc, time::Duration};

use chancery_ledger::{Checkpoint, Frontier, Hash, Stamp, leaf_data, leaf_hash};
use chancery_record::{Timestamp, Value};
use chancery_resource::{AppContext, AuditSigner, LIST, Sql, Tree, number, origin, with_nodes};
use chancery_store::{Class, Error, Figure, FigureSource, FigureUnit, Mode, Row, StateTable, Store, Tx};
use chancery_web::App;

use super::Job;

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
        help: "Audit entries that are in no tree yet",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("1", "audit_pending"),
    },
    Figure {
        name: "audit_checkpoint_time",
        help: "When the newest checkpoint of an audit trail was made",
        unit: FigureUnit::Time,
        source: FigureSource::Query("SELECT coalesce(max(made_on), 0) FROM audit_tree"),
    },
];

/// The rest between checks for new entries.
const REST: Duration = Duration::from_secs(1);
/// Entries appended in one transaction, so that others do not wait.
const PIECE: usize = 1000;
/// Transactions for one tree before the next tree has its turn.
const PIECES: usize = 64;

/// Appends new entries to the trees.
pub fn job(app: &Arc<App>, now: fn() -> Timestamp) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move { append_pending(&app, now()).await.map(drop).map_err(|error| error.to_string()) }
    };
    Job::new("tree", REST, work).exclusive()
}

/// Loads the current signing certificates, in each process: another one may be appending the leaves.
pub fn certify(app: &Arc<App>, now: fn() -> Timestamp) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            learn_certificates(&app, &store, now()).await.map_err(|error| error.to_string())
        }
    };
    Job::new("certify", REST, work)
}

/// Loads the certificates that sign now.
///
/// # Errors
/// The store's.
pub async fn learn_certificates(app: &App, store: &Store, now: Timestamp) -> Result<(), Error> {
    app.token_service.certify(store, &app.context.audit_signer, now).await?;
    let broken = app.context.audit_signer.broken().len();
    app.note_figure(&FIGURES[0], i64::try_from(broken).unwrap_or(i64::MAX));
    Ok(())
}

/// Loads the certificates that sign now, and appends the unlogged entries to the trees of their stores, with
/// a new signed checkpoint each. What was unlogged before the call is in a tree after it, whichever process
/// appended it, unless there was very much. A tree that fails does not keep others waiting. Returns the
/// number of entries appended.
///
/// # Errors
/// The store's; a tree that differs from its last checkpoint.
pub async fn append_pending(app: &App, now: Timestamp) -> Result<u64, Error> {
    let (store, context) = (&app.store.with(Class::Background), &app.context);
    learn_certificates(app, store, now).await?;
    let (mut appended, mut tree, mut failure) = (0, -1, None);
    while let Some(next) = next_tree(store, tree).await? {
        tree = next;
        match grow_tree(store, context, tree, now).await {
            Ok(count) => appended += count,
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(appended), Err)
}

async fn next_tree(store: &Store, last: i64) -> Result<Option<i64>, Error> {
    let next = store.run("FindUnlogged", Mode::Quick, None, move |tx| {
        let text = "SELECT min(store) FROM audit_pending WHERE store > ?1";
        tx.one(text, &[Value::Int(last)], |row| if row.is_null(0)? { Ok(None) } else { row.int(0).map(Some) })
    });
    Ok(next.await?.flatten())
}

async fn grow_tree(
    store: &Store,
    context: &Arc<AppContext>,
    tree: i64,
    now: Timestamp,
) -> Result<u64, Error> {
    let mut appended = 0;
    for _ in 0..PIECES {
        // read in a transaction of its own: within a write, every concurrent entry would be a conflict
        let waiting = store.run("ReadUnlogged", Mode::Long, None, move |tx| Waiting::read(tx, tree)).await?;
        let count = waiting.leaves.len();
        if count == 0 {
            break;
        }
        let context = Arc::clone(context);
        let grow = move |tx: &mut Tx<'_>| waiting.add(tx, &context.audit_signer, tree, now);
        // where another process was quicker, the unlogged entries are read again
        if store.run("GrowTree", Mode::Write, None, grow).await? {
            appended += count as u64;
            if count < PIECE {
                break;
            }
        }
    }
    Ok(appended)
}

/// Unlogged entries for a tree of this size: their ids and leaves.
struct Waiting {
    size: u64,
    leaves: Vec<(i64, Hash)>,
}

const WAITING: &str = "SELECT e.rid, e.timestamp, e.actor, e.area, e.primary_key, e.category, e.action, \
    e.data_source, e.original_digest, e.current_digest, e.signature, e.signature_public_key_info, \
    e.person \
    FROM audit_pending p JOIN audit_entry e ON e.rid = p.entry WHERE p.store = ?1 ORDER BY p.entry LIMIT";

impl Waiting {
    fn read(tx: &mut Tx<'_>, tree: i64) -> Result<Self, Error> {
        let size = Tree::read(tx, tree)?.size;
        let mut leaves = Vec::new();
        tx.query(&format!("{WAITING} {PIECE}"), &[Value::Int(tree)], |row| {
            leaves.push(leaf(row)?);
            Ok(())
        })?;
        Ok(Self { size, leaves })
    }

    /// Appends the leaves, if the tree still has the size that was read. Once the tree's row is written, any
    /// other process that appends at the same time is refused.
    fn add(&self, tx: &mut Tx<'_>, signer: &AuditSigner, tree: i64, now: Timestamp) -> Result<bool, Error> {
        let was = Tree::read(tx, tree)?;
        if was.size != self.size {
            return Ok(false);
        }
        let mut frontier = with_nodes(tx, tree, |mut ask| Frontier::restore(was.size, &mut ask))?;
        let origin = name(tx, signer, tree, &was, &frontier)?;
        let nodes: Vec<_> = self.leaves.iter().flat_map(|(_, hash)| frontier.push(*hash)).collect();
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
        let leaves = (was.size..).zip(&self.leaves);
        let leaves = leaves.map(|(at, (entry, _))| vec![Value::Int(tree), number(at), Value::Int(*entry)]);
        insert(tx, (StateTable::AuditLeaf, "(store, position, entry)"), &leaves.collect::<Vec<_>>())?;
        let nodes = nodes.iter().map(|node| {
            let (level, hash) = (Value::Int(node.level.into()), Value::Bytes(node.hash.to_vec()));
            vec![Value::Int(tree), level, number(node.index), hash]
        });
        insert(tx, (StateTable::AuditNode, "(store, level, position, hash)"), &nodes.collect::<Vec<_>>())?;
        for chunk in self.leaves.chunks(LIST) {
            let mut sql = Sql::new("WHERE entry IN ");
            sql.add_list(chunk.iter().map(|(entry, _)| Value::Int(*entry)));
            tx.queue(&StateTable::AuditPending.delete(&sql.text), sql.parameters)?;
        }
        Ok(true)
    }
}

fn leaf(row: &Row<'_>) -> Result<(i64, Hash), Error> {
    let bytes = |column| if row.is_null(column)? { Ok(None) } else { row.bytes(column).map(Some) };
    let stamp = Stamp {
        id: row.int(0)?,
        timestamp: Timestamp(row.int(1)?),
        user: if row.is_null(2)? { None } else { Some(row.text(2)?) },
        area: row.text(3)?,
        primary_key: row.text(4)?,
        category: row.text(5)?,
        action: row.text(6)?,
        data_source: row.text(7)?,
        person: if row.is_null(12)? { None } else { Some(row.id(12)?) },
    };
    let data = leaf_data(&stamp, bytes(8)?, bytes(9)?, row.bytes(10)?, row.bytes(11)?);
    Ok((stamp.id, leaf_hash(&data)))
}

/// The tree's origin. The stored tree must match its last checkpoint: otherwise somebody changed it, and
/// the next checkpoint would vouch for the change.
fn name(
    tx: &mut Tx<'_>,
    signer: &AuditSigner,
    tree: i64,
    was: &Tree,
    frontier: &Frontier,
) -> Result<String, Error> {
    let refused =
        |why: String| Error::Internal(format!("the audit tree of store {tree} does not grow: {why}"));
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
    let kept = Checkpoint { origin: own, size: was.size, root: frontier.root() };
    if last.as_ref().map_or(was.size > 0, |last| *last != kept) {
        return Err(refused("it is not the one of its last checkpoint".to_owned()));
    }
    Ok(kept.origin)
}

/// Inserts rows, many in a statement. A few lengths of statements serve any number of rows.
fn insert(tx: &mut Tx<'_>, (table, columns): (StateTable, &str), rows: &[Vec<Value>]) -> Result<(), Error> {
    let mut left = rows;
    for length in [LIST, 64, 8, 1] {
        while let Some((now, later)) = left.split_at_checked(length) {
            let mut sql = Sql::new(format!("{columns} VALUES "));
            for (index, row) in now.iter().enumerate() {
                for (column, value) in row.iter().enumerate() {
                    sql.add(match (index, column) {
                        (0, 0) => "(",
                        (_, 0) => "), (",
                        _ => ", ",
                    });
                    sql.add_bound(value.clone());
                }
            }
            sql.add(")");
            tx.queue(&table.insert(&sql.text), sql.parameters)?;
            left = later;
        }
    }
    Ok(())
}
