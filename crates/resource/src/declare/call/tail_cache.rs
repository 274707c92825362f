//! The cached end of a trail. `audit/tail.rs` reads the events.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use uuid::Uuid;

use super::event_cursor::EventCursor;

/// The most cached events of a trail, and the most bytes of their envelopes.
pub const MAX_CACHED: (usize, usize) = (1_000, 1 << 20);
/// An event in the cache, shared by all readers.
pub struct TailEvent {
    pub(crate) at: EventCursor,
    pub(crate) id: String,
    /// The cursor after it, for readers.
    pub(crate) cursor: String,
    pub(crate) kind: String,
    pub(crate) subject: String,
    pub(crate) scope: [Option<Uuid>; 4],
    /// The actor, and its range in the envelope.
    pub(crate) actor: Option<(Uuid, Range<usize>)>,
    /// The envelope, with the actor.
    pub(crate) body: String,
}

/// The last events of a trail.
pub struct Tail {
    pub(crate) trail: i64,
    /// The highest position of the trail, as far as this process knows.
    pub(crate) head: watch::Receiver<i64>,
    pub(crate) cache: Mutex<TailCache>,
    /// The lock of the reader that reads new events: the others wait for it.
    pub(crate) fill_lock: tokio::sync::Mutex<()>,
}

/// Consecutive events.
pub struct TailCache {
    /// The cursor before them; none before the first read.
    pub(crate) start: Option<EventCursor>,
    pub(crate) events: VecDeque<Arc<TailEvent>>,
    pub(crate) bytes: usize,
}

/// The cached events after a cursor.
pub enum Lookup {
    Events(Vec<Arc<TailEvent>>),
    /// The cursor is at the end, where the next event will be.
    AtEnd,
    /// The cursor precedes the cached events, or is not one of them.
    Outside,
}

impl Tail {
    /// The tail of a trail, before the first read.
    pub(super) const fn new(trail: i64, head: watch::Receiver<i64>) -> Self {
        let cache = TailCache::empty();
        Self { trail, head, cache: Mutex::new(cache), fill_lock: tokio::sync::Mutex::const_new(()) }
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, TailCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TailCache {
    const fn empty() -> Self {
        Self { start: None, events: VecDeque::new(), bytes: 0 }
    }

    /// Removes all events.
    pub(crate) fn clear(&mut self) {
        *self = Self::empty();
    }

    fn end(&self) -> Option<EventCursor> {
        self.events.back().map(|event| event.at).or(self.start)
    }

    pub(crate) fn after(&self, cursor: EventCursor) -> Lookup {
        let (Some(start), Some(end)) = (self.start, self.end()) else { return Lookup::AtEnd };
        if cursor == end || cursor.position > end.position {
            return Lookup::AtEnd;
        }
        let next = self.events.partition_point(|event| event.at.position <= cursor.position);
        let last = next.checked_sub(1).and_then(|last| self.events.get(last));
        if last.map_or(start, |event| event.at) == cursor {
            Lookup::Events(self.events.range(next..).cloned().collect())
        } else {
            Lookup::Outside
        }
    }

    /// Adds events after a cursor, in place of all others where these end at another one.
    pub(crate) fn add(&mut self, cursor: EventCursor, events: Vec<TailEvent>) {
        if self.end() != Some(cursor) {
            *self = Self { start: Some(cursor), events: VecDeque::new(), bytes: 0 };
        }
        for event in events {
            self.bytes += event.body.len();
            self.events.push_back(Arc::new(event));
            while self.events.len() > MAX_CACHED.0 || self.bytes > MAX_CACHED.1 {
                let Some(first) = self.events.pop_front() else { break };
                self.bytes -= first.body.len();
                self.start = Some(first.at);
            }
        }
    }
}
