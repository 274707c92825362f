//! The application that serves requests.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use chancery_auth::{Rights, TokenService};
use chancery_fetch::{Networks, Permission, Policy};
use chancery_record::Timestamp;
use chancery_resource::{AppContext, LongReads, Pool, Problem, ProblemKind, Purpose, Service};
use chancery_signin::{
    Appearances, Applications, ConsoleLifetimes, DevicePolls, Provider, ProviderDocuments, RefusedRequests,
    SignOutDeliveries,
};
use chancery_store::{Class, Error, Figure, Store};
use http::{HeaderMap, HeaderValue, Request, Response, Version, header, request::Parts};
use hyper::body::Incoming;
use tokio::sync::{Semaphore, watch};
use tracing::{Instrument as _, Span};

use crate::{
    answer::{self, AnswerBody, respond},
    base::BasePath,
    body::{Bodies, RequestBody},
    compress::CompressedText,
    connections::Connections,
    deprecation::Deprecation,
    event_stream::Streams,
    execute, external,
    health::{Jobs, Warnings},
    limiter::Limiter,
    listener::Peer,
    metrics::Metrics,
    openapi,
    proof_limiter::ProofLimiter,
    route::{Entry, Routes, Target, choose},
    system::open_to_scripts,
    trace::{self, AccessLog},
};

/// Limits on requests, connections and bodies.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests a minute and address to operations without a token; `None` is no limit.
    pub public_rate: Option<u32>,
    /// Failed proofs of people a minute and address; `None` is no limit.
    pub failed_sign_ins: Option<u32>,
    /// The minimum time of the answer to a failed proof of a person. The records about a known person cost more than those
    /// about an unknown one, by the indexes of the tables; within this time the difference cannot be measured.
    pub failed_sign_in_time: Duration,
    /// Bytes of a JSON body.
    pub body: usize,
    /// Bytes of the body of a batch.
    pub batch_body: usize,
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address.
    pub connections_per_address: usize,
    /// How long a connection may be idle between requests.
    pub idle_time: Duration,
    /// How long a client may take to read an answer.
    pub answer_time: Duration,
    /// MiB of larger bodies held in memory at once.
    pub bodies_mib: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            public_rate: Some(60),
            failed_sign_ins: Some(60),
            failed_sign_in_time: Duration::from_millis(50),
            body: 10 << 20,
            batch_body: 64 << 20,
            connections: 10_000,
            connections_per_address: 1_024,
            idle_time: Duration::from_mins(1),
            answer_time: Duration::from_mins(10),
            bodies_mib: 512,
        }
    }
}

/// Device authorizations a minute and address in the name of public client apps. Codes last an hour at most, so one
/// address takes less than the 1,000 entries that a client app has.
const DEVICES: u32 = 15;

/// Pages a minute and address, for each failed proof that the limit allows.
const PAGES: u32 = 10;

/// The application: the state that all requests share.
pub struct App {
    /// The database.
    pub store: Store,
    /// Issues and verifies tokens.
    pub token_service: TokenService,
    /// The rights of callers.
    pub rights: Rights,
    /// The client apps that people sign in to.
    pub(crate) applications: Applications,
    /// The presentation of pages by owner.
    pub(crate) appearances: Appearances,
    /// The documents that external identity providers publish.
    pub(crate) provider_documents: Arc<ProviderDocuments>,
    /// Refused requests of client apps that are to be recorded.
    pub refused_requests: RefusedRequests,
    /// The context of all operations.
    pub context: Arc<AppContext>,
    /// Limits on requests, connections and bodies.
    pub limits: Limits,
    /// When waiting devices last polled.
    pub(crate) questions: DevicePolls,
    /// Whether people sign in here, and the class of authentication that they need at the services.
    pub sign_in: SignInSettings,
    /// The lifetimes of console sessions.
    pub console_lifetimes: ConsoleLifetimes,
    /// The handler below `/console`; none where there is no console.
    pub console: Option<Pages>,
    /// The handler of SCIM requests.
    pub scim: Option<Pages>,
    /// The networks of proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Networks,
    /// The headers of deprecated operations.
    pub deprecation: Deprecation,
    /// Which answers are logged.
    pub access_log: AccessLog,
    /// The number of lines that the log could not write.
    pub dropped_lines: fn() -> u64,
    /// The open connections, and the stage of the server's stop.
    pub(crate) connections: Arc<Connections>,
    pub(crate) pool: Pool,
    /// Shares long reads between client apps and subscriptions.
    pub(crate) reads: LongReads,
    pub(crate) limiter: Limiter,
    pub(crate) proof_limiter: ProofLimiter,
    /// The same, of people on pages.
    pub(crate) sign_in_limiter: ProofLimiter,
    /// Limit of pages for anonymous browsers.
    pub(crate) page_limiter: Limiter,
    /// Limit of device authorizations of client apps that prove nothing.
    pub(crate) device_limiter: Limiter,
    /// Permits for password reset requests, which are processed after their answer.
    pub(crate) resets: Arc<Semaphore>,
    /// Slots for streams of events.
    pub(crate) streams: Streams,
    /// Permits for reading larger bodies.
    pub(crate) readers: Arc<Semaphore>,
    /// Memory for bodies that are not tiny.
    pub(crate) bodies: Bodies,
    /// The path of the public URL.
    pub(crate) base: BasePath,
    pub(crate) routes: Routes,
    pub(crate) metrics: Metrics,
    /// Signals the stop to work that calls other servers. Holders of a receiver are waited for.
    pub stopping: watch::Sender<bool>,
    /// The state of the background jobs.
    pub(crate) jobs: Jobs,
    /// Warnings about a server that can serve requests.
    pub(crate) warnings: Warnings,
    pub(crate) documents: Vec<Document>,
}

