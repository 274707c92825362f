//! The application: what a request meets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Instant, SystemTime},
};

use bytes::Bytes;
use chancery_auth::{Bearer, Rights};
use chancery_record::Timestamp;
use chancery_resource::{Desk, Permit, Problem, ProblemKind, Purpose, Service};
use chancery_store::{Class, Error, Mode, Store};
use http::{Request, Response, request::Parts};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use crate::{
    answer::{self, AnswerBody, respond},
    authority::Allowed,
    deprecation::Deprecation,
    execute, guard,
    limiter::Limiter,
    listener::Peer,
    metrics::Metrics,
    openapi,
    pool::Pool,
    request::access_token,
    route::{Entry, Routes, Target, choose},
};

/// Bounds of the edge.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests a minute and address to operations without a token; none is no limit.
    pub public_rate: Option<u32>,
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
        Self {
            public_rate: Some(60),
            body: 10 << 20,
            batch_body: 64 << 20,
            connections: 10_000,
            bodies_mib: 512,
        }
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
    /// Bounds.
    pub limits: Limits,
    /// What is said of operations that are on their way out.
    pub deprecation: Deprecation,
    pub(crate) pool: Pool,
    pub(crate) limiter: Limiter,
    /// Places for larger bodies, one a MiB.
    pub(crate) bodies: Arc<Semaphore>,
    pub(crate) routes: Routes,
    pub(crate) metrics: Metrics,
    pub(crate) documents: Vec<(String, Bytes)>,
}

/// When version 1 was deprecated, where nothing else is configured: 2026-01-01.
pub const DEPRECATED_ON: Timestamp = Timestamp(1_767_225_600_000);

