//! Metrics, in the text format of Prometheus.

mod figures;
pub mod refused_requests;

use std::{
    collections::HashSet,
    hash::{Hash, Hasher},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use chancery_record::Timestamp;
use chancery_resource::Service;
use chancery_signin::Counts;
use chancery_store::{Figure, Store, schema_version};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};
use uuid::Uuid;

use self::{figures::Figures, refused_requests::RefusedCounter};
use crate::connection::connections::Connections;

#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    service: &'static str,
    version: &'static str,
    operation: &'static str,
}

/// Hashes the operation only, which is nearly unique: each start hashes the labels of all operations.
impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation.hash(state);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeprecatedLabels {
    service: &'static str,
    operation: &'static str,
    client: String,
}

/// The most label pairs of deprecated operation and client app.
const MAX_DEPRECATED: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ItemLabels {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HoldLabels {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    job: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkLabels {
    purpose: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SignInLabels {
    method: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlowLabels {
    step: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    grant: &'static str,
    outcome: &'static str,
}

/// Label values that come from data, bounded in number: each is a time series that stays.
struct Seen<T>(Mutex<HashSet<T>>);

impl<T: Clone + Eq + Hash> Seen<T> {
    /// The labels themselves; beyond the bound their substitute.
    fn bounded(&self, labels: T, most: usize, other: impl FnOnce(T) -> T) -> T {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(&labels) {
            return labels;
        }
        if seen.len() >= most {
            return other(labels);
        }
        seen.insert(labels.clone());
        labels
    }
}

/// Requests that were answered with 503, and when that was last logged.
#[derive(Default)]
pub struct ShedCounter {
    count: Counter,
    logged: AtomicI64,
    unlogged: AtomicU64,
}

impl ShedCounter {
    /// Counts one. Once a second it is to be logged: the result is how many others were not.
    pub fn note(&self, now: Timestamp) -> Option<u64> {
        self.count.inc();
        let (second, logged) = (now.0.div_euclid(1000), self.logged.load(Ordering::Relaxed));
        let is_first = second != logged
            && self.logged.compare_exchange(logged, second, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first {
            return Some(self.unlogged.swap(0, Ordering::Relaxed));
        }
        self.unlogged.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// The metrics of one operation, resolved once.
struct OperationFigures {
    seconds: Histogram,
    failures: Counter,
}

/// All metrics.
pub struct Metrics {
    registry: Registry,
    by_operation: Vec<OperationFigures>,
    answers: Family<StatusLabels, Counter>,
    items: Family<ItemLabels, Counter>,
    deprecated: Family<DeprecatedLabels, Counter>,
    deprecated_seen: Seen<DeprecatedLabels>,
    /// Answers with 503.
    pub shed: ShedCounter,
    /// Requests of client apps that were refused.
    pub refused: RefusedCounter,
    /// Open connections.
    pub connections: Gauge,
    /// Lines that the log could not write.
    pub log_dropped: Gauge<u64, AtomicU64>,
    waiting: Gauge,
    working: Family<WorkLabels, Gauge>,
    commits: Gauge<u64, AtomicU64>,
    writes: Gauge<u64, AtomicU64>,
    retries: Gauge<u64, AtomicU64>,
    store_shed: Gauge<u64, AtomicU64>,
    log_bytes: Gauge<u64, AtomicU64>,
    holds: Family<HoldLabels, Histogram>,
    jobs: Family<JobLabels, Gauge>,
    backfill_rows: Family<JobLabels, Gauge>,
    backfill_done: Family<JobLabels, Gauge>,
    sign_ins: Family<SignInLabels, Counter>,
    /// The counters of the sign-in itself.
    pub sign_in_counts: Counts,
    flows: Family<FlowLabels, Counter>,
    refresh_reuse: Counter<u64, AtomicU64>,
    views_failed: Counter<u64, AtomicU64>,
    codes_sent: Family<CodeLabels, Counter<u64, AtomicU64>>,
    tokens: Family<TokenLabels, Counter>,
    /// The metrics that slices declared.
    pub figures: Arc<Figures>,
}

const SECONDS: [f64; 10] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0];
/// Holds of the writer: 0.25 and 2 are the limits of operations, and of those with many elements.
const HELD: [f64; 7] = [0.001, 0.01, 0.05, 0.25, 1.0, 2.0, 10.0];

impl Metrics {
    pub fn new(
        services: &[&'static Service],
        figures: &[&'static [Figure]],
        connections: &Connections,
    ) -> Self {
        let mut registry = Registry::with_prefix("chancery");
        let seconds = Family::<Labels, Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        let failures = Family::<Labels, Counter>::default();
        let answers = Family::<StatusLabels, Counter>::default();
        registry.register("operation_seconds", "How long operations took", seconds.clone());
        registry.register("operation_failures", "Operations answered with a problem", failures.clone());
        registry.register("answers", "Answers by status", answers.clone());
        let items = Family::<ItemLabels, Counter>::default();
        let about = "Items that operations in pieces have done, while they are under way";
        registry.register("operation_items", about, items.clone());
        let deprecated = Family::<DeprecatedLabels, Counter>::default();
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
            deprecated_seen: Seen(Mutex::default()),
            shed: ShedCounter::default(),
            refused: RefusedCounter::default(),
            connections: Gauge::default(),
            log_dropped: Gauge::default(),
            waiting: Gauge::default(),
            working: Family::default(),
            commits: Gauge::default(),
            writes: Gauge::default(),
            retries: Gauge::default(),
            store_shed: Gauge::default(),
            jobs: Family::default(),
            backfill_rows: Family::default(),
            backfill_done: Family::default(),
            sign_ins: Family::default(),
            sign_in_counts: Counts::default(),
            flows: Family::default(),
            refresh_reuse: Counter::default(),
            views_failed: Counter::default(),
            codes_sent: Family::default(),
            tokens: Family::default(),
            log_bytes: Gauge::default(),
            holds: Family::<HoldLabels, Histogram>::new_with_constructor(|| Histogram::new(HELD)),
            figures: Figures::new(figures, &mut registry),
            registry,
        };
        metrics.with_store_figures().with_connection_figures(connections).with_sign_in_figures()
    }

    fn with_connection_figures(mut self, connections: &Connections) -> Self {
        let registry = &mut self.registry;
        registry.register("connections", "Connections that are open", self.connections.clone());
        let about = "Connections ended so that others get their places";
        registry.register("connections_gave_way", about, connections.evicted.clone());
        let about = "Connections refused because all places were taken";
        registry.register("connections_refused", about, connections.refused.clone());
        registry.register("shed", "Requests answered with 503", self.shed.count.clone());
        let about = "Lines of the log that could not be written";
        registry.register("log_dropped", about, self.log_dropped.clone());
        self
    }

    fn with_sign_in_figures(mut self) -> Self {
        let about = "What people proved on pages, or did there, by whether it was right";
        self.registry.register("sign_ins", about, self.sign_ins.clone());
        let about =
            "How long external identity providers took to answer in sign-ins, by instance and outcome";
        let seconds = self.sign_in_counts.providers.seconds.clone();
        self.registry.register("provider_seconds", about, seconds);
        let about = "Posts from pages of sign-ins, by page and by where they led";
        self.registry.register("flows", about, self.flows.clone());
        let about = "Refresh tokens that were shown after they had been replaced: stolen ones, perhaps";
        self.registry.register("refresh_reuse", about, self.refresh_reuse.clone());
        let about = "Custom views that failed, in whose place the shipped ones were shown";
        self.registry.register("views_failed", about, self.views_failed.clone());
        let about = "One-time codes handed to a mail server's queue or to an SMS gateway";
        self.registry.register("codes_sent", about, self.codes_sent.clone());
        let about = "Requests for tokens, by whether they were granted, or why not";
        self.registry.register("tokens", about, self.tokens.clone());
        let about = "Requests of client apps that were refused, by endpoint and error: the log says why";
        self.registry.register("refused_requests", about, self.refused.count.clone());
        self
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
            self.store_shed.clone(),
        );
        let about = "How long each operation held the one writer of SQLite, which makes all other writes wait; Commit is \
                     what those that commit together wait for the disk";
        registry.register("writer_hold_seconds", about, self.holds.clone());
        registry.register("store_log_bytes", "Bytes of the SQLite write-ahead log", self.log_bytes.clone());
        registry.register(
            "work",
            "Work between transactions under way or waiting, by purpose",
            self.working.clone(),
        );
        let about = "When a job of the background last succeeded, on this process";
        registry.register_with_unit("job_last_success_time", about, Unit::Seconds, self.jobs.clone());
        let about = "Rows that a job reads once to fill in or to convert them, on this process";
        registry.register("backfill_rows", about, self.backfill_rows.clone());
        let about = "Those of chancery_backfill_rows that are done";
        registry.register("backfill_rows_done", about, self.backfill_done.clone());
        self
    }

    /// Adds the metric `chancery_build_info`, which is always 1 and has the version, the commit and the schema version as labels.
    pub fn set_build_info(&mut self, version: &'static str, commit: &'static str) {
        let schema = schema_version().to_string();
        let labels = vec![("version", version.to_owned()), ("commit", commit.to_owned()), ("schema", schema)];
        self.registry.register(
            "build",
            "What this program is: the schema is the one that it creates",
            Info::new(labels),
        );
    }

    /// Records an answer.
    pub fn note(&self, operation: Option<usize>, status: u16, seconds: f64) {
        self.answers.get_or_create(&StatusLabels { status }).inc();
        if let Some(figures) = operation.and_then(|number| self.by_operation.get(number)) {
            figures.seconds.observe(seconds);
            if status >= 400 {
                figures.failures.inc();
            }
        }
    }

    /// Observes how long operations hold a store's writer.
    pub fn observe(&self, store: &Store) {
        let holds = self.holds.clone();
        store.observe_holds(Box::new(move |operation, time| {
            holds.get_or_create(&HoldLabels { operation }).observe(time.as_secs_f64());
        }));
    }

    /// Sets how much work of a purpose waits or runs.
    pub fn note_work(&self, purpose: &'static str, count: usize) {
        self.working.get_or_create(&WorkLabels { purpose }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Records the result of an attempt on a page: right, wrong or limited.
    pub fn note_sign_in(&self, method: &'static str, outcome: &'static str) {
        self.sign_ins.get_or_create(&SignInLabels { method, outcome }).inc();
    }

    /// Records the result of a post from a page of a sign-in.
    pub fn note_flow(&self, step: &'static str, outcome: &'static str) {
        self.flows.get_or_create(&FlowLabels { step, outcome }).inc();
    }

    /// Records that a custom view failed.
    pub fn note_failed_view(&self) {
        self.views_failed.inc();
    }

    /// Records the result of a token request: granted, or an error of OAuth 2.0.
    pub fn note_tokens(&self, grant: &'static str, outcome: &'static str) {
        self.tokens.get_or_create(&TokenLabels { grant, outcome }).inc();
    }

    /// Records that a background job succeeded.
    pub fn note_job(&self, job: &'static str, now: Timestamp) {
        self.jobs.get_or_create(&JobLabels { job }).set(now.0 / 1000);
    }

    /// Records how far a job is that reads rows once to fill in or to convert them.
    pub fn note_backfill(&self, job: &'static str, rows: u64, done: u64) {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.backfill_rows.get_or_create(&JobLabels { job }).set(number(rows));
        self.backfill_done.get_or_create(&JobLabels { job }).set(number(done));
    }

    /// Records items that an operation in chunks processed.
    pub fn note_items(&self, operation: &'static str, items: u64) {
        self.items.get_or_create(&ItemLabels { operation }).inc_by(items);
    }

    /// Records a call of a deprecated operation. Beyond a bound the client app is labelled `other`.
    pub fn note_deprecated(&self, service: &'static str, operation: &'static str, client: Option<Uuid>) {
        let client = client.map_or_else(|| "none".to_owned(), |id| id.to_string());
        let other = |pair: DeprecatedLabels| DeprecatedLabels { client: "other".to_owned(), ..pair };
        let pair = DeprecatedLabels { service, operation, client };
        let pair = self.deprecated_seen.bounded(pair, MAX_DEPRECATED, other);
        self.deprecated.get_or_create(&pair).inc();
    }

    /// The metrics in Prometheus's text format.
    pub fn text(&self, store: &Store) -> String {
        let sign_ins = &self.sign_in_counts;
        self.refresh_reuse.inner().store(sign_ins.reused.get(), Ordering::Relaxed);
        for (kind, count) in [("email", &sign_ins.mailed), ("sms", &sign_ins.texted)] {
            self.codes_sent.get_or_create(&CodeLabels { kind }).inner().store(count.get(), Ordering::Relaxed);
        }
        let figures = store.figures();
        self.waiting.set(i64::try_from(figures.waiting).unwrap_or(i64::MAX));
        self.commits.set(figures.commits);
        self.writes.set(figures.writes);
        self.retries.set(figures.retries);
        self.store_shed.set(figures.shed);
        self.log_bytes.set(figures.log_bytes);
        let mut text = String::new();
        // writing to a String does not fail
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use chancery_record::Timestamp;

    use super::{Seen, ShedCounter};

    /// A16: labels that come from data are bounded.
    #[test]
    fn labels_are_bounded() {
        let seen = Seen(Mutex::default());
        let results: Vec<u32> = (0..5).map(|label| seen.bounded(label, 3, |_| 99)).collect();
        assert_eq!(results, [0, 1, 2, 99, 99]);
        assert_eq!(seen.bounded(1, 3, |_| 99), 1, "what is known stays");
    }

    /// Unavailability is logged once a second, and counted.
    #[test]
    fn unavailability_is_logged_once_a_second() {
        let shed = ShedCounter::default();
        let results: Vec<Option<u64>> =
            [5_000, 5_001, 5_999, 6_000, 6_500, 9_000].map(|now| shed.note(Timestamp(now))).to_vec();
        assert_eq!(results, [Some(0), None, None, Some(2), None, Some(1)]);
        assert_eq!(shed.count.get(), 6);
    }
}
