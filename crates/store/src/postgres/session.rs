//! One connection, driven by the thread that uses it. Statements whose result nobody reads wait
//! and leave together with the next read or the commit. Nothing waits for a server for ever: what
//! gets no answer in time breaks the connection.

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

use super::{
    address::Place,
    opening::{Backend, Refusal, open},
    parameter::Parameter,
};
use crate::{Error, Mode, Row, error::is_loss, tx::Statement as Query};

/// Prepared statements kept on a connection. One more, and the one not used for longest is closed on the
/// server, too.
const STATEMENTS: NonZeroUsize = NonZeroUsize::new(512).unwrap();
/// Statements sent before their answers are awaited: bounds what waits in memory.
const FLUSH: usize = 256;
/// How long an answer may take: longer than a statement may run.
pub(super) const EXCHANGE: Duration = Duration::from_secs(35);
/// How long nothing was exchanged on a connection that has rested.
const RESTED: Duration = Duration::from_secs(1);

/// How writes begin: beside others, or alone. A lock on a table takes no snapshot, so what is written
/// sees all that was committed before it got the lock. Who waits for it is served in turn.
const WRITE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE write_gate IN ROW SHARE MODE";
const WRITE_ALONE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE write_gate IN EXCLUSIVE MODE";

pub struct Session {
    runtime: Runtime,
    client: Client,
    statements: LruCache<String, Statement>,
    queued: Vec<Queued>,
    open: bool,
    /// Whether no more can be asked of it.
    broken: Cell<bool>,
    /// Whether a statement of the open transaction failed.
    failed: Cell<bool>,
    /// What was exchanged with the server since [`Session::take_counts`].
    counts: Cell<Counts>,
    /// When something was exchanged last.
    used: Cell<Instant>,
    pub(super) patience: Duration,
    pub(super) generations: watch::Receiver<u64>,
    pub(super) generation: u64,
    pub backend: Backend,
    pub opened: Instant,
}

/// What was exchanged with a server.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// Statements that the server ran, or was asked to prepare.
    pub statements: u64,
    /// How often something was sent whose answer was waited for.
    pub round_trips: u64,
}

struct Queued {
    statement: Step,
    parameters: Vec<Value>,
    expect: Expect,
}

