//! Records the results of a poll in one transaction.

use std::{collections::HashMap, sync::Arc};

use chancery_auth::load_store_context;
use chancery_mail::Kind;
use chancery_record::Timestamp;
use chancery_resource::{
    AppContext, Context, EventCursor, Problem, Scope, Tail, Tx, WebhookOutcome, advance, event_name, load,
    random,
};
use chancery_store::Mode;
use chancery_userstore::password::mail::send_notice;
use chancery_webhook::{
    CIRCUIT, DISABLED_AFTER, EventSubscription, PROBE_REST, rest_after,
    state::{self, Attempt, Health, Waiting},
};
use serde_json::json;

use super::{
    Deliveries, DeliveryResult, Target,
    in_flight::{Completed, Pace},
    poll::{Plan, ReaderCursor, count_failures},
};

/// How often deliveries are recorded, in ms: after a crash, this much is sent again.
const NOTED: i64 = 1_000;
/// The user store whose mail server sends notices of subscriptions without a user store.
const FIRST_STORE: &str = "default";
/// The status of a receiver that is gone.
const GONE: u16 = 410;

/// Deliveries at the first try that are not recorded yet.
#[derive(Default)]
pub struct Progress {
    /// The cursors of the readers.
    pub cursors: Vec<ReaderCursor>,
    /// Their current cursors, recorded or not.
    pub reached: Vec<EventCursor>,
    /// The tails of their trails, which they follow; none where those of many trails are read.
    pub tails: HashMap<i64, Option<Arc<Tail>>>,
    /// The concurrency of requests.
    pub pace: Pace,
    delivered: Option<Attempt>,
    noted_on: i64,
}

/// The results of a poll.
struct Settled {
    target: Target,
    cursors: Vec<ReaderCursor>,
    gaps: Vec<(Waiting, EventCursor, EventCursor)>,
    /// First tries that failed, and the deliveries that wait for them, in the order of events.
    pending: Vec<(Waiting, Timestamp)>,
    /// Waiting deliveries that were tried.
    tried: Vec<(Waiting, WebhookOutcome)>,
    attempts: Vec<Attempt>,
    health: Health,
    end: Option<End>,
}

/// Why a subscription is disabled.
#[derive(Clone, Copy)]
enum End {
    /// The receiver is gone.
    Gone,
    /// Nothing could be delivered since then.
    Failing(Timestamp),
}

