//! What came of a turn, noted in one transaction.

use std::{collections::HashMap, sync::Arc};

use chancery_auth::load_store_context;
use chancery_mail::Kind;
use chancery_record::Timestamp;
use chancery_resource::{
    AppContext, Context, EventCursor, Problem, Scope, Tail, Tx, WebhookOutcome, advance, load, random,
};
use chancery_store::Mode;
use chancery_userstore::password::mail::send_notice;
use chancery_webhook::{
    CIRCUIT, DISABLED_AFTER, EventSubscription, PROBE_REST, rest_after,
    state::{self, Attempt, Health, Waiting},
};
use serde_json::json;

use super::{
    Deliveries, Outcome, Target,
    flight::{Flown, Pace},
    turn::{Advance, Plan, count_failures},
};

/// How often what was delivered is noted, in ms: after a crash, so much comes again.
const NOTED: i64 = 1_000;
/// The user store whose mail server sends what belongs to no other.
const FIRST_STORE: &str = "default";
/// The status of a receiver that wants no more.
const GONE: u16 = 410;

/// What was delivered at the first try, and is not noted yet.
#[derive(Default)]
pub struct Progress {
    /// How far the readers have come.
    pub places: Vec<Advance>,
    /// Where they are, noted or not.
    pub reached: Vec<EventCursor>,
    /// The ends of their trails, which they follow; none where those of many trails are kept.
    pub tails: HashMap<i64, Option<Arc<Tail>>>,
    /// How many requests are under way at once.
    pub pace: Pace,
    delivered: Option<Attempt>,
    noted_on: i64,
}

/// What came of a turn.
struct Settled {
    target: Target,
    places: Vec<Advance>,
    gaps: Vec<(Waiting, EventCursor, EventCursor)>,
    /// What was tried for the first time and failed, or waits behind that, in the order of events.
    kept: Vec<(Waiting, Timestamp)>,
    /// What waited and was tried.
    tried: Vec<(Waiting, WebhookOutcome)>,
    attempts: Vec<Attempt>,
    health: Health,
    end: Option<End>,
}

/// Why a subscription is disabled.
#[derive(Clone, Copy)]
enum End {
    /// The receiver wants no more.
    Gone,
    /// Nothing could be delivered since then.
    Failing(Timestamp),
}

impl Deliveries {
    /// Notes what came of a turn; whether the subscription is disabled. What succeeded alone is noted once a second.
    pub(super) async fn settle(
        &self,
        target: Target,
        plan: Plan,
        flown: (Flown, Flown),
        progress: &mut Progress,
    ) -> Outcome<bool> {
        let now = (self.now)();
        let was = plan.health;
        let mut settled = Settled::of(target, plan, flown, (progress, now));
        let is_news = settled.health != was || !settled.is_progress_alone();
        // a clock that was set back is no reason to wait
        let is_noted = (0..NOTED).contains(&(now.0 - progress.noted_on)) && !self.is_stopping();
        if !is_news && (progress.places.is_empty() || is_noted) {
            return Ok(false);
        }
        settled.places = std::mem::take(&mut progress.places);
        settled.attempts.extend(progress.delivered.take());
        let (app, disables) = (Arc::clone(&self.app.context), settled.end.is_some());
        let noting =
            self.store.run("NoteDeliveries", Mode::Write, None, move |tx| settled.note(&app, tx, now));
        noting.await?;
        progress.noted_on = now.0;
        Ok(disables)
    }
}

impl Settled {
    fn of(
        target: Target,
        plan: Plan,
        (due, new): (Flown, Flown),
        (progress, now): (&mut Progress, Timestamp),
    ) -> Self {
        progress.advance(&plan, new.upto);
        let mut health = plan.health;
        health.failures = count_failures(count_failures(health.failures, &due), &new);
        health.failing_since = (health.failures > 0).then(|| health.failing_since.unwrap_or(now));
        let outcomes = || due.tried.values().chain(new.tried.values());
        let rest = outcomes().filter_map(|outcome| outcome.retry_after).max().unwrap_or(0) * 1000;
        let rest = if health.failures >= CIRCUIT { rest.max(PROBE_REST) } else { rest };
        health.paused_until = Timestamp(if rest > 0 { now.0 + rest } else { 0 });
        let is_gone = outcomes().any(|outcome| outcome.status == Some(GONE));
        let failing = health.failing_since.filter(|since| now.0 - since.0 > DISABLED_AFTER).map(End::Failing);
        let mut settled = Self {
            target,
            places: Vec::new(),
            gaps: plan.gaps,
            kept: Vec::new(),
            tried: Vec::new(),
            attempts: Vec::new(),
            health,
            end: if is_gone { Some(End::Gone) } else { failing },
        };
        for (index, outcome) in due.tried {
            if let Some(item) = plan.due.get(index) {
                settled.attempts.push(attempt(item, &outcome));
                settled.tried.push((item.clone(), outcome));
            }
        }
        settled.take_new(&plan.new, new, progress, now);
        settled
    }

    fn take_new(&mut self, items: &[Waiting], flown: Flown, progress: &mut Progress, now: Timestamp) {
        let mut kept: Vec<(usize, Timestamp)> = flown.behind.into_iter().map(|index| (index, now)).collect();
        for (index, outcome) in flown.tried {
            let Some(item) = items.get(index) else { continue };
            let made = attempt(item, &outcome);
            if outcome.is_delivered() {
                progress.count(made);
                continue;
            }
            self.attempts.push(made);
            kept.push((index, due_after(1, &outcome, now).unwrap_or(now)));
        }
        // of a subject, what failed is before what waits behind it
        kept.sort_unstable_by_key(|(index, _)| *index);
        let failed: Vec<String> = self.attempts.iter().map(|attempt| attempt.event.clone()).collect();
        self.kept = kept
            .into_iter()
            .filter_map(|(index, due)| {
                let item = items.get(index)?;
                let tries = i64::from(failed.contains(&item.event));
                Some((Waiting { tries, ..item.clone() }, due))
            })
            .collect();
    }

