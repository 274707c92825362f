//! Migrations on PostgreSQL: run by one process, while others wait.

use std::time::{Duration, Instant};

use super::session::Session;
use crate::{Error, migrate};

/// How long a statement of a migration may take.
const MIGRATING: Duration = Duration::from_hours(6);
/// How long a migration may wait for locks in all, in steps of two seconds.
const LOCKED: Duration = Duration::from_mins(10);

impl Session {
    /// Brings the schema up to date, in one transaction. A statement may run long, but none waits long for
    /// a lock, because others would wait behind it: it is tried again instead.
    pub fn migrate(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        self.patience = MIGRATING;
        loop {
            let outcome = self.try_to_migrate();
            if outcome.is_err() {
                self.batch("ROLLBACK")?;
            }
            if outcome != Err(Error::Busy) || began.elapsed() > LOCKED {
                return outcome;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn try_to_migrate(&mut self) -> Result<(), Error> {
        // one process migrates, the others wait
        self.batch(
            "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 2000; \
             SELECT pg_advisory_xact_lock(4848110241)",
        )?;
        self.batch(migrate::TABLE)?;
        let applied = self.applied()?;
        migrate::migrate(true, &applied, |text| self.batch(text))?;
        self.batch("COMMIT")
    }

    /// The applied migrations.
    pub fn applied(&mut self) -> Result<migrate::AppliedSchema, Error> {
        migrate::read_applied(|text, each| self.query_all(&[(text, &[])], &mut |_, row| each(row)))
    }
}
