//! Waiting for the next event of a trail. A process polls only trails with local waiters, and caches the ends
//! of those with followers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use super::tail_cache::Tail;

/// The most cached tails: beyond them each reader reads for itself.
const MAX_TAILS: usize = 64;

/// The trails with waiters.
#[derive(Default)]
pub struct Tails {
    trails: Mutex<HashMap<i64, Trail>>,
    /// Notified of each new waiter or follower.
    added: Notify,
}

/// A trail with waiters.
#[derive(Default)]
struct Trail {
    /// Its highest position, as far as this process knows.
    head: watch::Sender<i64>,
    /// Its tail, while it has followers.
    tail: Weak<Tail>,
}

impl Tails {
    fn trails(&self) -> MutexGuard<'_, HashMap<i64, Trail>> {
        self.trails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tail of a trail, which is cached as long as it has followers. None where too many are cached.
    pub fn follow(&self, trail: i64) -> Option<Arc<Tail>> {
        let mut trails = self.trails();
        if let Some(tail) = trails.get(&trail).and_then(|entry| entry.tail.upgrade()) {
            return Some(tail);
        }
        if trails.values().filter(|entry| entry.tail.strong_count() > 0).count() >= MAX_TAILS {
            return None;
        }
        let entry = trails.entry(trail).or_default();
        let followed = Arc::new(Tail::new(trail, entry.head.subscribe()));
        entry.tail = Arc::downgrade(&followed);
        self.added.notify_one();
        Some(followed)
    }

    /// Waits until an event follows a position of a trail, at most `most`.
    pub fn wait(&self, trail: i64, position: i64, most: Duration) -> impl Future<Output = ()> + Send + use<> {
        let mut head = self.trails().entry(trail).or_default().head.subscribe();
        self.added.notify_one();
        async move {
            // a closed channel is the same as a timeout
            let _ = timeout(most, head.wait_for(|head| *head > position)).await;
        }
    }

    /// The trails with waiters.
    pub fn trails_with_waiters(&self) -> Vec<i64> {
        let mut trails = self.trails();
        trails.retain(|_, entry| entry.head.receiver_count() > 0);
        trails.keys().copied().collect()
    }

    /// Completes when a waiter or follower is added; at once if one was added since the last call.
    pub async fn waiter_added(&self) {
        self.added.notified().await;
    }

    /// Wakes the waiters of a trail with its highest position.
    pub fn notify(&self, trail: i64, now: i64) {
        if let Some(entry) = self.trails().get(&trail) {
            entry.head.send_if_modified(|head| std::mem::replace(head, now) != now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::{MAX_TAILS, Tails};

    #[tokio::test(start_paused = true)]
    async fn a_waiter_is_woken_by_an_event_after_its_position() {
        let tails = Tails::default();
        let hour = Duration::from_hours(1);
        assert!(tails.trails_with_waiters().is_empty());
        let (first, second) = (tails.wait(1, 5, hour), tails.wait(1, 7, hour));
        assert_eq!(tails.trails_with_waiters(), [1]);
        tails.notify(1, 6);
        first.await;
        let began = tokio::time::Instant::now();
        second.await;
        assert_eq!(began.elapsed(), hour, "nothing came behind 7");
        assert!(tails.trails_with_waiters().is_empty());
    }

    #[test]
    fn tails_are_cached_while_they_have_followers() {
        let tails = Tails::default();
        let (first, second) = (tails.follow(1).unwrap(), tails.follow(1).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(tails.trails_with_waiters(), [1]);
        let others: Vec<_> = (2..100).filter_map(|trail| tails.follow(trail)).collect();
        assert_eq!(others.len(), MAX_TAILS - 1);
        drop((first, second, others));
        assert!(tails.trails_with_waiters().is_empty());
        assert!(tails.follow(99).is_some());
    }
}
