//! Requests under way to one receiver: few at once, and of one subject one after another. How many at once is what the receiver
//! has shown that it takes, so that one that hangs holds no places that others could use.

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

/// The most requests under way of a subscription.
const AT_ONCE: usize = 8;

/// How many requests of a subscription are under way at once: one at first and after a failure, one more for each delivery.
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

/// After how long no further request begins before what is done is noted.
const PIECE_TIME: Duration = Duration::from_secs(1);

/// What came of deliveries.
#[derive(Default)]
pub struct Flown {
    /// What was tried, by its place in the order.
    pub tried: BTreeMap<usize, WebhookOutcome>,
    /// What was held back by what failed, by its place in the order.
    pub behind: Vec<usize>,
    /// Before which place all was tried or held back.
    pub upto: usize,
}

/// Deliveries under way.
struct Flight<'a> {
    deliveries: &'a Deliveries,
    permission: Permission,
    signing: Signing,
    pace: &'a mut Pace,
    items: &'a [Waiting],
    flying: JoinSet<(usize, WebhookOutcome)>,
    /// What waits behind a request that is under way, by its subject.
    busy: HashMap<&'a str, VecDeque<usize>>,
    held: HashSet<String>,
    keeps_order: bool,
    end: Instant,
    failures: i64,
    flown: Flown,
}

impl Deliveries {
    /// Sends some of these, in their order; `held` are subjects of which something waits already, `failures` those in a row so far.
    pub(super) async fn fly(
        &self,
        row: &StoredRow,
        items: &[Waiting],
        (keeps_order, held): (bool, HashSet<String>),
        (failures, now, pace): (i64, Timestamp, &mut Pace),
    ) -> Result<Flown, Problem> {
        let signing = Signing::of(&self.app.context.master, row, now)?;
        let (flying, busy) = (JoinSet::new(), HashMap::new());
        let (flown, end) = (Flown::default(), Instant::now() + PIECE_TIME);
        let mut flight = Flight {
            deliveries: self,
            permission: self.permission,
            signing,
            pace,
            items,
            flying,
            busy,
            held,
            keeps_order,
            end,
            failures,
            flown,
        };
        flight.run().await;
        Ok(flight.flown)
    }
}

impl Flight<'_> {
    async fn run(&mut self) {
        for (index, item) in self.items.iter().enumerate() {
            while self.flying.len() >= self.pace.0 {
                self.land().await;
            }
            if (self.is_over() && index > 0) || self.deliveries.is_stopping() {
                break;
            }
            self.flown.upto = index + 1;
            if self.keeps_order && self.held.contains(&item.subject) {
                self.flown.behind.push(index);
            } else if let (true, Some(queue)) = (self.keeps_order, self.busy.get_mut(item.subject.as_str())) {
                queue.push_back(index);
            } else {
                self.begin(index);
            }
        }
        while !self.flying.is_empty() {
            self.land().await;
        }
    }

    /// Whether no further request begins.
    fn is_over(&self) -> bool {
        self.failures >= CIRCUIT || Instant::now() >= self.end || self.deliveries.is_stopping()
    }

    fn begin(&mut self, index: usize) {
        let Some(item) = self.items.get(index) else { return };
        if self.keeps_order {
            self.busy.entry(item.subject.as_str()).or_default();
        }
        let request = self.signing.request(&item.event, item.body.clone());
        let send = Arc::clone(&self.deliveries.app.context.send_webhook);
        let (places, permission) = (Arc::clone(&self.deliveries.places), self.permission);
        self.flying.spawn(async move {
            let _place = places.acquire_owned().await;
            (index, send(permission, request).await)
        });
    }

    /// Takes in an outcome: what waits behind it begins, or waits on.
    async fn land(&mut self) {
        let Some(Ok((index, outcome))) = self.flying.join_next().await else { return };
        let is_delivered = outcome.is_delivered();
        self.pace.note(is_delivered);
        self.failures = if is_delivered { 0 } else { self.failures + 1 };
        self.flown.tried.insert(index, outcome);
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
        self.flown.behind.extend(queue);
    }
}
