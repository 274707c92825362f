//! The embedded engine: short reads on the calling thread, one writer lane with group commit.

mod checkpointer;
mod files;
mod lane;
mod readers;
mod whole;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

pub use whole::{back_up, check_file, refuse_foreign};

use crate::{
    Class, Error, Figures, Health, HoldObserver, Mode, Settings, Tx,
    clock::{self, Anchor},
    commits::Commits,
    connection::sqlite::{Connection, ConnectionLimits},
    job::{Job, attempt},
    migrate,
    queue::{Bounds, Queue},
    record_hold,
    tx::Engine,
};

/// Page cache of all connections for short reads together, and the minimum of each, in KiB.
const QUICK_CACHE: (i64, i64) = (64 << 10, 4 << 10);
/// The writer's limits, and those of a connection for a single query.
const WRITER: ConnectionLimits = ConnectionLimits { cache_kib: 32 << 10, statements: 256 };
const SINGLE_USE: ConnectionLimits = ConnectionLimits { cache_kib: 2 << 10, statements: 16 };

/// The embedded store.
pub struct Sqlite {
    path: std::path::PathBuf,
    epoch: Arc<AtomicI64>,
    /// Connections for short reads: about one per worker.
    quick_readers: Mutex<Vec<Connection>>,
    quick: ConnectionLimits,
    pub long_read_slots: usize,
    /// Waiting writes.
    pub writing: Arc<Queue>,
    /// Waiting long reads.
    pub reading: Arc<Queue>,
    /// Whether there is a writer lane; a store opened for reading has none.
    writes: bool,
    /// Whether the file is a copy that no process opened before.
    pub is_copied: bool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    counters: Arc<Counters>,
    /// The reference clock: set when the store was opened.
    clock: Anchor,
}

#[derive(Default)]
struct Counters {
    commits: Commits,
    writes: AtomicU64,
    statements: AtomicU64,
    log_bytes: AtomicU64,
    /// Whether the last commit failed.
    failed: AtomicBool,
    /// Whether the disk's free space is below the reserve.
    is_full: AtomicBool,
    /// Whether the writer has ended.
    is_broken: AtomicBool,
    /// Whether the write-ahead log contains data that was erased since.
    has_erased: AtomicBool,
    /// The observer of how long operations hold the writer.
    observer: OnceLock<HoldObserver>,
}

impl Counters {
    /// Reports how long an operation held the writer.
    fn report_hold(&self, operation: &'static str, time: Duration) {
        record_hold(operation, time);
        if let Some(observer) = self.observer.get() {
            observer(operation, time);
        }
    }
}

impl Sqlite {
    pub fn open(path: &Path, settings: Settings) -> Result<Arc<Self>, Error> {
        files::restrict_permissions(path)?;
        let epoch = Arc::new(AtomicI64::new(0));
        let writer = Connection::open(path, false, WRITER, &epoch)?;
        let is_copied = whole::check_copied(&writer, path)?;
        if settings.migrate {
            migrate_schema(&writer)?;
        } else {
            migrate::check(&applied(&writer)?)?;
        }
        writer.reload_epoch()?;
        let mut sqlite = Self::reading(path, epoch, settings)?;
        (sqlite.writes, sqlite.is_copied) = (true, is_copied);
        let lane = lane::start(path, writer, &sqlite, settings)?;
        sqlite.threads.get_mut().unwrap_or_else(PoisonError::into_inner).extend(lane);
        Ok(Arc::new(sqlite))
    }

    /// Migrates the schema; returns the number of applied migrations.
    pub fn migrate(path: &Path) -> Result<usize, Error> {
        files::restrict_permissions(path)?;
        let writer = Connection::open(path, false, WRITER, &Arc::default())?;
        whole::check_copied(&writer, path)?;
        migrate_schema(&writer)
    }

    /// Opens a database that another process may be writing: there is no writer lane. `check` checks its
    /// schema.
    pub fn open_as_it_is(
        path: &Path,
        settings: Settings,
        check: fn(&migrate::AppliedSchema) -> Result<(), Error>,
    ) -> Result<Arc<Self>, Error> {
        let epoch = Arc::new(AtomicI64::new(0));
        let reader = Connection::open(path, true, SINGLE_USE, &epoch)?;
        check(&applied(&reader)?)?;
        reader.reload_epoch()?;
        Ok(Arc::new(Self::reading(path, epoch, settings)?))
    }

    pub fn has_sealed_keys(path: &Path) -> Result<bool, Error> {
        // a newly created file is empty
        if std::fs::metadata(path).map_or(true, |metadata| metadata.len() == 0) {
            return Ok(false);
        }
        let reader = Connection::open(path, true, SINGLE_USE, &Arc::default())?;
        Ok(reader.has_table("signing_key")? && reader.exists(migrate::ANY_SEALED_KEY)?)
    }

