//! A poll of a subscription: reads due and new deliveries, sends them, and records the results.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chancery_auth::load_store_context;
use chancery_management::{event::ACTORS, event_subscription::EVENT_SUBSCRIPTION as OF_CONFIGURATION};
use chancery_record::{Timestamp, Value};
use chancery_resource::{
    AppContext, Context, EventCursor, EventType, Problem, Scope, Shape, StoredRow, TailEvent, TrailState, Tx,
    event_type,
    feed::{EventQuery, EventSelection, Outgoing, outgoing},
    load, outgoing_of,
};
use chancery_store::Mode;
use chancery_userstore::event_subscription::EVENT_SUBSCRIPTION as OF_STORE;
use chancery_webhook::{
    CIRCUIT, EventOrdering, EventSubscription, envelope, scope_of,
    state::{self, Health, MAX_WAITING, Waiting},
    trails,
};
use serde_json::json;

use super::{
    Deliveries, DeliveryResult, Target,
    in_flight::{Batch, Completed},
    settle::Progress,
};

/// Events read at once.
const BATCH: usize = 256;
/// Waiting deliveries read at once.
const DUE: usize = 64;
/// After this time a poll checks whether the subscription was changed.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The step after a poll.
pub enum Next {
    /// Another poll at once.
    Again,
    /// A poll when a trail goes beyond these positions, or another change was made.
    Wait(Vec<(i64, i64)>),
    /// A poll after this time.
    Rest(Duration),
    /// None: the subscription is not active any more.
    Over,
}

/// The cursor of a reader, and its recorded state.
#[derive(Clone, Copy)]
pub struct ReaderCursor {
    /// The recorded cursor.
    pub noted: EventCursor,
    /// The current cursor.
    pub reached: EventCursor,
}

/// A part of a trail that was read.
pub struct Reading {
    /// The start.
    pub cursor: ReaderCursor,
    /// The end.
    pub end: EventCursor,
    /// The last position of the trail.
    placed: i64,
    /// The number of its events for the subscription.
    pub count: usize,
}

/// The input of a poll.
pub struct Plan {
    /// The subscription.
    pub row: StoredRow,
    /// The health of its deliveries.
    pub health: Health,
    /// Waiting deliveries that are due.
    pub due: Vec<Waiting>,
    /// New deliveries, in the order of the trails that were read.
    pub new: Vec<Waiting>,
    held: HashSet<String>,
    /// The cached tails of trails, each after a cursor.
    known: Vec<Known>,
    /// The trails that were read.
    pub read: Vec<Reading>,
    /// Gaps in the trails: the event that reports each, and the cursors before and after it.
    pub gaps: Vec<(Waiting, EventCursor, EventCursor)>,
}

/// The tail of a trail after a reader's cursor, as cached for all subscriptions of a process.
type Known = (EventCursor, Vec<Arc<TailEvent>>);

impl Target {
    /// The shape of the subscription.
    pub const fn shape(self) -> &'static Shape {
        if self.store.is_some() { &OF_STORE } else { &OF_CONFIGURATION }
    }

    /// The context in which a subscription is read and changed.
    pub fn context(
        self,
        app: &Arc<AppContext>,
        tx: &mut Tx<'_>,
        now: Timestamp,
    ) -> DeliveryResult<Option<Context>> {
        let scope = match self.store {
            None => Scope::Everything,
            Some((_, instance)) => match load_store_context(tx, &instance.to_string())? {
                Some(store) => Scope::Store(store.scope),
                None => return Ok(None),
            },
        };
        Ok(Some(Context::of_server(app, scope, now)))
    }
}

impl Deliveries {
    /// Polls a subscription once.
    pub(super) async fn poll(&self, target: Target, progress: &mut Progress) -> DeliveryResult<Next> {
        let Some(plan) = self.plan(target, progress).await? else { return Ok(Next::Over) };
        for reading in &plan.read {
            let trail = reading.end.trail;
            progress.tails.entry(trail).or_insert_with(|| self.app.context.tails.follow(trail));
        }
        let now = (self.now)();
        let left = plan.health.pause(now);
        if left > 0 {
            let rest = u64::try_from(left).unwrap_or_default();
            return Ok(Next::Rest(Duration::from_millis(rest).min(MAX_PAUSE)));
        }
        let is_ordered = plan.row.get(EventSubscription::ORDERING)? == EventOrdering::Subject;
        let failures = plan.health.failures;
        // waiting deliveries go first; each of the due ones has another subject
        let pace = &mut progress.pace;
        let batch = Batch { items: &plan.due, is_ordered: false, held: HashSet::new(), failures };
        let due = self.send_deliveries(&plan.row, batch, now, pace).await?;
        let failures = count_failures(failures, &due);
        let new = if failures < CIRCUIT || plan.due.is_empty() {
            let batch = Batch { items: &plan.new, is_ordered, held: plan.held.clone(), failures };
            self.send_deliveries(&plan.row, batch, now, pace).await?
        } else {
            Completed::default()
        };
        let has_more = new.upto < plan.new.len()
            || plan.due.len() == DUE
            || plan.read.iter().any(|reading| reading.end.position < reading.placed);
        let ends = plan.read.iter().map(|reading| (reading.end.trail, reading.end.position)).collect();
        let is_over = self.settle(target, plan, due, new, progress).await?;
        Ok(if is_over {
            Next::Over
        } else if has_more {
            Next::Again
        } else {
            Next::Wait(ends)
        })
    }

