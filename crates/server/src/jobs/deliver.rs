//! Sends events to the receivers of subscriptions (`8-events.md`, section 5). Each subscription has a task of its own, so that
//! none waits for another's receiver.

mod flight;
mod settle;
mod turn;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chancery_fetch::Permission;
use chancery_record::{Timestamp, Value};
use chancery_resource::Problem;
use chancery_store::{Class, Error, Figure, FigureSource, FigureUnit, Mode, Store};
use chancery_web::App;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use uuid::Uuid;

use self::{settle::Progress, turn::Next};
use super::Job;
use crate::start::cause_of;

/// The rest between looks for subscriptions that became active.
const REST: Duration = Duration::from_secs(1);
/// The most requests under way of a process.
const AT_ONCE: usize = 256;

/// A subscription that is served: its id, and its user store, if it is one's: number and instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    id: Uuid,
    store: Option<(i64, Uuid)>,
}

/// What sending needs.
pub struct Deliveries {
    app: Arc<App>,
    permission: Permission,
    store: Store,
    now: fn() -> Timestamp,
    /// Places for requests, taken in turns.
    places: Arc<Semaphore>,
}

/// Sends events while there are active subscriptions. One process does it.
pub fn job(app: &Arc<App>, permission: Permission, now: fn() -> Timestamp) -> Job {
    let store = app.store.with(Class::Background);
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let deliveries = Arc::new(Deliveries { app: Arc::clone(app), permission, store, now, places });
    Job::new(NAME, REST, move || Arc::clone(&deliveries).run()).exclusive().finished()
}

const NAME: &str = "delivering";

/// The figures of deliveries.
pub static FIGURES: [Figure; 2] = [
    Figure {
        name: "event_deliveries_waiting",
        help: "Deliveries of events that failed and are tried again, or wait behind one",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("1", "event_delivery WHERE dead_on IS NULL"),
    },
    Figure {
        name: "event_deliveries_dead",
        help: "Deliveries of events that were given up",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("1", "event_delivery WHERE dead_on IS NOT NULL"),
    },
];

impl Deliveries {
    /// Whether the server stops: nothing more is sent, and what came of what was is noted.
    fn is_stopping(&self) -> bool {
        *self.app.stopping.borrow()
    }

    /// Serves all active subscriptions, until there are none or the server stops. What is under way ends with the future.
    async fn run(self: Arc<Self>) -> Result<(), String> {
        let mut stopping = self.app.stopping.subscribe();
        let mut serving = JoinSet::new();
        let served: Arc<Mutex<HashSet<Uuid>>> = Arc::default();
        while !*stopping.borrow_and_update() {
            let active = self.active().await.map_err(|error| error.to_string())?;
            if active.is_empty() && serving.is_empty() {
                return Ok(());
            }
            for target in active {
                let is_new = served.lock().unwrap_or_else(PoisonError::into_inner).insert(target.id);
                if is_new {
                    let (deliveries, served) = (Arc::clone(&self), Arc::clone(&served));
                    serving.spawn(async move {
                        deliveries.serve(target).await;
                        served.lock().unwrap_or_else(PoisonError::into_inner).remove(&target.id);
                    });
                }
            }
            self.app.note_job(NAME);
            let next = Instant::now() + REST;
            while let Ok(Some(ended)) = tokio::time::timeout_at(next, serving.join_next()).await {
                if ended.is_err() {
                    return Err("a task that sends events broke".to_owned());
                }
            }
            let _ = tokio::time::timeout_at(next, stopping.changed()).await;
        }
        while serving.join_next().await.is_some() {}
        Ok(())
    }

    /// The active subscriptions.
    async fn active(&self) -> Result<Vec<Target>, Error> {
        let read = self.store.run("ActiveSubscriptions", Mode::Quick, None, |tx| {
            let mut active = Vec::new();
            let text = "SELECT s.id, s.store, i.id FROM event_subscription s LEFT JOIN idp_instance i ON i.rid = s.store \
                WHERE s.is_active = ?1";
            tx.query(text, &[Value::Bool(true)], |row| {
                let store = match row.optional_id(2)? {
                    Some(instance) => Some((row.int(1)?, instance)),
                    None => None,
                };
                active.push(Target { id: row.id(0)?, store });
                Ok(())
            })?;
            Ok::<_, Error>(active)
        });
        read.await
    }

    /// Serves a subscription until it is active no longer.
    async fn serve(&self, target: Target) {
        let (mut progress, mut stopping) = (Progress::default(), self.app.stopping.subscribe());
        loop {
            // the turn after the stop sends nothing, and notes what was sent
            let is_last = *stopping.borrow_and_update();
            let next = self.turn(target, &mut progress).await;
            if is_last || matches!(next, Ok(Next::Over)) {
                return;
            }
            let rest = async {
                match next {
                    Ok(Next::Again | Next::Over) => {}
                    Ok(Next::Wait(ends)) => self.wait(&ends).await,
                    Ok(Next::Rest(rest)) => sleep(rest).await,
                    Err(problem) => {
                        progress = Progress::default();
                        let cause = cause_of(problem);
                        tracing::warn!(subscription = %target.id, cause, "events could not be sent; it is tried again");
                        sleep(REST).await;
                    }
                }
            };
            tokio::select! {
                () = rest => {}
                _ = stopping.changed() => {}
            }
        }
    }

    /// Waits until something stands behind one of these places, at most as long as other changes may take.
    async fn wait(&self, ends: &[(i64, i64)]) {
        let mut waiting = JoinSet::new();
        for (trail, position) in ends {
            waiting.spawn(self.app.context.tails.wait(*trail, *position, REST));
        }
        let _ = timeout(REST, waiting.join_next()).await;
        if ends.is_empty() {
            sleep(REST).await;
        }
    }
}

/// What a problem is for whoever tries again.
type Outcome<T> = Result<T, Problem>;
