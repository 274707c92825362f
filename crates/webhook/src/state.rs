//! The state of deliveries besides the subscriptions: the readers' cursors, waiting deliveries, and attempts.

use chancery_record::{Timestamp, Value};
use chancery_resource::{
    EventCursor, LIST, Sql, StateTable, StoreError, TrailState, Tx, feed::Outgoing, selectable,
};
use uuid::Uuid;

use crate::schedule::{LONGEST_PAUSE, LONGEST_REST};

/// The most waiting deliveries of a subscription: beyond them it stops reading new events.
pub const MAX_WAITING: i64 = 100_000;

selectable! {
    /// The health of a subscription's deliveries.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Health from "FROM event_subscriber WHERE subscription_id = ?1" {
        /// Failures in a row.
        pub failures: i64 = "failures",
        /// Since when nothing succeeded.
        pub failing_since: Option<Timestamp> = "failing_since",
        /// Until when nothing is sent to the receiver.
        pub paused_until: Timestamp = "paused_until",
    }
}

impl Health {
    /// How long nothing is sent to the receiver yet, in ms. A pause longer than the maximum was set before the
    /// clock was set back, and is over.
    pub const fn pause(&self, now: Timestamp) -> i64 {
        let left = self.paused_until.0 - now.0;
        if left < 0 || left > LONGEST_PAUSE { 0 } else { left }
    }
}

/// A delivery that waits for its first or its next try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its row.
    pub rid: i64,
    /// The event's id.
    pub event: String,
    /// The event's type.
    pub kind: String,
    /// The subject of the event.
    pub subject: String,
    /// The envelope.
    pub body: String,
    /// The tries so far.
    pub tries: i64,
    /// The event's cursor in its trail; position 0 where it is in none.
    pub at: EventCursor,
}

impl Waiting {
    /// The delivery of an event that was not tried yet.
    pub fn of(event: &Outgoing) -> Self {
        Self {
            rid: 0,
            event: event.id.clone(),
            kind: event.kind.clone(),
            subject: event.subject.clone(),
            body: event.body.clone(),
            tries: 0,
            at: event.at,
        }
    }
}

selectable! {
    /// A delivery as it is stored.
    struct StoredDelivery {
        rid: i64 = "d.rid",
        event: String = "d.event",
        kind: String = "d.kind",
        subject: String = "d.subject",
        body: String = "d.body",
        tries: i64 = "d.tries",
        trail: i64 = "d.trail",
        position: i64 = "d.position",
    }
}

impl From<StoredDelivery> for Waiting {
    fn from(stored: StoredDelivery) -> Self {
        let StoredDelivery { rid, event, kind, subject, body, tries, trail, position } = stored;
        Self { rid, event, kind, subject, body, tries, at: EventCursor { trail, position, event: 0 } }
    }
}

/// A result of a try, or of several events that were delivered at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The id of the event. For several events, it is the id of the last one.
    pub event: String,
    /// Its type.
    pub kind: String,
    /// The number of events that were delivered.
    pub count: i64,
    /// The number of the attempt, starting from 1.
    pub number: i64,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The reason for the failure.
    pub reason: Option<String>,
    /// The duration in milliseconds. For several events, it is the longest.
    pub duration: i64,
}

/// Reads the health of a subscription's deliveries.
pub fn health(tx: &mut Tx<'_>, subscription: Uuid) -> Result<Health, StoreError> {
    let read = tx.one(Health::SELECT, &[Value::Id(subscription)], Health::read)?;
    Ok(read.unwrap_or(Health { failures: 0, failing_since: None, paused_until: Timestamp(0) }))
}

/// How many deliveries wait, at most [`MAX_WAITING`].
pub fn count_waiting(tx: &mut Tx<'_>, subscription: Uuid) -> Result<i64, StoreError> {
    let text = format!(
        "SELECT count(*) FROM (SELECT 1 FROM event_delivery WHERE subscription_id = ?1 AND dead_on IS NULL LIMIT {MAX_WAITING}) w"
    );
    Ok(tx.one(&text, &[Value::Id(subscription)], |row| row.int(0))?.unwrap_or(0))
}