    /// A store without a writer lane.
    fn reading(path: &Path, epoch: Arc<AtomicI64>, settings: Settings) -> Result<Self, Error> {
        let clock = Anchor::default();
        clock.set(clock::now());
        let long_read_slots = settings.connections.max(1);
        let bounds = Bounds { waiting: settings.waiting, heavy: usize::MAX, writes: usize::MAX };
        let reading = Arc::new(Queue::new(bounds, true));
        let readers = readers::start(path, &epoch, &reading, long_read_slots)?;
        Ok(Self {
            path: path.to_owned(),
            epoch,
            quick_readers: Mutex::default(),
            quick: quick_share(),
            long_read_slots,
            // the writer lane runs them all
            writing: Arc::new(Queue::new(bounds, false)),
            reading,
            writes: false,
            is_copied: false,
            threads: Mutex::new(readers),
            counters: Arc::default(),
            clock,
        })
    }

    /// The database's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The security epoch that the lane published last: before the answer to the caller that advanced it.
    pub fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Reads on the calling thread. `run` stores its result itself.
    pub fn read(
        &self,
        name: &'static str,
        epoch: Option<i64>,
        run: &mut dyn FnMut(&mut Tx<'_>),
    ) -> Result<(), Error> {
        let reader = self.take_reader()?;
        reader.execute("BEGIN", &[])?;
        let outcome = attempt(name, epoch, &mut Tx::new(Engine::Sqlite(&reader)), &mut |tx| {
            run(tx);
            true
        });
        reader.execute("COMMIT", &[])?;
        self.quick_readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        outcome.map(drop)
    }

    /// The commits of this process.
    pub fn commits(&self) -> &Commits {
        &self.counters.commits
    }

    /// Queues a long read.
    pub fn read_long(&self, job: Job, class: Class) -> Result<(), Error> {
        self.reading.push(job, Mode::Long, class)
    }

    /// Queues a write for the lane.
    pub fn write(&self, job: Job, class: Class) -> Result<(), Error> {
        if self.counters.is_broken.load(Ordering::Relaxed) {
            return Err(Error::Unavailable("the writer is gone".into()));
        }
        if !self.writes {
            return Err(Error::Unavailable("the database was opened to be read".into()));
        }
        self.writing.push(job, Mode::Write, class)
    }

    /// The health, from the last commit and the free space.
    pub fn health(&self) -> Health {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is(&self.counters.is_broken) {
            Health::Unavailable
        } else if is(&self.counters.is_full) {
            Health::ReadOnly
        } else if is(&self.counters.failed) {
            Health::Unavailable
        } else {
            Health::Ready
        }
    }

    /// How far the monotonic time since the start is ahead of `now`, in milliseconds.
    pub fn clock_offset(&self, now: i64) -> i64 {
        self.clock.ahead_of(now)
    }

    /// Reports to `observer` how long each operation holds the writer; the first observer remains.
    pub fn observe_holds(&self, observer: HoldObserver) {
        let _ = self.counters.observer.set(observer);
    }

    fn take_reader(&self) -> Result<Connection, Error> {
        let free = self.quick_readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(|| Connection::open(&self.path, true, self.quick, &self.epoch), Ok)
    }

    pub fn figures(&self) -> Figures {
        Figures {
            waiting: self.writing.waiting() + self.reading.waiting(),
            commits: self.counters.commits.total(),
            writes: self.counters.writes.load(Ordering::Relaxed),
            retries: 0,
            shed: self.writing.shed() + self.reading.shed(),
            log_bytes: self.counters.log_bytes.load(Ordering::Relaxed),
            statements: self.counters.statements.load(Ordering::Relaxed),
            round_trips: 0,
        }
    }

    pub fn close(&self) {
        // the lane ends when nothing waits any more, and the checkpoints end after it
        self.writing.close();
        self.reading.close();
        self.quick_readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let threads: Vec<_> = self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// The limits of a connection for short reads: there are about as many as processors.
fn quick_share() -> ConnectionLimits {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (all, least) = QUICK_CACHE;
    ConnectionLimits { cache_kib: (all / i64::try_from(workers).unwrap_or(all)).max(least), statements: 256 }
}

/// Migrates the schema, each migration in its own transaction; returns the number applied. A current schema is
/// only read.
fn migrate_schema(writer: &Connection) -> Result<usize, Error> {
    let before = applied(writer)?;
    let pending = migrate::pending(&before)?;
    if !pending.is_empty() {
        writer.raw.execute_batch(migrate::TABLE)?;
    }
    for migration in &pending {
        let began = Instant::now();
        let (text, record) = (migrate::text_for(migration, false), migrate::record(migration.version));
        writer.raw.execute_batch(&format!("BEGIN IMMEDIATE; {text}\n; {record} COMMIT"))?;
        if !before.migrations.is_empty() {
            migrate::report(migration, began.elapsed());
        }
    }
    let checksums = migrate::record_checksums(&applied(writer)?);
    if !checksums.is_empty() {
        writer.raw.execute_batch(&format!("BEGIN IMMEDIATE; {checksums} COMMIT"))?;
    }
    Ok(pending.len())
}

/// The applied migrations; none where the schema is empty.
fn applied(connection: &Connection) -> Result<migrate::AppliedSchema, Error> {
    if !connection.has_table("schema_migration")? {
        return Ok(migrate::AppliedSchema::default());
    }
    migrate::read_applied(|text, each| connection.query(text, &[], each))
}
