//! A turn of a subscription: what is due and what is new is read, sent, and noted.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chancery_auth::load_store_context;
use chancery_management::{event::ACTORS, event_subscription::EVENT_SUBSCRIPTION as OF_CONFIGURATION};
use chancery_record::{Timestamp, Value};
use chancery_resource::{
    AppContext, Context, EventCursor, Problem, Scope, Shape, StoredRow, TailEvent, TrailState, Tx,
    feed::{Outgoing, Wanted, Which, outgoing},
    load, outgoing_of,
};
use chancery_store::Mode;
use chancery_userstore::event_subscription::EVENT_SUBSCRIPTION as OF_STORE;
use chancery_webhook::{
    CIRCUIT, EventOrdering, EventSubscription, envelope, scope_of,
    state::{self, Health, MOST_WAITING, Waiting},
    trails,
};
use serde_json::json;

use super::{Deliveries, Outcome, Target, flight::Flown, settle::Progress};

/// Events read at once.
const PIECE: usize = 256;
/// Deliveries that wait read at once.
const DUE: usize = 64;
/// After how long a turn looks whether the subscription was changed.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// What comes after a turn.
pub enum Next {
    /// Another turn at once.
    Again,
    /// One when something stands behind these places, or another change was made.
    Wait(Vec<(i64, i64)>),
    /// One after this time.
    Rest(Duration),
    /// None: the subscription is not active any more.
    Over,
}

/// How far a reader has come, and how far that is noted.
#[derive(Clone, Copy)]
pub struct Advance {
    /// How far is noted.
    pub noted: EventCursor,
    /// How far it has come.
    pub reached: EventCursor,
}

/// Some of a trail that was read.
pub struct Reading {
    /// From where.
    pub place: Advance,
    /// Up to where.
    pub end: EventCursor,
    /// How far the trail goes.
    placed: i64,
    /// How many events a subscription gets of it.
    pub count: usize,
}

/// What a turn is about.
pub struct Plan {
    /// The subscription.
    pub row: StoredRow,
    /// How its deliveries fare.
    pub health: Health,
    /// What waited and is due.
    pub due: Vec<Waiting>,
    /// What is new, in the order of the trails that were read.
    pub new: Vec<Waiting>,
    held: HashSet<String>,
    /// What is known of the ends of trails already, each behind a place.
    known: Vec<Known>,
    /// The trails that were read.
    pub read: Vec<Reading>,
    /// Where events are missing: what tells so, and where it goes on.
    pub gaps: Vec<(Waiting, EventCursor, EventCursor)>,
}

/// What a process keeps of a trail for all subscriptions, behind where one of them is.
type Known = (EventCursor, Vec<Arc<TailEvent>>);

impl Target {
    /// The shape of the subscription.
    pub const fn shape(self) -> &'static Shape {
        if self.store.is_some() { &OF_STORE } else { &OF_CONFIGURATION }
    }

    /// The context in which a subscription is read and changed.
    pub fn context(self, app: &Arc<AppContext>, tx: &mut Tx<'_>, now: Timestamp) -> Outcome<Option<Context>> {
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
    /// One turn of a subscription.
    pub(super) async fn turn(&self, target: Target, progress: &mut Progress) -> Outcome<Next> {
        let Some(plan) = self.plan(target, progress).await? else { return Ok(Next::Over) };
        for reading in &plan.read {
            let trail = reading.end.trail;
            progress.tails.entry(trail).or_insert_with(|| self.app.context.tails.follow(trail));
        }
        let now = (self.now)();
        let left = plan.health.pause(now);
        if left > 0 {
            let rest = u64::try_from(left).unwrap_or_default();
            return Ok(Next::Rest(Duration::from_millis(rest).min(LONGEST_REST)));
        }
        let keeps_order = plan.row.get(EventSubscription::ORDERING)? == EventOrdering::Subject;
        let failures = plan.health.failures;
        // what waited goes first; of a subject there is no other among what is due
        let pace = &mut progress.pace;
        let due = self.fly(&plan.row, &plan.due, (false, HashSet::new()), (failures, now, pace)).await?;
        let failures = count_failures(failures, &due);
        let new = if failures < CIRCUIT || plan.due.is_empty() {
            self.fly(&plan.row, &plan.new, (keeps_order, plan.held.clone()), (failures, now, pace)).await?
        } else {
            Flown::default()
        };
        let has_more = new.upto < plan.new.len()
            || plan.due.len() == DUE
            || plan.read.iter().any(|reading| reading.end.position < reading.placed);
        let ends = plan.read.iter().map(|reading| (reading.end.trail, reading.end.position)).collect();
        let is_over = self.settle(target, plan, (due, new), progress).await?;
        Ok(if is_over {
            Next::Over
        } else if has_more {
            Next::Again
        } else {
            Next::Wait(ends)
        })
    }

    /// Reads what is due and what is new; none where the subscription is active no longer.
    async fn plan(&self, target: Target, progress: &Progress) -> Outcome<Option<Plan>> {
        let (app, now) = (Arc::clone(&self.app.context), (self.now)());
        let (places, known) = (progress.places.clone(), self.known(progress).await);
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
            let keeps_order = row.get(EventSubscription::ORDERING)? == EventOrdering::Subject;
            // a receiver that failed so often is asked once a minute
            let is_probe = health.failures >= CIRCUIT;
            let most = if is_probe { 1 } else { DUE };
            let due = state::due(tx, target.id, now, (keeps_order, most))?;
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
            if (is_probe && !plan.due.is_empty()) || state::count_waiting(tx, target.id)? >= MOST_WAITING {
                return Ok(Some(plan));
            }
            let count = if is_probe { 1 } else { PIECE };
            plan.read_new(&context, tx, target, (&places, count))?;
            let subjects: Vec<&str> = plan.new.iter().map(|event| event.subject.as_str()).collect();
            plan.held = state::held_back(tx, target.id, &subjects)?.into_iter().collect();
            Ok::<_, Problem>(Some(plan))
        });
        read.await
    }

    /// What this process keeps behind the places where a subscription is.
    async fn known(&self, progress: &Progress) -> Vec<Known> {
        let mut known = Vec::new();
        for reached in &progress.reached {
            let Some(Some(tail)) = progress.tails.get(&reached.trail) else { continue };
            let at = (*reached, (self.now)());
            if let Some(events) = tail.behind(&self.app.context, &self.app.store, at).await {
                known.push((*reached, events));
            }
        }
        known
    }
}

