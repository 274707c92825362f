//! One connection, driven by the thread that uses it. Statements whose result nobody reads wait
//! and leave together with the next read or the commit.

use std::{collections::HashMap, pin::pin, task::Poll, time::Duration};

use chancery_record::Value;
use futures_util::{StreamExt as _, future::LocalBoxFuture};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{
    Client, Config, NoTls, Statement,
    error::SqlState,
    types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked},
};

use crate::{Error, Mode, Row, migrate, tx::Statement as Query};

/// Prepared statements kept on a connection.
const STATEMENTS: usize = 512;
/// Statements sent before their answers are awaited: bounds what waits in memory.
const FLUSH: usize = 256;

/// No statement runs for ever, no forgotten transaction stays, and a prepared statement is planned
/// once: planning anew for each value costs more than it gains, and plans that do not change are
/// plans that can be relied on. Pages are taken to cost the same wherever they are: disks do not
/// seek any more, and a plan that reads a whole table to save some look-ups does.
const SETTINGS: &str = "-c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000 \
    -c plan_cache_mode=force_generic_plan -c random_page_cost=1.1";

/// How writes begin: beside others, or alone. A lock on a table takes no snapshot, so what is written
/// sees all that was committed before it got the lock. Who waits for it is served in turn.
const WRITE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE write_gate IN ROW SHARE MODE";
const WRITE_ALONE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE write_gate IN EXCLUSIVE MODE";

pub fn config(url: &str) -> Result<Config, Error> {
    let mut config: Config =
        url.parse().map_err(|error: tokio_postgres::Error| Error::Unavailable(error.to_string()))?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    if config.get_options().is_none() {
        config.options(SETTINGS);
    }
    if config.get_application_name().is_none() {
        config.application_name("chancery");
    }
    Ok(config)
}

pub struct Session {
    runtime: Runtime,
    client: Client,
    statements: HashMap<String, Statement>,
    queued: Vec<Queued>,
    open: bool,
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

impl Session {
    pub fn open(config: &Config) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        let (client, connection) = runtime
            .block_on(config.connect(NoTls))
            // whatever refuses a connection, nothing was changed
            .map_err(|error| Error::Unavailable(Error::from(error).to_string()))?;
        runtime.spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(%error, "database connection lost");
            }
        });
        Ok(Self { runtime, client, statements: HashMap::new(), queued: Vec::new(), open: false })
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Begins what the mode needs: a quick read does without, because to begin and to end a
    /// transaction costs more than it does. A write that is `alone` waits until no other runs.
    pub fn begin(&mut self, mode: Mode, alone: bool) {
        self.queued.clear();
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
        Ok(self.runtime.block_on(self.client.execute_raw(&statement, parameters))?)
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
        let prepared: Vec<(Statement, &[Value])> = queries
            .iter()
            .map(|(sql, parameters)| Ok((self.prepare(sql)?, *parameters)))
            .collect::<Result<_, Error>>()?;
        let queued = std::mem::take(&mut self.queued);
        let client = &self.client;
        self.runtime.block_on(async {
            let mut sent: Vec<LocalBoxFuture<'_, Result<(), Error>>> = Vec::new();
            for entry in &queued {
                sent.push(started(entry.run(client)).await);
            }
            let mut streams = Vec::new();
            for (statement, parameters) in &prepared {
                let rows = client.query_raw(statement, parameters.iter().map(Parameter));
                streams.push(started(async { Ok(rows.await?) }).await);
            }
            for outcome in sent {
                outcome.await?;
            }
            for (place, rows) in streams.into_iter().enumerate() {
                let mut rows = pin!(rows.await?);
                while let Some(row) = rows.next().await {
                    each(place, &Row::Postgres(&row?))?;
                }
            }
            Ok(())
        })
    }

    pub fn commit(&mut self) -> Result<(), Error> {
        self.queued.push(Queued {
            statement: Step::Plain("COMMIT"),
            parameters: Vec::new(),
            expect: Expect::Anything,
        });
        let last = self.queued.len() - 1;
        let queued = std::mem::take(&mut self.queued);
        let client = &self.client;
        let outcome = self.runtime.block_on(async {
            let mut sent = Vec::new();
            for entry in &queued {
                sent.push(started(entry.run(client)).await);
            }
            for (place, outcome) in sent.into_iter().enumerate() {
                outcome.await.map_err(|error| match error {
                    Error::Unavailable(why) if place == last => Error::Unknown(why),
                    other => other,
                })?;
            }
            Ok(())
        });
        self.open = outcome.is_err();
        outcome
    }

    pub fn roll_back(&mut self) -> Result<(), Error> {
        self.queued.clear();
        if self.open {
            self.open = false;
            self.runtime.block_on(self.client.batch_execute("ROLLBACK"))?;
        }
        Ok(())
    }

    /// Ends a transaction that only read.
    pub fn end(&mut self) -> Result<(), Error> {
        self.roll_back()
    }

    pub fn migrate(&mut self) -> Result<(), Error> {
        let client = &self.client;
        self.runtime.block_on(async {
            // one process migrates, the others wait
            client.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(4848110241)").await?;
            client.batch_execute(migrate::TABLE).await?;
            let rows = client.query(migrate::APPLIED, &[]).await?;
            let applied = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
            let mut texts = Vec::new();
            migrate::migrate(true, &applied, |text| {
                texts.push(text.to_owned());
                Ok(())
            })?;
            for text in texts {
                client.batch_execute(&text).await?;
            }
            client.batch_execute("COMMIT").await?;
            Ok(())
        })
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        // what waits goes first: a failed statement must not be hidden by a failed prepare
        if self.queued.len() > 1 {
            self.flush()?;
        }
        let statement = self.runtime.block_on(self.client.prepare(&sql.replace('?', "$")))?;
        self.statements.insert(sql.to_owned(), statement.clone());
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
    async fn run(&self, client: &Client) -> Result<(), Error> {
        let statement = match &self.statement {
            Step::Plain(text) => return Ok(client.batch_execute(text).await?),
            Step::Prepared(statement) => statement,
        };
        let parameters = self.parameters.iter().map(Parameter);
        let Err(error) = client.execute_raw(statement, parameters).await else { return Ok(()) };
        Err(match self.expect {
            Expect::OneRow if found_wrong(&error) => Error::Retry,
            Expect::Epoch if found_wrong(&error) => Error::Stale,
            _ => error.into(),
        })
    }
}

fn found_wrong(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::DIVISION_BY_ZERO)
}

/// A value as a parameter of whatever type the statement wants.
#[derive(Debug)]
struct Parameter<'a>(&'a Value);

type Encoded = Result<IsNull, Box<dyn std::error::Error + Sync + Send>>;

impl ToSql for Parameter<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Encoded {
        match self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Bool(value) => value.to_sql(kind, out),
            Value::Int(value) if *kind == Type::BOOL => (*value != 0).to_sql(kind, out),
            Value::Int(value) if *kind == Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
            Value::Int(value) => value.to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
            Value::Id(id) => id.to_sql(kind, out),
            Value::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
