//! The application: what a request meets.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use bytes::Bytes;
use chancery_auth::{Audience, Bearer, Caller, Known, MasterKey, Place, Refused, Rights, decide};
use chancery_record::Timestamp;
use chancery_resource::{Desk, Permit, Problem, ProblemKind, Scope, Service};
use chancery_store::{Mode, Store};
use http::{Request, Response, request::Parts};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use crate::{
    answer::{self, AnswerBody, respond},
    execute,
    metrics::Metrics,
    openapi,
    request::bearer,
    route::{Routes, Target, choose},
};

/// Bounds of the edge.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a JSON body.
    pub body: usize,
    /// Bytes of the body of a batch.
    pub batch_body: usize,
    /// Connections at once.
    pub connections: usize,
    /// MiB of larger bodies held in memory at once.
    pub bodies_mib: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 10 << 20, batch_body: 64 << 20, connections: 10_000, bodies_mib: 512 }
    }
}

/// The application.
pub struct App {
    /// The data.
    pub store: Store,
    /// Tokens.
    pub bearer: Bearer,
    /// What callers may do.
    pub rights: Rights,
    /// What operations share.
    pub desk: Arc<Desk>,
    /// The master key.
    pub master: MasterKey,
    /// Bounds.
    pub limits: Limits,
    /// Places for larger bodies, one a MiB.
    pub(crate) bodies: Arc<Semaphore>,
    pub(crate) routes: Routes,
    pub(crate) metrics: Metrics,
    pub(crate) documents: Vec<(String, Bytes)>,
}

/// What a request is allowed, and since which epoch that holds.
#[derive(Debug)]
pub struct Allowed {
    pub epoch: i64,
    pub caller: Arc<Caller>,
    pub scope: Scope,
}