    /// Whether nothing came of the turn but events that were delivered at the first try.
    const fn is_progress_alone(&self) -> bool {
        self.gaps.is_empty() && self.kept.is_empty() && self.tried.is_empty() && self.end.is_none()
    }

    fn note(&self, app: &Arc<AppContext>, tx: &mut Tx<'_>, now: Timestamp) -> Outcome<()> {
        let id = self.target.id;
        for place in self.places.iter().filter(|place| place.noted != place.reached) {
            state::advance(tx, id, place.noted, place.reached)?;
        }
        for (gap, noted, next) in &self.gaps {
            state::advance(tx, id, *noted, *next)?;
            state::keep(tx, id, gap, now)?;
        }
        for (waiting, due_on) in &self.kept {
            state::keep(tx, id, waiting, *due_on)?;
        }
        for (item, outcome) in &self.tried {
            let tries = item.tries + 1;
            if outcome.is_delivered() {
                state::remove(tx, item.rid)?;
            } else {
                state::put_off(tx, item.rid, tries, due_after(tries, outcome, now).ok_or(now))?;
            }
        }
        state::note(tx, (self.target.store.map(|(number, _)| number), id), &self.attempts, now)?;
        let delivered = self.attempts.iter().map(|attempt| attempt.count).sum();
        let failure = self.attempts.iter().rev().find_map(|attempt| attempt.reason.as_deref());
        state::set_health(tx, id, self.health, (delivered, failure), now)?;
        self.end.map_or(Ok(()), |end| self.disable(app, tx, (end, now)))
    }

    /// Sends nothing any more, and tells the contact.
    fn disable(&self, app: &Arc<AppContext>, tx: &mut Tx<'_>, (end, now): (End, Timestamp)) -> Outcome<()> {
        let Some(context) = self.target.context(app, tx, now)? else { return Ok(()) };
        let (shape, id) = (self.target.shape(), self.target.id);
        let row = load(&context, tx, shape, None, id.into())?;
        let mut values = row.values.clone();
        EventSubscription::IS_ACTIVE.field().set(&mut values, false.into());
        if let Some(contact) = row.get(EventSubscription::CONTACT)?
            && let Some(sending) = self.mailing(app, tx, now)?
        {
            let (name, url) = (row.get(EventSubscription::NAME)?, row.get(EventSubscription::URL)?);
            let since = if let End::Failing(since) = end { Some(since.0) } else { None };
            let data = json!({ "name": name.as_str(), "url": url.as_str(), "since": since });
            send_notice(&sending, tx, (Kind::SubscriptionDisabled, None), contact.as_str(), &data)?;
        }
        advance(&context, tx, shape, &row, values, ("Modified", "disabled"))?;
        Ok::<_, Problem>(state::note_disabled(tx, id, now)?)
    }

    /// The context of the store whose mail server is used: its own, or for the configuration that of the first store.
    fn mailing(&self, app: &Arc<AppContext>, tx: &mut Tx<'_>, now: Timestamp) -> Outcome<Option<Context>> {
        let store = self.target.store.map_or_else(|| FIRST_STORE.to_owned(), |(_, id)| id.to_string());
        let store = load_store_context(tx, &store)?;
        Ok(store.map(|store| Context::of_server(app, Scope::Store(store.scope), now)))
    }
}

impl Progress {
    /// Moves the readers on behind what was tried or held back: the first `upto` of what was read.
    fn advance(&mut self, plan: &Plan, upto: usize) {
        let mut before = 0;
        self.reached.clear();
        for reading in &plan.read {
            let handled = upto.saturating_sub(before).min(reading.count);
            let reached = match plan.new.get((before + handled).wrapping_sub(1)).filter(|_| handled > 0) {
                _ if handled == reading.count => reading.end,
                Some(last) => last.at,
                None => reading.place.reached,
            };
            before += reading.count;
            self.reached.push(reached);
            self.places.retain(|place| place.noted.trail != reached.trail);
            if reached != reading.place.noted {
                self.places.push(Advance { noted: reading.place.noted, reached });
            }
        }
    }

    /// Counts an event that was delivered.
    fn count(&mut self, made: Attempt) {
        let (count, duration) = self.delivered.as_ref().map_or((0, 0), |all| (all.count, all.duration));
        self.delivered =
            Some(Attempt { count: count + made.count, duration: duration.max(made.duration), ..made });
    }
}

fn attempt(item: &Waiting, outcome: &WebhookOutcome) -> Attempt {
    Attempt {
        event: item.event.clone(),
        kind: item.kind.clone(),
        count: i64::from(outcome.is_delivered()),
        number: item.tries + 1,
        status: outcome.status,
        reason: outcome.reason(),
        duration: outcome.duration,
    }
}

/// When a delivery is tried again after so many tries; none where it is given up. A receiver can ask for later tries, and not
/// for sooner ones: all of them would be over before it is there again.
fn due_after(tries: i64, outcome: &WebhookOutcome, now: Timestamp) -> Option<Timestamp> {
    let rest = rest_after(tries, u16::from_le_bytes(random()))?;
    let asked = outcome.retry_after.map(|seconds| seconds * 1000);
    Some(Timestamp(now.0 + asked.unwrap_or(0).max(rest)))
}
