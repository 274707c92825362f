//! The list of delivery attempts.

use chancery_record::{KEY, SHOWN, ShortText, Timestamp, record};
use chancery_resource::{Answer, Call, Problem, Sql, Tx, find_row, list_where};
use uuid::Uuid;

record! {
    /// The result of a delivery attempt, or of several events that were delivered one after another at the first attempt.
    pub struct EventDelivery {
        /// Its number.
        id: i64 = KEY,
        /// The subscription.
        #[de("Webhook")]
        event_subscription_id: Uuid = SHOWN.stored_as("subscription_id"),
        /// The id of the event. For several events, it is the id of the last one.
        #[de("Ereignis")]
        event: ShortText = SHOWN.like("1795253400000001"),
        /// Its type.
        #[de("Art")]
        r#type: ShortText = SHOWN.stored_as("kind").named("type").like("platform.userstore.user.created"),
        /// The number of events that were delivered. It is 0 if the delivery failed.
        #[de("Anzahl")]
        count: i64 = SHOWN,
        /// The number of the attempt, starting from 1.
        #[de("Nummer")]
        number: i64 = SHOWN,
        /// The date and time.
        #[de("Versucht am")]
        tried_on: Timestamp = SHOWN,
        /// The HTTP status of the receiver's response.
        status: Option<i64> = SHOWN,
        /// The reason for the failure. It never contains the receiver's response.
        reason: Option<ShortText> = SHOWN,
        /// The duration in milliseconds. For several events, it is the longest.
        #[de("Dauer")]
        duration: i64 = SHOWN,
    }
}

/// The queries of deliveries: those of the configuration, and those of user stores.
pub const DELIVERIES: [&str; 2] = [
    "(SELECT a.*, a.rid AS id, 0 AS last_entry FROM event_attempt a WHERE a.store IS NULL)",
    "(SELECT a.*, a.rid AS id, 0 AS last_entry FROM event_attempt a WHERE a.store IS NOT NULL)",
];

/// Lists the attempts of a subscription's deliveries.
///
/// # Errors
/// There is no such subscription; parameters that are malformed.
pub fn list_deliveries(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let Some(parent) = call.request.op.shape.parents.first() else {
        return Err(Problem::not_found("EventSubscription"));
    };
    let (_, id) = find_row(&call.context, tx, parent.shape, call.request.parameter(0))?;
    list_where(call, tx, &|sql: &mut Sql| {
        sql.add(" AND t.subscription_id = ");
        sql.add_bound(id.clone());
    })
}