impl Plan {
    /// Reads what is new in each trail, behind what was reached.
    fn read_new(
        &mut self,
        context: &Context,
        tx: &mut Tx<'_>,
        target: Target,
        (places, count): (&[Advance], usize),
    ) -> Outcome<()> {
        let types = self.row.get(EventSubscription::TYPES)?.0;
        let within = Context::new(&context.app, scope_of(context, &self.row)?, context.now, None, None);
        let actors: &[&Shape] = if target.store.is_some() { &[] } else { &ACTORS };
        for trail in trails(target.store.map(|(number, _)| number), &types) {
            let (noted, since) = state::place(tx, target.id, trail)?;
            let reached =
                places.iter().find(|place| place.noted == noted).map_or(noted, |place| place.reached);
            let trail_state = TrailState::read(tx, trail)?;
            if let Err(problem) = reached.check(context, tx, &trail_state) {
                if problem.status() != 410 {
                    return Err(problem);
                }
                let is_pruned = reached.position < trail_state.pruned;
                let next =
                    if is_pruned { state::oldest(tx, trail, &trail_state)? } else { trail_state.end(trail) };
                self.gaps.push((gap(context, &self.row, (reached, next))?, noted, next));
                continue;
            }
            let left = count.saturating_sub(self.new.len());
            if left == 0 {
                continue;
            }
            let found = match self.known(reached, (&Wanted::some(types.clone(), left), &within.scope)) {
                Some(found) => found,
                None => outgoing(&within, tx, (reached, &trail_state), (&types, &Which::All, left), actors)?,
            };
            let before = self.new.len();
            self.new.extend(found.0.iter().filter(|event| event.at.event > since).map(Waiting::of));
            let count = self.new.len() - before;
            let from = Advance { noted, reached };
            self.read.push(Reading { place: from, end: found.1, placed: trail_state.placed, count });
        }
        Ok(())
    }

    /// What is known behind a place, as the subscription gets it.
    fn known(&self, reached: EventCursor, asked: (&Wanted, &Scope)) -> Option<(Vec<Outgoing>, EventCursor)> {
        let (_, events) = self.known.iter().find(|(cursor, _)| *cursor == reached)?;
        outgoing_of(events, asked)
    }
}

/// What tells a receiver that events are missing: they were pruned before they could be delivered, or an older state was restored.
fn gap(context: &Context, row: &StoredRow, (reached, next): (EventCursor, EventCursor)) -> Outcome<Waiting> {
    let subject = row.get(EventSubscription::ID)?.0.to_string();
    let id = format!("gap-{subject}-{}-{}", reached.trail, reached.position);
    let data = json!({ "after": reached.position, "next": next.position + 1 });
    let body = envelope(context, row, (&id, GAP), &data)?;
    let at = EventCursor { position: 0, ..next };
    Ok(Waiting { rid: 0, event: id, kind: GAP.to_owned(), subject, body, tries: 0, at })
}

const GAP: &str = "platform.event.gap";

/// The failures in a row after these.
pub fn count_failures(before: i64, flown: &Flown) -> i64 {
    flown.tried.values().fold(before, |count, outcome| if outcome.is_delivered() { 0 } else { count + 1 })
}