impl App {
    /// Puts the application together.
    ///
    /// # Errors
    /// Two operations at paths that cannot be told apart.
    pub fn new(
        store: Store,
        bearer: Bearer,
        desk: Arc<Desk>,
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
            pool: Pool::default(),
            limiter: Limiter::new(limits.public_rate),
            deprecation: Deprecation::new(DEPRECATED_ON, None),
            limits,
        })
    }

    /// Answers a request, always.
    pub async fn handle(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let (mut entry, mut beside) = (None, None);
        let outcome = self.dispatch(&parts, body, (&mut entry, &mut beside)).await;
        let mut response = outcome.unwrap_or_else(|problem| {
            let trace_id = trace_id(&parts);
            tell(&problem, &parts, &trace_id);
            answer::problem(problem, parts.uri.path(), &trace_id)
        });
        let (status, seconds) = (response.status().as_u16(), started.elapsed().as_secs_f64());
        self.metrics.note(entry.map(|entry| entry.number), status, seconds);
        if let Some(entry) = entry.or(beside) {
            self.deprecation.tell(response.headers_mut(), (entry.base, entry.op), parts.uri.path());
        }
        tracing::debug!(method = %parts.method, path = parts.uri.path(), status, seconds, "answered");
        response
    }

    /// Notes that a job of the background succeeded.
    pub fn note_job(&self, job: &'static str) {
        self.metrics.note_job(job);
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
        (chosen, beside): (&mut Option<Entry>, &mut Option<Entry>),
    ) -> Result<Response<AnswerBody>, Problem> {
        let now = now();
        let (target, parameters) = self.routes.find(parts.uri.path())?;
        match target {
            Target::System(route, whose) => {
                route.answer(self, (*whose, &parameters?), parts, body, now).await
            }
            Target::Operations(entries) => {
                *beside = entries.first().copied();
                let entry = choose(entries, &parts.method)?;
                *chosen = Some(entry);
                execute::execute(self, entry, parts, body, parameters?, now).await
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
        if permit == Permit::Public {
            return self.authorize_again(parts, permit, store, now).await;
        }
        let Some((scheme, token)) = access_token(&parts.headers) else {
            return Err(unauthorized("Send an access token: Authorization: Bearer ...", None));
        };
        let known = match self.rights.recall(Some(token), store) {
            Some(known) => known,
            None => {
                self.rights
                    .load(&self.store.with(Class::Urgent), &self.bearer, Some(token), store, now)
                    .await?
            }
        };
        let claims = known.claims.filter(|claims| claims.is_current(now));
        let claims = claims.ok_or_else(|| guard::invalid(scheme))?;
        let needs_nonce = known.caller.is_some_and(|caller| caller.needs_nonce);
        guard::check(self, parts, &guard::Bound { scheme, token, claims: &claims, needs_nonce }, now).await?;
        self.authorize_again(parts, permit, store, now).await
    }

    /// Bounds how often operations without a token are called from one address.
    pub fn admit_address(&self, parts: &Parts, now: Timestamp) -> Result<(), Problem> {
        let unknown = std::net::Ipv4Addr::UNSPECIFIED.into();
        let address = parts.extensions.get::<Peer>().map_or(unknown, |peer| peer.0);
        self.limiter.admit_address(address, now)
    }

    /// The metrics as an answer.
    pub async fn metrics_text(&self) -> Response<AnswerBody> {
        let counted = self.store.run("CountEvents", Mode::Long, None, |tx| {
            let text = "SELECT (SELECT count(*) FROM outbox_event), \
                (SELECT count(*) FROM mail_message WHERE state = 'Waiting'), \
                (SELECT count(*) FROM mail_message WHERE state <> 'Waiting'), \
                (SELECT count(*) FROM audit_pending), (SELECT coalesce(max(made_on), 0) FROM audit_tree), \
                (SELECT count(*) FROM identity_revocation), \
                (SELECT count(*) FROM identity_revocation WHERE last_error IS NOT NULL), \
                (SELECT coalesce(max(refreshed_on), 0) FROM passkey_trust), \
                (SELECT coalesce(max(next_update_on), 0) FROM passkey_trust), \
                (SELECT coalesce(max(failures), 0) FROM passkey_trust_refresh), \
                (SELECT coalesce(min(last), 0) FROM (SELECT max(valid_to) AS last FROM cert_store \
                 WHERE certificate_has_private_key AND (cert_type IN ('Default', 'AuditTrailSigning') OR (cert_type = 'OidcTokenSigning' \
                 AND (apply_to_tenant_id IS NOT NULL OR apply_to_subscription_id IS NOT NULL))) \
                 GROUP BY cert_type, apply_to_subscription_id, apply_to_tenant_id) AS ends)";
            tx.one(text, &[], |row| {
                let figures: Vec<i64> = (0..11).map(|at| row.int(at)).collect::<Result<_, _>>()?;
                Ok(figures)
            })
        });
        if let Ok(Some(figures)) = counted.await
            && let [
                events,
                mails,
                dead,
                unsealed,
                checkpoint,
                revoking,
                failed,
                refreshed,
                due,
                failures,
                certificates,
            ] = figures[..]
        {
            self.metrics.revocations_waiting.set(revoking);
            self.metrics.revocations_failed.set(failed);
            self.metrics.trust_refreshed.set(refreshed / 1000);
            self.metrics.trust_due.set(due / 1000);
            self.metrics.trust_failures.set(failures);
            self.metrics.certificates_end.set(certificates / 1000);
            self.metrics.entries_unsealed.set(unsealed);
            self.metrics.checkpoint_made.set(checkpoint / 1000);
            self.metrics.events_waiting.set(events);
            self.metrics.mails_waiting.set(mails);
            self.metrics.mails_dead.set(dead);
        }
        for purpose in Purpose::ALL {
            self.metrics.note_work(purpose.name(), self.pool.waiting(purpose));
        }
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        respond(200, content_type, self.metrics.text(&self.store))
    }
}

/// A challenge (RFC 6750, section 3).
pub fn unauthorized(detail: &str, error: Option<&str>) -> Problem {
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
        503 if problem.cause == Some(Error::Busy) && !is_due() => {}
        503 => tracing::warn!(trace_id, method, path, status, cause, detail = problem.detail, "unavailable"),
        _ => tracing::debug!(trace_id, method, path, status, detail = problem.detail, "refused"),
    }
}

/// Whether a refusal for load is to be logged: once a second. All of them are counted.
fn is_due() -> bool {
    static LOGGED: AtomicI64 = AtomicI64::new(0);
    let second = now().0 / 1000;
    LOGGED.swap(second, Ordering::Relaxed) != second
}
