//! Assigns positions to committed events. A number is taken before the commit, so a reader that continues after the highest
//! number it saw would miss events that commit later. A position is assigned afterwards, by one process at a time: a reader that
//! sees one sees all below it, and there is no gap.

use std::{sync::Arc, time::Duration};

use chancery_record::Value;
use chancery_resource::{LIST, Sql, number};
use chancery_store::{
    Class, Error, Figure, FigureSource, FigureUnit, Mode, StateTable, Store, Tx, Write, selectable,
};
use chancery_web::App;
use tokio::time::{Instant, sleep};

use super::{Job, Progress, heal};
use crate::start_error::BoxError;

/// The metrics of events.
pub static FIGURES: [Figure; 3] = [
    Figure {
        name: "outbox_events",
        help: "Events that have a position and are kept",
        unit: FigureUnit::Count,
        source: FigureSource::Query(
            "SELECT coalesce(CAST(sum(placed - pruned) AS BIGINT), 0) FROM event_trail",
        ),
    },
    Figure {
        name: "events_unplaced",
        help: "Events that have no position yet",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("1", "event_pending"),
    },
    Figure {
        name: "event_trails_stuck",
        help: "Trails whose events could not be given positions when that was tried last",
        unit: FigureUnit::Count,
        source: FigureSource::Recorded,
    },
];

/// The warning of readiness while a trail is stuck.
const STUCK: &str = "Events get no positions, so that readers and receivers of events wait. chancery_event_trails_stuck counts the trails; the log says why.";

/// The interval while nothing waits.
const INTERVAL: Duration = Duration::from_millis(100);
/// The interval while this process commits nothing: events of other processes wait so long.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
/// The interval while there is work.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);
/// How long a run continues while there is work.
const RUN: Duration = Duration::from_secs(10);
/// Events sequenced in one transaction, so that others do not wait.
const BATCH: usize = 1000;
/// Pending events that one statement deletes.
const FORGOTTEN: usize = 64;
/// Transactions for one trail before the next is processed.
const BATCHES: usize = 64;

/// Assigns positions to committed events.
pub fn job(app: &Arc<App>) -> Job {
    let (app, store) = (Arc::clone(app), &app.store);
    let work = move || {
        let app = Arc::clone(&app);
        async move {
            let store = app.store.with(Class::Background);
            let began = Instant::now();
            loop {
                let progress = |rows, done| app.note_backfill(heal::NAME, rows, done);
                let placed = sequence_trails(&store, &progress).await.map_err(BoxError::from)?;
                note_stuck(&app, &placed.failures);
                if let Some((trail, error)) = placed.failures.first() {
                    return Err(format!("the events of trail {trail} get no positions: {error}").into());
                }
                if placed.count == 0 || began.elapsed() >= RUN {
                    return Ok(());
                }
                sleep(BUSY_INTERVAL).await;
            }
        }
    };
    Job::new("placing", INTERVAL, work).after_commits(store, IDLE_INTERVAL).exclusive()
}

/// Shows in the metrics and in the detail of readiness whether trails are stuck.
fn note_stuck(app: &App, failures: &[(i64, Error)]) {
    app.note_figure(&FIGURES[2], i64::try_from(failures.len()).unwrap_or(i64::MAX));
    app.note_warning("placing", (!failures.is_empty()).then(|| STUCK.to_owned()));
}

/// Assigns positions to events committed before the call, up to a bound. Returns the number of events.
pub async fn sequence_pending(store: &Store) -> Result<u64, Error> {
    let placed = sequence_trails(store, &|_, _| ()).await?;
    placed.failures.into_iter().next().map_or(Ok(placed.count), |(_, error)| Err(error))
}

/// The number of sequenced events, and the trails where that failed.
struct Sequenced {
    count: u64,
    failures: Vec<(i64, Error)>,
}

/// A trail that fails does not delay others.
async fn sequence_trails(store: &Store, progress: Progress<'_>) -> Result<Sequenced, Error> {
    let (mut placed, mut last) = (Sequenced { count: 0, failures: Vec::new() }, i64::MIN);
    while let Some(trail) = next_trail(store, last).await? {
        last = trail;
        match sequence_trail(store, trail, progress).await {
            Ok(count) => placed.count += count,
            Err(error) => placed.failures.push((trail, error)),
        }
    }
    Ok(placed)
}

