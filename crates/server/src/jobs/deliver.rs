//! Sends events to the receivers of subscriptions. Each subscription has a task of its own, so that
//! none waits for another's receiver.

mod in_flight;
mod poll;
mod settle;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chancery_fetch::Permission;
use chancery_record::{Timestamp, Value};
use chancery_resource::Problem;
use chancery_store::{Class, Error, Figure, FigureSource, FigureUnit, Mode, Store, selectable};
use chancery_web::App;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use uuid::Uuid;

use self::{poll::Next, settle::Progress};
use super::Job;
use crate::start_error::{BoxError, cause_of};

/// The interval between checks for subscriptions that became active.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval while no subscription is active, and this process commits nothing.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);
/// The most requests under way of a process.
const AT_ONCE: usize = 256;

/// A subscription that is served: its id, and the number and instance of its user store, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    id: Uuid,
    store: Option<(i64, Uuid)>,
}

selectable! {
    /// An active subscription.
    struct ActiveSubscription from "FROM event_subscription s LEFT JOIN idp_instance i ON i.rid = s.store WHERE s.is_active = ?1" {
        id: Uuid = "s.id",
        store: Option<i64> = "s.store",
        instance: Option<Uuid> = "i.id",
    }
}

impl From<ActiveSubscription> for Target {
    fn from(active: ActiveSubscription) -> Self {
        Self { id: active.id, store: active.store.zip(active.instance) }
    }
}

/// The context of deliveries.
pub struct Deliveries {
    app: Arc<App>,
    permission: Permission,
    store: Store,
    now: fn() -> Timestamp,
    /// Permits for requests, granted in order.
    permits: Arc<Semaphore>,
}

/// Sends events while there are active subscriptions. One process runs it.
pub fn job(app: &Arc<App>, permission: Permission, now: fn() -> Timestamp) -> Job {
    let store = app.store.with(Class::Background);
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let deliveries = Arc::new(Deliveries { app: Arc::clone(app), permission, store, now, permits });
    Job::new(NAME, INTERVAL, move || Arc::clone(&deliveries).run()).idle(IDLE_INTERVAL).exclusive().finished()
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
    /// Whether the server stops: nothing more is sent, and the results of sent requests are recorded.
    fn is_stopping(&self) -> bool {
        *self.app.stopping.borrow()
    }

    /// Serves all active subscriptions, until there are none or the server stops. Requests in flight end with the future.
    async fn run(self: Arc<Self>) -> Result<(), BoxError> {
        let mut stopping = self.app.stopping.subscribe();
        let mut serving = JoinSet::new();
        let served: Arc<Mutex<HashSet<Uuid>>> = Arc::default();
        while !*stopping.borrow_and_update() {
            let active = self.active().await?;
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
            let next = Instant::now() + INTERVAL;
            while let Ok(Some(ended)) = tokio::time::timeout_at(next, serving.join_next()).await {
                if ended.is_err() {
                    return Err("a task that sends events broke".into());
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
            tx.query(ActiveSubscription::SELECT, &[Value::Bool(true)], |row| {
                active.push(ActiveSubscription::read(row)?.into());
                Ok(())
            })?;
            Ok::<_, Error>(active)
        });
        read.await
    }

    /// Serves a subscription while it is active.
    async fn serve(&self, target: Target) {
        let (mut progress, mut stopping) = (Progress::default(), self.app.stopping.subscribe());
        loop {
            // the poll after the stop sends nothing, and records the results of sent requests
            let is_last = *stopping.borrow_and_update();
            let next = self.poll(target, &mut progress).await;
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
                        sleep(INTERVAL).await;
                    }
                }
            };
            tokio::select! {
                () = rest => {}
                _ = stopping.changed() => {}
            }
        }
    }

    /// Waits until a trail goes beyond one of these positions, at most as long as other changes may take.
    async fn wait(&self, ends: &[(i64, i64)]) {
        let mut waiting = JoinSet::new();
        for (trail, position) in ends {
            waiting.spawn(self.app.context.tails.wait(*trail, *position, INTERVAL));
        }
        let _ = timeout(INTERVAL, waiting.join_next()).await;
        if ends.is_empty() {
            sleep(INTERVAL).await;
        }
    }
}

/// A result whose problem leads to another try.
type DeliveryResult<T> = Result<T, Problem>;