/// The components of an [`App`].
#[expect(missing_docs, reason = "the fields of the application that have these names say it")]
pub struct AppParts<'a> {
    pub store: Store,
    pub token_service: TokenService,
    pub context: Arc<AppContext>,
    pub limits: Limits,
    /// The services whose operations it serves.
    pub services: &'a [&'static Service],
    /// The metrics that jobs determine.
    pub figures: &'a [&'static [Figure]],
    /// The version and the commit of the program.
    pub build: (&'static str, &'static str),
    pub sign_in: SignInSettings,
    pub console_lifetimes: ConsoleLifetimes,
    pub console: Option<Pages>,
    pub scim: Option<Pages>,
    pub trusted_proxies: Networks,
    pub deprecation: Deprecation,
    pub access_log: AccessLog,
    pub dropped_lines: fn() -> u64,
}

/// A handler of pages or of SCIM requests. `Box` keeps the future of other requests small.
pub type Pages =
    for<'a> fn(
        &'a App,
        &'a Parts,
        &'a mut RequestBody,
        Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Problem>> + Send + 'a>>;

/// When version 1 was deprecated, unless configured otherwise: 2026-01-01.
pub const DEPRECATED_ON: Timestamp = Timestamp(1_767_225_600_000);

/// A service's OpenAPI document, generated on first use.
pub struct Document {
    /// The name of the document's file.
    pub name: String,
    service: &'static Service,
    text: OnceLock<CompressedText>,
}

impl Document {
    fn of(service: &'static Service) -> Self {
        let name = format!("{}-{}.json", service.name, service.version);
        Self { name, service, text: OnceLock::new() }
    }

    /// The document's published text, of a server below this path.
    pub fn text(&self, base: &BasePath) -> &CompressedText {
        self.text.get_or_init(|| {
            let document = openapi::document(self.service, base.as_str());
            CompressedText::new("application/json", document.to_string().into())
        })
    }
}

/// Password reset requests that wait at once.
const RESETS: usize = 64;

impl App {
    /// Creates the application.
    ///
    /// # Errors
    /// Two operations have ambiguous paths.
    pub fn new(parts: AppParts<'_>) -> Result<Self, String> {
        let AppParts { store, token_service, limits, services, .. } = parts;
        let connections = Connections::of(&limits);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (version, commit) = parts.build;
        let mut metrics = Metrics::new(services, parts.figures, &connections);
        metrics.set_build_info(version, commit);
        metrics.observe(&store);
        Ok(Self {
            base: BasePath::of(&token_service.public_url),
            routes: Routes::new(services).map_err(|error| error.to_string())?,
            metrics,
            connections,
            stopping: watch::Sender::new(false),
            jobs: Jobs::default(),
            warnings: Warnings::default(),
            proof_limiter: ProofLimiter::new(limits.public_rate),
            sign_in_limiter: ProofLimiter::new(limits.failed_sign_ins),
            page_limiter: Limiter::new(limits.failed_sign_ins.map(|limit| limit.saturating_mul(PAGES))),
            device_limiter: Limiter::new(limits.public_rate.map(|limit| limit.min(DEVICES))),
            resets: Arc::new(Semaphore::new(RESETS)),
            streams: Streams::default(),
            readers: Arc::new(Semaphore::new(processors)),
            documents: services.iter().map(|service| Document::of(service)).collect(),
            rights: Rights::default(),
            applications: Applications::default(),
            appearances: Appearances::default(),
            provider_documents: Arc::default(),
            refused_requests: RefusedRequests::default(),
            bodies: Bodies::of(limits.bodies_mib),
            reads: LongReads::of(store.long_places()),
            store,
            token_service,
            context: parts.context,
            pool: Pool::default(),
            limiter: Limiter::new(limits.public_rate),
            questions: DevicePolls::default(),
            sign_in: parts.sign_in,
            console_lifetimes: parts.console_lifetimes,
            console: parts.console,
            scim: parts.scim,
            trusted_proxies: parts.trusted_proxies,
            deprecation: parts.deprecation,
            access_log: parts.access_log,
            dropped_lines: parts.dropped_lines,
            limits,
        })
    }

