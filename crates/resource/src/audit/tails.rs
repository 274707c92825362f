//! Waiting for what happens next in a trail. A process asks for the trails that somebody here waits for, and for no others; and
//! keeps the ends of those that somebody follows.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{sync::watch, time::timeout};

use super::tail::Tail;

/// The most trails whose ends are kept: of further ones each reader reads for itself.
const MOST: usize = 64;

/// The trails that somebody waits for.
#[derive(Default)]
pub struct Tails(Mutex<HashMap<i64, Trail>>);

/// A trail that somebody waits for.
#[derive(Default)]
struct Trail {
    /// Its highest position as far as this process knows.
    placed: watch::Sender<i64>,
    /// Its end, while somebody follows it.
    tail: Weak<Tail>,
}

impl Tails {
    fn trails(&self) -> MutexGuard<'_, HashMap<i64, Trail>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a trail, which is kept as long as somebody holds it. None where those of many trails are kept.
    pub fn follow(&self, trail: i64) -> Option<Arc<Tail>> {
        let mut trails = self.trails();
        if let Some(tail) = trails.get(&trail).and_then(|known| known.tail.upgrade()) {
            return Some(tail);
        }
        if trails.values().filter(|known| known.tail.strong_count() > 0).count() >= MOST {
            return None;
        }
        let known = trails.entry(trail).or_default();
        let followed = Arc::new(Tail::new(trail, known.placed.subscribe()));
        known.tail = Arc::downgrade(&followed);
        Some(followed)
    }

    /// Waits until something stands behind a position of a trail, at most so long.
    pub fn wait(&self, trail: i64, position: i64, most: Duration) -> impl Future<Output = ()> + Send + use<> {
        let mut placed = self.trails().entry(trail).or_default().placed.subscribe();
        async move {
            // that nobody tells of it any more is the same as that nothing happens
            let _ = timeout(most, placed.wait_for(|placed| *placed > position)).await;
        }
    }

    /// The trails that somebody waits for.
    pub fn wanted(&self) -> Vec<i64> {
        let mut trails = self.trails();
        trails.retain(|_, known| known.placed.receiver_count() > 0);
        trails.keys().copied().collect()
    }

    /// Tells those who wait how far a trail has come.
    pub fn tell(&self, trail: i64, now: i64) {
        if let Some(known) = self.trails().get(&trail) {
            known.placed.send_if_modified(|placed| std::mem::replace(placed, now) != now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::{MOST, Tails};

    #[tokio::test(start_paused = true)]
    async fn who_waits_hears_of_what_is_behind_the_position() {
        let tails = Tails::default();
        let hour = Duration::from_hours(1);
        assert!(tails.wanted().is_empty());
        let (first, second) = (tails.wait(1, 5, hour), tails.wait(1, 7, hour));
        assert_eq!(tails.wanted(), [1]);
        tails.tell(1, 6);
        first.await;
        let began = tokio::time::Instant::now();
        second.await;
        assert_eq!(began.elapsed(), hour, "nothing came behind 7");
        assert!(tails.wanted().is_empty());
    }

    #[test]
    fn the_ends_of_trails_are_kept_while_somebody_follows_them() {
        let tails = Tails::default();
        let (first, second) = (tails.follow(1).unwrap(), tails.follow(1).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(tails.wanted(), [1]);
        let others: Vec<_> = (2..100).filter_map(|trail| tails.follow(trail)).collect();
        assert_eq!(others.len(), MOST - 1);
        drop((first, second, others));
        assert!(tails.wanted().is_empty());
        assert!(tails.follow(99).is_some());
    }
}