/// The next trail with pending events.
async fn next_trail(store: &Store, last: i64) -> Result<Option<i64>, Error> {
    let next = store.run("FindUnplaced", Mode::Quick, None, move |tx| {
        let first = |trail: &str, table: &str| {
            format!("SELECT * FROM (SELECT {trail} AS trail FROM {table} WHERE {trail} > ?1 ORDER BY {trail} LIMIT 1) {table}")
        };
        let (events, before) = (first("trail", "event_pending"), first("store", "audit_pending"));
        let text = format!("SELECT min(trail) FROM ({events} UNION ALL {before}) waiting");
        tx.one(&text, &[Value::Int(last)], |row| if row.is_null(0)? { Ok(None) } else { row.int(0).map(Some) })
    });
    Ok(next.await?.flatten())
}

async fn sequence_trail(store: &Store, trail: i64, progress: Progress<'_>) -> Result<u64, Error> {
    let mut placed = 0;
    for _ in 0..BATCHES {
        // read in a transaction of its own: within a write, every event that is committed meanwhile would be a conflict
        let waiting = store.run("ReadUnplaced", Mode::Long, None, move |tx| Waiting::read(tx, trail)).await?;
        let count = waiting.events.len();
        if count == 0 {
            break;
        }
        let assign = move |tx: &mut Tx<'_>| waiting.assign_positions(tx, trail);
        match store.run("PlaceEvents", Mode::Write, None, assign).await? {
            SequencingResult::Done => {
                placed += count as u64;
                if count < BATCH {
                    break;
                }
            }
            // pending events are read again
            SequencingResult::Overtaken => {}
            SequencingResult::Miscounted => {
                heal::heal(store, progress).await?;
            }
        }
    }
    Ok(placed)
}

/// The result of sequencing.
enum SequencingResult {
    /// All events have positions.
    Done,
    /// Another process was quicker.
    Overtaken,
    /// A program before 0.2.0 appended leaves to the tree: the trail must be repaired first.
    Miscounted,
}

/// Pending events of a trail, in the order of their numbers, and the trail's last position when they were read.
struct Waiting {
    placed: i64,
    events: Vec<PendingEvent>,
}

selectable! {
    /// A pending event.
    struct PendingEvent {
        /// Its number.
        event: i64 = "event",
        /// The store of its audit entry.
        tree: Option<i64> = "tree",
        /// Whether it is in the table into which the previous release writes.
        is_before: bool = "is_before",
    }
}

const PLACED: &str = "SELECT placed FROM event_trail WHERE trail = ?1";

/// Selects pending events from a table that is ordered by its key, up to a batch.
fn waiting(table: &str, trail: &str, event: &str, tree: &str, is_before: &str) -> String {
    format!(
        "SELECT * FROM (SELECT {event} AS event, {tree} AS tree, {is_before} AS is_before FROM {table} WHERE {trail} = ?1 \
         ORDER BY {event} LIMIT {BATCH}) {table}"
    )
}

impl Waiting {
    fn read(tx: &mut Tx<'_>, trail: i64) -> Result<Self, Error> {
        let placed = tx.one(PLACED, &[Value::Int(trail)], |row| row.int(0))?.unwrap_or(0);
        let mut events = Vec::new();
        let now = waiting("event_pending", "trail", "event", "tree", "FALSE");
        let once = waiting("audit_pending", "store", "entry", "store", "TRUE");
        let text = format!(
            "SELECT {} FROM ({now} UNION ALL {once}) waiting ORDER BY event LIMIT {BATCH}",
            PendingEvent::COLUMNS
        );
        tx.query(&text, &[Value::Int(trail)], |row| {
            events.push(PendingEvent::read(row)?);
            Ok(())
        })?;
        Ok(Self { placed, events })
    }

    /// Assigns the events their positions, if the trail still has the position that was read. Of two processes that do it at the
    /// same time, one changes no row.
    fn assign_positions(&self, tx: &mut Tx<'_>, trail: i64) -> Result<SequencingResult, Error> {
        let now = tx.one(PLACED, &[Value::Int(trail)], |row| row.int(0))?;
        if now.unwrap_or(0) != self.placed {
            return Ok(SequencingResult::Overtaken);
        }
        let leaves = Leaves::load(tx, tree_of(trail))?;
        if leaves.end > leaves.counted.unwrap_or(0) {
            return Ok(SequencingResult::Miscounted);
        }
        if now.is_none() {
            begin_trail(tx, trail)?;
        }
        let count = i64::try_from(self.events.len()).unwrap_or(i64::MAX);
        let advance =
            StateTable::EventTrail.update("SET placed = placed + ?1 WHERE trail = ?2 AND placed = ?3");
        tx.queue_one(&advance, vec![Value::Int(count), Value::Int(trail), Value::Int(self.placed)])?;
        let rows = (self.placed + 1..).zip(&self.events);
        let rows = rows.map(|(at, one)| vec![Value::Int(trail), Value::Int(at), Value::Int(one.event)]);
        insert(tx, StateTable::EventPosition, "(trail, position, event)", &rows.collect::<Vec<_>>())?;
        self.add_leaves(tx, tree_of(trail), &leaves)?;
        let numbers: Vec<i64> = self.events.iter().map(|one| one.event).collect();
        let before: Vec<i64> = self.events.iter().filter(|one| one.is_before).map(|one| one.event).collect();
        forget(tx, |rest| StateTable::EventPending.delete(rest), "trail", "event", trail, &numbers)?;
        forget(tx, |rest| StateTable::AuditPending.delete(rest), "store", "entry", trail, &before)?;
        Ok(SequencingResult::Done)
    }

