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
    people::Random,
    target::{Target, Usage},
};

/// Stands for any status of success.
pub const SUCCESS: u16 = 2;

/// Writes the next request of a connection.
pub type Maker = Arc<dyn Fn(&mut Random, &mut Vec<u8>) + Send + Sync>;

/// A client that does the same thing again and again: one request, or several that follow from each other.
pub trait Actor: Send + 'static {
    /// Does it once.
    fn act(&mut self, client: &mut Client) -> impl Future<Output = Result<ActOutcome>> + Send;
}

/// The outcome of one act.
pub enum ActOutcome {
    /// What was expected, with the number of bytes of the bodies.
    Expected(u64),
    /// Something else, described in words.
    Unexpected(String),
}

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
    pub interval: Duration,
}

/// The outcome of a load.
#[derive(Default)]
pub struct Outcome {
    /// The latencies of the expected answers.
    pub latencies: Histogram,
    /// The latencies by interval.
    pub timeline: Vec<Histogram>,
    /// The number of unexpected answers.
    pub unexpected: u64,
    /// The text of the first unexpected answer.
    pub first_unexpected: Option<String>,
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

    /// Counts an operation, from when it began to when it ended.
    fn count(
        &mut self,
        begin: Instant,
        interval: Duration,
        (sent, answered): (Instant, Instant),
        bytes: u64,
    ) {
        self.latencies.add(answered - sent);
        self.bytes += bytes;
        let index = (answered - begin).as_millis() / interval.as_millis().max(1);
        let index = usize::try_from(index).unwrap_or(0);
        if self.timeline.len() <= index {
            self.timeline.resize_with(index + 1, Histogram::default);
        }
        if let Some(interval) = self.timeline.get_mut(index) {
            interval.add(answered - sent);
        }
    }

    fn merge(&mut self, other: Self) {
        self.latencies.merge(&other.latencies);
        for (index, interval) in other.timeline.iter().enumerate() {
            if self.timeline.len() <= index {
                self.timeline.push(Histogram::default());
            }
            if let Some(mine) = self.timeline.get_mut(index) {
                mine.merge(interval);
            }
        }
        self.unexpected += other.unexpected;
        self.first_unexpected = self.first_unexpected.take().or(other.first_unexpected);
        self.bytes += other.bytes;
    }
}

/// A random number generator for a connection, different from those of other connections and runs.
pub fn random(number: usize) -> Random {
    Random::new(((number as u64) << 52) ^ clock::now_micros())
}

/// The requests of a connection that do not depend on answers.
struct Requests {
    maker: Maker,
    expect: u16,
    random: Random,
    request: Vec<u8>,
}

impl Actor for Requests {
    async fn act(&mut self, client: &mut Client) -> Result<ActOutcome> {
        self.request.clear();
        (self.maker)(&mut self.random, &mut self.request);
        let mut bytes = 0;
        let status = client.send(&self.request, &mut |chunk| bytes += chunk.len() as u64).await?;
        let is_good = status == self.expect || status / 100 == self.expect;
        Ok(if is_good {
            ActOutcome::Expected(bytes)
        } else {
            ActOutcome::Unexpected(format!("status {status}"))
        })
    }
}

/// Puts a server under load with requests.
pub async fn run(target: &Target, plan: Plan, maker: &Maker) -> Result<Outcome> {
    let requests = |number| Requests {
        maker: Arc::clone(maker),
        expect: plan.expect,
        random: random(number),
        request: Vec::new(),
    };
    drive(target, plan, (0..plan.connections).map(requests).collect()).await
}

/// Puts a server under load with these clients, each on a connection of its own.
pub async fn drive<A: Actor>(target: &Target, plan: Plan, actors: Vec<A>) -> Result<Outcome> {
    let begin = Instant::now() + plan.warm_up;
    let end = begin + plan.time;
    let workers: Vec<_> =
        actors.into_iter().map(|actor| tokio::spawn(work(target.address, plan, begin, end, actor))).collect();
    tokio::time::sleep_until(begin.into()).await;
    let before = target.usage();
    tokio::time::sleep_until(end.into()).await;
    let after = target.usage();
    let mut outcome = Outcome {
        elapsed: plan.time,
        used: Usage {
            server: after.server.saturating_sub(before.server),
            database: after.database.saturating_sub(before.database),
            generator: after.generator.saturating_sub(before.generator),
        },
        ..Outcome::default()
    };
    let limit = Duration::from_mins(1);
    for worker in workers {
        let joined = tokio::time::timeout(limit, worker).await;
        outcome.merge(joined.map_err(|_| fault("an answer did not come within a minute"))???);
    }
    if outcome.latencies.total() == 0 {
        let first_unexpected = outcome.first_unexpected.as_deref().unwrap_or("nothing at all");
        return Err(fault(format!("no good answer from {}: {first_unexpected}", target.engine.name())));
    }
    Ok(outcome)
}

async fn work<A: Actor>(
    address: SocketAddr,
    plan: Plan,
    begin: Instant,
    end: Instant,
    mut actor: A,
) -> Result<Outcome> {
    let mut client = Client::connect(address).await?;
    let mut outcome = Outcome::default();
    let mut sent = Instant::now();
    while sent < end {
        let outcome_of_act = actor.act(&mut client).await?;
        let answered = Instant::now();
        if answered >= begin && answered < end {
            match outcome_of_act {
                ActOutcome::Expected(bytes) => outcome.count(begin, plan.interval, (sent, answered), bytes),
                ActOutcome::Unexpected(text) => {
                    outcome.unexpected += 1;
                    outcome.first_unexpected.get_or_insert(text);
                }
            }
        }
        sent = answered;
    }
    Ok(outcome)
}
