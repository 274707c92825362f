//! One transaction over two engines: embedded SQLite and PostgreSQL.
//!
//! An operation is a synchronous closure over a [`Tx`]. It may run twice: a serialization failure runs it again
//! from the start. SQL is one text for both engines, with `?1`, `?2` as parameters. Nothing outside this crate
//! and the migration files knows an engine by name.

mod clock;
mod commits;
mod connection;
pub mod copy;
mod error;
mod figure;
mod from_cell;
mod guard;
mod health;
mod job;
mod location;
mod migrate;
mod mode;
mod postgres;
mod queue;
pub mod raw;
#[cfg(feature = "record-statements")]
mod recorder;
mod row;
mod selectable;
mod sqlite;
mod state;
mod tx;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

pub use connection::EPOCH;
pub use error::Error;
pub use figure::{Figure, FigureSource, FigureUnit};
pub use from_cell::FromCell;
pub use guard::{on_panic, report_panic};
pub use health::Health;
pub use location::DatabaseLocation;
pub use migrate::{
    FLOOR, KEY_ROOT, READ_FLOOR, checksums as migration_checksums, refusal_below, schema_version,
};
pub use mode::{Class, Mode};
pub use row::Row;
pub use state::{StateTable, Write};
pub use tx::Tx;

use job::{Job, Operation};
use queue::{JobKind, Queue, Waiter};
#[cfg(feature = "record-statements")]
use recorder::{record as record_statement, record_hold};
use tokio::sync::oneshot;

/// Records nothing: see the feature `record-statements`.
#[cfg(not(feature = "record-statements"))]
const fn record_statement(_engine: &'static str, _operation: &'static str, _sql: &str) {}

/// Records nothing: see the feature `record-statements`.
#[cfg(not(feature = "record-statements"))]
const fn record_hold(_operation: &'static str, _time: Duration) {}

/// The location of the data.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// A SQLite database file.
    Sqlite(PathBuf),
    /// A PostgreSQL connection string (`postgres://...`).
    Postgres(String),
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => formatter.debug_tuple("Sqlite").field(path).finish(),
            // it may contain a password
            Self::Postgres(_) => formatter.write_str("Postgres(..)"),
        }
    }
}

impl Target {
    /// Checks the files of the connection string, as they are read for each connection: certificates and keys
    /// for TLS to PostgreSQL. Returns the files of private keys. `insecure`: see [`Settings::insecure`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the connection string is invalid, or a file is absent or unusable.
    pub fn check_files(&self, insecure: bool) -> Result<Vec<PathBuf>, Error> {
        match self {
            Self::Sqlite(_) => Ok(Vec::new()),
            Self::Postgres(url) => postgres::check_files(url, insecure),
        }
    }
}

/// Limits of a store.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Connections for requests: to PostgreSQL, to SQLite for long reads.
    pub connections: usize,
    /// Operations that may wait for the store; further ones are refused.
    pub waiting: usize,
    /// Bytes of the SQLite write-ahead log beyond which writes wait for a checkpoint.
    pub log_bytes: u64,
    /// Free bytes on the disk of a SQLite database below which the store is no longer ready.
    pub disk_reserve: u64,
    /// Whether PostgreSQL on another machine may be reached without TLS.
    pub insecure: bool,
    /// Whether an older schema is migrated when the store is opened; otherwise it is refused.
    pub migrate: bool,
    /// How long one step of a migration waits in total for locks of other sessions of PostgreSQL.
    pub lock_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 16,
            waiting: 4096,
            log_bytes: 128 << 20,
            disk_reserve: 256 << 20,
            insecure: false,
            migrate: true,
            lock_wait: Duration::from_mins(10),
        }
    }
}

/// How long an operation may wait in its queue before it may be refused.
const PATIENCE: Duration = Duration::from_secs(3);
/// The interval of further checks whether the operation is to be refused.
const RECHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Figures of the store, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Waiting operations.
    pub waiting: usize,
    /// Commits since the start.
    pub commits: u64,
    /// Writes in those commits.
    pub writes: u64,
    /// Operations that ran again after a serialization failure.
    pub retries: u64,
    /// Operations refused for load.
    pub shed: u64,
    /// Bytes of the SQLite write-ahead log after the last commit.
    pub log_bytes: u64,
    /// Statements sent to PostgreSQL for requests, or executed in transactions of SQLite's writer.
    pub statements: u64,
    /// Waits of requests for an answer of PostgreSQL.
    pub round_trips: u64,
}

/// Receives the name of each operation, and how long it held the single writer of SQLite. A commit is reported
/// as `Commit`: it is shared by its operations.
pub type HoldObserver = Box<dyn Fn(&'static str, Duration) + Send + Sync>;

/// A store: cheap to clone, closed by [`Store::close`].
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    class: Class,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Arc<sqlite::Sqlite>),
    Postgres(Arc<postgres::Postgres>),
}

impl Store {
    const fn of(engine: Engine) -> Self {
        Self { engine, class: Class::Ordinary }
    }