    /// Answers a request; never fails.
    pub async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Response<AnswerBody> {
        let (mut parts, body) = request.into_parts();
        if !self.base.as_str().is_empty() {
            self.base.strip_from(&mut parts.uri);
            parts.extensions.insert(self.base.clone());
        }
        let span = trace::of_request(&parts);
        self.answer(parts, RequestBody::from(body)).instrument(span).await
    }

    async fn answer(self: &Arc<Self>, parts: Parts, mut body: RequestBody) -> Response<AnswerBody> {
        let started = Instant::now();
        let (mut entry, mut fallback) = (None, None);
        let outcome = match check_host(&parts) {
            Ok(()) if has_unread_coding(&parts.headers) => Ok(answer::unread_coding()),
            Ok(()) => self.dispatch(&parts, &mut body, (&mut entry, &mut fallback)).await,
            Err(problem) => Err(problem),
        };
        let mut response = outcome.unwrap_or_else(|problem| {
            self.log_problem(&problem, &parts);
            answer::problem(problem, &parts)
        });
        body.finish(&parts, response.headers_mut()).await;
        answer::protect(&mut response);
        let (status, seconds) = (response.status().as_u16(), started.elapsed().as_secs_f64());
        self.metrics.note(entry.map(|entry| entry.number), status, seconds);
        if let Some(entry) = entry.or(fallback) {
            self.deprecation.set_headers(response.headers_mut(), (entry.base, entry.op), parts.uri.path());
        }
        self.base.prefix_headers(response.headers_mut());
        if self.access_log.has(status) {
            // the path is left out: it can identify a person
            tracing::info!(method = %parts.method, status, seconds, "answered");
        } else {
            tracing::debug!(method = %parts.method, path = parts.uri.path(), status, seconds, "answered");
        }
        response
    }

    /// The OpenID provider, with this class of access to the store.
    pub fn provider<'a>(&'a self, store: &'a Store) -> Provider<'a> {
        let (tokens, context, applications) = (&self.token_service, &self.context, &self.applications);
        let (documents, counts) = (&self.provider_documents, &self.metrics.sign_in_counts);
        Provider { store, tokens, context, applications, pool: &self.pool, documents, counts }
    }

