//! The events of a user store.

use chancery_record::{KEY, record};
use chancery_resource::{
    Action, Answer, Call, Custom, Method, Op,
    Permit::UserStore,
    Problem, QueryParameter, Reach, Shape, Tx,
    feed::{self, QUERY, STREAM_QUERY},
};

record! {
    /// What happened to something: a CloudEvents 1.0 envelope.
    pub struct Event {
        /// Its number.
        id: i64 = KEY,
    }
}

static EVENT: Shape =
    Shape::of::<Event>("Event", "(SELECT id AS rid, id, store FROM outbox_event)", Reach::Store);

const fn op(
    name: &'static str,
    path: &'static str,
    (custom, query): (Custom, &'static [QueryParameter]),
    about: &'static str,
) -> Op {
    Op::new(name, Method::Get, path, UserStore, &EVENT, Action::Custom(custom), about)
        .with_query(query)
        .added()
}

/// The operations on events.
pub static OPERATIONS: &[Op] = &[
    op(
        "GetEvents",
        "/administration/Event",
        (feed::reading(get), QUERY),
        "Reads what happened in the store behind a cursor, in order.",
    ),
    op(
        "StreamEvents",
        "/administration/Event/stream",
        (feed::streaming(get), STREAM_QUERY),
        "Streams what happens in the store, as server-sent events. Last-Event-ID goes on behind an event.",
    ),
];

fn get(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let trail = call.context.scope.store();
    feed::read(call, tx, trail, &[])
}
