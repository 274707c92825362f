//! One connection, driven by the thread that uses it. Statements without a read result are queued and sent with
//! the next read or the commit. Every wait is bounded: a missing answer breaks the connection.

pub mod address;
pub mod opening;
mod parameter;
mod tls;

use std::{
    cell::Cell,
    num::NonZeroUsize,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use chancery_record::Value;
use futures_util::{FutureExt as _, StreamExt as _, future::LocalBoxFuture};
use lru::LruCache;
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    time::{sleep, timeout},
};
use tokio_postgres::{Client, Statement, error::SqlState};

use address::HostConfig;
use opening::{Backend, ConnectionRefusal, open};
use parameter::Parameter;

use super::Statement as Query;
use crate::{Error, Mode, Row, error::is_loss};

/// Prepared statements cached per connection. Beyond that the least recently used one is closed on the server,
/// too.
const STATEMENTS: NonZeroUsize = NonZeroUsize::new(512).unwrap();
/// Statements sent before their answers are read: bounds memory.
const FLUSH: usize = 256;
/// The timeout of an answer: longer than a statement may run.
pub const EXCHANGE: Duration = Duration::from_secs(35);
/// A connection without traffic for this long counts as idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// What a write waits for when it begins. A table lock takes no snapshot, so a write sees all that was committed before it got
/// the lock. Waiters get the lock in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Exclusive writes.
    Shared,
    /// Exclusive writes, and others that advance the security epoch.
    Rights,
    /// All other writes.
    Exclusive,
}

impl Gate {
    const fn begin(self) -> &'static str {
        match self {
            Self::Shared => "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE write_gate IN ROW SHARE MODE",
            // of the modes that conflict with themselves, the weakest: it does not conflict with ROW SHARE
            Self::Rights => {
                "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE write_gate IN SHARE UPDATE EXCLUSIVE MODE"
            }
            Self::Exclusive => "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE write_gate IN EXCLUSIVE MODE",
        }
    }
}

pub struct Session {
    runtime: Runtime,
    client: Client,
    statements: LruCache<String, Statement>,
    queued: Vec<Queued>,
    open: bool,
    /// Whether the connection is unusable.
    broken: Cell<bool>,
    /// Whether a statement of the open transaction failed.
    failed: Cell<bool>,
    /// Statements and round trips since [`Session::take_counts`].
    counts: Cell<Counts>,
    /// The time of the last exchange.
    used: Cell<Instant>,
    pub patience: Duration,
    /// How long a step of a migration waits for locks in total.
    pub lock_wait: Duration,
    pub generations: watch::Receiver<u64>,
    pub generation: u64,
    pub backend: Backend,
    pub opened: Instant,
}

/// Statements and round trips.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// Statements that the server ran or prepared.
    pub statements: u64,
    /// Waits for an answer.
    pub round_trips: u64,
}

struct Queued {
    statement: QueuedStatement,
    parameters: Vec<Value>,
    expect: Expect,
}