/// Due deliveries, the oldest first; of a subject the first alone, where its order is kept. A rest longer than
/// the maximum was set before the clock was set back, so the delivery is due, too.
pub fn due(
    tx: &mut Tx<'_>,
    subscription: Uuid,
    now: Timestamp,
    is_ordered: bool,
    most: usize,
) -> Result<Vec<Waiting>, StoreError> {
    let first = if is_ordered {
        " AND NOT EXISTS (SELECT 1 FROM event_delivery e WHERE e.subscription_id = d.subscription_id \
          AND e.subject = d.subject AND e.rid < d.rid AND e.dead_on IS NULL)"
    } else {
        ""
    };
    let text = format!(
        "SELECT {} FROM event_delivery d WHERE d.subscription_id = ?1 \
         AND d.dead_on IS NULL AND d.due_on > ?2 AND d.due_on <= ?3{first} ORDER BY d.due_on, d.rid LIMIT {most}",
        StoredDelivery::COLUMNS
    );
    let mut due = Vec::new();
    for (after, upto) in [(i64::MIN, now.0), (now.0.saturating_add(LONGEST_REST), i64::MAX)] {
        if due.len() >= most {
            break;
        }
        tx.query(&text, &[Value::Id(subscription), after.into(), upto.into()], |row| {
            due.push(StoredDelivery::read(row)?.into());
            Ok(())
        })?;
    }
    due.truncate(most);
    Ok(due)
}

/// The subjects among these with waiting deliveries.
pub fn held_back(tx: &mut Tx<'_>, subscription: Uuid, subjects: &[&str]) -> Result<Vec<String>, StoreError> {
    let mut held = Vec::new();
    for chunk in subjects.chunks(LIST) {
        let mut sql = Sql::new(
            "SELECT DISTINCT subject FROM event_delivery WHERE dead_on IS NULL AND subscription_id = ",
        );
        sql.add_bound(Value::Id(subscription));
        sql.add(" AND subject IN ");
        sql.add_list(chunk.iter().map(|subject| Value::from(*subject)));
        tx.query(&sql.text, &sql.parameters, |row| {
            held.push(row.text(0)?.to_owned());
            Ok(())
        })?;
    }
    Ok(held)
}

/// Inserts a delivery until it is due.
pub fn insert_delivery(
    tx: &mut Tx<'_>,
    subscription: Uuid,
    waiting: &Waiting,
    due_on: Timestamp,
) -> Result<(), StoreError> {
    let text = "(subscription_id, event, kind, subject, body, due_on, tries, trail, position) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let values = vec![
        Value::Id(subscription),
        waiting.event.as_str().into(),
        waiting.kind.as_str().into(),
        waiting.subject.as_str().into(),
        waiting.body.as_str().into(),
        Value::Int(due_on.0),
        Value::Int(waiting.tries),
        Value::Int(waiting.at.trail),
        Value::Int(waiting.at.position),
    ];
    tx.queue(&StateTable::EventDelivery.insert(text), values)
}

/// Postpones a delivery that was tried once more; `None` gives it up. One that was skipped meanwhile is gone.
pub fn put_off(
    tx: &mut Tx<'_>,
    rid: i64,
    tries: i64,
    due_on: Result<Timestamp, Timestamp>,
) -> Result<(), StoreError> {
    let (set, moment) = match due_on {
        Ok(due_on) => ("SET tries = ?2, due_on = ?3 WHERE rid = ?1", due_on),
        Err(dead_on) => ("SET tries = ?2, dead_on = ?3 WHERE rid = ?1", dead_on),
    };
    tx.queue(&StateTable::EventDelivery.update(set), vec![rid.into(), tries.into(), moment.0.into()])
}

/// Removes a completed delivery.
pub fn remove(tx: &mut Tx<'_>, rid: i64) -> Result<(), StoreError> {
    tx.queue(&StateTable::EventDelivery.delete("WHERE rid = ?1"), vec![rid.into()])
}

/// Records attempts.
pub fn note(
    tx: &mut Tx<'_>,
    store: Option<i64>,
    subscription: Uuid,
    attempts: &[Attempt],
    now: Timestamp,
) -> Result<(), StoreError> {
    let text = "(store, subscription_id, event, kind, count, number, tried_on, status, reason, duration) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    for attempt in attempts {
        let values = vec![
            store.into(),
            Value::Id(subscription),
            attempt.event.as_str().into(),
            attempt.kind.as_str().into(),
            attempt.count.into(),
            attempt.number.into(),
            now.0.into(),
            attempt.status.map(i64::from).into(),
            attempt.reason.clone().into(),
            attempt.duration.into(),
        ];
        tx.queue(&StateTable::EventAttempt.insert(text), values)?;
    }
    Ok(())
}

