//! The embedded engine: readers on the thread that asks, one writer lane with group commit.

mod lane;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
};

use chancery_record::Value;
use rusqlite::{OpenFlags, config::DbConfig, types::ValueRef};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    Error, Figures, Limits, Row, Tx,
    job::{Job, attempt},
    migrate,
    tx::Engine,
};

/// Prepared statements kept on a connection.
const STATEMENTS: usize = 256;

/// One connection.
pub struct Connection(rusqlite::Connection);

impl Connection {
    fn open(path: &Path, read_only: bool) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let raw = rusqlite::Connection::open_with_flags(path, flags)?;
        // without it every new value may plan a statement anew once statistics exist
        raw.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        raw.set_prepared_statement_cache_capacity(STATEMENTS);
        raw.busy_timeout(std::time::Duration::from_secs(5))?;
        raw.pragma_update(None, "journal_mode", "WAL")?;
        raw.pragma_update(None, "synchronous", "FULL")?;
        raw.pragma_update(None, "foreign_keys", true)?;
        raw.pragma_update(None, "wal_autocheckpoint", 0)?;
        raw.pragma_update(None, "temp_store", "MEMORY")?;
        raw.pragma_update(None, "cache_size", if read_only { -16_384 } else { -65_536 })?;
        raw.pragma_update(None, "query_only", read_only)?;
        Ok(Self(raw))
    }

    pub fn query(
        &self,
        sql: &str,
        parameters: &[Value],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut statement = self.0.prepare_cached(sql)?;
        bind(&mut statement, parameters)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            each(&Row::Sqlite(row))?;
        }
        Ok(())
    }

    pub fn execute(&self, sql: &str, parameters: &[Value]) -> Result<u64, Error> {
        let mut statement = self.0.prepare_cached(sql)?;
        bind(&mut statement, parameters)?;
        Ok(statement.raw_execute()? as u64)
    }
}

fn bind(statement: &mut rusqlite::Statement<'_>, parameters: &[Value]) -> Result<(), Error> {
    for (place, parameter) in parameters.iter().enumerate() {
        let value = match parameter {
            Value::Null => ValueRef::Null,
            Value::Bool(value) => ValueRef::Integer((*value).into()),
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Id(id) => ValueRef::Blob(id.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        };
        statement.raw_bind_parameter(place + 1, rusqlite::types::ToSqlOutput::Borrowed(value))?;
    }
    Ok(())
}

/// The embedded store.
pub struct Sqlite {
    path: std::path::PathBuf,
    readers: Mutex<Vec<Connection>>,
    /// Long reads under way; bounded, because each keeps a snapshot and a thread.
    long: Arc<Semaphore>,
    lane: Mutex<Option<mpsc::Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    waiting: AtomicUsize,
    commits: AtomicU64,
    writes: AtomicU64,
    log_bytes: AtomicU64,
}

impl Sqlite {
    pub fn open(path: &Path, limits: Limits) -> Result<Arc<Self>, Error> {
        let writer = Connection::open(path, false)?;
        migrate_schema(&writer)?;
        let counters = Arc::new(Counters::default());
        let (lane, jobs) = mpsc::channel(limits.waiting);
        let threads = lane::start(path, writer, jobs, Arc::clone(&counters), limits.log_bytes)?;
        Ok(Arc::new(Self {
            path: path.to_owned(),
            readers: Mutex::default(),
            long: Arc::new(Semaphore::new(limits.connections.max(1))),
            lane: Mutex::new(Some(lane)),
            threads: Mutex::new(threads),
            counters,
        }))
    }

    /// Reads on this thread.
    pub fn read<T, E: From<Error>>(
        &self,
        name: &'static str,
        epoch: Option<i64>,
        operation: &mut dyn FnMut(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let reader = self.take_reader()?;
        reader.execute("BEGIN", &[])?;
        let mut tx = Tx::new(Engine::Sqlite(&reader));
        let mut answer = None;
        let outcome = attempt(name, epoch, &mut tx, &mut |tx| {
            answer = Some(operation(tx));
            true
        });
        reader.execute("COMMIT", &[])?;
        self.give_back(reader);
        outcome?;
        answer.unwrap_or_else(|| Err(Error::Internal("no answer".into()).into()))
    }

    /// Reads on a blocking thread.
    pub async fn read_long(self: &Arc<Self>, mut job: Job) -> Result<(), Error> {
        let permit = Arc::clone(&self.long).acquire_owned().await;
        let permit = permit.map_err(|_| Error::Unavailable("the store is closing".into()))?;
        let store = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let reader = match store.take_reader() {
                Ok(reader) => reader,
                Err(error) => return job.finish(Err(error)),
            };
            let outcome = reader
                .execute("BEGIN", &[])
                .and_then(|_| job.run(&mut Tx::new(Engine::Sqlite(&reader))).map(drop));
            if reader.execute("COMMIT", &[]).is_ok() {
                store.give_back(reader);
            }
            job.finish(outcome);
        });
        Ok(())
    }

    /// Hands a write to the lane.
    pub fn write(&self, job: Job) -> Result<(), Error> {
        let lane = self.lane.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lane.as_ref().ok_or_else(|| Error::Unavailable("the store is closing".into()))?;
        self.counters.waiting.fetch_add(1, Ordering::Relaxed);
        lane.try_send(job).map_err(|_| {
            self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            Error::Busy
        })
    }

    fn take_reader(&self) -> Result<Connection, Error> {
        let free = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(|| Connection::open(&self.path, true), Ok)
    }

    fn give_back(&self, reader: Connection) {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }

    pub fn figures(&self) -> Figures {
        Figures {
            waiting: self.counters.waiting.load(Ordering::Relaxed),
            commits: self.counters.commits.load(Ordering::Relaxed),
            writes: self.counters.writes.load(Ordering::Relaxed),
            retries: 0,
            log_bytes: self.counters.log_bytes.load(Ordering::Relaxed),
        }
    }

    pub fn close(&self) {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let threads: Vec<_> = self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

fn migrate_schema(writer: &Connection) -> Result<(), Error> {
    writer.0.execute_batch("BEGIN IMMEDIATE")?;
    writer.0.execute_batch(migrate::TABLE)?;
    let mut applied = Vec::new();
    writer.query("SELECT version FROM schema_migration", &[], &mut |row| {
        applied.push(row.int(0)?);
        Ok(())
    })?;
    migrate::migrate(false, &applied, |text| Ok(writer.0.execute_batch(text)?))?;
    writer.0.execute_batch("COMMIT")?;
    Ok(())
}
