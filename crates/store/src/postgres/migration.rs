//! Migrations on PostgreSQL: one process runs them, others wait for it, and servers of the previous release continue to serve.

use std::time::{Duration, Instant};

use super::session::Session;
use crate::{
    Error, Row,
    migrate::{self, AppliedSchema, Fill, Migration, Step, steps},
};

/// How long a statement of a migration may take, and how long a process waits for one that migrates.
const MIGRATING: Duration = Duration::from_hours(6);
/// The pauses between two tries: the first, which doubles, and the longest. Requests that queued behind a try run in a pause.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// How often a process looks whether another one has finished.
const POLL: Duration = Duration::from_millis(200);
/// How often a step over many rows logs its progress.
const REPORT: Duration = Duration::from_secs(10);
/// Rows in a piece of a step over many rows: some tens of milliseconds.
const PIECE: i64 = 5_000;

/// The settings of a session that migrates. A transaction that waits for a lock blocks others, so the wait is short there:
/// [`TRANSACTION`]. The concurrent build of an index waits for other transactions, and blocks none.
const SESSION: &str = "SET statement_timeout = 0; SET lock_timeout = ";
const TRANSACTION: &str = "BEGIN; SET LOCAL lock_timeout = 500";

/// Only one process migrates. The lock is a session lock and is tried without waiting, because the concurrent build of an index would
/// wait for a transaction that waits for the lock.
const TURN: &str = "SELECT pg_try_advisory_lock(4848110241)";

/// Whether the role may change the schema.
const MAY_CHANGE: &str = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AND \
    coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('schema_migration')), true)";

/// The progress of unfinished migrations: the number of finished statements, and the last finished key of a statement over many rows.
const PROGRESS: &str = "CREATE TABLE IF NOT EXISTS schema_progress \
    (version BIGINT NOT NULL PRIMARY KEY, done BIGINT NOT NULL, filled BIGINT)";
const NO_PROGRESS: &str = "DROP TABLE IF EXISTS schema_progress";

/// The sessions that a step may have waited for.
const OTHERS: &str = "SELECT pid::text || coalesce(' (' || nullif(application_name, '') || ')', '') FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < now() - interval '1 second' \
    ORDER BY xact_start LIMIT 5";

impl Session {
    /// Migrates the schema. Returns the number of applied migrations. A current schema is only read. One step waits for locks of
    /// other sessions for `lock_wait` in all.
    pub fn migrate(&mut self, lock_wait: Duration) -> Result<usize, Error> {
        if migrate::is_current(&self.applied()?)? {
            return Ok(0);
        }
        (self.patience, self.lock_wait) = (MIGRATING, lock_wait);
        // 0 would mean no limit
        self.batch(&format!("{SESSION}{}", lock_wait.as_millis().max(1)))?;
        self.await_turn()?;
        let applied = self.applied()?;
        let pending = migrate::pending(&applied)?;
        if !pending.is_empty() {
            self.apply_all(&applied, &pending)?;
        }
        let checksums = migrate::record_checksums(&self.applied()?);
        self.transact("the checksums", &checksums)?;
        Ok(pending.len())
    }