    /// Assigns the audit entries of the events their positions in the tree.
    fn add_leaves(&self, tx: &mut Tx<'_>, tree: i64, leaves: &Leaves) -> Result<(), Error> {
        let entries: Vec<i64> =
            self.events.iter().filter(|one| one.tree == Some(tree)).map(|one| one.event).collect();
        if entries.is_empty() {
            return Ok(());
        }
        if leaves.counted.is_none() {
            begin_trail(tx, tree)?;
        }
        let leaves = leaves.counted.unwrap_or(0);
        let advance =
            StateTable::EventTrail.update("SET leaves = leaves + ?1 WHERE trail = ?2 AND leaves = ?3");
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        tx.queue_one(&advance, vec![Value::Int(count), Value::Int(tree), number(leaves)])?;
        let rows = (leaves..).zip(entries);
        let rows = rows.map(|(at, entry)| vec![Value::Int(tree), number(at), Value::Int(entry)]);
        insert(tx, StateTable::AuditLeaf, "(store, position, entry)", &rows.collect::<Vec<_>>())
    }
}

selectable! {
    /// The leaves of a tree.
    #[derive(Default)]
    pub(super) struct Leaves {
        /// The number that its trail counts, if there is one.
        counted: Option<u64> = "(SELECT leaves FROM event_trail WHERE trail = ?1)",
        /// The number of rows. By order and limit: for `max()` PostgreSQL reads every leaf, by a plan that it made while there
        /// were few.
        pub end: u64 =
            "coalesce((SELECT position + 1 FROM audit_leaf WHERE store = ?1 ORDER BY position DESC LIMIT 1), 0)",
    }
}

impl Leaves {
    /// Counts the leaves of a tree.
    pub fn load(tx: &mut Tx<'_>, tree: i64) -> Result<Self, Error> {
        let text = format!("SELECT {}", Self::COLUMNS);
        Ok(tx.one(&text, &[Value::Int(tree)], Self::read)?.unwrap_or_default())
    }
}

/// The tree of a trail's audit entries: sign-ins are audited with the configuration.
pub(super) const fn tree_of(trail: i64) -> i64 {
    if trail < 0 { 0 } else { trail }
}

/// Creates a trail's row, unless it exists.
pub(super) fn begin_trail(tx: &mut Tx<'_>, trail: i64) -> Result<(), Error> {
    let text = "(trail, placed, pruned, leaves) VALUES (?1, 0, 0, 0) ON CONFLICT DO NOTHING";
    tx.queue(&StateTable::EventTrail.insert(text), vec![Value::Int(trail)])
}

/// Deletes from a table of pending events. Each statement names the range of its numbers besides: PostgreSQL, which
/// assumes that a mostly empty table is empty, would compare all pending events with each of the list.
fn forget(
    tx: &mut Tx<'_>,
    delete: impl Fn(&str) -> Write,
    of: &str,
    event: &str,
    trail: i64,
    numbers: &[i64],
) -> Result<(), Error> {
    for chunk in numbers.chunks(FORGOTTEN) {
        let mut sql = Sql::new(format!("WHERE {of} = ")).bind(trail).push(&format!(" AND {event} >= "));
        sql = sql.bind(chunk.first().copied()).push(&format!(" AND {event} <= ")).bind(chunk.last().copied());
        sql.add(&format!(" AND {event} IN "));
        sql.add_list(chunk.iter().copied().map(Value::Int));
        tx.queue(&delete(&sql.text), sql.parameters)?;
    }
    Ok(())
}

/// Inserts rows, many in a statement. A few lengths of statements serve any number of rows.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    table: StateTable,
    columns: &str,
    rows: &[Vec<Value>],
) -> Result<(), Error> {
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
