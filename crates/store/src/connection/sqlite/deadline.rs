//! The time that a reader may take for its next rows. PostgreSQL bounds it by itself (`statement_timeout`).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::Error;

/// The time limit for the next [`ROWS`] rows.
pub const LIMIT: Duration = Duration::from_secs(30);
/// Rows after which the time limit restarts.
const ROWS: usize = 256;
/// Virtual machine instructions between two checks of the clock: some tenths of a millisecond.
const STEPS: i32 = 10_000;
/// The longest time that counts between two checks: beyond that the consumer of the rows did other things.
const STEPS_TIME: Duration = Duration::from_millis(100);

/// A connection's deadline.
pub struct Deadline(Arc<AtomicBool>);

impl Deadline {
    /// Interrupts statements of a connection that take longer than `limit`.
    pub fn watch(connection: &mut rusqlite::Connection, limit: Duration) -> Result<Self, Error> {
        let restart = Arc::new(AtomicBool::new(true));
        let (restarts, mut clock) =
            (Arc::clone(&restart), Clock { used: Duration::ZERO, last: Instant::now() });
        let handler = move || clock.elapsed(restarts.swap(false, Ordering::Relaxed), Instant::now()) >= limit;
        connection.progress_handler(STEPS, Some(handler))?;
        Ok(Self(restart))
    }

    /// Restarts the time limit: for a statement, and after every [`ROWS`] rows.
    pub fn note_rows(&self, rows: usize) {
        if rows.is_multiple_of(ROWS) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// The time that SQLite itself used.
struct Clock {
    used: Duration,
    last: Instant,
}

impl Clock {
    fn elapsed(&mut self, restart: bool, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.last).min(STEPS_TIME);
        self.used = if restart { Duration::ZERO } else { self.used + since };
        self.last = now;
        self.used
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Clock, Deadline, ROWS, STEPS_TIME};
    use crate::Error;

    const ENDLESS: &str =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0";

    /// Findings, section A: reads have a deadline. The connection stays usable.
    #[test]
    fn an_endless_read_is_interrupted() {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        let deadline = Deadline::watch(&mut connection, Duration::from_millis(20)).unwrap();
        deadline.note_rows(0);
        let ended = connection.query_row(ENDLESS, [], |_| Ok(()));
        assert_eq!(ended.map_err(Error::from), Err(Error::TooLong));
        deadline.note_rows(0);
        assert_eq!(connection.query_row("SELECT 1", [], |row| row.get(0)), Ok(1));
    }

    #[test]
    fn a_slow_consumer_is_not_interrupted() {
        let began = Instant::now();
        let mut clock = Clock { used: Duration::ZERO, last: began };
        let hour = Duration::from_hours(1);
        assert_eq!(clock.elapsed(false, began + hour), STEPS_TIME);
        assert_eq!(clock.elapsed(false, began + hour + Duration::from_millis(1)).as_millis(), 101);
        assert_eq!(clock.elapsed(true, began + hour * 2), Duration::ZERO, "begins anew");
    }

    #[test]
    fn rows_restart_the_deadline() {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        let deadline = Deadline::watch(&mut connection, Duration::from_hours(1)).unwrap();
        let restarts = || deadline.0.swap(false, std::sync::atomic::Ordering::Relaxed);
        assert!(restarts());
        deadline.note_rows(1);
        assert!(!restarts());
        deadline.note_rows(ROWS);
        assert!(restarts());
    }
}
