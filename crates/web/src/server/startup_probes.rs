//! Answers health probes while a server starts: it is alive and not ready. A start can take long, because it migrates the schema of
//! the database or waits for the database.

use std::{
    net::IpAddr,
    pin::pin,
    sync::{Arc, OnceLock},
};

use chancery_resource::{Problem, ProblemKind};
use http::{Request, Response, request::Parts};
use hyper::body::Incoming;

use super::listener::{Host, Listener};
use crate::{
    connection::{connections::Connections, shutdown::ShutdownStage},
    limits::Limits,
    message::{
        answer::{self, AnswerBody, respond},
        base_path::BasePath,
        peer::{ListenerRole, Peer},
    },
    routes::system_route::SystemRoute,
};

/// The `reason` of all other answers.
const STARTING: &str =
    "The server starts: it waits for its database, or changes the schema of it. Its log says more.";

/// Waits for a start, and answers requests at its address in the meantime: `/health/live` with 200, and everything else with 503.
pub async fn answer_probes_during_start<T>(
    listener: &Listener,
    public_url: &str,
    limits: &Limits,
    start: impl Future<Output = T>,
) -> T {
    let connections = Connections::of(limits);
    // each connection is closed after its answer, so that the next request reaches the started server
    connections.advance_to(ShutdownStage::Draining);
    let base = BasePath::of(public_url);
    let answer = move |address: IpAddr, request: Request<Incoming>| {
        let (mut parts, _) = request.into_parts();
        base.strip_from(&mut parts.uri);
        parts.extensions.insert(base.clone());
        parts.extensions.insert(Peer { address, trace: OnceLock::new(), serves: ListenerRole::All });
        std::future::ready(answer_at_start(&parts))
    };
    let host = Host::new(Arc::clone(&connections), listener, answer);
    let mut start = pin!(start);
    let outcome = tokio::select! {
        outcome = &mut start => outcome,
        () = host.receive() => start.await,
    };
    connections.advance_to(ShutdownStage::Closing);
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