impl App {
    /// Puts the application together.
    ///
    /// # Errors
    /// Two operations at paths that cannot be told apart.
    pub fn new(
        store: Store,
        bearer: Bearer,
        desk: Arc<Desk>,
        master: MasterKey,
        limits: Limits,
        services: &[&'static Service],
    ) -> Result<Self, String> {
        let documents = services.iter().map(|service| {
            let name = format!("{}-{}.json", service.name, service.version);
            (name, Bytes::from(openapi::document(service).to_string()))
        });
        Ok(Self {
            routes: Routes::new(services).map_err(|error| error.to_string())?,
            metrics: Metrics::new(services),
            documents: documents.collect(),
            rights: Rights::default(),
            bodies: Arc::new(Semaphore::new(limits.bodies_mib as usize)),
            store,
            bearer,
            desk,
            master,
            limits,
        })
    }

    /// Answers a request, always.
    pub async fn handle(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let mut number = None;
        let outcome = self.dispatch(&parts, body, &mut number).await;
        let response = outcome.unwrap_or_else(|problem| {
            let trace_id = trace_id(&parts);
            tell(&problem, &parts, &trace_id);
            answer::problem(problem, parts.uri.path(), &trace_id)
        });
        let (status, seconds) = (response.status().as_u16(), started.elapsed().as_secs_f64());
        self.metrics.note(number, status, seconds);
        tracing::debug!(method = %parts.method, path = parts.uri.path(), status, seconds, "answered");
        response
    }

    /// Answers a request at the address for metrics alone.
    pub async fn handle_metrics(&self, request: &Request<Incoming>) -> Response<AnswerBody> {
        if request.uri().path() == "/metrics" {
            return self.metrics_text().await;
        }
        let problem = Problem::new(ProblemKind::NoSuchRoute, "This address has /metrics only.");
        let trace_id = uuid::Uuid::from_bytes(chancery_resource::random::<16>()).simple().to_string();
        answer::problem(problem, request.uri().path(), &trace_id)
    }

    async fn dispatch(
        &self,
        parts: &Parts,
        body: Incoming,
        number: &mut Option<usize>,
    ) -> Result<Response<AnswerBody>, Problem> {
        let now = now();
        let (target, parameters) = self.routes.find(parts.uri.path())?;
        match target {
            Target::System(route) => route.answer(self, parts, body, &parameters, now).await,
            Target::Operations(entries) => {
                let entry = choose(entries, &parts.method)?;
                *number = Some(entry.number);
                execute::execute(self, entry, parts, body, parameters, now).await
            }
        }
    }

    /// Whether the caller may do it: its token, its rights, the store that the path names. A
    /// refusal by remembered rights is looked up again before it is given.
    pub async fn authorize(
        &self,
        parts: &Parts,
        permit: Permit,
        store: Option<&str>,
        now: Timestamp,
    ) -> Result<Allowed, Problem> {
        let Some(token) = bearer(&parts.headers) else {
            return Err(unauthorized("Send an access token: Authorization: Bearer ...", None));
        };
        let invalid = || {
            let detail =
                "The access token is not valid here or has expired. Get a new one at /connect/token.";
            unauthorized(detail, Some("invalid_token"))
        };
        let seen = self.bearer.verify(token, now).ok_or_else(invalid)?;
        let audience = if store.is_some() { Audience::UserStore } else { Audience::Management };
        if !seen.is_for(audience) {
            return Err(invalid());
        }
        if let Some(known) = self.rights.recall(seen.client_id, store)
            && let Ok(allowed) = judge(permit, known)
        {
            return Ok(allowed);
        }
        let known = self.rights.load(&self.store, seen.client_id, store).await?;
        judge(permit, known).map_err(|refused| match refused {
            None => invalid(),
            Some(Refused::Forbidden) => {
                Problem::new(ProblemKind::Forbidden, "The client app has no role that allows this.")
            }
            Some(Refused::NotFound) => {
                Problem::new(ProblemKind::NotFound, "There is no such user store here.")
            }
        })
    }

    /// The metrics as an answer.
    pub async fn metrics_text(&self) -> Response<AnswerBody> {
        let counted = self.store.run("CountEvents", Mode::Long, None, |tx| {
            tx.one("SELECT count(*) FROM outbox_event", &[], |row| row.int(0))
        });
        if let Ok(Some(events)) = counted.await {
            self.metrics.events_waiting.set(events);
        }
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        respond(200, content_type, self.metrics.text(&self.store))
    }
}

fn judge(permit: Permit, known: Known) -> Result<Allowed, Option<Refused>> {
    let caller = known.caller.filter(|caller| caller.enabled).ok_or(None)?;
    let place: Option<&Place> = known.place.as_deref();
    let scope = decide(permit, &caller, place).map_err(Some)?;
    Ok(Allowed { epoch: known.epoch, caller, scope })
}

fn unauthorized(detail: &str, error: Option<&str>) -> Problem {
    let challenge = match error {
        Some(error) => format!("Bearer realm=\"chancery\", error=\"{error}\""),
        None => "Bearer realm=\"chancery\"".to_owned(),
    };
    Problem::new(ProblemKind::Unauthorized, detail).with_header("www-authenticate", challenge)
}

/// The time: the edge is where operations get it from.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The trace id: the caller's (W3C Trace Context), or a new one.
pub fn trace_id(parts: &Parts) -> String {
    let given = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
    let id = given.and_then(|parent| parent.split('-').nth(1)).filter(|id| {
        id.len() == 32
            && id.bytes().all(|byte| byte.is_ascii_hexdigit())
            && id.bytes().any(|byte| byte != b'0')
    });
    id.map_or_else(
        || uuid::Uuid::from_bytes(chancery_resource::random::<16>()).simple().to_string(),
        str::to_ascii_lowercase,
    )
}

/// Logs what an operator must know; what a caller did wrong is the caller's to know.
fn tell(problem: &Problem, parts: &Parts, trace_id: &str) {
    let cause = problem.cause.as_ref().map(ToString::to_string);
    let (status, path, method) = (problem.status(), parts.uri.path(), parts.method.as_str());
    match status {
        500 => tracing::error!(trace_id, method, path, status, cause, detail = problem.detail, "failed"),
        503 => tracing::warn!(trace_id, method, path, status, cause, detail = problem.detail, "unavailable"),
        _ => tracing::debug!(trace_id, method, path, status, detail = problem.detail, "refused"),
    }
}
