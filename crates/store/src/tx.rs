//! The transaction of an operation.

use chancery_record::Value;

use crate::{
    EPOCH, Error, Row, Write,
    connection::{Statement, postgres::Session, sqlite::Connection},
    record_statement,
};

/// A transaction on either engine. A failure ends it: the first one is remembered, whatever the operation does
/// with it, and decides whether the operation runs again.
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct Tx<'c> {
    engine: Engine<'c>,
    /// The name of the running operation.
    pub(crate) operation: &'static str,
    failure: Option<Error>,
    is_dry_run: bool,
    is_routine: bool,
    erases: bool,
    proof: Option<CommitProof>,
    commit_outcome: Option<CommitOutcome>,
    /// The security epoch read from the database.
    epoch: Option<i64>,
    has_advanced_epoch: bool,
    /// The statements so far.
    statements: u64,
}

/// The outcome of a commit that the operation itself requested.
#[derive(Debug)]
pub enum CommitOutcome {
    /// The commit succeeded.
    Committed,
    /// The connection was lost meanwhile.
    Unknown(String),
}

/// A query that finds a row if and only if the transaction was committed.
pub type CommitProof = (String, Vec<Value>);

pub enum Engine<'c> {
    Sqlite(&'c Connection),
    Postgres(&'c mut Session),
}

impl<'c> Tx<'c> {
    pub(crate) const fn new(engine: Engine<'c>) -> Self {
        Self {
            engine,
            operation: "",
            failure: None,
            is_dry_run: false,
            erases: false,
            is_routine: false,
            proof: None,
            commit_outcome: None,
            epoch: None,
            has_advanced_epoch: false,
            statements: 0,
        }
    }

    /// Reads rows; `each` receives every row as it arrives.
    pub fn query(
        &mut self,
        sql: &str,
        parameters: &[Value],
        mut each: impl FnMut(&Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.query_all(&[(sql, parameters)], &mut |_, row| each(row))
    }

    /// Reads the rows of several independent statements: one round trip. `each` receives the statement's index
    /// and a row.
    pub fn query_all(
        &mut self,
        statements: &[Statement<'_>],
        each: &mut dyn FnMut(usize, &Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some((sql, _)) = statements.iter().find(|(sql, _)| !only_reads(sql)) {
            return Err(Error::Internal(format!("what is to be read would write: {sql}")));
        }
        self.check_open()?;
        for (sql, _) in statements {
            self.record(sql);
        }
        let outcome = match &mut self.engine {
            Engine::Sqlite(connection) => {
                statements.iter().enumerate().try_for_each(|(index, (sql, parameters))| {
                    connection.query(sql, parameters, &mut |row| each(index, row))
                })
            }
            Engine::Postgres(session) => session.query_all(statements, each),
        };
        self.record_failure(outcome)
    }

    /// Whether statements are answered without a round trip, so that batching gains nothing.
    pub const fn answers_at_once(&self) -> bool {
        matches!(self.engine, Engine::Sqlite(_))
    }

    /// Reads the first row, if there is one.
    pub fn one<T>(
        &mut self,
        sql: &str,
        parameters: &[Value],
        mut read: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut first = None;
        self.query(sql, parameters, |row| {
            if first.is_none() {
                first = Some(read(row)?);
            }
            Ok(())
        })?;
        Ok(first)
    }

    /// The columns of a table, in order; none where it does not exist.
    pub fn columns(&mut self, table: &str) -> Result<Vec<String>, Error> {
        let text = if self.answers_at_once() {
            "SELECT name FROM pragma_table_info(?1) ORDER BY cid"
        } else {
            "SELECT a.attname::TEXT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
             AND c.relname::TEXT = ?1 AND c.relnamespace = current_schema()::regnamespace \
             WHERE a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        };
        let mut columns = Vec::new();
        self.query_catalogue(text, &[table.into()], &mut |row| {
            columns.push(row.text(0)?.to_owned());
            Ok(())
        })?;
        Ok(columns)
    }

    /// Reads the catalogue of one engine, by SQL of that engine.
    pub(crate) fn query_catalogue(
        &mut self,
        sql: &str,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_open()?;
        let outcome = match &mut self.engine {
            Engine::Sqlite(connection) => connection.query(sql, parameters, each),
            Engine::Postgres(session) => session.query_all(&[(sql, parameters)], &mut |_, row| each(row)),
        };
        self.record_failure(outcome)
    }

    /// Writes the catalogue of one engine; returns the number of changed rows.
    pub(crate) fn execute_catalogue(&mut self, sql: &str, parameters: &[Value]) -> Result<u64, Error> {
        self.check_open()?;
        let outcome = match &mut self.engine {
            Engine::Sqlite(connection) => connection.execute(sql, parameters),
            Engine::Postgres(session) => session.execute(sql, parameters),
        };
        self.record_failure(outcome)
    }

    /// Writes a state table now; returns the number of changed rows.
    pub fn execute(&mut self, write: &Write, parameters: &[Value]) -> Result<u64, Error> {
        self.execute_text(write.text(), parameters)
    }

    pub(crate) fn execute_text(&mut self, sql: &str, parameters: &[Value]) -> Result<u64, Error> {
        self.check_open()?;
        self.record(sql);
        let outcome = match &mut self.engine {
            Engine::Sqlite(connection) => connection.execute(sql, parameters),
            Engine::Postgres(session) => session.execute(sql, parameters),
        };
        self.record_failure(outcome)
    }

    /// Writes a state table and reads the first returned row, if any.
    pub fn returning<T>(
        &mut self,
        write: &Write,
        parameters: &[Value],
        mut read: impl FnMut(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut first = None;
        self.query_text(write.text(), parameters, &mut |row| {
            if first.is_none() {
                first = Some(read(row)?);
            }
            Ok(())
        })?;
        Ok(first)
    }

    pub(crate) fn query_text(
        &mut self,
        sql: &str,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_open()?;
        self.record(sql);
        let outcome = match &mut self.engine {
            Engine::Sqlite(connection) => connection.returning(sql, parameters, each),
            Engine::Postgres(session) => session.query_all(&[(sql, parameters)], &mut |_, row| each(row)),
        };
        self.record_failure(outcome)
    }

    /// Queues a write of a state table without reading its result. On PostgreSQL it is sent with the next read
    /// or the commit, which reports its failure.
    pub fn queue(&mut self, write: &Write, parameters: Vec<Value>) -> Result<(), Error> {
        self.queue_text(write.text(), parameters)
    }

    pub(crate) fn queue_text(&mut self, sql: &str, parameters: Vec<Value>) -> Result<(), Error> {
        self.check_open()?;
        self.record(sql);
        let outcome = match &mut self.engine {
            Engine::Sqlite(connection) => connection.execute(sql, &parameters).map(drop),
            Engine::Postgres(session) => session.queue(sql, parameters),
        };
        self.record_failure(outcome)
    }

    /// Like [`Tx::queue`], for a statement that must change exactly one row; otherwise another operation
    /// interfered, and this one is repeated.
    pub fn queue_one(&mut self, write: &Write, parameters: Vec<Value>) -> Result<(), Error> {
        self.queue_one_text(write.text(), parameters)
    }

    pub(crate) fn queue_one_text(&mut self, sql: &str, parameters: Vec<Value>) -> Result<(), Error> {
        self.check_open()?;
        self.record(sql);
        let outcome = match &mut self.engine {
            Engine::Sqlite(connection) => match connection.execute(sql, &parameters) {
                Ok(1) => Ok(()),
                Ok(_) => Err(Error::Retry),
                Err(error) => Err(error),
            },
            Engine::Postgres(session) => session.queue_one(sql, parameters),
        };
        self.record_failure(outcome)
    }

    /// Sends the queued statements and waits for their results.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.check_open()?;
        let outcome = match &mut self.engine {
            Engine::Sqlite(_) => Ok(()),
            Engine::Postgres(session) => session.flush(),
        };
        self.record_failure(outcome)
    }

    /// Ends a write: sends the queued statements together with the commit, in one round trip. A statement's
    /// failure, such as a unique violation, is reported here, where the operation can still explain it. It is
    /// the last call of an operation; without it the store commits in a separate round trip. A dry run only
    /// sends. On SQLite nothing is queued, and the commit is that of the whole group of writes.
    ///
    /// # Errors
    /// A queued statement's; [`Error::Retry`]. A lost connection is not an error here: the store finds out
    /// whether the commit succeeded, and the operation continues as if it had.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.check_open()?;
        let is_dry_run = self.is_dry_run;
        let outcome = match &mut self.engine {
            Engine::Sqlite(_) => return Ok(()),
            Engine::Postgres(session) if is_dry_run => session.flush(),
            Engine::Postgres(session) => match session.commit() {
                Ok(()) => {
                    self.commit_outcome = Some(CommitOutcome::Committed);
                    Ok(())
                }
                Err(Error::Unknown(why)) => {
                    self.commit_outcome = Some(CommitOutcome::Unknown(why));
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        self.record_failure(outcome)
    }

    pub(crate) const fn take_commit_outcome(&mut self) -> Option<CommitOutcome> {
        self.commit_outcome.take()
    }

    /// Provides a query that returns a row if and only if this transaction was committed. It runs where the
    /// connection is lost during the commit; the first one provided counts.
    pub fn set_commit_proof(&mut self, sql: &str, parameters: Vec<Value>) {
        if self.proof.is_none() {
            self.proof = Some((sql.to_owned(), parameters));
        }
    }

    pub(crate) const fn take_commit_proof(&mut self) -> Option<CommitProof> {
        self.proof.take()
    }

    /// Makes the operation a dry run: it is rolled back at the end, whatever it returns.
    pub const fn set_dry_run(&mut self) {
        self.is_dry_run = true;
    }

    /// Commits at the end even of a dry run, for changes that must persist, such as a counted attempt at a
    /// secret.
    pub const fn commit_dry_run(&mut self) {
        self.is_dry_run = false;
    }

    /// Records that the operation leaves nothing to do for background jobs, as the renewal of a lease: its commit does not wake them.
    pub const fn note_routine(&mut self) {
        self.is_routine = true;
    }

    pub(crate) const fn is_routine(&self) -> bool {
        self.is_routine
    }

    /// Records that the operation erases data that must not be readable again, such as a person: SQLite's log,
    /// which contains earlier writes, is truncated soon after the commit.
    pub const fn note_erasure(&mut self) {
        self.erases = true;
    }

    pub(crate) const fn erases(&self) -> bool {
        self.erases
    }

    /// The security epoch.
    pub fn epoch(&mut self) -> Result<i64, Error> {
        self.one(EPOCH, &[], |row| row.int(0))?.ok_or_else(|| Error::Internal("no epoch".into()))
    }

    /// Makes every process reload rights and settings before its next operation. Every change of a client,
    /// role, store, key or option calls it; the first in a transaction counts.
    pub fn advance_epoch(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_advanced_epoch, true) {
            return Ok(());
        }
        self.queue_text("UPDATE security_epoch SET value = value + 1", Vec::new())
    }

    pub(crate) const fn has_advanced_epoch(&self) -> bool {
        self.has_advanced_epoch
    }

    /// Fails with [`Error::Stale`], now or with the next read, when the epoch is not this one.
    pub fn expect_epoch(&mut self, epoch: i64) -> Result<(), Error> {
        let outcome = match &mut self.engine {
            Engine::Sqlite(connection) => connection.expect_epoch(epoch),
            Engine::Postgres(session) => session.queue_epoch(epoch),
        };
        // a reader of SQLite does not query the database
        if outcome.is_ok() && !matches!(&self.engine, Engine::Sqlite(connection) if connection.read_only) {
            self.epoch = Some(epoch);
        }
        self.record_failure(outcome)
    }

    /// The security epoch, where other transactions that read the same epoch may reuse the data read here: it
    /// is committed and of one snapshot. `None` otherwise: a quick read of PostgreSQL has no snapshot, and the
    /// epoch may have been advanced without a commit, by this transaction or on SQLite by an earlier one of the
    /// same commit.
    pub fn settled_epoch(&mut self) -> Result<Option<i64>, Error> {
        let has_snapshot = match &self.engine {
            Engine::Sqlite(_) => true,
            Engine::Postgres(session) => session.has_snapshot(),
        };
        if self.has_advanced_epoch || !has_snapshot {
            return Ok(None);
        }
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.epoch()?,
        };
        self.epoch = Some(epoch);
        let is_committed = match &self.engine {
            Engine::Sqlite(connection) => connection.committed_epoch() == epoch,
            Engine::Postgres(_) => true,
        };
        Ok(is_committed.then_some(epoch))
    }

    /// Sends the check of the epoch if it is still queued; otherwise does nothing.
    pub(crate) fn check_epoch(&mut self) -> Result<(), Error> {
        let outcome = match &mut self.engine {
            Engine::Sqlite(_) => Ok(()),
            Engine::Postgres(session) => session.check_epoch(),
        };
        self.record_failure(outcome)
    }

    /// Makes the operation run again, in a new transaction, whatever it returns now.
    pub fn run_again(&mut self) -> Error {
        self.failure.get_or_insert(Error::Retry).clone()
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.clone()
    }

    pub(crate) const fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    pub(crate) const fn statements(&self) -> u64 {
        self.statements
    }

    /// Counts a statement, and records its text in builds for tests.
    fn record(&mut self, sql: &str) {
        self.statements += 1;
        let engine = if self.answers_at_once() { "sqlite" } else { "postgres" };
        record_statement(engine, self.operation, sql);
    }

    /// Fails when the transaction has failed or is over: outside of one, each statement would commit by itself.
    fn check_open(&self) -> Result<(), Error> {
        if self.commit_outcome.is_some() {
            return Err(Error::Internal("a statement after the end of its transaction".into()));
        }
        match &self.failure {
            Some(error @ Error::Unavailable(_)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn record_failure<T>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        if let Err(error @ (Error::Retry | Error::Stale | Error::Unavailable(_))) = &outcome
            && self.failure.is_none()
        {
            self.failure = Some(error.clone());
        }
        outcome
    }
}

/// Whether a statement begins like a read. A query with leading common table expressions could write on
/// PostgreSQL; SQLite refuses it, and every text runs on both.
fn only_reads(sql: &str) -> bool {
    ["SELECT", "WITH", "EXPLAIN"].iter().any(|word| sql.trim_start().starts_with(word))
}