/// Sets the health of deliveries, and counts the successful ones.
pub fn set_health(
    tx: &mut Tx<'_>,
    subscription: Uuid,
    health: Health,
    delivered: i64,
    failure: Option<&str>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let succeeded = (delivered > 0).then_some(now.0);
    let failed = failure.map(|_| now.0);
    let text = "(subscription_id, failures, failing_since, paused_until, delivered, last_success_on, last_failure_on, \
        last_failure) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (subscription_id) DO UPDATE SET failures = ?2, \
        failing_since = ?3, paused_until = ?4, delivered = event_subscriber.delivered + ?5, \
        last_success_on = coalesce(?6, event_subscriber.last_success_on), \
        last_failure_on = coalesce(?7, event_subscriber.last_failure_on), \
        last_failure = coalesce(?8, event_subscriber.last_failure)";
    let values = vec![
        Value::Id(subscription),
        health.failures.into(),
        health.failing_since.map(|since| since.0).into(),
        health.paused_until.0.into(),
        delivered.into(),
        succeeded.into(),
        failed.into(),
        failure.into(),
    ];
    tx.queue(&StateTable::EventSubscriber.insert(text), values)
}

/// Records that a subscription was disabled.
pub fn note_disabled(tx: &mut Tx<'_>, subscription: Uuid, now: Timestamp) -> Result<(), StoreError> {
    let text = "SET disabled_on = ?2 WHERE subscription_id = ?1";
    tx.queue(&StateTable::EventSubscriber.update(text), vec![Value::Id(subscription), now.0.into()])
}

selectable! {
    /// The reader of a trail.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Reader from "FROM event_reader WHERE subscription_id = ?1 AND trail = ?2" {
        position: i64 = "position",
        event: i64 = "event",
        /// The number of the last event before it began.
        pub since: i64 = "since",
    }
}

impl Reader {
    /// Its cursor in its trail.
    pub const fn cursor(&self, trail: i64) -> EventCursor {
        EventCursor { trail, position: self.position, event: self.event }
    }
}

/// The reader of a trail; before the first event where it has not begun.
pub fn reader(tx: &mut Tx<'_>, subscription: Uuid, trail: i64) -> Result<Reader, StoreError> {
    let key = [Value::Id(subscription), trail.into()];
    Ok(tx.one(Reader::SELECT, &key, Reader::read)?.unwrap_or_default())
}

/// Advances a reader. A concurrent change, by a skip or another process, wins: then the transaction fails.
pub fn advance(
    tx: &mut Tx<'_>,
    subscription: Uuid,
    from: EventCursor,
    to: EventCursor,
) -> Result<(), StoreError> {
    let text = "(subscription_id, trail, position, event) VALUES (?1, ?2, 0, 0) ON CONFLICT DO NOTHING";
    tx.queue(&StateTable::EventReader.insert(text), vec![Value::Id(subscription), from.trail.into()])?;
    let text = "SET position = ?3, event = ?4 WHERE subscription_id = ?1 AND trail = ?2 AND position = ?5";
    let values = vec![
        Value::Id(subscription),
        from.trail.into(),
        to.position.into(),
        to.event.into(),
        from.position.into(),
    ];
    tx.queue_one(&StateTable::EventReader.update(text), values)
}

/// The cursor after the last pruned event of a trail: the oldest readable position.
pub fn oldest(tx: &mut Tx<'_>, trail: i64, state: &TrailState) -> Result<EventCursor, StoreError> {
    let text = "SELECT event FROM event_place WHERE trail = ?1 AND position = ?2";
    let event = tx.one(text, &[trail.into(), state.pruned.into()], |row| row.int(0))?.unwrap_or(0);
    Ok(EventCursor { trail, position: state.pruned, event })
}

/// Deletes attempts, and deliveries that were given up, before these moments; returns the number of rows of the larger
/// kind.
pub fn prune(tx: &mut Tx<'_>, tried: Timestamp, dead: Timestamp, batch: u64) -> Result<u64, StoreError> {
    let attempts = StateTable::EventAttempt.delete(format_args!(
        "WHERE rid IN (SELECT rid FROM event_attempt WHERE tried_on < ?1 ORDER BY tried_on LIMIT {batch})"
    ));
    let deliveries = StateTable::EventDelivery.delete(format_args!(
        "WHERE rid IN (SELECT rid FROM event_delivery WHERE dead_on < ?1 LIMIT {batch})"
    ));
    let attempts = tx.execute(&attempts, &[tried.0.into()])?;
    Ok(attempts.max(tx.execute(&deliveries, &[dead.0.into()])?))
}
