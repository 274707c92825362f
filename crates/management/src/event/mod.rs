//! The events of the configuration and of sign-ins.

use chancery_application::APPLICATION_USER;
use chancery_record::{KEY, record};
use chancery_resource::{
    Action, Answer, Call, Method, Op,
    Permit::TenantAdmin,
    Problem, Reach, Run, SIGN_INS, Shape, Tx,
    feed::{self, QUERY, STREAM_QUERY},
};

use crate::client_app::CLIENT_APP;

record! {
    /// An event about a resource, in a CloudEvents 1.0 envelope.
    pub struct Event {
        /// Its number.
        id: i64 = KEY,
    }
}

static EVENT: Shape = Shape::of::<Event>("Event", "(SELECT id AS rid, id FROM outbox_event)", Reach::All);

const fn op(name: &'static str, path: &'static str, run: Run, about: &'static str) -> Op {
    let action = Action::Custom(feed::reading(run));
    Op::new(name, Method::Get, path, TenantAdmin, &EVENT, action, about).with_query(QUERY).added()
}

const fn stream(name: &'static str, path: &'static str, run: Run, about: &'static str) -> Op {
    let action = Action::Custom(feed::streaming(run));
    Op::new(name, Method::Get, path, TenantAdmin, &EVENT, action, about).with_query(STREAM_QUERY).added()
}

/// The operations on events.
pub static OPERATIONS: &[Op] = &[
    op("GetEvents", "/Event", changes, "Lists the configuration events after a cursor, in order."),
    op("GetSignInEvents", "/SignInEvent", sign_ins, "Lists the sign-in events after a cursor, in order."),
    stream(
        "StreamEvents",
        "/Event/stream",
        changes,
        "Streams the configuration events as server-sent events. With Last-Event-ID, the stream continues after that event.",
    ),
    stream(
        "StreamSignInEvents",
        "/SignInEvent/stream",
        sign_ins,
        "Streams the sign-in events as server-sent events. With Last-Event-ID, the stream continues after that event.",
    ),
];

/// The resources that can be actors of an event, as far as the reader may see them.
pub static ACTORS: [&Shape; 2] = [&CLIENT_APP, &APPLICATION_USER];

fn changes(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    feed::read(call, tx, 0, &ACTORS)
}

fn sign_ins(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    feed::read(call, tx, SIGN_INS, &ACTORS)
}
