//! The events of a user store.

use chancery_record::{KEY, record};
use chancery_resource::{
    Action, Answer, Call, Custom, JsonForm, Method, Op,
    Permit::UserStore,
    Problem, QueryParameter, Reach, Reply, Shape, Tx, delta,
    feed::{self, QUERY, STREAM_QUERY},
};

use crate::audit_trail::AUDIT_TRAIL;

record! {
    /// An event about a resource, in a CloudEvents 1.0 envelope.
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
    custom: Custom,
    query: &'static [QueryParameter],
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
        feed::reading(get),
        QUERY,
        "Reads the events of the store after a cursor, in order.",
    ),
    op(
        "StreamEvents",
        "/administration/Event/stream",
        feed::streaming(get),
        STREAM_QUERY,
        "Streams the events of the store as server-sent events. Last-Event-ID continues after an event.",
    ),
];

fn get(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let trail = call.context.scope.store();
    feed::read(call, tx, trail, &[])
}

/// The action that returns the changes of a resource after a cursor.
pub const fn changes(form: &'static JsonForm) -> Action {
    Action::Custom(feed::reading(read_changes).replying(Reply::Json(form)))
}

fn read_changes(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    delta::read(call, tx, &AUDIT_TRAIL)
}
