//! Migrations on PostgreSQL: one process runs them, others wait for it, and servers of the previous release
//! continue to serve.

use std::time::{Duration, Instant};

use crate::{
    Error, Row,
    connection::postgres::Session,
    migrate::{self, AppliedSchema, Fill, Migration, Step, steps},
    selectable,
};

/// How long a statement of a migration may take, and how long a process waits for another one that migrates.
const MIGRATING: Duration = Duration::from_hours(6);
/// The pauses between two attempts: the first, which doubles, and the longest. Requests that queued behind an
/// attempt run in a pause.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// The interval of checks whether another process has finished.
const POLL: Duration = Duration::from_millis(200);
/// The interval of progress logs of a step over many rows.
const REPORT: Duration = Duration::from_secs(10);
/// Rows in a chunk of a step over many rows: some tens of milliseconds.
const CHUNK: i64 = 5_000;

/// The settings of a migrating session. A transaction that waits for a lock blocks others, so the wait is short
/// there: [`TRANSACTION`]. The concurrent build of an index waits for other transactions, and blocks none.
const SESSION: &str = "SET statement_timeout = 0; SET lock_timeout = ";
const TRANSACTION: &str = "BEGIN; SET LOCAL lock_timeout = 500";

/// Only one process migrates. The lock is a session lock and is tried without waiting, because the concurrent
/// build of an index would wait for a transaction that waits for the lock.
const TRY_LOCK: &str = "SELECT pg_try_advisory_lock(4848110241)";

/// Whether the role may change the schema.
const MAY_CHANGE: &str = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AND \
    coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('schema_migration')), true)";

selectable! {
    /// The progress of a migration.
    #[derive(Default)]
    struct Progress {
        /// The number of finished statements.
        done: i64 = "done",
        /// The key up to which the next one is finished.
        filled: Option<i64> = "filled",
    }
}

selectable! {
    /// A chunk of a step over many rows.
    #[derive(Default)]
    struct Chunk(key) {
        /// The number of rows.
        count: i64 = "count(*)",
        /// The last key.
        last: i64 = "coalesce(max({key}), 0)",
    }
}

/// The progress of unfinished migrations: the number of finished statements, and the last finished key of a
/// statement over many rows.
const PROGRESS: &str = "CREATE TABLE IF NOT EXISTS schema_progress \
    (version BIGINT NOT NULL PRIMARY KEY, done BIGINT NOT NULL, filled BIGINT)";
const NO_PROGRESS: &str = "DROP TABLE IF EXISTS schema_progress";

/// The sessions that a step may have waited for.
const OTHERS: &str = "SELECT pid::text || coalesce(' (' || nullif(application_name, '') || ')', '') FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < now() - interval '1 second' \
    ORDER BY xact_start LIMIT 5";

impl Session {
    /// Migrates the schema. Returns the number of applied migrations. A current schema is only read. One step
    /// waits for locks of other sessions for `lock_wait` in total.
    pub fn migrate(&mut self, lock_wait: Duration) -> Result<usize, Error> {
        if migrate::is_current(&self.applied()?)? {
            return Ok(0);
        }
        (self.patience, self.lock_wait) = (MIGRATING, lock_wait);
        // 0 would mean no limit
        self.batch(&format!("{SESSION}{}", lock_wait.as_millis().max(1)))?;
        self.await_lock()?;
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
    fn await_lock(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        for count in 0.. {
            if self.is_true(TRY_LOCK)? {
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
                // no one uses the tables yet
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
        let Progress { done, mut filled } = self.progress(version)?.unwrap_or_default();
        let end =
            migrate::record(version) + &format!("DELETE FROM schema_progress WHERE version = {version};");
        let mut steps = steps(migration, usize::try_from(done).unwrap_or(0)).into_iter().peekable();
        if steps.peek().is_none() {
            self.transact(migration.name(), &end)?;
        }
        while let Some((after, step)) = steps.next() {
            let record_progress =
                if steps.peek().is_none() { end.clone() } else { progress_statement(version, after, None) };
            match step {
                Step::Transaction(text) => self.transact(migration.name(), &(text + &record_progress))?,
                Step::Index { name, statement } => {
                    self.with_lock_retries(migration.name(), |session| {
                        session.build_index(&name, &statement)
                    })?;
                    self.transact(migration.name(), &record_progress)?;
                }
                Step::Fill(text, fill) => {
                    self.fill(migration, after - 1, filled.take(), &text, fill)?;
                    self.transact(migration.name(), &record_progress)?;
                }
            }
        }
        Ok(())
    }

    /// Runs a statement over many rows, from a key on, in chunks that each commit.
    fn fill(
        &mut self,
        migration: &Migration,
        done: usize,
        filled: Option<i64>,
        text: &str,
        fill: &'static Fill,
    ) -> Result<(), Error> {
        let (mut above, mut rows, mut reported_at) = (filled.unwrap_or(-1), 0, Instant::now());
        loop {
            let Fill { table, key, .. } = fill;
            let chunk = format!(
                "SELECT {} FROM (SELECT {key} FROM {table} WHERE {key} > {above} ORDER BY {key} LIMIT {CHUNK}) piece",
                Chunk::columns(key)
            );
            let Chunk { count, last } = self.one(&chunk, Chunk::read)?.unwrap_or_default();
            if count > 0 {
                let chunk = fill.chunk(text, above, last);
                let record_progress = progress_statement(migration.version, done, Some(last));
                self.transact(migration.name(), &format!("{chunk};{record_progress}"))?;
                (above, rows) = (last, rows + count);
            }
            if count < CHUNK {
                return Ok(());
            }
            if reported_at.elapsed() > REPORT {
                tracing::info!(migration = migration.name(), rows, "filling {table}");
                reported_at = Instant::now();
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
            // an unfinished index slows writes down; if this fails, the next attempt drops it
            let _ = self.batch(&drop);
        }
        built
    }

    /// Runs a text in one transaction.
    fn transact(&mut self, what: &str, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.with_lock_retries(what, |session| session.batch(&format!("{TRANSACTION}; {text}; COMMIT")))
    }

    /// Repeats an action while it fails because of locks of other sessions.
    fn with_lock_retries(
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
                Err(Error::Busy | Error::Retry) => return Err(self.lock_timeout(what)),
                outcome => return outcome,
            }
        }
    }

    fn lock_timeout(&mut self, what: &str) -> Error {
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

    /// The progress of a migration; none where it has not begun.
    fn progress(&mut self, version: i64) -> Result<Option<Progress>, Error> {
        let text = format!("SELECT {} FROM schema_progress WHERE version = {version}", Progress::COLUMNS);
        self.one(&text, Progress::read)
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
        let mut first = None;
        self.each(text, &mut |row| {
            first = Some(read(row)?);
            Ok(())
        })?;
        Ok(first)
    }

    pub(super) fn is_true(&mut self, text: &str) -> Result<bool, Error> {
        Ok(self.one(text, |row| row.bool(0))?.unwrap_or(false))
    }
}

/// The statement that records the progress of a migration.
fn progress_statement(version: i64, done: usize, filled: Option<i64>) -> String {
    let filled = filled.map_or_else(|| "NULL".to_owned(), |filled| filled.to_string());
    format!(
        "INSERT INTO schema_progress (version, done, filled) VALUES ({version}, {done}, {filled}) \
         ON CONFLICT (version) DO UPDATE SET done = excluded.done, filled = excluded.filled;"
    )
}