enum QueuedStatement {
    /// A transaction statement, sent as text.
    Plain(&'static str),
    Prepared(Statement),
}

/// The row count that a queued statement must report. It may be sent together with the commit, so a wrong count
/// must fail in the statement itself: a division by zero, which aborts the transaction.
#[derive(Clone, Copy)]
enum Expect {
    Anything,
    OneRow,
    Epoch,
}

const EPOCH_IS: &str = "SELECT 1 / (CASE WHEN value = ?1 THEN 1 ELSE 0 END) FROM security_epoch";

/// A query combined with the check of the epoch, whose parameter is the last one: one statement instead of two.
/// The condition names no column of the query, so the server evaluates it before it reads a row.
fn checking_epoch(sql: &str, parameters: usize) -> String {
    let check = EPOCH_IS.replace("?1", &format!("?{}", parameters + 1));
    format!("SELECT q.* FROM ({sql}) q WHERE ({check}) = 1")
}

impl Session {
    /// Opens a connection, with handshake and settings, within a timeout.
    pub fn open(
        host: &HostConfig,
        patience: Duration,
        generations: watch::Receiver<u64>,
    ) -> Result<Self, ConnectionRefusal> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ConnectionRefusal::transient(error.to_string()))?;
        let generation = *generations.borrow();
        let opened = runtime.block_on(async {
            let opening = timeout(patience, open(host));
            opening.await.unwrap_or_else(|_| {
                Err(ConnectionRefusal::transient("the server did not answer in time".into()))
            })
        });
        let (client, backend) = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                // dropping the runtime would wait for a host name that is still being resolved
                runtime.shutdown_background();
                return Err(refusal);
            }
        };
        Ok(Self {
            runtime,
            client,
            statements: LruCache::new(STATEMENTS),
            queued: Vec::new(),
            open: false,
            broken: Cell::new(false),
            failed: Cell::new(false),
            counts: Cell::default(),
            used: Cell::new(Instant::now()),
            patience: EXCHANGE,
            lock_wait: Duration::ZERO,
            generations,
            generation,
            backend,
            opened: Instant::now(),
        })
    }

    /// Whether the connection is closed, as far as received data shows. Before a read this is checked only
    /// where the connection was idle: the loss of one just used is detected on use, and a read is repeated.
    pub fn is_closed(&self, mode: Mode) -> bool {
        if mode.is_write() || self.used.get().elapsed() > IDLE_AFTER {
            self.runtime.block_on(async {
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
            });
        }
        self.broken.get() || self.client.is_closed() || *self.generations.borrow() != self.generation
    }

    /// The statements and round trips since the last call.
    pub const fn take_counts(&self) -> Counts {
        self.counts.replace(Counts { statements: 0, round_trips: 0 })
    }

    fn note_round_trip(&self, statements: usize) {
        self.used.set(Instant::now());
        let Counts { statements: before, round_trips } = self.counts.get();
        let statements = before + u64::try_from(statements).unwrap_or(u64::MAX);
        self.counts.set(Counts { statements, round_trips: round_trips + 1 });
    }

    /// Waits for an answer, up to the timeout.
    async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut generations = self.generations.clone();
        let why = tokio::select! {
            biased;
            done = work => return Ok(done),
            _ = generations.wait_for(|now| *now != self.generation) => "the database does not answer any more",
            () = sleep(self.patience) => "the database did not answer in time",
        };
        self.broken.set(true);
        Err(Error::Unavailable(why.into()))
    }

    /// Converts a driver's error, and marks the transaction or the connection as failed.
    fn classify(&self, error: tokio_postgres::Error) -> Error {
        self.failed.set(true);
        if is_loss(&error) {
            self.broken.set(true);
        }
        error.into()
    }

    /// Begins a transaction of this mode. A quick read has none, because its begin and end cost more than the
    /// read.
    pub fn begin(&mut self, mode: Mode, gate: Gate) {
        self.queued.clear();
        self.failed.set(false);
        let text = match mode {
            Mode::Quick => return,
            Mode::Long => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Mode::Write | Mode::WriteRights => gate.begin(),
        };
        self.queued.push(Queued {
            statement: QueuedStatement::Plain(text),
            parameters: Vec::new(),
            expect: Expect::Anything,
        });
        self.open = true;
    }

    pub fn queue(&mut self, sql: &str, parameters: Vec<Value>) -> Result<(), Error> {
        let statement = QueuedStatement::Prepared(self.prepare(sql)?);
        self.push(Queued { statement, parameters, expect: Expect::Anything })
    }

    /// Queues a statement that must change exactly one row.
    pub fn queue_one(&mut self, sql: &str, parameters: Vec<Value>) -> Result<(), Error> {
        let sql = format!("WITH changed AS ({sql} RETURNING 1) SELECT 1 / count(*) FROM changed");
        let statement = QueuedStatement::Prepared(self.prepare(&sql)?);
        self.push(Queued { statement, parameters, expect: Expect::OneRow })
    }

    /// Whether all statements until the end of the transaction read the same state.
    pub const fn has_snapshot(&self) -> bool {
        self.open
    }

    pub fn queue_epoch(&mut self, epoch: i64) -> Result<(), Error> {
        let statement = QueuedStatement::Prepared(self.prepare(EPOCH_IS)?);
        let parameters = vec![Value::Int(epoch)];
        self.push(Queued { statement, parameters, expect: Expect::Epoch })
    }

    /// Sends the queued statements up to the check of the epoch, and drops the rest.
    pub fn check_epoch(&mut self) -> Result<(), Error> {
        let check = self.queued.iter().position(|queued| matches!(queued.expect, Expect::Epoch));
        let Some(check) = check else { return Ok(()) };
        self.queued.truncate(check + 1);
        self.flush()
    }

    fn push(&mut self, queued: Queued) -> Result<(), Error> {
        self.queued.push(queued);
        if self.queued.len() >= FLUSH { self.flush() } else { Ok(()) }
    }

    pub fn flush(&mut self) -> Result<(), Error> {
        self.send(&[], &mut |_, _| Ok(())).map(drop)
    }

    pub fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<u64, Error> {
        self.flush()?;
        let statement = self.prepare(sql)?;
        let parameters = parameters.iter().map(Parameter);
        self.note_round_trip(1);
        let executed = self.runtime.block_on(self.within(self.client.execute_raw(&statement, parameters)))?;
        executed.map_err(|error| self.classify(error))
    }

    pub fn query_all(
        &mut self,
        queries: &[Query<'_>],
        each: &mut dyn FnMut(usize, &Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.send(queries, each)
    }

    /// Sends all queued statements and then the queries at once, and reads the answers in that order.
    fn send(
        &mut self,
        queries: &[Query<'_>],
        each: &mut dyn FnMut(usize, &Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.queued.is_empty() && queries.is_empty() {
            return Ok(());
        }
        let checking = self.begin_with_epoch(queries);
        let mut queries = queries.to_vec();
        if let (Some((sql, parameters)), Some(first)) = (&checking, queries.first_mut()) {
            *first = (sql.as_str(), parameters.as_slice());
        }
        let prepared: Vec<(Statement, &[Value])> = queries
            .iter()
            .map(|(sql, parameters)| Ok((self.prepare(sql)?, *parameters)))
            .collect::<Result<_, Error>>()?;
        let queued = std::mem::take(&mut self.queued);
        self.note_round_trip(queued.iter().map(Queued::statements).sum::<usize>() + prepared.len());
        let this = &*self;
        let failure = |index: usize, error: tokio_postgres::Error| {
            let is_stale = index == 0 && checking.is_some() && is_failed_check(&error);
            let classified = this.classify(error);
            if is_stale { Error::Stale } else { classified }
        };
        this.runtime.block_on(async {
            let mut sent: Vec<LocalBoxFuture<'_, Result<(), Error>>> = Vec::new();
            for entry in &queued {
                sent.push(started(entry.run(this)).await);
            }
            let mut streams = Vec::new();
            for (index, (statement, parameters)) in prepared.iter().enumerate() {
                let rows = this.client.query_raw(statement, parameters.iter().map(Parameter));
                streams.push(started(async move { rows.await.map_err(|error| failure(index, error)) }).await);
            }
            for outcome in sent {
                this.within(outcome).await??;
            }
            for (index, rows) in streams.into_iter().enumerate() {
                let mut rows = pin!(this.within(rows).await??);
                loop {
                    // rows that have arrived are read without checking the time
                    let next = match rows.next().now_or_never() {
                        Some(next) => next,
                        None => this.within(rows.next()).await?,
                    };
                    let Some(row) = next else { break };
                    each(index, &Row::Postgres(&row.map_err(|error| failure(index, error))?))?;
                }
            }
            Ok(())
        })
    }

    /// Where the check of the epoch is the only queued statement, removes it and returns the text and
    /// parameters of the first query combined with it.
    fn begin_with_epoch(&mut self, queries: &[Query<'_>]) -> Option<(String, Vec<Value>)> {
        let [Queued { expect: Expect::Epoch, .. }] = self.queued.as_slice() else { return None };
        let (sql, parameters) = queries.first()?;
        let check = self.queued.pop()?;
        let sql = checking_epoch(sql, parameters.len());
        Some((sql, parameters.iter().cloned().chain(check.parameters).collect()))
    }

    /// Commits. If the connection is lost once COMMIT may have been sent, the outcome is open:
    /// [`Error::Unknown`], whichever answer is missing.
    pub fn commit(&mut self) -> Result<(), Error> {
        if self.failed.get() {
            self.roll_back()?;
            return Err(Error::Internal("an operation passed over a statement that failed".into()));
        }
        self.queued.push(Queued {
            statement: QueuedStatement::Plain("COMMIT"),
            parameters: Vec::new(),
            expect: Expect::Anything,
        });
        let queued = std::mem::take(&mut self.queued);
        self.note_round_trip(queued.iter().map(Queued::statements).sum());
        let this = &*self;
        let outcome = this.runtime.block_on(async {
            let mut sent = Vec::new();
            for entry in &queued {
                sent.push(started(entry.run(this)).await);
                // a commit must not proceed without a statement that could not even be sent
                if this.failed.get() {
                    break;
                }
            }
            for outcome in sent {
                this.within(outcome).await??;
            }
            Ok(())
        });
        self.open = outcome.is_err();
        match outcome {
            Err(Error::Unavailable(why)) if self.broken.get() => Err(Error::Unknown(why)),
            outcome => outcome,
        }
    }

    /// Runs a text of several statements.
    pub fn batch(&self, text: &str) -> Result<(), Error> {
        self.note_round_trip(count_statements(text));
        let done = self.runtime.block_on(self.within(self.client.batch_execute(text)))?;
        done.map_err(|error| self.classify(error))
    }

    pub fn roll_back(&mut self) -> Result<(), Error> {
        self.queued.clear();
        if std::mem::take(&mut self.open) {
            if self.broken.get() {
                return Err(Error::Unavailable("the connection is lost".into()));
            }
            self.batch("ROLLBACK")?;
        }
        Ok(())
    }

    /// Ends a transaction that only read.
    pub fn end(&mut self) -> Result<(), Error> {
        self.roll_back()
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        // queued statements go first: a failed prepare must not hide a failed statement
        if self.queued.len() > 1 {
            self.flush()?;
        }
        let text = sql.replace('?', "$");
        self.note_round_trip(1);
        let prepared = self.runtime.block_on(self.within(self.client.prepare(&text)))?;
        let statement = prepared.map_err(|error| self.classify(error))?;
        self.statements.put(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Polls once, which sends a request.
async fn started<'a, T: 'a>(
    future: impl Future<Output = Result<T, Error>> + 'a,
) -> LocalBoxFuture<'a, Result<T, Error>> {
    let mut future: LocalBoxFuture<'a, Result<T, Error>> = Box::pin(future);
    let first = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
    match first {
        Poll::Ready(outcome) => Box::pin(std::future::ready(outcome)),
        Poll::Pending => future,
    }
}

impl Queued {
    fn statements(&self) -> usize {
        match &self.statement {
            QueuedStatement::Plain(text) => count_statements(text),
            QueuedStatement::Prepared(_) => 1,
        }
    }

    async fn run(&self, session: &Session) -> Result<(), Error> {
        let outcome = match &self.statement {
            QueuedStatement::Plain(text) => session.client.batch_execute(text).await,
            QueuedStatement::Prepared(statement) => {
                let parameters = self.parameters.iter().map(Parameter);
                session.client.execute_raw(statement, parameters).await.map(drop)
            }
        };
        outcome.map_err(|error| {
            let is_failed = is_failed_check(&error);
            let classified = session.classify(error);
            match self.expect {
                Expect::OneRow if is_failed => Error::Retry,
                Expect::Epoch if is_failed => Error::Stale,
                _ => classified,
            }
        })
    }
}

/// The number of statements in a text.
fn count_statements(text: &str) -> usize {
    text.split(';').filter(|statement| !statement.trim().is_empty()).count()
}

fn is_failed_check(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::DIVISION_BY_ZERO)
}

#[cfg(test)]
mod tests;
