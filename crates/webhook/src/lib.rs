//! Webhooks: the receivers of events, and the results of deliveries (Standard Webhooks 1.0; `docs/contract/events.md`).
//!
//! A subscription is a resource of a user store or of the configuration. The cursor of each in a trail is a row; a delivery
//! that failed, or waits behind that, is a row until it is delivered or given up. The job that sends is the
//! server's.

mod delivery;
mod operations;
mod schedule;
mod secret;
mod signature;
pub mod state;
mod subscription;

pub use delivery::{DELIVERIES, EventDelivery, list_deliveries};
pub use operations::{REPLAY, REPLAYED, SKIP, TESTED, create_secret, envelope, replay, scope_of, skip, test};
pub use schedule::{CIRCUIT, DISABLED_AFTER, LONGEST_PAUSE, PROBE_REST, TRIES, rest_after};
pub use signature::{SECRET_LIFE, Signing};
pub use subscription::{
    EventHeaders, EventOrdering, EventStatus, EventSubscription, EventSubscriptionId, EventTypes,
    NAMED_EVENTS, SUBSCRIPTIONS, prepare, store_reader_cursors, trails,
};

/// The operations on a subscription beyond the standard pattern: its path, who may call them, its shape, and that of its
/// deliveries.
#[macro_export]
macro_rules! event_subscription_operations {
    ($path:literal, $permit:ident, $shape:expr, $deliveries:expr) => {{
        use chancery_resource::{Action as A, Body, Custom, Method as M, Op, Permit, Purpose, Reply};
        const WHO: Permit = Permit::$permit;
        const TEST: Custom =
            Custom::working(Purpose::Outbound, $crate::test).replying(Reply::Json(&$crate::TESTED));
        const REPLAY: Custom = Custom::writing($crate::replay)
            .taking(Body::Json(&$crate::REPLAY))
            .replying(Reply::Json(&$crate::REPLAYED));
        const SKIP: Custom = Custom::writing($crate::skip).taking(Body::Form(&$crate::SKIP));
        [
            Op::new(
                "TestEventSubscription",
                M::Post,
                concat!($path, "/{id}/test"),
                WHO,
                $shape,
                A::Custom(TEST),
                "Sends a platform.event.test event immediately and returns the result.",
            )
            .added(),
            Op::new(
                "CreateEventSubscriptionSecret",
                M::Post,
                concat!($path, "/{id}/secret"),
                WHO,
                $shape,
                A::Custom(Custom::writing($crate::create_secret)),
                "Creates a new secret, which only this response contains. For 24 hours, requests are also signed with the former secret.",
            )
            .sensitive()
            .added(),
            Op::new(
                "ReplayEventDeliveries",
                M::Post,
                concat!($path, "/{id}/replay"),
                WHO,
                $shape,
                A::Custom(REPLAY),
                "Sends events again, with the same ids, after the waiting deliveries.",
            )
            .answering(202, Reply::Json(&$crate::REPLAYED))
            .added(),
            Op::new(
                "SkipEventDeliveries",
                M::Post,
                concat!($path, "/{id}/skip"),
                WHO,
                $shape,
                A::Custom(SKIP),
                "Skips to a cursor. The waiting deliveries and the events before it are discarded.",
            )
            .added(),
            Op::new(
                "GetEventDeliveries",
                M::Get,
                concat!($path, "/{eventSubscriptionId}/Delivery"),
                WHO,
                $deliveries,
                A::Custom(Custom::listing($crate::list_deliveries)),
                "Lists the results of deliveries in the last 7 days.",
            )
            .added(),
        ]
    }};
}
