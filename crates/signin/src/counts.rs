//! What metrics count of sign-ins that neither pages nor endpoints see.

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
    /// One more.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The most instances whose providers are told apart: each is a time series that stays.
const MOST_INSTANCES: usize = 1_000;
/// The bounds of the times, in seconds: a request takes 5 seconds at most, and a sign-in has four.
const SECONDS: [f64; 8] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 20.0];

/// By what the times of providers are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ProviderLabels {
    instance: String,
    outcome: &'static str,
}

/// How long external identity providers took to answer what a sign-in asks them.
#[derive(Debug)]
pub struct ProviderTimes {
    /// The times.
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
    /// Notes how long the provider of an instance took, and whether a sign-in went on by what it answered. Beyond a bound instances are
    /// told as one.
    pub(crate) fn note(&self, instance: Uuid, is_good: bool, took: Duration) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = seen.contains(&instance) || (seen.len() < MOST_INSTANCES && seen.insert(instance));
        drop(seen);
        let instance = if is_known { instance.to_string() } else { "other".to_owned() };
        let outcome = if is_good { "ok" } else { "failed" };
        self.seconds.get_or_create(&ProviderLabels { instance, outcome }).observe(took.as_secs_f64());
    }
}

/// The counts.
#[derive(Debug, Default)]
pub struct Counts {
    /// How long external identity providers took.
    pub providers: ProviderTimes,
    /// Refresh tokens that were shown after they had been replaced.
    pub reused: Count,
    /// Codes sent by mail.
    pub mailed: Count,
    /// Codes sent by SMS.
    pub texted: Count,
}
