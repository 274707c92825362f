//! Deletes expired events, in the order of their positions.

use std::collections::HashMap;

use chancery_record::{Timestamp, Value};
use chancery_resource::{
    LIST, Row, Sql,
    settings::{Options, TenantOption, UserStoreOption},
};
use chancery_store::{Error, Figure, FigureSource, FigureUnit, StateTable, Tx, selectable};

/// The metric of events that are retained because of a doubtful clock.
pub static FIGURES: [Figure; 1] = [Figure {
    name: "event_pruning_stopped",
    help: "Whether events are not pruned because the clock of the process is an hour or more from the reference clock",
    unit: FigureUnit::Count,
    source: FigureSource::Recorded,
}];

/// How long events wait for a subscription that is behind, in milliseconds.
const UNSENT_RETENTION: i64 = 30 * 24 * 3600 * 1000;

/// The retention of the events of each trail, in milliseconds.
struct Retention {
    /// By user store, where the option is set.
    stores: HashMap<i64, i64>,
    /// Other user stores.
    store: i64,
    /// The configuration and sign-ins, which all tenants share: the longest retention of a tenant.
    shared: i64,
}

selectable! {
    /// The value of an option that a user store sets.
    struct OptionOfStore<'r> from "FROM option_value o JOIN idp_instance i ON i.id = o.apply_to_idp_instance_id \
        WHERE o.name = ?1 AND o.value <> ''" {
        store: i64 = "i.rid",
        value: &'r str = "o.value",
    }
}

impl Retention {
    fn read(tx: &mut Tx<'_>) -> Result<Self, Error> {
        let mut stores = HashMap::new();
        tx.query(OptionOfStore::SELECT, &[UserStoreOption::EVENT_RETENTION.name().into()], |row| {
            let OptionOfStore { store, value } = OptionOfStore::read(row)?;
            stores.insert(store, of_store(value));
            Ok(())
        })?;
        let mut shared = None;
        let of_tenants = "SELECT DISTINCT o.value FROM option_value o WHERE o.name = ?1 AND o.apply_to_tenant_id IS NOT NULL";
        tx.query(of_tenants, &[TenantOption::EVENT_RETENTION.name().into()], |row| {
            shared = shared.max(Some(of_tenant(row.text(0)?)));
            Ok(())
        })?;
        let shared = shared.unwrap_or_else(|| of_tenant(""));
        Ok(Self { stores, store: of_store(""), shared })
    }

    fn of(&self, trail: i64) -> i64 {
        if trail > 0 { self.stores.get(&trail).copied().unwrap_or(self.store) } else { self.shared }
    }
}

/// The retention of a user store with this value of the option: the default where it is empty or invalid.
fn of_store(value: &str) -> i64 {
    let setting = UserStoreOption::EVENT_RETENTION;
    Options::<UserStoreOption>::new(HashMap::from([(setting.name().to_owned(), value.to_owned())]))
        .get(setting)
}

/// The retention of a tenant with this value of the option: the default where it is empty or invalid.
fn of_tenant(value: &str) -> i64 {
    let setting = TenantOption::EVENT_RETENTION;
    Options::<TenantOption>::new(HashMap::from([(setting.name().to_owned(), value.to_owned())])).get(setting)
}

/// The position up to which all active subscriptions have read a trail; none where there are none.
fn read_by_all(tx: &mut Tx<'_>, trail: i64) -> Result<Option<i64>, Error> {
    let text = "SELECT min(r.position) FROM event_reader r JOIN event_subscription s ON s.id = r.subscription_id \
        WHERE r.trail = ?1 AND s.is_active = ?2";
    let read = |row: &Row<'_>| if row.is_null(0)? { Ok(None) } else { row.int(0).map(Some) };
    Ok(tx.one(text, &[Value::Int(trail), Value::Bool(true)], read)?.flatten())
}

selectable! {
    /// A trail with events, and the position up to which they were deleted.
    struct KeptTrail from "FROM event_trail WHERE pruned < placed ORDER BY trail" {
        trail: i64 = "trail",
        pruned: i64 = "pruned",
    }
}

selectable! {
    /// An event at its position.
    struct PlacedEvent {
        position: i64 = "position",
        event: i64 = "event",
    }
}

/// Deletes the oldest events of each trail, at most `batch`, up to the first to retain: one that is younger than the
/// trail's retention, or than 30 days and not read by an active subscription. Returns the number of events of the largest trail.
pub fn prune_events(tx: &mut Tx<'_>, now: Timestamp, batch: u64) -> Result<u64, Error> {
    // an event's number is its time in microseconds
    let number = |age: i64| now.0.saturating_sub(age).saturating_mul(1000);
    let (retention, oldest_unsent) = (Retention::read(tx)?, number(UNSENT_RETENTION));
    let mut trails = Vec::new();
    tx.query(KeptTrail::SELECT, &[], |row| {
        trails.push(KeptTrail::read(row)?);
        Ok(())
    })?;
    let mut most = 0;
    for KeptTrail { trail, pruned } in trails {
        let oldest = number(retention.of(trail));
        let text = format!(
            "SELECT {} FROM event_place WHERE trail = ?1 AND position > ?2 ORDER BY position LIMIT {batch}",
            PlacedEvent::COLUMNS
        );
        let (mut events, mut last, mut is_over) = (Vec::new(), pruned, false);
        let read = read_by_all(tx, trail)?.unwrap_or(i64::MAX);
        tx.query(&text, &[Value::Int(trail), Value::Int(pruned)], |row| {
            let PlacedEvent { position, event } = PlacedEvent::read(row)?;
            is_over |= event >= oldest || (position > read && event >= oldest_unsent);
            if !is_over {
                last = position;
                events.push(event);
            }
            Ok(())
        })?;
        if events.is_empty() {
            continue;
        }
        let advance = StateTable::EventTrail.update("SET pruned = ?1 WHERE trail = ?2 AND pruned = ?3");
        tx.queue_one(&advance, vec![Value::Int(last), Value::Int(trail), Value::Int(pruned)])?;
        // the last row stays: cursors at its position are checked by it
        let old_rows = StateTable::EventPosition.delete("WHERE trail = ?1 AND position < ?2");
        tx.queue(&old_rows, vec![Value::Int(trail), Value::Int(last)])?;
        for chunk in events.chunks(LIST) {
            let mut sql = Sql::new("WHERE id IN ");
            sql.add_list(chunk.iter().map(|event| Value::Int(*event)));
            tx.queue(&StateTable::OutboxEvent.delete(&sql.text), sql.parameters)?;
        }
        most = most.max(events.len() as u64);
    }
    // while trails are behind, events without a position would be searched among all that wait to be pruned
    if most < batch { Ok(most.max(prune_unplaced(tx, number(retention.shared), batch)?)) } else { Ok(most) }
}

/// Deletes events before a number that an older release wrote without a pending row.
fn prune_unplaced(tx: &mut Tx<'_>, oldest: i64, batch: u64) -> Result<u64, Error> {
    let lost = StateTable::OutboxEvent.delete(format_args!(
        "WHERE id IN (SELECT o.id FROM outbox_event o WHERE o.id < ?1 \
         AND NOT EXISTS (SELECT 1 FROM event_place p WHERE p.event = o.id) \
         AND NOT EXISTS (SELECT 1 FROM event_pending w WHERE w.trail = o.store AND w.event = o.id) \
         AND NOT EXISTS (SELECT 1 FROM audit_pending w WHERE w.entry = o.id) ORDER BY o.id LIMIT {batch})"
    ));
    tx.execute(&lost, &[Value::Int(oldest)])
}
