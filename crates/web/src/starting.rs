//! While a server starts, it is alive and not ready: who asks is told so, and does not wait for the start. It may take long: the
//! schema of the database is brought up to date, or the database is not there yet.

use std::{
    net::IpAddr,
    pin::pin,
    sync::{Arc, OnceLock},
};

use chancery_resource::{Problem, ProblemKind};
use http::{Request, Response, request::Parts};
use hyper::body::Incoming;

use crate::{
    answer::{self, AnswerBody, respond},
    app::Limits,
    base::BasePath,
    connections::{Connections, Stage},
    listener::{Host, Listener, Peer, Serves},
    system::SystemRoute,
};

/// Why nothing else is answered.
const STARTING: &str =
    "The server starts: it waits for its database, or changes the schema of it. Its log says more.";

/// Waits for a start, and meanwhile answers at its address: that the server is alive, and to all else that it starts.
pub async fn while_starting<T>(
    listener: &Listener,
    (public_url, limits): (&str, &Limits),
    start: impl Future<Output = T>,
) -> T {
    let connections = Connections::of(limits);
    // no connection outlives its answer: the next request is for the server that has started
    connections.advance_to(Stage::Draining);
    let base = BasePath::of(public_url);
    let answer = move |address: IpAddr, request: Request<Incoming>| {
        let (mut parts, _) = request.into_parts();
        base.take_off(&mut parts.uri);
        parts.extensions.insert(base.clone());
        parts.extensions.insert(Peer { address, trace: OnceLock::new(), serves: Serves::All });
        std::future::ready(answer_at_start(&parts))
    };
    let host = Host::new(Arc::clone(&connections), listener, answer);
    let mut start = pin!(start);
    let outcome = tokio::select! {
        outcome = &mut start => outcome,
        () = host.receive() => start.await,
    };
    connections.advance_to(Stage::Closing);
    outcome
}

fn answer_at_start(parts: &Parts) -> Response<AnswerBody> {
    let mut response = if parts.uri.path() == SystemRoute::Live.path() {
        respond(200, "application/json", "{\"status\":\"live\"}")
    } else {
        let problem = Problem::new(ProblemKind::Unavailable, STARTING).with_member("reason", "starting");
        answer::problem(problem.with_header("retry-after", "1"), parts)
    };
    answer::protect(&mut response);
    response
}