enum Step {
    /// Text of a transaction statement.
    Plain(&'static str),
    Prepared(Statement),
}

/// What a queued statement must find. It may leave together with the commit, so a wrong finding
/// must be a failure of the statement itself: a division by zero, which spoils the transaction.
#[derive(Clone, Copy)]
enum Expect {
    Anything,
    OneRow,
    Epoch,
}

const EPOCH_IS: &str = "SELECT 1 / (CASE WHEN value = ?1 THEN 1 ELSE 0 END) FROM security_epoch";

/// A query that begins with the check of the epoch, whose parameter is the last one: one statement instead
/// of two. The condition names no column of the query, so the server judges it before it looks for a row.
fn checking_epoch(sql: &str, parameters: usize) -> String {
    let check = EPOCH_IS.replace("?1", &format!("?{}", parameters + 1));
    format!("SELECT q.* FROM ({sql}) q WHERE ({check}) = 1")
}

impl Session {
    /// Opens a connection, with handshake and settings, within a time.
    pub fn open(
        place: &Place,
        patience: Duration,
        generations: watch::Receiver<u64>,
    ) -> Result<Self, Refusal> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Refusal::passing(error.to_string()))?;
        let generation = *generations.borrow();
        let opened = runtime.block_on(async {
            let opening = timeout(patience, open(place));
            opening
                .await
                .unwrap_or_else(|_| Err(Refusal::passing("the server did not answer in time".into())))
        });
        let (client, backend) = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                // a name that is still looked up would be waited for
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
            generations,
            generation,
            backend,
            opened: Instant::now(),
        })
    }

    /// Whether it is over, as far as what arrived meanwhile tells. Before a read that is looked at only where
    /// the connection rested: the loss of one that was just used shows by using it, and a read is asked again.
    pub fn is_closed(&self, mode: Mode) -> bool {
        if mode == Mode::Write || self.used.get().elapsed() > RESTED {
            self.runtime.block_on(async {
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
            });
        }
        self.broken.get() || self.client.is_closed() || *self.generations.borrow() != self.generation
    }

    /// What was exchanged since it was asked last.
    pub const fn take_counts(&self) -> Counts {
        self.counts.replace(Counts { statements: 0, round_trips: 0 })
    }

    fn note_round_trip(&self, statements: usize) {
        self.used.set(Instant::now());
        let Counts { statements: before, round_trips } = self.counts.get();
        let statements = before + u64::try_from(statements).unwrap_or(u64::MAX);
        self.counts.set(Counts { statements, round_trips: round_trips + 1 });
    }

    /// Waits for an answer, as long as one may take.
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

    /// What a failure means, and for this connection.
    fn told(&self, error: tokio_postgres::Error) -> Error {
        self.failed.set(true);
        if is_loss(&error) {
            self.broken.set(true);
        }
        error.into()
    }

    /// Begins what the mode needs: a quick read does without, because to begin and to end a
    /// transaction costs more than it does. A write that is `alone` waits until no other runs.
    pub fn begin(&mut self, mode: Mode, alone: bool) {
        self.queued.clear();
        self.failed.set(false);
        let text = match mode {
            Mode::Quick => return,
            Mode::Long => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Mode::Write if alone => WRITE_ALONE,
            Mode::Write => WRITE,
        };
        self.queued.push(Queued {
            statement: Step::Plain(text),
            parameters: Vec::new(),
            expect: Expect::Anything,
        });
        self.open = true;
    }

    pub fn queue(&mut self, sql: &str, parameters: Vec<Value>) -> Result<(), Error> {
        let statement = Step::Prepared(self.prepare(sql)?);
        self.push(Queued { statement, parameters, expect: Expect::Anything })
    }

    /// Queues a statement that must change a row.
    pub fn queue_one(&mut self, sql: &str, parameters: Vec<Value>) -> Result<(), Error> {
        let sql = format!("WITH changed AS ({sql} RETURNING 1) SELECT 1 / count(*) FROM changed");
        let statement = Step::Prepared(self.prepare(&sql)?);
        self.push(Queued { statement, parameters, expect: Expect::OneRow })
    }

    pub fn queue_epoch(&mut self, epoch: i64) -> Result<(), Error> {
        let statement = Step::Prepared(self.prepare(EPOCH_IS)?);
        let parameters = vec![Value::Int(epoch)];
        self.push(Queued { statement, parameters, expect: Expect::Epoch })
    }

    /// Sends what waits up to the check of the epoch.
    pub fn prove_epoch(&mut self) -> Result<(), Error> {
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
        executed.map_err(|error| self.told(error))
    }

    pub fn query_all(
        &mut self,
        queries: &[Query<'_>],
        each: &mut dyn FnMut(usize, &Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.send(queries, each)
    }

    /// Sends everything that waits and then the queries, all at once, and reads the answers in
    /// that order.
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
        let told = |place: usize, error: tokio_postgres::Error| {
            let is_stale = place == 0 && checking.is_some() && found_wrong(&error);
            let told = this.told(error);
            if is_stale { Error::Stale } else { told }
        };
        this.runtime.block_on(async {
            let mut sent: Vec<LocalBoxFuture<'_, Result<(), Error>>> = Vec::new();
            for entry in &queued {
                sent.push(started(entry.run(this)).await);
            }
            let mut streams = Vec::new();
            for (place, (statement, parameters)) in prepared.iter().enumerate() {
                let rows = this.client.query_raw(statement, parameters.iter().map(Parameter));
                streams.push(started(async move { rows.await.map_err(|error| told(place, error)) }).await);
            }
            for outcome in sent {
                this.within(outcome).await??;
            }
            for (place, rows) in streams.into_iter().enumerate() {
                let mut rows = pin!(this.within(rows).await??);
                loop {
                    // what has arrived is taken without a look at the time
                    let next = match rows.next().now_or_never() {
                        Some(next) => next,
                        None => this.within(rows.next()).await?,
                    };
                    let Some(row) = next else { break };
                    each(place, &Row::Postgres(&row.map_err(|error| told(place, error))?))?;
                }
            }
            Ok(())
        })
    }

    /// Takes the check of the epoch out of what waits where it is all that waits, to be made with the first
    /// of these queries: that one's text and parameters.
    fn begin_with_epoch(&mut self, queries: &[Query<'_>]) -> Option<(String, Vec<Value>)> {
        let [Queued { expect: Expect::Epoch, .. }] = self.queued.as_slice() else { return None };
        let (sql, parameters) = queries.first()?;
        let check = self.queued.pop()?;
        let sql = checking_epoch(sql, parameters.len());
        Some((sql, parameters.iter().cloned().chain(check.parameters).collect()))
    }

    /// Commits. Once the word for it may have been sent, the loss of the connection leaves open
    /// whether it was done: [`Error::Unknown`], whichever answer it was that did not come.
    pub fn commit(&mut self) -> Result<(), Error> {
        if self.failed.get() {
            self.roll_back()?;
            return Err(Error::Internal("an operation passed over a statement that failed".into()));
        }
        self.queued.push(Queued {
            statement: Step::Plain("COMMIT"),
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
                // what could not even be sent must not be left out of what is committed
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

    /// Runs text of several statements.
    pub(super) fn batch(&self, text: &str) -> Result<(), Error> {
        self.note_round_trip(count_statements(text));
        let done = self.runtime.block_on(self.within(self.client.batch_execute(text)))?;
        done.map_err(|error| self.told(error))
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
        // what waits goes first: a failed statement must not be hidden by a failed prepare
        if self.queued.len() > 1 {
            self.flush()?;
        }
        let text = sql.replace('?', "$");
        self.note_round_trip(1);
        let prepared = self.runtime.block_on(self.within(self.client.prepare(&text)))?;
        let statement = prepared.map_err(|error| self.told(error))?;
        self.statements.put(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Polls once, which is what sends a request.
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
            Step::Plain(text) => count_statements(text),
            Step::Prepared(_) => 1,
        }
    }

    async fn run(&self, session: &Session) -> Result<(), Error> {
        let outcome = match &self.statement {
            Step::Plain(text) => session.client.batch_execute(text).await,
            Step::Prepared(statement) => {
                let parameters = self.parameters.iter().map(Parameter);
                session.client.execute_raw(statement, parameters).await.map(drop)
            }
        };
        outcome.map_err(|error| {
            let is_wrong = found_wrong(&error);
            let told = session.told(error);
            match self.expect {
                Expect::OneRow if is_wrong => Error::Retry,
                Expect::Epoch if is_wrong => Error::Stale,
                _ => told,
            }
        })
    }
}

/// The statements of a text that has several.
fn count_statements(text: &str) -> usize {
    text.split(';').filter(|statement| !statement.trim().is_empty()).count()
}

fn found_wrong(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::DIVISION_BY_ZERO)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{EXCHANGE, STATEMENTS};
    use crate::{
        Error, Mode,
        postgres::{
            opening::SETTINGS,
            servers::{OPENING, Servers},
        },
    };

    fn servers() -> Servers {
        let cluster = std::env::var("CHANCERY_TEST_POSTGRES").expect("set by scripts/test");
        Servers::new(&format!("{cluster}/postgres"), false).unwrap()
    }

    /// What is used all the time stays prepared, and what gives way is closed on the server, too.
    #[test]
    fn one_statement_too_many_costs_one() {
        let servers = servers();
        let mut session = servers.open(OPENING).unwrap();
        let mut ask = |text: &str| {
            let mut found = 0;
            let read = session.query_all(&[(text, &[])], &mut |_, row| {
                found = row.int(0)?;
                Ok(())
            });
            read.unwrap();
            found
        };
        let count = "SELECT count(*) FROM pg_prepared_statements";
        let first = "SELECT (extract(epoch FROM prepare_time) * 1000000)::bigint FROM pg_prepared_statements \
                     ORDER BY prepare_time LIMIT 1";
        let began = ask(first);
        for number in 0..2 * STATEMENTS.get() {
            ask(&format!("SELECT {number}::bigint"));
            assert_eq!(ask(first), began, "after {number} others it is the same");
        }
        assert_eq!(ask(count), i64::try_from(STATEMENTS.get()).unwrap());
    }

    /// Section 2: an exchange has the time of a statement and 5 seconds more.
    #[test]
    fn an_exchange_outlasts_a_statement() {
        let rest = SETTINGS.split("statement_timeout = ").nth(1).unwrap();
        let statement = rest.split(';').next().unwrap().parse().unwrap();
        assert_eq!(EXCHANGE, Duration::from_millis(statement) + Duration::from_secs(5));
    }

    /// Section 2: what gets no answer in its time is given up with its connection; at a commit nobody knows then.
    #[test]
    fn an_exchange_has_its_time() {
        let servers = servers();
        let sleep = "SELECT 1 FROM pg_sleep(10)";
        let mut session = servers.open(OPENING).unwrap();
        assert_eq!(session.patience, EXCHANGE);
        session.patience = Duration::from_millis(50);
        let Err(Error::Unavailable(why)) = session.query_all(&[(sleep, &[])], &mut |_, _| Ok(())) else {
            panic!("it is not waited for")
        };
        assert!(why.contains("did not answer in time") && session.is_closed(Mode::Write), "{why}");
        let mut session = servers.open(OPENING).unwrap();
        session.begin(Mode::Long, false);
        session.queue(sleep, Vec::new()).unwrap();
        session.patience = Duration::from_millis(50);
        let Err(Error::Unknown(why)) = session.commit() else { panic!("it is not waited for") };
        assert!(why.contains("did not answer in time") && session.is_closed(Mode::Write), "{why}");
    }
}
