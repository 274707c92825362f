//! Constant load: a number of connections, each with one request in flight, for a time.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    client::Client,
    clock,
    fault::{Result, fault},
    histogram::Histogram,
    people::Chance,
    target::{Target, Usage},
};

/// Stands for any status of success.
pub const SUCCESS: u16 = 2;

/// Writes the next request of a connection.
pub type Maker = Arc<dyn Fn(&mut Chance, &mut Vec<u8>) + Send + Sync>;

/// The plan of a load.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of connections.
    pub connections: usize,
    /// The time before answers are counted.
    pub warm_up: Duration,
    /// The time for which answers are counted.
    pub time: Duration,
    /// The expected status, or [`SUCCESS`].
    pub expect: u16,
    /// The length of one interval of the timeline.
    pub piece: Duration,
}

/// The outcome of a load.
#[derive(Default)]
pub struct Outcome {
    /// The latencies of the expected answers.
    pub latencies: Histogram,
    /// The same by interval.
    pub timeline: Vec<Histogram>,
    /// The number of other answers.
    pub refused: u64,
    /// The text of the first other answer.
    pub refusal: Option<String>,
    /// The time for which answers were counted.
    pub elapsed: Duration,
    /// The CPU time used meanwhile.
    pub used: Usage,
    /// The bytes of all bodies.
    pub bytes: u64,
}

impl Outcome {
    /// The expected answers a second.
    pub fn rate(&self) -> f64 {
        self.latencies.total() as f64 / self.elapsed.as_secs_f64()
    }

    /// Adds the outcome of another load at the same time.
    pub fn add(&mut self, other: Self) {
        self.used.server += other.used.server;
        // both share one database, whose CPU time is counted already
        self.merge(other);
    }

    fn merge(&mut self, other: Self) {
        self.latencies.merge(&other.latencies);
        for (place, piece) in other.timeline.iter().enumerate() {
            if self.timeline.len() <= place {
                self.timeline.push(Histogram::default());
            }
            if let Some(mine) = self.timeline.get_mut(place) {
                mine.merge(piece);
            }
        }
        self.refused += other.refused;
        self.refusal = self.refusal.take().or(other.refusal);
        self.bytes += other.bytes;
    }
}

/// Puts a server under load.
pub async fn run(target: &Target, plan: Plan, maker: &Maker) -> Result<Outcome> {
    let begin = Instant::now() + plan.warm_up;
    let end = begin + plan.time;
    let workers: Vec<_> = (0..plan.connections)
        .map(|number| tokio::spawn(work(target.address, plan, begin, end, Arc::clone(maker), number)))
        .collect();
    tokio::time::sleep_until(begin.into()).await;
    let before = target.usage();
    tokio::time::sleep_until(end.into()).await;
    let after = target.usage();
    let mut outcome = Outcome {
        elapsed: plan.time,
        used: Usage {
            server: after.server.saturating_sub(before.server),
            database: after.database.saturating_sub(before.database),
        },
        ..Outcome::default()
    };
    let patience = Duration::from_mins(1);
    for worker in workers {
        let done = tokio::time::timeout(patience, worker).await;
        outcome.merge(done.map_err(|_| fault("an answer did not come within a minute"))???);
    }
    if outcome.latencies.total() == 0 {
        let refusal = outcome.refusal.as_deref().unwrap_or("nothing at all");
        return Err(fault(format!("no good answer from {}: {refusal}", target.engine.name())));
    }
    Ok(outcome)
}

async fn work(
    address: SocketAddr,
    plan: Plan,
    begin: Instant,
    end: Instant,
    maker: Maker,
    number: usize,
) -> Result<Outcome> {
    let mut client = Client::connect(address).await?;
    let mut chance = Chance::new(((number as u64) << 52) ^ clock::now_micros());
    let mut outcome = Outcome::default();
    let mut request = Vec::new();
    let mut sent = Instant::now();
    while sent < end {
        request.clear();
        maker(&mut chance, &mut request);
        let mut bytes = 0;
        let status = client.send(&request, &mut |piece| bytes += piece.len() as u64).await?;
        let answered = Instant::now();
        if answered >= begin && answered < end {
            if status == plan.expect || status / 100 == plan.expect {
                outcome.latencies.add(answered - sent);
                outcome.bytes += bytes;
                let place = (answered - begin).as_millis() / plan.piece.as_millis().max(1);
                let place = usize::try_from(place).unwrap_or(0);
                if outcome.timeline.len() <= place {
                    outcome.timeline.resize_with(place + 1, Histogram::default);
                }
                if let Some(piece) = outcome.timeline.get_mut(place) {
                    piece.add(answered - sent);
                }
            } else {
                outcome.refused += 1;
                if outcome.refusal.is_none() {
                    outcome.refusal = Some(format!("status {status}"));
                }
            }
        }
        sent = answered;
    }
    Ok(outcome)
}
