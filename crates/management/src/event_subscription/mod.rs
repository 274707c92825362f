//! Event subscriptions: webhooks for events of the configuration and of sign-ins.

use std::collections::{HashMap, HashSet};

use chancery_record::Value;
use chancery_resource::{
    Op, Parent, Problem, ProposedRow, Reach, Shape, Sql, Tx, Unique, Violation, Writer, added, selectable,
    standard,
};
use chancery_webhook::{
    DELIVERIES, EventDelivery, EventSubscription, NAMED_EVENTS, SUBSCRIPTIONS, event_subscription_operations,
    prepare, store_reader_cursors,
};
use uuid::Uuid;

use crate::{owning_subscription::resolve_subscription, tenant::TENANT, violation::conflict_at};

/// The shape of event subscriptions.
pub static EVENT_SUBSCRIPTION: Shape = Shape::of::<EventSubscription>(
    "EventSubscription",
    "event_subscription",
    Reach::Tenant(EventSubscription::SUBSCRIPTION_ID.field(), EventSubscription::APPLY_TO_TENANT_ID.field()),
)
.read_from(SUBSCRIPTIONS[0])
.belonging(&[Parent::new(EventSubscription::APPLY_TO_TENANT_ID, &TENANT).open()])
.unique(&[Unique::new("event_subscription__id", &[EventSubscription::ID.field()])])
.validate_rows(check)
.after_write(store_reader_cursors)
.event_types(NAMED_EVENTS);

/// The shape of the deliveries of a subscription.
static EVENT_DELIVERY: Shape = Shape::of::<EventDelivery>(
    "EventDelivery",
    DELIVERIES[0],
    Reach::Of(EventDelivery::EVENT_SUBSCRIPTION_ID.field(), &EVENT_SUBSCRIPTION),
)
.belonging(&[Parent::new(EventDelivery::EVENT_SUBSCRIPTION_ID, &EVENT_SUBSCRIPTION)]);

/// The maximum number of event subscriptions of a subscription.
const MAX_SUBSCRIPTIONS: usize = 100;

selectable! {
    /// The number of event subscriptions of a subscription.
    struct SubscriptionCount from "FROM event_subscription WHERE subscription_id IN " {
        subscription: Uuid = "subscription_id",
        count: i64 = "count(*)",
    }
}

fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let targets = [(EventSubscription::APPLY_TO_TENANT_ID.field(), "tenant")];
    let own = EventSubscription::SUBSCRIPTION_ID;
    let mut violations = resolve_subscription(writer.context, tx, rows, own, &targets, |_| Ok(false))?;
    violations.extend(prepare(writer, rows)?);
    let new = || rows.iter().enumerate().filter(|(_, row)| row.was.is_none());
    let owners: HashSet<Uuid> = new().filter_map(|(_, row)| own.field().id(row.values)).collect();
    let mut sql = Sql::new(SubscriptionCount::SELECT);
    sql.add_list(owners.iter().copied().map(Value::Id));
    sql.add(" GROUP BY subscription_id");
    let mut counts: HashMap<Uuid, usize> = HashMap::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let found = SubscriptionCount::read(row)?;
        counts.insert(found.subscription, usize::try_from(found.count).unwrap_or(MAX_SUBSCRIPTIONS));
        Ok(())
    })?;
    for (index, row) in new() {
        let Some(owner) = own.field().id(row.values) else { continue };
        let count = counts.entry(owner).or_default();
        *count += 1;
        if *count > MAX_SUBSCRIPTIONS {
            violations.push(conflict_at(
                index,
                own,
                "has 100 event subscriptions already, which is the most",
            ));
        }
    }
    Ok(violations)
}

/// The operations on event subscriptions.
pub static OPERATIONS: [Op; 9] = added(standard!(
    "EventSubscription",
    "/EventSubscription",
    TenantAdmin,
    TenantAdmin,
    &EVENT_SUBSCRIPTION
));
/// Operations beyond the standard ones.
pub static MORE: [Op; 5] =
    event_subscription_operations!("/EventSubscription", TenantAdmin, &EVENT_SUBSCRIPTION, &EVENT_DELIVERY);