impl Deliveries {
    /// Records the results of a poll; returns whether the subscription is disabled. First-try deliveries alone are recorded once a second.
    pub(super) async fn settle(
        &self,
        target: Target,
        plan: Plan,
        due: Completed,
        new: Completed,
        progress: &mut Progress,
    ) -> DeliveryResult<bool> {
        let now = (self.now)();
        let was = plan.health;
        let mut settled = Settled::of(target, plan, due, new, progress, now);
        let is_news = settled.health != was || !settled.is_progress_alone();
        // a clock that was set back is no reason to wait
        let is_noted = (0..NOTED).contains(&(now.0 - progress.noted_on)) && !self.is_stopping();
        if !is_news && (progress.cursors.is_empty() || is_noted) {
            return Ok(false);
        }
        settled.cursors = std::mem::take(&mut progress.cursors);
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
        due: Completed,
        new: Completed,
        progress: &mut Progress,
        now: Timestamp,
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
            cursors: Vec::new(),
            gaps: plan.gaps,
            pending: Vec::new(),
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

    fn take_new(&mut self, items: &[Waiting], completed: Completed, progress: &mut Progress, now: Timestamp) {
        let mut pending: Vec<(usize, Timestamp)> =
            completed.behind.into_iter().map(|index| (index, now)).collect();
        for (index, outcome) in completed.tried {
            let Some(item) = items.get(index) else { continue };
            let new_attempt = attempt(item, &outcome);
            if outcome.is_delivered() {
                progress.count(new_attempt);
                continue;
            }
            self.attempts.push(new_attempt);
            pending.push((index, due_after(1, &outcome, now).unwrap_or(now)));
        }
        // of a subject, the failed delivery precedes those that wait for it
        pending.sort_unstable_by_key(|(index, _)| *index);
        let failed: Vec<String> = self.attempts.iter().map(|attempt| attempt.event.clone()).collect();
        self.pending = pending
            .into_iter()
            .filter_map(|(index, due)| {
                let item = items.get(index)?;
                let tries = i64::from(failed.contains(&item.event));
                Some((Waiting { tries, ..item.clone() }, due))
            })
            .collect();
    }

    /// Whether the poll brought only deliveries at the first try.
    const fn is_progress_alone(&self) -> bool {
        self.gaps.is_empty() && self.pending.is_empty() && self.tried.is_empty() && self.end.is_none()
    }

    fn note(&self, app: &Arc<AppContext>, tx: &mut Tx<'_>, now: Timestamp) -> DeliveryResult<()> {
        let id = self.target.id;
        for cursor in self.cursors.iter().filter(|cursor| cursor.noted != cursor.reached) {
            state::advance(tx, id, cursor.noted, cursor.reached)?;
        }
        for (gap, noted, next) in &self.gaps {
            state::advance(tx, id, *noted, *next)?;
            state::insert_delivery(tx, id, gap, now)?;
        }
        for (waiting, due_on) in &self.pending {
            state::insert_delivery(tx, id, waiting, *due_on)?;
        }
        for (item, outcome) in &self.tried {
            let tries = item.tries + 1;
            if outcome.is_delivered() {
                state::remove(tx, item.rid)?;
            } else {
                state::put_off(tx, item.rid, tries, due_after(tries, outcome, now).ok_or(now))?;
            }
        }
        state::note(tx, self.target.store.map(|(number, _)| number), id, &self.attempts, now)?;
        let delivered = self.attempts.iter().map(|attempt| attempt.count).sum();
        let failure = self.attempts.iter().rev().find_map(|attempt| attempt.reason.as_deref());
        state::set_health(tx, id, self.health, delivered, failure, now)?;
        self.end.map_or(Ok(()), |end| self.disable(app, tx, end, now))
    }

    /// Disables the subscription, and notifies its contact.
    fn disable(
        &self,
        app: &Arc<AppContext>,
        tx: &mut Tx<'_>,
        end: End,
        now: Timestamp,
    ) -> DeliveryResult<()> {
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
            send_notice(&sending, tx, Kind::SubscriptionDisabled, None, contact.as_str(), &data)?;
        }
        advance(&context, tx, shape, &row, values, event_name!("subscription-disabled"))?;
        Ok::<_, Problem>(state::note_disabled(tx, id, now)?)
    }

    /// The context of the store whose mail server is used: its own, or for the configuration that of the first store.
    fn mailing(
        &self,
        app: &Arc<AppContext>,
        tx: &mut Tx<'_>,
        now: Timestamp,
    ) -> DeliveryResult<Option<Context>> {
        let store = self.target.store.map_or_else(|| FIRST_STORE.to_owned(), |(_, id)| id.to_string());
        let store = load_store_context(tx, &store)?;
        Ok(store.map(|store| Context::of_server(app, Scope::Store(store.scope), now)))
    }
}

impl Progress {
    /// Advances the readers past the deliveries that were tried or held back: the first `upto` of the new ones.
    fn advance(&mut self, plan: &Plan, upto: usize) {
        let mut before = 0;
        self.reached.clear();
        for reading in &plan.read {
            let handled = upto.saturating_sub(before).min(reading.count);
            let reached = match plan.new.get((before + handled).wrapping_sub(1)).filter(|_| handled > 0) {
                _ if handled == reading.count => reading.end,
                Some(last) => last.at,
                None => reading.cursor.reached,
            };
            before += reading.count;
            self.reached.push(reached);
            self.cursors.retain(|cursor| cursor.noted.trail != reached.trail);
            if reached != reading.cursor.noted {
                self.cursors.push(ReaderCursor { noted: reading.cursor.noted, reached });
            }
        }
    }

    /// Counts a delivered event.
    fn count(&mut self, attempt: Attempt) {
        let (count, duration) = self.delivered.as_ref().map_or((0, 0), |all| (all.count, all.duration));
        self.delivered = Some(Attempt {
            count: count + attempt.count,
            duration: duration.max(attempt.duration),
            ..attempt
        });
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

/// When a delivery is retried after so many tries; none where it is dropped. A receiver can request later tries, but
/// not sooner ones: all of them would be over before it is back.
fn due_after(tries: i64, outcome: &WebhookOutcome, now: Timestamp) -> Option<Timestamp> {
    let rest = rest_after(tries, u16::from_le_bytes(random()))?;
    let requested = outcome.retry_after.map(|seconds| seconds * 1000);
    Some(Timestamp(now.0 + requested.unwrap_or(0).max(rest)))
}
