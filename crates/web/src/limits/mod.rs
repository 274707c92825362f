//! The limits that an operator sets.

pub mod proof_limiter;
pub mod rate_counters;
pub mod rate_limiter;
pub mod stream_slots;

use std::time::Duration;

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
