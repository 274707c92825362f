//! Requests in flight to one receiver: a few at once, and those of one subject one after another. The concurrency grows with
//! the deliveries that the receiver takes, so that one that hangs holds no permits that others could use.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use chancery_fetch::Permission;
use chancery_record::Timestamp;
use chancery_resource::{Problem, StoredRow, WebhookOutcome};
use chancery_webhook::{CIRCUIT, Signing, state::Waiting};
use tokio::{task::JoinSet, time::Instant};

use super::Deliveries;

/// The most requests in flight of a subscription.
const AT_ONCE: usize = 8;

/// The concurrency of a subscription's requests: one at first and after a failure, one more for each delivery.
pub struct Pace(usize);

impl Default for Pace {
    fn default() -> Self {
        Self(1)
    }
}

impl Pace {
    fn note(&mut self, is_delivered: bool) {
        self.0 = if is_delivered { AT_ONCE.min(self.0 + 1) } else { 1 };
    }
}

/// After this time no further request begins before the results are recorded.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// The results of deliveries.
#[derive(Default)]
pub struct Completed {
    /// The attempts, by index.
    pub tried: BTreeMap<usize, WebhookOutcome>,
    /// The deliveries held back by a failed one, by index.
    pub behind: Vec<usize>,
    /// All deliveries before this index were tried or held back.
    pub upto: usize,
}

/// Deliveries in flight.
struct InFlight<'a> {
    deliveries: &'a Deliveries,
    permission: Permission,
    signing: Signing,
    pace: &'a mut Pace,
    items: &'a [Waiting],
    sending: JoinSet<(usize, WebhookOutcome)>,
    /// Deliveries that wait for a request in flight, by its subject.
    busy: HashMap<&'a str, VecDeque<usize>>,
    held: HashSet<String>,
    is_ordered: bool,
    end: Instant,
    failures: i64,
    completed: Completed,
}

/// Deliveries to be sent, in their order.
pub struct Batch<'a> {
    pub items: &'a [Waiting],
    /// Whether those of one subject are sent one after another.
    pub is_ordered: bool,
    /// The subjects with a waiting delivery.
    pub held: HashSet<String>,
    /// The failures in a row so far.
    pub failures: i64,
}

impl Deliveries {
    /// Sends some of these.
    pub(super) async fn send_deliveries(
        &self,
        row: &StoredRow,
        batch: Batch<'_>,
        now: Timestamp,
        pace: &mut Pace,
    ) -> Result<Completed, Problem> {
        let Batch { items, is_ordered, held, failures } = batch;
        let signing = Signing::of(&self.app.context.master, row, now)?;
        let (sending, busy) = (JoinSet::new(), HashMap::new());
        let (completed, end) = (Completed::default(), Instant::now() + BATCH_TIME);
        let mut in_flight = InFlight {
            deliveries: self,
            permission: self.permission,
            signing,
            pace,
            items,
            sending,
            busy,
            held,
            is_ordered,
            end,
            failures,
            completed,
        };
        in_flight.run().await;
        Ok(in_flight.completed)
    }
}

impl InFlight<'_> {
    async fn run(&mut self) {
        for (index, item) in self.items.iter().enumerate() {
            while self.sending.len() >= self.pace.0 {
                self.complete_next().await;
            }
            if (self.is_over() && index > 0) || self.deliveries.is_stopping() {
                break;
            }
            self.completed.upto = index + 1;
            if self.is_ordered && self.held.contains(&item.subject) {
                self.completed.behind.push(index);
            } else if let (true, Some(queue)) = (self.is_ordered, self.busy.get_mut(item.subject.as_str())) {
                queue.push_back(index);
            } else {
                self.begin(index);
            }
        }
        while !self.sending.is_empty() {
            self.complete_next().await;
        }
    }

    /// Whether no further request begins.
    fn is_over(&self) -> bool {
        self.failures >= CIRCUIT || Instant::now() >= self.end || self.deliveries.is_stopping()
    }

    fn begin(&mut self, index: usize) {
        let Some(item) = self.items.get(index) else { return };
        if self.is_ordered {
            self.busy.entry(item.subject.as_str()).or_default();
        }
        let request = self.signing.request(&item.event, item.body.clone());
        let send = Arc::clone(&self.deliveries.app.context.send_webhook);
        let (permits, permission) = (Arc::clone(&self.deliveries.permits), self.permission);
        self.sending.spawn(async move {
            let _permit = permits.acquire_owned().await;
            (index, send(permission, request).await)
        });
    }

    /// Processes a result: the next delivery of the subject begins, or waits on.
    async fn complete_next(&mut self) {
        let Some(Ok((index, outcome))) = self.sending.join_next().await else { return };
        let is_delivered = outcome.is_delivered();
        self.pace.note(is_delivered);
        self.failures = if is_delivered { 0 } else { self.failures + 1 };
        self.completed.tried.insert(index, outcome);
        let Some(item) = self.items.get(index) else { return };
        let Some(mut queue) = self.busy.remove(item.subject.as_str()) else { return };
        if is_delivered && !self.is_over() {
            if let Some(next) = queue.pop_front() {
                self.busy.insert(item.subject.as_str(), queue);
                self.begin(next);
            }
            return;
        }
        if !is_delivered || !queue.is_empty() {
            self.held.insert(item.subject.clone());
        }
        self.completed.behind.extend(queue);
    }
}
