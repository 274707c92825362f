//! Waiting for what happens next in a trail. A process asks for the trails that somebody here waits for, and for no others.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::timeout};

/// The trails that somebody waits for, each with its highest position as far as this process knows.
#[derive(Default)]
pub struct Tails(Mutex<HashMap<i64, watch::Sender<i64>>>);

impl Tails {
    fn trails(&self) -> MutexGuard<'_, HashMap<i64, watch::Sender<i64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something stands behind a position of a trail, at most so long.
    pub fn wait(&self, trail: i64, position: i64, most: Duration) -> impl Future<Output = ()> + Send + use<> {
        let mut placed =
            self.trails().entry(trail).or_insert_with(|| watch::Sender::new(position)).subscribe();
        async move {
            // that nobody tells of it any more is the same as that nothing happens
            let _ = timeout(most, placed.wait_for(|placed| *placed > position)).await;
        }
    }

    /// The trails that somebody waits for.
    pub fn wanted(&self) -> Vec<i64> {
        let mut trails = self.trails();
        trails.retain(|_, placed| placed.receiver_count() > 0);
        trails.keys().copied().collect()
    }

    /// Tells those who wait how far a trail has come.
    pub fn tell(&self, trail: i64, now: i64) {
        if let Some(placed) = self.trails().get(&trail) {
            placed.send_if_modified(|placed| std::mem::replace(placed, now) != now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Tails;

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
}
