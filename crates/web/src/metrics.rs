//! Figures for operators, in the text format of Prometheus.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError, atomic::AtomicU64},
};

use chancery_resource::Service;
use chancery_store::Store;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    service: &'static str,
    version: &'static str,
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Deprecated {
    service: &'static str,
    operation: &'static str,
    client: String,
}

/// The most pairs of deprecated operations and client apps that are told apart.
const MOST_DEPRECATED: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Going {
    operation: &'static str,
    store: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Doing {
    job: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Line {
    purpose: &'static str,
}

/// The figures of one operation, looked up once.
struct OperationFigures {
    seconds: Histogram,
    failures: Counter,
}

/// All figures.
pub struct Metrics {
    registry: Registry,
    by_operation: Vec<OperationFigures>,
    answers: Family<Status, Counter>,
    items: Family<Going, Counter>,
    deprecated: Family<Deprecated, Counter>,
    deprecated_seen: Mutex<HashSet<Deprecated>>,
    waiting: Gauge,
    working: Family<Line, Gauge>,
    commits: Gauge<u64, AtomicU64>,
    writes: Gauge<u64, AtomicU64>,
    retries: Gauge<u64, AtomicU64>,
    shed: Gauge<u64, AtomicU64>,
    log_bytes: Gauge<u64, AtomicU64>,
    jobs: Family<Doing, Gauge>,
    /// Events that wait in the outbox.
    pub events_waiting: Gauge,
    /// Mails that wait to be sent.
    pub mails_waiting: Gauge,
    /// Mails that were given up: somebody should look.
    pub mails_dead: Gauge,
    /// Replaced identities whose sessions and tokens are to be ended yet.
    pub revocations_waiting: Gauge,
    /// Those of them for which that has failed: it is tried again.
    pub revocations_failed: Gauge,
    /// Audit entries that are in no tree yet.
    pub entries_unsealed: Gauge,
    /// When the newest checkpoint of an audit trail was made, in seconds since 1970.
    pub checkpoint_made: Gauge,
    /// When the metadata of authenticators in use were taken into use, in seconds since 1970.
    pub trust_refreshed: Gauge,
    /// When the next are due, in seconds since 1970.
    pub trust_due: Gauge,
    /// Refreshes of them that failed one after another.
    pub trust_failures: Gauge,
    /// When the first of those who have signing certificates is left without one, in seconds since
    /// 1970; 0 while there are none.
    pub certificates_end: Gauge,
}

const SECONDS: [f64; 10] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0];

impl Metrics {
    pub fn new(services: &[&'static Service]) -> Self {
        let mut registry = Registry::with_prefix("chancery");
        let seconds = Family::<Labels, Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        let failures = Family::<Labels, Counter>::default();
        let answers = Family::<Status, Counter>::default();
        registry.register("operation_seconds", "How long operations took", seconds.clone());
        registry.register("operation_failures", "Operations answered with a problem", failures.clone());
        registry.register("answers", "Answers by status", answers.clone());
        let items = Family::<Going, Counter>::default();
        let about = "Items that operations in pieces have done, while they are under way";
        registry.register("operation_items", about, items.clone());
        let deprecated = Family::<Deprecated, Counter>::default();
        let about = "Calls of deprecated operations by client app: who still uses them";
        registry.register("deprecated_calls", about, deprecated.clone());
        let operations = services.iter().flat_map(|service| {
            service.all().map(|op| Labels {
                service: service.name,
                version: service.version,
                operation: op.name,
            })
        });
        let operations = operations
            .map(|labels| OperationFigures {
                seconds: seconds.get_or_create_owned(&labels),
                failures: failures.get_or_create_owned(&labels),
            })
            .collect();
        let metrics = Self {
            by_operation: operations,
            answers,
            items,
            deprecated,
            deprecated_seen: Mutex::default(),
            waiting: Gauge::default(),
            working: Family::default(),
            commits: Gauge::default(),
            writes: Gauge::default(),
            retries: Gauge::default(),
            shed: Gauge::default(),
            jobs: Family::default(),
            log_bytes: Gauge::default(),
            events_waiting: Gauge::default(),
            mails_waiting: Gauge::default(),
            mails_dead: Gauge::default(),
            revocations_waiting: Gauge::default(),
            revocations_failed: Gauge::default(),
            entries_unsealed: Gauge::default(),
            checkpoint_made: Gauge::default(),
            trust_refreshed: Gauge::default(),
            trust_due: Gauge::default(),
            trust_failures: Gauge::default(),
            certificates_end: Gauge::default(),
            registry,
        };
        metrics.with_store_figures()
    }

    fn with_store_figures(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("store_waiting", "Operations that wait for the store", self.waiting.clone());
        registry.register("store_commits", "Commits since the start", self.commits.clone());
        registry.register("store_writes", "Writes that those commits held", self.writes.clone());
        registry.register(
            "store_retries",
            "Operations run again after a serialization failure",
            self.retries.clone(),
        );
        registry.register(
            "store_shed",
            "Operations refused because there was too much to do",
            self.shed.clone(),
        );
        registry.register("store_log_bytes", "Bytes of the SQLite write-ahead log", self.log_bytes.clone());
        registry.register(
            "work",
            "Work between transactions under way or waiting, by purpose",
            self.working.clone(),
        );
        let about = "When a job of the background last succeeded, on this process";
        registry.register_with_unit("job_last_success_time", about, Unit::Seconds, self.jobs.clone());
        registry.register("mails_waiting", "Mails that wait to be sent", self.mails_waiting.clone());
        registry.register("mails_dead", "Mails that were given up", self.mails_dead.clone());
        registry.register(
            "revocations_waiting",
            "Replaced identities whose sessions and tokens are to be ended yet",
            self.revocations_waiting.clone(),
        );
        registry.register(
            "revocations_failed",
            "Those of them for which that has failed: it is tried again",
            self.revocations_failed.clone(),
        );
        registry.register(
            "audit_unsealed",
            "Audit entries that are in no tree yet",
            self.entries_unsealed.clone(),
        );
        let about = "When the newest checkpoint of an audit trail was made";
        registry.register_with_unit(
            "audit_checkpoint_time",
            about,
            Unit::Seconds,
            self.checkpoint_made.clone(),
        );
        for (name, about, gauge) in [
            (
                "passkey_trust_refreshed_time",
                "When the metadata of authenticators in use were taken into use; 0: there are none",
                &self.trust_refreshed,
            ),
            ("passkey_trust_due_time", "When newer metadata of authenticators are due", &self.trust_due),
        ] {
            registry.register_with_unit(name, about, Unit::Seconds, gauge.clone());
        }
        registry.register(
            "passkey_trust_failures",
            "Refreshes of metadata of authenticators that failed one after another",
            self.trust_failures.clone(),
        );
        registry.register_with_unit(
            "signing_certificate_end_time",
            "When the first tenant, subscription, the audit trail or all are left without a signing certificate; 0 for none",
            Unit::Seconds,
            self.certificates_end.clone(),
        );
        registry.register("outbox_events", "Events kept in the outbox", self.events_waiting.clone());
        self
    }

    /// Notes an answer.
    pub fn note(&self, operation: Option<usize>, status: u16, seconds: f64) {
        self.answers.get_or_create(&Status { status }).inc();
        if let Some(figures) = operation.and_then(|number| self.by_operation.get(number)) {
            figures.seconds.observe(seconds);
            if status >= 400 {
                figures.failures.inc();
            }
        }
    }

    /// Notes how much work of a purpose waits or is under way.
    pub fn note_work(&self, purpose: &'static str, count: usize) {
        self.working.get_or_create(&Line { purpose }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Notes that a job of the background succeeded.
    pub fn note_job(&self, job: &'static str) {
        self.jobs.get_or_create(&Doing { job }).set(crate::app::now().0 / 1000);
    }

    /// Notes that an operation in pieces has done so many items more.
    pub fn note_items(&self, operation: &'static str, store: &str, items: u64) {
        self.items.get_or_create(&Going { operation, store: store.to_owned() }).inc_by(items);
    }

    /// Notes a call of a deprecated operation. Beyond a bound of pairs the client app is told as `other`.
    pub fn note_deprecated(&self, service: &'static str, operation: &'static str, client: Option<Uuid>) {
        let client = client.map_or_else(|| "none".to_owned(), |id| id.to_string());
        let mut pair = Deprecated { service, operation, client };
        let mut seen = self.deprecated_seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_DEPRECATED && !seen.contains(&pair) {
            "other".clone_into(&mut pair.client);
        } else {
            seen.insert(pair.clone());
        }
        drop(seen);
        self.deprecated.get_or_create(&pair).inc();
    }

    /// The text that Prometheus reads.
    pub fn text(&self, store: &Store) -> String {
        let figures = store.figures();
        self.waiting.set(i64::try_from(figures.waiting).unwrap_or(i64::MAX));
        self.commits.set(figures.commits);
        self.writes.set(figures.writes);
        self.retries.set(figures.retries);
        self.shed.set(figures.shed);
        self.log_bytes.set(figures.log_bytes);
        let mut text = String::new();
        // writing to a String does not fail
        let _ = encode(&mut text, &self.registry);
        text
    }
}
