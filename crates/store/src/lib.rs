//! One transaction over two engines: embedded SQLite and PostgreSQL.
//!
//! An operation is a synchronous closure over a [`Tx`]. It may run twice: a serialization
//! failure runs it again from the start. SQL is one text for both engines, with `?1`, `?2` as
//! parameters. Nothing outside this crate and the migration files knows an engine by name.

mod clock;
mod error;
mod figure;
mod guard;
mod health;
mod job;
mod migrate;
mod postgres;
mod queue;
pub mod raw;
mod row;
mod sqlite;
mod state;
mod tx;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

pub use error::Error;
pub use figure::{Figure, FigureSource, FigureUnit};
pub use guard::{broken, when_broken};
pub use health::Health;
pub use migrate::{checksums as migration_checksums, schema_version};
pub use row::Row;
pub use state::{StateTable, Write};
pub use tx::{EPOCH, Tx};

use job::{Job, Ticket};
use queue::{Kind, Queue};

/// Where the data is.
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
            // it may hold a password
            Self::Postgres(_) => formatter.write_str("Postgres(..)"),
        }
    }
}

/// How much of everything the store may use, and what it puts up with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Connections for requests: to PostgreSQL, to SQLite for long reads.
    pub connections: usize,
    /// Operations that may wait for the store; one more is refused.
    pub waiting: usize,
    /// Bytes of the SQLite write-ahead log beyond which writes wait for a checkpoint.
    pub log_bytes: u64,
    /// Free bytes on the disk of a SQLite database under which it is no longer ready.
    pub disk_reserve: u64,
    /// Whether PostgreSQL on another machine may be spoken to in the clear.
    pub insecure: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 16,
            waiting: 4096,
            log_bytes: 128 << 20,
            disk_reserve: 256 << 20,
            insecure: false,
        }
    }
}

/// Whom an operation is for: who goes first when there is much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Tokens and rights: without them nobody does anything.
    Urgent,
    /// All else.
    Ordinary,
    /// Long lists, batches and synchronizing: they get at most half of the lanes.
    Heavy,
    /// The server's own work: it has a place of its own and is never refused for load.
    Background,
}

/// How long an operation waits for its turn before it is refused.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it is waited from then on before it is looked again whether it is refused.
const ANOTHER_LOOK: Duration = Duration::from_millis(250);

/// How an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads little: on SQLite it runs on the worker that asks, in some microseconds, in one
    /// snapshot; on PostgreSQL statements that are sent together see what is committed when each
    /// begins, in their order.
    Quick,
    /// Reads much: on SQLite it runs on one of a fixed number of threads.
    Long,
    /// Writes.
    Write,
}