    /// Sends logout tokens to some of the client apps that are due by their back channel.
    pub async fn deliver_sign_outs(
        &self,
        permission: Permission,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<SignOutDeliveries, Error> {
        self.provider(&self.store.with(Class::Background)).deliver_sign_outs(permission, policy, now).await
    }

    /// Records a metric that a job determined.
    pub fn note_figure(&self, figure: &'static Figure, value: i64) {
        self.metrics.figures.note(figure, value);
    }

    /// Answers a request at the address that serves only metrics.
    pub async fn handle_metrics(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let (parts, _) = request.into_parts();
        let mut response = if parts.uri.path() == "/metrics" {
            self.metrics_text().instrument(trace::of_request(&parts)).await
        } else {
            let problem = Problem::new(ProblemKind::NoSuchRoute, "This address has /metrics only.");
            answer::problem(problem, &parts)
        };
        answer::protect(&mut response);
        response
    }

    async fn dispatch(
        self: &Arc<Self>,
        parts: &Parts,
        body: &mut RequestBody,
        (chosen, fallback): (&mut Option<Entry>, &mut Option<Entry>),
    ) -> Result<Response<AnswerBody>, Problem> {
        let now = now();
        let path = parts.uri.path();
        let (target, parameters) = match self.routes.find(path) {
            Ok(found) => found,
            Err(problem) => {
                let is_of_protocol = ["/connect/", "/.well-known/"].iter().any(|part| path.contains(part));
                return match Box::pin(external::of_path(self, parts, now)).await {
                    None if is_of_protocol => Ok(self.problem_for_scripts(problem, parts)),
                    found => found.unwrap_or(Err(problem)),
                };
            }
        };
        match target {
            Target::System(route, kind) => {
                Span::current().record("operation", route.path());
                let answered = route.answer(self, (*kind, parameters), parts, body, now).await;
                if route.is_open_to_scripts() {
                    let response = answered.or_else(|problem| Ok(self.problem_for_scripts(problem, parts)));
                    return response.map(open_to_scripts);
                }
                let mut response = answered?;
                if route.shows_pages() {
                    self.base.prefix_page(&mut response);
                }
                Ok(response)
            }
            Target::Operations(entries) => {
                *fallback = entries.first().copied();
                let entry = choose(entries, &parts.method)?;
                *chosen = Some(entry);
                Span::current().record("operation", entry.op.name);
                execute::execute(self, entry, parts, body, parameters?, now).await
            }
        }
    }

    /// A problem that scripts of any site may read.
    fn problem_for_scripts(&self, problem: Problem, parts: &Parts) -> Response<AnswerBody> {
        self.log_problem(&problem, parts);
        open_to_scripts(answer::problem(problem, parts))
    }

    /// Limits how often operations without a token are called from one address.
    pub fn admit_address(&self, parts: &Parts, now: Timestamp) -> Result<(), Problem> {
        self.limiter.admit_address(address_of(parts), now)
    }

    /// The metrics.
    pub async fn metrics_text(&self) -> Response<AnswerBody> {
        self.metrics.figures.read(&self.store).await;
        self.metrics.log_dropped.set((self.dropped_lines)());
        self.metrics.connections.set(i64::try_from(self.connections.count()).unwrap_or(i64::MAX));
        for purpose in Purpose::ALL {
            self.metrics.note_work(purpose.name(), self.pool.waiting(purpose));
        }
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        respond(200, content_type, self.metrics.text(&self.store))
    }

    /// Logs what an operator must know; a client's errors are answered, not logged. Unavailability is logged
    /// once a second: under load each request would write a line.
    pub fn log_problem(&self, problem: &Problem, parts: &Parts) {
        let cause = problem.cause.as_ref().map(ToString::to_string);
        let (status, path, method) = (problem.status(), parts.uri.path(), parts.method.as_str());
        let detail = &problem.detail;
        match status {
            500 => tracing::error!(method, path, status, cause, detail, "failed"),
            503 => {
                if let Some(others) = self.metrics.shed.note(now()) {
                    tracing::warn!(method, path, status, cause, detail, others, "unavailable");
                }
            }
            _ => tracing::debug!(method, path, status, detail, "refused"),
        }
    }
}

/// The address that a request comes from.
pub fn address_of(parts: &Parts) -> std::net::IpAddr {
    parts.extensions.get::<Peer>().map_or(std::net::Ipv4Addr::UNSPECIFIED.into(), |peer| peer.address)
}

/// Checks that an HTTP/1.1 request has exactly one `Host` (RFC 9112, section 3.2).
fn check_host(parts: &Parts) -> Result<(), Problem> {
    let hosts = parts.headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && parts.version == Version::HTTP_11) {
        let problem = Problem::invalid("A request of HTTP/1.1 has the header Host, once.");
        return Err(problem.with_header("connection", "close"));
    }
    Ok(())
}

/// Whether a body has a transfer coding besides the framing of HTTP/1.1, which alone is read (RFC 9112, section 6.1): a proxy in
/// front that decodes it would read another body.
fn has_unread_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_read = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    codings.next().is_some_and(|first| !is_read(first)) || codings.next().is_some()
}

/// Whether people sign in here, and the class of authentication that they need at the services.
#[derive(Clone, Copy, Debug)]
pub struct SignInSettings {
    /// Whether people sign in here.
    pub is_on: bool,
    /// The class of authentication (`acr`) that people need at the services.
    pub admin_acr: &'static str,
}

/// People sign in, and one factor is enough.
pub const SIGN_IN: SignInSettings = SignInSettings { is_on: true, admin_acr: "sfa" };

/// The advice in a problem without a token.
pub const NO_TOKEN: &str = "Send an access token: Authorization: Bearer ...";

/// A challenge (RFC 6750, section 3). It names no error where no token was sent.
pub fn unauthorized(detail: &str, error: Option<&str>) -> Problem {
    let challenge = match error {
        Some(error) => format!("Bearer realm=\"chancery\", error=\"{error}\""),
        None => "Bearer realm=\"chancery\"".to_owned(),
    };
    Problem::new(ProblemKind::Unauthorized, detail).with_header("www-authenticate", challenge)
}

/// The current time: only the edge reads the clock, and hands it to operations.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