    /// Waits until no other process migrates.
    fn await_turn(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        for count in 0.. {
            if self.is_true(TURN)? {
                break;
            }
            if count == 0 {
                tracing::info!("another process changes the schema: waiting for it");
            }
            if began.elapsed() > MIGRATING {
                let why =
                    "another session has held the lock of migrations for six hours: end it, and start again";
                return Err(Error::Unavailable(why.into()));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn apply_all(&mut self, applied: &AppliedSchema, pending: &[&Migration]) -> Result<(), Error> {
        if !self.is_true(MAY_CHANGE)? {
            let missing = migrate::check(applied).err().map(|error| error.to_string()).unwrap_or_default();
            return Err(Error::Unavailable(format!(
                "its role may not change the schema: run chancery migrate with the role that owns the tables ({missing})"
            )));
        }
        self.transact("the table of migrations", migrate::TABLE)?;
        let is_new = applied.migrations.is_empty();
        if !is_new {
            self.transact("the table of progress", PROGRESS)?;
        }
        for migration in pending {
            let began = Instant::now();
            if is_new {
                // nobody uses the tables yet
                let text = migrate::text_for(migration, true) + &migrate::record(migration.version);
                self.transact(migration.name(), &text)?;
            } else {
                self.apply_in_steps(migration)?;
                migrate::report(migration, began.elapsed());
            }
        }
        if is_new { Ok(()) } else { self.transact("the table of progress", NO_PROGRESS) }
    }

    /// Applies a migration, or its remaining steps. The progress is recorded with each step.
    fn apply_in_steps(&mut self, migration: &Migration) -> Result<(), Error> {
        let version = migration.version;
        let (done, mut filled) = self.progress(version)?.unwrap_or((0, None));
        let end =
            migrate::record(version) + &format!("DELETE FROM schema_progress WHERE version = {version};");
        let mut steps = steps(migration, usize::try_from(done).unwrap_or(0)).into_iter().peekable();
        if steps.peek().is_none() {
            self.transact(migration.name(), &end)?;
        }
        while let Some((after, step)) = steps.next() {
            let note = if steps.peek().is_none() { end.clone() } else { note(version, after, None) };
            match step {
                Step::Transaction(text) => self.transact(migration.name(), &(text + &note))?,
                Step::Index { name, statement } => {
                    self.patiently(migration.name(), |session| session.build_index(&name, &statement))?;
                    self.transact(migration.name(), &note)?;
                }
                Step::Fill(text, fill) => {
                    self.fill(migration, (after - 1, filled.take()), &text, fill)?;
                    self.transact(migration.name(), &note)?;
                }
            }
        }
        Ok(())
    }

    /// Runs a statement over many rows, from a key on, in pieces that each commit.
    fn fill(
        &mut self,
        migration: &Migration,
        (done, filled): (usize, Option<i64>),
        text: &str,
        fill: &'static Fill,
    ) -> Result<(), Error> {
        let (mut above, mut rows, mut told) = (filled.unwrap_or(-1), 0, Instant::now());
        loop {
            let Fill { table, key, .. } = fill;
            let piece = format!(
                "SELECT count(*), coalesce(max({key}), 0) FROM \
                 (SELECT {key} FROM {table} WHERE {key} > {above} ORDER BY {key} LIMIT {PIECE}) piece"
            );
            let (count, last) = self.one(&piece, |row| Ok((row.int(0)?, row.int(1)?)))?.unwrap_or_default();
            if count > 0 {
                let piece = fill.piece(text, above, last);
                let note = note(migration.version, done, Some(last));
                self.transact(migration.name(), &format!("{piece};{note}"))?;
                (above, rows) = (last, rows + count);
            }
            if count < PIECE {
                return Ok(());
            }
            if told.elapsed() > REPORT {
                tracing::info!(migration = migration.name(), rows, "filling {table}");
                told = Instant::now();
            }
        }
    }

    /// Builds an index with `CREATE INDEX CONCURRENTLY`. An unfinished one is built again.
    fn build_index(&mut self, name: &str, statement: &str) -> Result<(), Error> {
        let drop = format!("{TRANSACTION}; DROP INDEX IF EXISTS {name}; COMMIT");
        let state = format!("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{name}')");
        match self.one(&state, |row| row.bool(0))? {
            Some(true) => return Ok(()),
            Some(false) => {
                tracing::warn!(index = name, "an index was not finished: building it again");
                self.batch(&drop)?;
            }
            None => {}
        }
        let built = self.batch(statement);
        if built.is_err() {
            // an unfinished index slows writes down; if this fails, the next try drops it
            let _ = self.batch(&drop);
        }
        built
    }

    /// Runs a text in one transaction.
    fn transact(&mut self, what: &str, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.patiently(what, |session| session.batch(&format!("{TRANSACTION}; {text}; COMMIT")))
    }

    /// Repeats something while it fails because of locks of other sessions.
    fn patiently(
        &mut self,
        what: &str,
        attempt: impl Fn(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (began, (mut pause, longest)) = (Instant::now(), PAUSES);
        loop {
            let outcome = attempt(self);
            if outcome.is_err() && self.batch("ROLLBACK").is_err() {
                return outcome;
            }
            match outcome {
                Err(Error::Busy | Error::Retry) if began.elapsed() < self.lock_wait => {
                    tracing::info!(migration = what, "others are in its way: trying again");
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(longest);
                }
                Err(Error::Busy | Error::Retry) => return Err(self.given_up(what)),
                outcome => return outcome,
            }
        }
    }

    fn given_up(&mut self, what: &str) -> Error {
        let mut others = Vec::new();
        let read = self.each(OTHERS, &mut |row| {
            others.push(row.text(0)?.to_owned());
            Ok(())
        });
        let others =
            if read.is_err() || others.is_empty() { "not known".to_owned() } else { others.join(", ") };
        Error::Unavailable(format!(
            "{what} waited {} seconds for locks of other sessions. Their transactions are the oldest: {others}. What was done \
             until then is kept: end them, and start again",
            self.lock_wait.as_secs()
        ))
    }

    /// The applied migrations; none where the schema is empty.
    pub fn applied(&mut self) -> Result<AppliedSchema, Error> {
        if !self.is_true("SELECT to_regclass('schema_migration') IS NOT NULL")? {
            return Ok(AppliedSchema::default());
        }
        migrate::read_applied(|text, each| self.each(text, each))
    }

    /// How many statements of a migration are done, and up to which key the next one is.
    fn progress(&mut self, version: i64) -> Result<Option<(i64, Option<i64>)>, Error> {
        let text = format!("SELECT done, filled FROM schema_progress WHERE version = {version}");
        self.one(&text, |row| Ok((row.int(0)?, if row.is_null(1)? { None } else { Some(row.int(1)?) })))
    }
}

impl Session {
    /// Reads the rows of a statement.
    fn each(&mut self, text: &str, each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>) -> Result<(), Error> {
        self.query_all(&[(text, &[])], &mut |_, row| each(row))
    }

    /// Reads one row, where there is one.
    fn one<T>(
        &mut self,
        text: &str,
        read: impl Fn(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut found = None;
        self.each(text, &mut |row| {
            found = Some(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    pub(super) fn is_true(&mut self, text: &str) -> Result<bool, Error> {
        Ok(self.one(text, |row| row.bool(0))?.unwrap_or(false))
    }
}

/// The statement that records the progress of a migration.
fn note(version: i64, done: usize, filled: Option<i64>) -> String {
    let filled = filled.map_or_else(|| "NULL".to_owned(), |filled| filled.to_string());
    format!(
        "INSERT INTO schema_progress (version, done, filled) VALUES ({version}, {done}, {filled}) \
         ON CONFLICT (version) DO UPDATE SET done = excluded.done, filled = excluded.filled;"
    )
}