/// Figures about the store, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Operations that wait.
    pub waiting: usize,
    /// Commits since the start.
    pub commits: u64,
    /// Writes that those commits held.
    pub writes: u64,
    /// Operations that ran again after a serialization failure.
    pub retries: u64,
    /// Operations refused because there was too much to do.
    pub shed: u64,
    /// Bytes of the SQLite write-ahead log after the last commit.
    pub log_bytes: u64,
    /// Statements that PostgreSQL was sent for requests.
    pub statements: u64,
    /// How often requests waited for what they had sent to PostgreSQL.
    pub round_trips: u64,
}

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

    /// Opens the database and brings its schema up to date.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached, opened or migrated.
    pub fn open(target: &Target, settings: Settings) -> Result<Self, Error> {
        Ok(Self::of(match target {
            Target::Sqlite(path) => Engine::Sqlite(sqlite::Sqlite::open(path, settings)?),
            Target::Postgres(url) => Engine::Postgres(postgres::Postgres::open(url, settings)?),
        }))
    }

    /// Opens the database as it is, to be read beside a server that may be running. Writes are
    /// refused.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached or opened, or its schema is another one.
    pub fn open_to_read(target: &Target, settings: Settings) -> Result<Self, Error> {
        Ok(Self::of(match target {
            Target::Sqlite(path) => Engine::Sqlite(sqlite::Sqlite::open_to_read(path, settings)?),
            Target::Postgres(url) => Engine::Postgres(postgres::Postgres::open_to_read(url, settings)?),
        }))
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

    /// Runs an operation in a transaction. It commits when the closure answers `Ok`, unless
    /// [`Tx::only_try`] was called, and rolls back otherwise. The answer leaves only after the
    /// commit is durable.
    ///
    /// An operation that waited three seconds for its turn is refused where many wait or nobody is
    /// served, unless it is background work.
    ///
    /// `epoch`: what the caller knows to be the security epoch. When it is another by now, the
    /// operation does not run and the answer is [`Error::Stale`].
    ///
    /// # Errors
    /// The closure's own; [`Error`] as `E` when the store fails, is overloaded or unreachable.
    pub async fn run<T, E, F>(
        &self,
        name: &'static str,
        mode: Mode,
        epoch: Option<i64>,
        mut operation: F,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        if let (Engine::Sqlite(sqlite), Mode::Quick) = (&self.engine, mode) {
            return sqlite.read(name, epoch, &mut operation);
        }
        let class = match (self.class, mode) {
            (Class::Ordinary, Mode::Long) => Class::Heavy,
            (class, _) => class,
        };
        let (job, answer) = Job::new(name, epoch, operation);
        let ticket = job.ticket();
        match &self.engine {
            Engine::Sqlite(sqlite) if mode == Mode::Write => sqlite.write(job, class)?,
            Engine::Sqlite(sqlite) => sqlite.read_long(job, class)?,
            Engine::Postgres(postgres) => postgres.run(job, mode, class)?,
        }
        let waiter = Waiter { ticket, queue: self.queue(mode) };
        let answer = if class == Class::Background {
            answer.await
        } else {
            waiter.await_turn(Kind::of(class, mode), answer).await?
        };
        // only a thread that panicked gives no answer: who knows what it had done by then
        answer.unwrap_or_else(|_| {
            let why = "a thread of the store broke down".to_owned();
            Err(if mode == Mode::Write { Error::Unknown(why) } else { Error::Unavailable(why) }.into())
        })
    }

    /// The security epoch, read after this is asked. On PostgreSQL many who ask at once share one look; on
    /// SQLite it is known to the process.
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
            Engine::Sqlite(sqlite) if mode == Mode::Write => &sqlite.writing,
            Engine::Sqlite(sqlite) => &sqlite.reading,
            Engine::Postgres(postgres) => &postgres.queue,
        }
    }

    /// Whether it can serve, as it is known at this moment without asking.
    pub fn health(&self) -> Health {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.health(),
            Engine::Postgres(postgres) => postgres.health(),
        }
    }

    /// What a clock that can be relied on is ahead of `now`, this process's time, in milliseconds: that of
    /// the database's server, or how much time went by since the start where there is none.
    pub fn clock_offset(&self, now: i64) -> i64 {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.clock_offset(now),
            Engine::Postgres(postgres) => postgres.clock_offset(now),
        }
    }

    /// How many long reads run at once.
    pub fn long_places(&self) -> usize {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.long_places,
            Engine::Postgres(postgres) => postgres.queue.heavy_places(),
        }
    }

    /// Figures for metrics.
    pub fn figures(&self) -> Figures {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.figures(),
            Engine::Postgres(postgres) => postgres.figures(),
        }
    }

    /// Finishes what runs and closes the database. Blocks.
    pub fn close(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close(),
            Engine::Postgres(postgres) => postgres.close(),
        }
    }
}

/// Who waits for an answer. When nobody does any more, what did not begin is given up.
struct Waiter<'a> {
    ticket: Ticket,
    queue: &'a Queue,
}

impl Waiter<'_> {
    /// Waits for an answer, and no longer for its turn than is right.
    async fn await_turn<A>(
        &self,
        kind: Kind,
        mut answer: oneshot::Receiver<A>,
    ) -> Result<Result<A, oneshot::error::RecvError>, Error> {
        let (mut patience, began) = (PATIENCE, Instant::now());
        loop {
            match tokio::time::timeout(patience, &mut answer).await {
                Ok(answer) => return Ok(answer),
                Err(_) if self.ticket.is_running() => return Ok(answer.await),
                Err(_) if self.queue.is_stuck(kind, began.elapsed()) && self.ticket.give_up() => {
                    self.queue.note_shed();
                    return Err(Error::Busy);
                }
                Err(_) => patience = ANOTHER_LOOK,
            }
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.ticket.give_up();
        if self.ticket.is_given_up() {
            self.queue.sweep();
        }
    }
}
