//! Repairs the damage that programs before 0.2.0 did to the trails of events while they ran beside a newer one, or after it: they
//! append leaves to the audit trees without counting them in `event_trail`, and give no event a position.
//!
//! A tree with more leaves than its trail counts shows it. Then all events without a position become pending, and
//! the leaves are counted anew.

use std::{sync::Arc, time::Duration};

use chancery_record::Value;
use chancery_store::{Class, Error, Mode, StateTable, Store, Tx, selectable};
use chancery_web::App;

use super::{
    Job, Progress,
    sequence::{begin_trail, tree_of},
};

use crate::start_error::BoxError;

/// The interval between checks of idle trails; in busy ones, sequencing finds the damage.
const INTERVAL: Duration = Duration::from_mins(1);
pub const NAME: &str = "healing";
/// Events read in one transaction.
const BATCH: usize = 1000;

/// Repairs trails to which older programs appended.
pub fn job(app: &Arc<App>) -> Job {
    let app = Arc::clone(app);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            let progress = |rows, done| app.note_backfill(NAME, rows, done);
            heal(&store, &progress).await.map(drop).map_err(BoxError::from)
        }
    };
    Job::new(NAME, INTERVAL, work).exclusive()
}

/// Repairs every trail to which an older program appended. Returns the number of events that had no position.
///
/// # Errors
/// What was repaired until then stays, and the next call continues.
pub async fn heal(store: &Store, progress: Progress<'_>) -> Result<u64, Error> {
    // the leaves that exist now: the events behind them are committed, so the search below finds them all
    let trees = store.run("FindMiscountedTrees", Mode::Quick, None, miscounted).await?;
    if trees.is_empty() {
        return Ok(0);
    }
    let text = "SELECT count(*) FROM outbox_event";
    let count = store.run("CountEvents", Mode::Long, None, |tx| tx.one(text, &[], |row| row.int(0)));
    let rows = u64::try_from(count.await?.unwrap_or(0)).unwrap_or(0);
    let (mut repaired, mut read, mut last) = (0, 0, i64::MIN);
    loop {
        progress(rows, read);
        let batch = store.run("FindLostEvents", Mode::Long, None, move |tx| Batch::read(tx, last)).await?;
        let Some(next) = batch.last else { break };
        last = next;
        read += batch.rows;
        if !batch.lost.is_empty() {
            repaired += batch.lost.len() as u64;
            store.run("KeepLostEvents", Mode::Write, None, move |tx| batch.insert_pending(tx)).await?;
        }
    }
    // without the span of the job: sequencing repairs, too, and lines with its name report its failures
    tracing::warn!(
        parent: None,
        trails = trees.len(),
        events = repaired,
        "a program before 0.2.0 wrote to this database; its events get their positions now"
    );
    store.run("CountLeaves", Mode::Write, None, move |tx| count_leaves(tx, &trees)).await?;
    Ok(repaired)
}

selectable! {
    /// A tree that has more leaves than its trail counts.
    struct MiscountedTree from "FROM (SELECT a.store, coalesce(t.leaves, 0) AS counted, \
        coalesce((SELECT l.position + 1 FROM audit_leaf l WHERE l.store = a.store ORDER BY l.position DESC LIMIT 1), 0) \
        AS leaves \
        FROM audit_tree a LEFT JOIN event_trail t ON t.trail = a.store) tree WHERE leaves > counted ORDER BY store" {
        store: i64 = "store",
        /// The number of its leaves.
        leaves: i64 = "leaves",
    }
}

fn miscounted(tx: &mut Tx<'_>) -> Result<Vec<MiscountedTree>, Error> {
    let mut trees = Vec::new();
    tx.query(MiscountedTree::SELECT, &[], |row| {
        trees.push(MiscountedTree::read(row)?);
        Ok(())
    })?;
    Ok(trees)
}

/// Sets the leaf counts of trails to the actual numbers, unless they count more by now.
fn count_leaves(tx: &mut Tx<'_>, trees: &[MiscountedTree]) -> Result<(), Error> {
    for MiscountedTree { store, leaves } in trees {
        begin_trail(tx, *store)?;
        let count = StateTable::EventTrail.update("SET leaves = ?1 WHERE trail = ?2 AND leaves < ?1");
        tx.queue(&count, vec![Value::Int(*leaves), Value::Int(*store)])?;
    }
    Ok(())
}

/// Some events in the order of their numbers: those without a position that are not pending.
struct Batch {
    /// The number of the last event that was read.
    last: Option<i64>,
    /// The number of events that were read.
    rows: u64,
    lost: Vec<StoredEvent>,
}

selectable! {
    /// An event, and what it lacks.
    struct StoredEvent {
        event: i64 = "o.id",
        trail: i64 = "o.store",
        /// Whether it has a position, or waits for one.
        is_placed: bool = "EXISTS (SELECT 1 FROM event_place p WHERE p.event = o.id) \
            OR EXISTS (SELECT 1 FROM event_pending w WHERE w.trail = o.store AND w.event = o.id) \
            OR EXISTS (SELECT 1 FROM audit_pending w WHERE w.entry = o.id)",
        /// Whether its audit entry is not in the tree.
        lacks_leaf: bool = "EXISTS (SELECT 1 FROM audit_entry e WHERE e.rid = o.id) \
            AND NOT EXISTS (SELECT 1 FROM audit_leaf l WHERE l.entry = o.id)",
    }
}

impl Batch {
    fn read(tx: &mut Tx<'_>, after: i64) -> Result<Self, Error> {
        let text = format!(
            "SELECT {} FROM (SELECT id, store FROM outbox_event WHERE id > ?1 ORDER BY id LIMIT {BATCH}) o ORDER BY o.id",
            StoredEvent::COLUMNS
        );
        let mut batch = Self { last: None, rows: 0, lost: Vec::new() };
        tx.query(&text, &[Value::Int(after)], |row| {
            let stored = StoredEvent::read(row)?;
            (batch.last, batch.rows) = (Some(stored.event), batch.rows + 1);
            if !stored.is_placed {
                batch.lost.push(stored);
            }
            Ok(())
        })?;
        Ok(batch)
    }

    fn insert_pending(&self, tx: &mut Tx<'_>) -> Result<(), Error> {
        let text = "(trail, event, tree) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let insert = StateTable::EventPending.insert(text);
        for StoredEvent { event, trail, lacks_leaf, .. } in &self.lost {
            let tree = if *lacks_leaf { Value::Int(tree_of(*trail)) } else { Value::Null };
            tx.queue(&insert, vec![Value::Int(*trail), Value::Int(*event), tree])?;
        }
        Ok(())
    }
}
