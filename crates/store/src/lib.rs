//! One transaction over two engines: embedded SQLite and PostgreSQL.
//!
//! An operation is a synchronous closure over a [`Tx`]. It may run twice: a serialization
//! failure runs it again from the start. SQL is one text for both engines, with `?1`, `?2` as
//! parameters. Nothing outside this crate and the migration files knows an engine by name.

mod error;
mod job;
mod migrate;
mod postgres;
mod row;
mod sqlite;
mod tx;

use std::{path::PathBuf, sync::Arc};

pub use error::Error;
pub use row::Row;
pub use tx::Tx;

use job::Job;

/// Where the data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A SQLite database file.
    Sqlite(PathBuf),
    /// A PostgreSQL connection string (`postgres://...`).
    Postgres(String),
}

/// How much of everything the store may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections: to PostgreSQL in all, to SQLite for reads.
    pub connections: usize,
    /// Operations that may wait for the store; one more is refused.
    pub waiting: usize,
    /// Bytes of the SQLite write-ahead log beyond which writes wait for a checkpoint.
    pub log_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 16, waiting: 4096, log_bytes: 128 << 20 }
    }
}

/// How an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads little: on SQLite it runs on the worker that asks, in some microseconds, in one
    /// snapshot; on PostgreSQL statements that are sent together see what is committed when each
    /// begins, in their order.
    Quick,
    /// Reads much: on SQLite it runs on a blocking thread.
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
    /// Bytes of the SQLite write-ahead log after the last commit.
    pub log_bytes: u64,
}

/// A store: cheap to clone, closed by [`Store::close`].
#[derive(Clone)]
pub enum Store {
    /// Embedded.
    Sqlite(Arc<sqlite::Sqlite>),
    /// A server.
    Postgres(Arc<postgres::Postgres>),
}

impl Store {
    /// Opens the database and brings its schema up to date.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached, opened or migrated.
    pub fn open(target: &Target, limits: Limits) -> Result<Self, Error> {
        Ok(match target {
            Target::Sqlite(path) => Self::Sqlite(sqlite::Sqlite::open(path, limits)?),
            Target::Postgres(url) => Self::Postgres(postgres::Postgres::open(url, limits)?),
        })
    }

    /// Opens the database as it is, to be read beside a server that may be running. Writes are
    /// refused.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot be reached or opened, or its schema is an older one.
    pub fn open_to_read(target: &Target, limits: Limits) -> Result<Self, Error> {
        Ok(match target {
            Target::Sqlite(path) => Self::Sqlite(sqlite::Sqlite::open_to_read(path, limits)?),
            Target::Postgres(url) => Self::Postgres(postgres::Postgres::open_to_read(url, limits)?),
        })
    }

    /// The engine's name, for logs and the benchmark.
    pub const fn engine(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Runs an operation in a transaction. It commits when the closure answers `Ok`, unless
    /// [`Tx::only_try`] was called, and rolls back otherwise. The answer leaves only after the
    /// commit is durable.
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
        if let (Self::Sqlite(sqlite), Mode::Quick) = (self, mode) {
            return sqlite.read(name, epoch, &mut operation);
        }
        let (job, answer) = Job::new(name, epoch, operation);
        match (self, mode) {
            (Self::Sqlite(sqlite), Mode::Write) => sqlite.write(job)?,
            (Self::Sqlite(sqlite), _) => sqlite.read_long(job).await?,
            (Self::Postgres(postgres), mode) => postgres.run(job, mode).await?,
        }
        answer.await.unwrap_or_else(|_| Err(Error::Unavailable("the store is closing".into()).into()))
    }

    /// Figures for metrics.
    pub fn figures(&self) -> Figures {
        match self {
            Self::Sqlite(sqlite) => sqlite.figures(),
            Self::Postgres(postgres) => postgres.figures(),
        }
    }

    /// Finishes what runs and closes the database. Blocks.
    pub fn close(&self) {
        match self {
            Self::Sqlite(sqlite) => sqlite.close(),
            Self::Postgres(postgres) => postgres.close(),
        }
    }
}
