//! Event subscriptions: webhooks for the events of a user store.

use chancery_record::Field;
use chancery_resource::{
    Op, Parent, Problem, ProblemKind, ProposedRow, Reach, Shape, Tx, Unique, Violation, Writer, added,
    standard,
};
use chancery_webhook::{
    DELIVERIES, EventDelivery, EventSubscription, NAMED_EVENTS, SUBSCRIPTIONS, event_subscription_operations,
    prepare, store_reader_cursors,
};

/// The shape of event subscriptions.
pub static EVENT_SUBSCRIPTION: Shape =
    Shape::of::<EventSubscription>("EventSubscription", "event_subscription", Reach::Store)
        .read_from(SUBSCRIPTIONS[1])
        .unique(&[Unique::new("event_subscription__id", &[EventSubscription::ID.field()])])
        .validate_rows(check)
        .after_write(store_reader_cursors)
        .event_types(NAMED_EVENTS);

/// The shape of the deliveries of a subscription.
static EVENT_DELIVERY: Shape = Shape::of::<EventDelivery>("EventDelivery", DELIVERIES[1], Reach::Store)
    .belonging(&[Parent::new(EventDelivery::EVENT_SUBSCRIPTION_ID, &EVENT_SUBSCRIPTION)]);

/// The maximum number of event subscriptions of a store.
const MAX_SUBSCRIPTIONS: usize = 100;

fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let mut violations = prepare(writer, rows)?;
    let mut wrong = |row, kind, field: &'static Field, detail: &str| {
        violations.push(Violation { row, kind, field, detail: detail.to_owned() });
    };
    for (index, row) in rows.iter().enumerate() {
        for field in [EventSubscription::SUBSCRIPTION_ID, EventSubscription::APPLY_TO_TENANT_ID] {
            if row.get(field)?.is_some() {
                let detail = "must be empty: this subscription is the user store's";
                wrong(index, ProblemKind::InvalidRequest, field.field(), detail);
            }
        }
    }
    let created = rows.iter().filter(|row| row.was.is_none()).count();
    let text = "SELECT count(*) FROM event_subscription WHERE store = ?1";
    let existing = tx.one(text, &[writer.context.scope.store().into()], |row| row.int(0))?.unwrap_or(0);
    if created > 0 && usize::try_from(existing).unwrap_or(MAX_SUBSCRIPTIONS) + created > MAX_SUBSCRIPTIONS {
        let detail = "would be one more than the 100 that a user store has";
        wrong(0, ProblemKind::Conflict, EventSubscription::NAME.field(), detail);
    }
    Ok(violations)
}

/// The operations on event subscriptions.
pub static OPERATIONS: [Op; 9] = added(standard!(
    "EventSubscription",
    "/administration/EventSubscription",
    UserStore,
    UserStore,
    &EVENT_SUBSCRIPTION
));
/// Operations beyond the standard ones.
pub static MORE: [Op; 5] = event_subscription_operations!(
    "/administration/EventSubscription",
    UserStore,
    &EVENT_SUBSCRIPTION,
    &EVENT_DELIVERY
);