    /// Opens the database and migrates its schema, unless the settings say otherwise. If the schema is current,
    /// nothing is written, and the database role needs no DDL rights.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached or opened, or its schema is older and cannot, or must
    /// not, be migrated.
    pub fn open(target: &Target, settings: Settings) -> Result<Self, Error> {
        Ok(Self::of(match target {
            Target::Sqlite(path) => Engine::Sqlite(sqlite::Sqlite::open(path, settings)?),
            Target::Postgres(url) => Engine::Postgres(postgres::Postgres::open(url, settings)?),
        }))
    }

    /// Migrates the schema of a database. Returns the number of applied migrations. On PostgreSQL servers may
    /// use the database at the same time. After an error the finished steps are retained, and the next call
    /// continues after them.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached, or the schema cannot be migrated.
    pub fn migrate(target: &Target, settings: Settings) -> Result<usize, Error> {
        match target {
            Target::Sqlite(path) => sqlite::Sqlite::migrate(path),
            Target::Postgres(url) => postgres::Postgres::migrate(url, settings),
        }
    }

    /// Opens the database read-only and unmigrated, also while a server runs. Writes are refused.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached or opened, or its schema is not this program's.
    pub fn open_to_read(target: &Target, settings: Settings) -> Result<Self, Error> {
        Ok(Self::of(match target {
            Target::Sqlite(path) => {
                Engine::Sqlite(sqlite::Sqlite::open_as_it_is(path, settings, migrate::check)?)
            }
            Target::Postgres(url) => {
                Engine::Postgres(postgres::Postgres::open_as_it_is(url, settings, migrate::check)?)
            }
        }))
    }

    /// Opens the database of this release or an older one read-only and unmigrated, also while a server runs.
    /// Its tables may lack columns, or be missing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached or opened, no server has started on it, or its schema
    /// serves only newer programs.
    pub fn open_older_to_read(target: &Target, settings: Settings) -> Result<Self, Error> {
        if !Self::has_sealed_keys(target, settings)? {
            return Err(Error::Unavailable("no server has started on it".into()));
        }
        Ok(Self::of(match target {
            Target::Sqlite(path) => {
                Engine::Sqlite(sqlite::Sqlite::open_as_it_is(path, settings, migrate::check_known)?)
            }
            Target::Postgres(url) => {
                Engine::Postgres(postgres::Postgres::open_as_it_is(url, settings, migrate::check_known)?)
            }
        }))
    }

    /// Whether a database has keys encrypted by a master key, because a server has started on it. It is checked
    /// before it is opened: nothing is written, and a missing or empty one has none.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached or opened.
    pub fn has_sealed_keys(target: &Target, settings: Settings) -> Result<bool, Error> {
        match target {
            Target::Sqlite(path) => sqlite::Sqlite::has_sealed_keys(path),
            Target::Postgres(url) => postgres::Postgres::has_sealed_keys(url, settings),
        }
    }

