//! Slots for streams of events.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chancery_resource::{BoundedCounter, CountGuard, Problem, ProblemKind};
use uuid::Uuid;

/// The most streams of a client app, and of a process.
const MAX_STREAMS: (usize, usize) = (8, 1000);

/// Slots for streams.
#[derive(Default)]
pub struct StreamSlots {
    all: BoundedCounter,
    callers: Mutex<HashMap<Uuid, BoundedCounter>>,
}

impl StreamSlots {
    /// Takes a slot of the process and one of the caller.
    pub fn take(&self, caller: Uuid) -> Result<(CountGuard, CountGuard), Problem> {
        let full =
            |detail: &str| Problem::new(ProblemKind::Unavailable, detail).with_header("retry-after", "60");
        let in_all = self
            .all
            .take(MAX_STREAMS.1)
            .ok_or_else(|| full("This process has all the streams that it may have."))?;
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, streams| streams.count() > 0);
        let own = callers.entry(caller).or_default().take(MAX_STREAMS.0);
        let own =
            own.ok_or_else(|| full("The client app has 8 streams already. Close one, or read the feed."))?;
        Ok((in_all, own))
    }
}
