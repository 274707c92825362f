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
    /// What happened to something: a CloudEvents 1.0 envelope.
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
    op("GetEvents", "/Event", changes, "Reads what happened to the configuration behind a cursor, in order."),
    op(
        "GetSignInEvents",
        "/SignInEvent",
        sign_ins,
        "Reads what happened in sign-ins behind a cursor, in order.",
    ),
    stream(
        "StreamEvents",
        "/Event/stream",
        changes,
        "Streams what happens to the configuration, as server-sent events. Last-Event-ID goes on behind an event.",
    ),
    stream(
        "StreamSignInEvents",
        "/SignInEvent/stream",
        sign_ins,
        "Streams what happens in sign-ins, as server-sent events. Last-Event-ID goes on behind an event.",
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