    /// Reads due and new deliveries; none where the subscription is not active any more.
    async fn plan(&self, target: Target, progress: &Progress) -> DeliveryResult<Option<Plan>> {
        let (app, now) = (Arc::clone(&self.app.context), (self.now)());
        let (cursors, known) = (progress.cursors.clone(), self.known(progress).await);
        let read = self.store.run("PlanDeliveries", Mode::Long, None, move |tx| {
            let Some(context) = target.context(&app, tx, now)? else { return Ok(None) };
            let row = match load(&context, tx, target.shape(), None, Value::Id(target.id)) {
                Ok(row) => row,
                Err(problem) if problem.status() == 404 => return Ok(None),
                Err(problem) => return Err(problem),
            };
            if !row.get(EventSubscription::IS_ACTIVE)? {
                return Ok(None);
            }
            let health = state::health(tx, target.id)?;
            let is_ordered = row.get(EventSubscription::ORDERING)? == EventOrdering::Subject;
            // a receiver that failed this often gets one request a minute
            let is_probe = health.failures >= CIRCUIT;
            let most = if is_probe { 1 } else { DUE };
            let due = state::due(tx, target.id, now, is_ordered, most)?;
            let mut plan = Plan {
                row,
                health,
                due,
                new: Vec::new(),
                held: HashSet::new(),
                known: known.clone(),
                read: Vec::new(),
                gaps: Vec::new(),
            };
            if (is_probe && !plan.due.is_empty()) || state::count_waiting(tx, target.id)? >= MAX_WAITING {
                return Ok(Some(plan));
            }
            let count = if is_probe { 1 } else { BATCH };
            plan.read_new(&context, tx, target, &cursors, count)?;
            let subjects: Vec<&str> = plan.new.iter().map(|event| event.subject.as_str()).collect();
            plan.held = state::held_back(tx, target.id, &subjects)?.into_iter().collect();
            Ok::<_, Problem>(Some(plan))
        });
        read.await
    }

    /// The cached events after the cursors of a subscription.
    async fn known(&self, progress: &Progress) -> Vec<Known> {
        let mut known = Vec::new();
        for reached in &progress.reached {
            let Some(Some(tail)) = progress.tails.get(&reached.trail) else { continue };
            let after = tail.after(&self.app.context, &self.app.store, *reached, (self.now)());
            if let Some(events) = after.await {
                known.push((*reached, events));
            }
        }
        known
    }
}

impl Plan {
    /// Reads new events of each trail, after the reader's cursor.
    fn read_new(
        &mut self,
        context: &Context,
        tx: &mut Tx<'_>,
        target: Target,
        cursors: &[ReaderCursor],
        count: usize,
    ) -> DeliveryResult<()> {
        let types = self.row.get(EventSubscription::TYPES)?.0;
        let within = Context::new(&context.app, scope_of(context, &self.row)?, context.now, None, None);
        let actors: &[&Shape] = if target.store.is_some() { &[] } else { &ACTORS };
        for trail in trails(target.store.map(|(number, _)| number), &types) {
            let reader = state::reader(tx, target.id, trail)?;
            let noted = reader.cursor(trail);
            let reached =
                cursors.iter().find(|cursor| cursor.noted == noted).map_or(noted, |cursor| cursor.reached);
            let trail_state = TrailState::load(tx, trail)?;
            if let Err(problem) = reached.check(context, tx, &trail_state) {
                if problem.status() != 410 {
                    return Err(problem);
                }
                let is_pruned = reached.position < trail_state.pruned;
                let next =
                    if is_pruned { state::oldest(tx, trail, &trail_state)? } else { trail_state.end(trail) };
                self.gaps.push((gap(context, &self.row, reached, next)?, noted, next));
                continue;
            }
            let left = count.saturating_sub(self.new.len());
            if left == 0 {
                continue;
            }
            let query = EventQuery::some(types.clone(), left);
            let page = match self.known(reached, &query, &within.scope) {
                Some(page) => page,
                None => outgoing(&within, tx, reached, &trail_state, &query, &EventSelection::All, actors)?,
            };
            let before = self.new.len();
            self.new.extend(page.0.iter().filter(|event| event.at.event > reader.since).map(Waiting::of));
            let count = self.new.len() - before;
            let from = ReaderCursor { noted, reached };
            self.read.push(Reading { cursor: from, end: page.1, placed: trail_state.last_position, count });
        }
        Ok(())
    }

    /// The cached events after a cursor, filtered for the subscription.
    fn known(
        &self,
        reached: EventCursor,
        query: &EventQuery,
        scope: &Scope,
    ) -> Option<(Vec<Outgoing>, EventCursor)> {
        let (_, events) = self.known.iter().find(|(cursor, _)| *cursor == reached)?;
        outgoing_of(events, query, scope)
    }
}

/// The event that reports a gap: events were pruned before they could be delivered, or an older state was restored.
fn gap(
    context: &Context,
    row: &StoredRow,
    reached: EventCursor,
    next: EventCursor,
) -> DeliveryResult<Waiting> {
    let subject = row.get(EventSubscription::ID)?.0.to_string();
    let id = format!("gap-{subject}-{}-{}", reached.trail, reached.position);
    let data = json!({ "after": reached.position, "next": next.position + 1 });
    let body = envelope(context, row, &id, GAP.as_str(), &data)?;
    let at = EventCursor { position: 0, ..next };
    Ok(Waiting { rid: 0, event: id, kind: GAP.as_str().to_owned(), subject, body, tries: 0, at })
}

const GAP: EventType = event_type!("platform.event.gap");

/// The failures in a row after these.
pub fn count_failures(before: i64, completed: &Completed) -> i64 {
    completed.tried.values().fold(before, |count, outcome| if outcome.is_delivered() { 0 } else { count + 1 })
}
