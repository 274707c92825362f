//! Metrics of sign-ins that neither pages nor endpoints count.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
};
use uuid::Uuid;

/// A count since the start.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Increments the count.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The maximum of instances with a time series of their own.
const MAX_INSTANCES: usize = 1_000;
/// The bucket bounds of the durations, in seconds: a request takes 5 seconds at most, and a sign-in has four.
const SECONDS: [f64; 8] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 20.0];

/// The labels of provider durations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ProviderLabels {
    instance: String,
    outcome: &'static str,
}

/// Durations of requests of sign-ins to external identity providers.
#[derive(Debug)]
pub struct ProviderTimes {
    /// The durations.
    pub seconds: Family<ProviderLabels, Histogram>,
    seen: Mutex<HashSet<Uuid>>,
}

impl Default for ProviderTimes {
    fn default() -> Self {
        let seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        Self { seconds, seen: Mutex::default() }
    }
}

impl ProviderTimes {
    /// Records the duration of a provider's answers, and whether the sign-in continued. Instances beyond the limit
    /// share one label.
    pub(crate) fn note(&self, instance: Uuid, is_good: bool, took: Duration) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = seen.contains(&instance) || (seen.len() < MAX_INSTANCES && seen.insert(instance));
        drop(seen);
        let instance = if is_known { instance.to_string() } else { "other".to_owned() };
        let outcome = if is_good { "ok" } else { "failed" };
        self.seconds.get_or_create(&ProviderLabels { instance, outcome }).observe(took.as_secs_f64());
    }
}

/// The counts.
#[derive(Debug, Default)]
pub struct Counts {
    /// Durations of external identity providers.
    pub providers: ProviderTimes,
    /// Replaced refresh tokens that were presented again.
    pub reused: Count,
    /// Codes sent by mail.
    pub mailed: Count,
    /// Codes sent by SMS.
    pub texted: Count,
}
