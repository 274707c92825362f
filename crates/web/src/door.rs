//! The door: which connections there are, how many there may be, and how the server stops.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Notify, watch};

use crate::{
    activity::{Activity, LAST_TIME, Times},
    counts::network,
};

/// How far the stop of the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It does not stop.
    Open,
    /// It serves, and sends clients elsewhere.
    Draining,
    /// It answers what arrived, and nothing else.
    Closing,
}

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// In all.
    pub connections: usize,
    /// From one address.
    pub per_address: usize,
}

#[derive(Default)]
struct Inside {
    next: u64,
    /// By the order in which they came.
    open: BTreeMap<u64, (IpAddr, Arc<Activity>)>,
    by_address: HashMap<IpAddr, usize>,
}

impl Inside {
    fn remove(&mut self, number: u64) -> Option<Arc<Activity>> {
        let (address, activity) = self.open.remove(&number)?;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(activity)
    }

    /// Ends a connection of this address, else of the one that has most of them, else of any. Whether there
    /// was one.
    fn make_room(&mut self, address: Option<IpAddr>) -> bool {
        let several = || self.by_address.iter().filter(|(_, count)| **count > 1);
        let most = || several().max_by_key(|(_, count)| **count).map(|(address, _)| *address);
        match address.or_else(most) {
            Some(first) if self.end_one(Some(first)) => true,
            _ => address.is_none() && self.end_one(None),
        }
    }

    /// Ends the connection that loses least: the newest that never sent a whole head, else the one that has
    /// rested longest. Whether there was one.
    fn end_one(&mut self, address: Option<IpAddr>) -> bool {
        let there = || self.open.iter().rev().filter(|(_, (from, _))| address.is_none_or(|of| of == *from));
        let silent = there().find(|(_, (_, activity))| activity.is_silent());
        let resting =
            || there().filter_map(|(number, (_, activity))| Some((activity.idle_since()?, number))).min();
        let found = silent.map(|(number, _)| *number).or_else(|| resting().map(|(_, number)| *number));
        let activity = found.and_then(|number| self.remove(number));
        activity.inspect(|activity| activity.give_way()).is_some()
    }
}

/// The door of a server.
pub struct Door {
    room: Room,
    times: Times,
    stage: watch::Sender<Stage>,
    inside: Mutex<Inside>,
    emptied: Notify,
    /// Connections that were ended for another one's sake.
    pub gave_way: Counter,
    /// Connections that were refused.
    pub refused: Counter,
}

impl Door {
    pub fn new(room: Room, times: Times) -> Arc<Self> {
        Arc::new(Self {
            room,
            times,
            stage: watch::Sender::new(Stage::Open),
            inside: Mutex::default(),
            emptied: Notify::new(),
            gave_way: Counter::default(),
            refused: Counter::default(),
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection, if there is one or another gives way. An IPv6 network counts as one address.
    pub fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let address = network(peer);
        let mut inside = self.inside();
        let from_there = inside.by_address.get(&address).copied().unwrap_or(0);
        let full = if from_there >= self.room.per_address {
            Some(Some(address))
        } else {
            (inside.open.len() >= self.room.connections).then_some(None)
        };
        if let Some(of) = full {
            if !inside.make_room(of) {
                self.refused.inc();
                return None;
            }
            self.gave_way.inc();
        }
        inside.next += 1;
        let number = inside.next;
        let activity = Activity::new(self.times, self.stage());
        *inside.by_address.entry(address).or_default() += 1;
        inside.open.insert(number, (address, Arc::clone(&activity)));
        drop(inside);
        Some(Place { door: Arc::clone(self), number, activity })
    }

    /// Ends one connection, where the system has no more of something.
    pub fn make_room(&self) {
        if self.inside().make_room(None) {
            self.gave_way.inc();
        }
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.inside().open.len()
    }

    /// How far the stop of the server is.
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Goes a step towards the end.
    pub fn go_on_to(&self, stage: Stage) {
        self.stage.send_replace(stage);
        let all: Vec<_> = self.inside().open.values().map(|(_, activity)| Arc::clone(activity)).collect();
        for activity in all {
            activity.tell(stage);
        }
    }

    /// Ends when what stalls is given up because the server stops.
    pub async fn last_call(&self) {
        let mut stage = self.stage.subscribe();
        if stage.wait_for(|stage| *stage == Stage::Closing).await.is_ok() {
            tokio::time::sleep(LAST_TIME).await;
        }
    }

    /// Ends when all connections have, or the time is up: whether they have.
    pub async fn emptied(&self, time: Duration) -> bool {
        let wait = async {
            loop {
                let emptied = self.emptied.notified();
                if self.connections() == 0 {
                    return;
                }
                emptied.await;
            }
        };
        tokio::time::timeout(time, wait).await.is_ok()
    }
}

/// A connection's place.
pub struct Place {
    door: Arc<Door>,
    number: u64,
    /// What the connection is doing.
    pub activity: Arc<Activity>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.door.inside();
        inside.remove(self.number);
        if inside.open.is_empty() {
            drop(inside);
            self.door.emptied.notify_waiters();
        }
    }
}
