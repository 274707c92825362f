//! The open connections, their limits, and the stages of the server's stop.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Notify, watch};

use super::{
    activity::{Activity, LAST_TIME, Timeouts},
    shutdown::ShutdownStage,
};
use crate::{Limits, limits::rate_counters::network};

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// In total.
    pub total: usize,
    /// From one address.
    pub per_address: usize,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    /// In the order of arrival.
    open: BTreeMap<u64, (IpAddr, Arc<Activity>)>,
    by_address: HashMap<IpAddr, usize>,
}

impl OpenConnections {
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

    /// Ends a connection of this address, else of the one that has most of them, else of any. Returns whether there
    /// was one to end.
    fn evict_one(&mut self, address: Option<IpAddr>) -> bool {
        let several = || self.by_address.iter().filter(|(_, count)| **count > 1);
        let most = || several().max_by_key(|(_, count)| **count).map(|(address, _)| *address);
        match address.or_else(most) {
            Some(first) if self.end_one(Some(first)) => true,
            _ => address.is_none() && self.end_one(None),
        }
    }

    /// Ends the connection that loses least: the newest that never sent a complete head, else the one idle
    /// longest. Returns whether there was one to end.
    fn end_one(&mut self, address: Option<IpAddr>) -> bool {
        let there = || self.open.iter().rev().filter(|(_, (from, _))| address.is_none_or(|of| of == *from));
        let silent = there().find(|(_, (_, activity))| activity.is_silent());
        let resting =
            || there().filter_map(|(number, (_, activity))| Some((activity.idle_since()?, number))).min();
        let victim = silent.map(|(number, _)| *number).or_else(|| resting().map(|(_, number)| *number));
        let activity = victim.and_then(|number| self.remove(number));
        activity.inspect(|activity| activity.evict()).is_some()
    }
}

/// A server's open connections.
pub struct Connections {
    limits: ConnectionLimits,
    timeouts: Timeouts,
    stage: watch::Sender<ShutdownStage>,
    open: Mutex<OpenConnections>,
    emptied: Notify,
    /// Connections that were ended to make room for another one.
    pub evicted: Counter,
    /// Connections that were refused.
    pub refused: Counter,
}

impl Connections {
    pub fn new(limits: ConnectionLimits, timeouts: Timeouts) -> Arc<Self> {
        Arc::new(Self {
            limits,
            timeouts,
            stage: watch::Sender::new(ShutdownStage::Open),
            open: Mutex::default(),
            emptied: Notify::new(),
            evicted: Counter::default(),
            refused: Counter::default(),
        })
    }

    /// The connections of a server with these limits.
    pub fn of(limits: &Limits) -> Arc<Self> {
        let bounds =
            ConnectionLimits { total: limits.connections, per_address: limits.connections_per_address };
        Self::new(bounds, Timeouts { idle: limits.idle_time, answer: limits.answer_time })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a connection, if one is free or can be freed. An IPv6 network counts as one address.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let address = network(peer);
        let mut open = self.open();
        let from_there = open.by_address.get(&address).copied().unwrap_or(0);
        let full = if from_there >= self.limits.per_address {
            Some(Some(address))
        } else {
            (open.open.len() >= self.limits.total).then_some(None)
        };
        if let Some(of) = full {
            if !open.evict_one(of) {
                self.refused.inc();
                return None;
            }
            self.evicted.inc();
        }
        open.next += 1;
        let number = open.next;
        let activity = Activity::new(self.timeouts, self.stage());
        *open.by_address.entry(address).or_default() += 1;
        open.open.insert(number, (address, Arc::clone(&activity)));
        drop(open);
        Some(Slot { connections: Arc::clone(self), number, activity })
    }

    /// Ends one connection, where the system has run out of descriptors or memory.
    pub fn evict_one(&self) {
        if self.open().evict_one(None) {
            self.evicted.inc();
        }
    }

    /// The number of open connections.
    pub fn count(&self) -> usize {
        self.open().open.len()
    }

    /// The stage of the server's stop.
    pub fn stage(&self) -> ShutdownStage {
        *self.stage.borrow()
    }

    /// Advances to a later stage.
    pub fn advance_to(&self, stage: ShutdownStage) {
        self.stage.send_replace(stage);
        let all: Vec<_> = self.open().open.values().map(|(_, activity)| Arc::clone(activity)).collect();
        for activity in all {
            activity.set_stage(stage);
        }
    }

    /// Resolves when the server begins to stop.
    pub async fn stopping(&self) {
        let mut stage = self.stage.subscribe();
        // a dropped sender means the same
        let _ = stage.wait_for(|stage| *stage >= ShutdownStage::Draining).await;
    }

    /// Resolves when stalled connections are given up because the server stops.
    pub async fn stop_deadline(&self) {
        let mut stage = self.stage.subscribe();
        if stage.wait_for(|stage| *stage == ShutdownStage::Closing).await.is_ok() {
            tokio::time::sleep(LAST_TIME).await;
        }
    }

    /// Resolves when all connections have ended or the time is up: returns whether they have.
    pub async fn emptied(&self, time: Duration) -> bool {
        let wait = async {
            loop {
                let emptied = self.emptied.notified();
                if self.count() == 0 {
                    return;
                }
                emptied.await;
            }
        };
        tokio::time::timeout(time, wait).await.is_ok()
    }
}

/// A connection's slot, freed on drop.
pub struct Slot {
    connections: Arc<Connections>,
    number: u64,
    /// The connection's state.
    pub activity: Arc<Activity>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.remove(self.number);
        if open.open.is_empty() {
            drop(open);
            self.connections.emptied.notify_waiters();
        }
    }
}