    /// The location of the database.
    ///
    /// # Errors
    /// The database's; [`Error::Unavailable`] where the file cannot be read.
    pub async fn location(&self) -> Result<DatabaseLocation, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => DatabaseLocation::of_file(sqlite.path()),
            Engine::Postgres(_) => {
                self.run("ReadPlace", Mode::Quick, None, DatabaseLocation::on_postgres).await
            }
        }
    }

    /// Whether the database is a copied SQLite file that this process is the first to open: its pages were
    /// checked, and its contents must be checked, too.
    pub fn is_copied(&self) -> bool {
        matches!(&self.engine, Engine::Sqlite(sqlite) if sqlite.is_copied)
    }

    /// Refuses the SQLite database of another program. It is not changed. Blocks.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: it is one.
    pub fn refuse_foreign(path: &Path) -> Result<(), Error> {
        sqlite::refuse_foreign(path)
    }

    /// Copies a snapshot of a SQLite database to a new file, while a server may write to the database. The copy is readable by its owner
    /// only, and not synced. Blocks.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: one of the files cannot be opened, or the disk is full.
    pub fn back_up(from: &Path, to: &Path) -> Result<(), Error> {
        sqlite::back_up(from, to)
    }

    /// Checks every page, index and reference of a SQLite file that no process writes to. Blocks; the time grows with the file.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: it is torn or damaged, or cannot be opened.
    pub fn check_file(path: &Path) -> Result<(), Error> {
        sqlite::check_file(path)
    }

    /// The same store, for operations of another class.
    #[must_use]
    pub fn with(&self, class: Class) -> Self {
        Self { engine: self.engine.clone(), class }
    }

    /// The engine's name, for logs and the benchmark.
    pub const fn engine(&self) -> &'static str {
        match self.engine {
            Engine::Sqlite(_) => "sqlite",
            Engine::Postgres(_) => "postgres",
        }
    }

    /// Runs an operation in a transaction. It commits when the closure returns `Ok`, unless
    /// [`Tx::set_dry_run`] was called, and rolls back otherwise. The result is returned only after the
    /// commit is durable.
    ///
    /// An operation that has waited three seconds in its queue is refused where many wait or none is being
    /// served, unless it is background work.
    ///
    /// `epoch`: the security epoch of the caller's rights. When it has advanced, the operation does not run and
    /// the result is [`Error::Stale`].
    ///
    /// # Errors
    /// The closure's own; an [`Error`], as `E`, when the store fails, is overloaded or unreachable.
    pub fn run<T, E, F>(
        &self,
        name: &'static str,
        mode: Mode,
        epoch: Option<i64>,
        operation: F,
    ) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        self.run_boxed(name, mode, epoch, Box::new(operation))
    }

    async fn run_boxed<T, E>(
        &self,
        name: &'static str,
        mode: Mode,
        epoch: Option<i64>,
        mut operation: Operation<T, E>,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let mut result = None;
        if let (Engine::Sqlite(sqlite), Mode::Quick) = (&self.engine, mode) {
            sqlite.read(name, epoch, &mut |tx| result = Some(operation(tx)))?;
        } else {
            let (job, done, slot) = Job::new(name, epoch, operation);
            self.finish(job, done, mode).await?;
            result = slot.take();
        }
        result.unwrap_or_else(|| Err(Error::Internal("no answer".to_owned()).into()))
    }

    /// Queues an operation, and waits until it has finished.
    async fn finish(&self, job: Job, done: oneshot::Receiver<()>, mode: Mode) -> Result<(), Error> {
        let class = match (self.class, mode) {
            (Class::Ordinary, Mode::Long) => Class::Heavy,
            (class, _) => class,
        };
        let ticket = job.ticket();
        match &self.engine {
            Engine::Sqlite(sqlite) if mode.is_write() => sqlite.write(job, class)?,
            Engine::Sqlite(sqlite) => sqlite.read_long(job, class)?,
            Engine::Postgres(postgres) => postgres.run(job, mode, class)?,
        }
        let waiter = Waiter { ticket, queue: self.queue(mode) };
        let finished = if class == Class::Background {
            done.await
        } else {
            waiter.queue.await_answer(JobKind::of(class, mode), &waiter.ticket, done).await?
        };
        // only a thread that panicked sends nothing: its changes until then are unknown
        finished.map_err(|_| {
            let why = "a thread of the store broke down".to_owned();
            if mode.is_write() { Error::Unknown(why) } else { Error::Unavailable(why) }
        })
    }

    /// The security epoch, read after this call begins. On PostgreSQL concurrent callers share one read; on
    /// SQLite the process knows it.
    ///
    /// # Errors
    /// The database's; [`Error::Busy`].
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method itself is of one lifetime")]
    pub async fn epoch(&self) -> Result<i64, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(sqlite.epoch()),
            Engine::Postgres(_) if self.class == Class::Background => {
                self.run("SecurityEpoch", Mode::Quick, None, |tx| tx.epoch()).await
            }
            Engine::Postgres(postgres) => postgres.epoch().await,
        }
    }

    fn queue(&self, mode: Mode) -> &Queue {
        match &self.engine {
            Engine::Sqlite(sqlite) if mode.is_write() => &sqlite.writing,
            Engine::Sqlite(sqlite) => &sqlite.reading,
            Engine::Postgres(postgres) => &postgres.queue,
        }
    }

    /// Waits until this process has committed something since `seen`, which an earlier call returned; at once without it. Commits
    /// that [`Tx::note_routine`] names do not count.
    pub async fn committed_since(&self, seen: Option<u64>) -> u64 {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.commits().changed_since(seen).await,
            Engine::Postgres(postgres) => postgres.commits().changed_since(seen).await,
        }
    }

    /// Whether other processes may write to the database, too. An embedded one has one process.
    pub const fn is_shared(&self) -> bool {
        matches!(self.engine, Engine::Postgres(_))
    }

    /// Whether the store can serve, as last observed.
    pub fn health(&self) -> Health {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.health(),
            Engine::Postgres(postgres) => postgres.health(),
        }
    }

    /// How far the reference clock is ahead of `now`, this process's time, in milliseconds. The reference is
    /// the database server's clock, or the monotonic time since the start where there is none.
    pub fn clock_offset(&self, now: i64) -> i64 {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.clock_offset(now),
            Engine::Postgres(postgres) => postgres.clock_offset(now),
        }
    }

    /// The number of long reads that can run at once.
    pub fn long_places(&self) -> usize {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.long_read_slots,
            Engine::Postgres(postgres) => postgres.queue.heavy_limit(),
        }
    }

    /// Figures of the store, for metrics.
    pub fn figures(&self) -> Figures {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.figures(),
            Engine::Postgres(postgres) => postgres.figures(),
        }
    }

    /// Reports to `observer` how long each operation holds the writer, which all writes of SQLite share.
    /// PostgreSQL has none.
    pub fn observe_holds(&self, observer: HoldObserver) {
        if let Engine::Sqlite(sqlite) = &self.engine {
            sqlite.observe_holds(observer);
        }
    }

    /// Finishes running operations and closes the database. Blocks.
    pub fn close(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close(),
            Engine::Postgres(postgres) => postgres.close(),
        }
    }
}
