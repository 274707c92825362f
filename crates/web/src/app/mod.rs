//! The application that serves requests.

pub mod health;
pub mod jobs;
pub mod refusal_log;

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
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
use http::{Response, request::Parts};
use tokio::sync::{Semaphore, watch};

use self::jobs::{JobStates, JobWarnings};
use crate::{
    connection::{
        connections::Connections,
        request_body::{Bodies, RequestBody},
    },
    limits::{Limits, proof_limiter::ProofLimiter, rate_limiter::Limiter, stream_slots::StreamSlots},
    message::{
        answer::{AnswerBody, respond},
        base_path::BasePath,
        clock::Clock,
        compressed_text::CompressedText,
        peer::address_of,
    },
    metrics::Metrics,
    openapi,
    routes::{Routes, deprecation::Deprecation},
    trace::AccessLog,
};

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
    /// The clock of requests.
    pub clock: Clock,
    /// When waiting devices last polled.
    pub(crate) device_polls: DevicePolls,
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
    pub(crate) streams: StreamSlots,
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
    pub(crate) jobs: JobStates,
    /// Warnings about a server that can serve requests.
    pub(crate) warnings: JobWarnings,
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
            jobs: JobStates::default(),
            warnings: JobWarnings::default(),
            proof_limiter: ProofLimiter::new(limits.public_rate),
            sign_in_limiter: ProofLimiter::new(limits.failed_sign_ins),
            page_limiter: Limiter::new(limits.failed_sign_ins.map(|limit| limit.saturating_mul(PAGES))),
            device_limiter: Limiter::new(limits.public_rate.map(|limit| limit.min(DEVICES))),
            resets: Arc::new(Semaphore::new(RESETS)),
            streams: StreamSlots::default(),
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
            clock: Clock::default(),
            pool: Pool::default(),
            limiter: Limiter::new(limits.public_rate),
            device_polls: DevicePolls::default(),
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

    /// The OpenID provider, with this class of access to the store.
    pub fn provider<'a>(&'a self, store: &'a Store) -> Provider<'a> {
        Provider {
            store,
            tokens: &self.token_service,
            context: &self.context,
            applications: &self.applications,
            pool: &self.pool,
            documents: &self.provider_documents,
            device_polls: &self.device_polls,
            counts: &self.metrics.sign_in_counts,
        }
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
                if let Some(others) = self.metrics.shed.note(self.clock.now()) {
                    tracing::warn!(method, path, status, cause, detail, others, "unavailable");
                }
            }
            _ => tracing::debug!(method, path, status, detail, "refused"),
        }
    }
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
