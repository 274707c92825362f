//! PostgreSQL: a number of lanes, each a thread that owns one connection and drives it itself, so that a
//! statement costs no hop between threads.

mod epoch;
mod inquiry;
mod lane;
mod migration;
mod monitor;
mod servers;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use self::{
    epoch::SharedEpoch,
    lane::Lane,
    monitor::{Monitor, Stop},
    servers::{CONNECT_TIMEOUT, Servers},
};
use crate::{
    Class, Error, Figures, Health, Mode, Settings,
    commits::Commits,
    connection::postgres::{Session, address},
    guard::spawn,
    job::Job,
    migrate,
    queue::{Bounds, Queue, WorkerKind},
};

/// Connections for background work, and for the monitor, in addition to those for requests.
const BACKGROUND: usize = 2;
const MONITOR: usize = 1;
/// How long a start waits for an absent database.
const START: Duration = Duration::from_secs(30);

/// The store on a PostgreSQL server.
pub struct Postgres {
    servers: Arc<Servers>,
    pub queue: Arc<Queue>,
    epoch: SharedEpoch,
    counters: Arc<Counters>,
    stop: Arc<Stop>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Whether the store was opened for writing.
    writes: bool,
    monitor: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Counters {
    commits: Commits,
    retries: AtomicU64,
    statements: AtomicU64,
    round_trips: AtomicU64,
}

impl Postgres {
    /// The commits of this process.
    pub fn commits(&self) -> &Commits {
        &self.counters.commits
    }

    pub fn open(url: &str, settings: Settings) -> Result<Arc<Self>, Error> {
        let servers = Servers::new(url, settings.insecure)?;
        let mut session = await_database(&servers)?;
        refuse_shared(&session, &servers.open(CONNECT_TIMEOUT)?)?;
        let (required, allowed) = (settings.connections + BACKGROUND + MONITOR, session.max_connections()?);
        if i64::try_from(required).is_ok_and(|required| required > allowed) {
            return Err(Error::Unavailable(format!(
                "this server wants {required} connections, and the database has {allowed} for all: lower \
                 CHANCERY_DATABASE_CONNECTIONS, which is {}, or raise max_connections",
                settings.connections
            )));
        }
        if settings.migrate {
            session.migrate(settings.lock_wait)?;
        } else {
            migrate::check(&session.applied()?)?;
        }
        drop(session);
        let postgres = Self::start(servers, settings, BACKGROUND)?;
        let (servers, stop) = (Arc::clone(&postgres.servers), Arc::clone(&postgres.stop));
        let watch = move || Monitor::new(servers).run(&stop);
        let monitor = spawn("store-monitor".into(), watch, || {})?;
        *postgres.monitor.lock().unwrap_or_else(PoisonError::into_inner) = Some(monitor);
        Ok(postgres)
    }

    /// Migrates the schema; returns the number of applied migrations.
    pub fn migrate(url: &str, settings: Settings) -> Result<usize, Error> {
        await_database(&Servers::new(url, settings.insecure)?)?.migrate(settings.lock_wait)
    }

    /// Opens a database read-only. `check` checks its schema.
    pub fn open_as_it_is(
        url: &str,
        settings: Settings,
        check: fn(&migrate::AppliedSchema) -> Result<(), Error>,
    ) -> Result<Arc<Self>, Error> {
        let servers = Servers::new(url, settings.insecure)?;
        check(&servers.open(CONNECT_TIMEOUT)?.applied()?)?;
        Self::start(servers, settings, 0)
    }

    pub fn has_sealed_keys(url: &str, settings: Settings) -> Result<bool, Error> {
        let servers = Servers::new(url, settings.insecure)?;
        let mut session = await_database(&servers)?;
        Ok(session.is_true("SELECT to_regclass('signing_key') IS NOT NULL")?
            && session.is_true(&format!("SELECT EXISTS ({})", migrate::ANY_SEALED_KEY))?)
    }

    fn start(servers: Servers, settings: Settings, background: usize) -> Result<Arc<Self>, Error> {
        let servers = Arc::new(servers);
        let lanes = settings.connections.max(2);
        let bounds =
            Bounds { waiting: settings.waiting, heavy: lanes / 2, writes: lanes - (lanes / 8).max(1) };
        let queue = Arc::new(Queue::new(bounds, background > 0));
        let counters = Arc::new(Counters::default());
        let kind = if background > 0 { WorkerKind::Requests } else { WorkerKind::Any };
        let kinds = (0..lanes).map(|_| kind).chain((0..background).map(|_| WorkerKind::Background));
        let threads = kinds.enumerate().map(|(number, kind)| {
            let lane = Lane::new(kind, Arc::clone(&servers), Arc::clone(&queue), Arc::clone(&counters));
            let aborting = Arc::clone(&queue);
            spawn(format!("store-{number}"), move || lane.run(), move || aborting.abort())
        });
        let threads = Mutex::new(threads.collect::<Result<_, _>>()?);
        Ok(Arc::new(Self {
            servers,
            queue,
            epoch: SharedEpoch::default(),
            counters,
            stop: Arc::default(),
            threads,
            writes: background > 0,
            monitor: Mutex::default(),
        }))
    }

    pub fn run(&self, job: Job, mode: Mode, class: Class) -> Result<(), Error> {
        if mode.is_write() && !self.writes {
            return Err(Error::Unavailable("the database was opened to be read".into()));
        }
        self.queue.push(job, mode, class)
    }

    /// The security epoch, read after this call begins.
    pub async fn epoch(&self) -> Result<i64, Error> {
        self.epoch.read(&self.queue).await
    }

    pub fn figures(&self) -> Figures {
        let commits = self.counters.commits.total();
        Figures {
            waiting: self.queue.waiting(),
            commits,
            writes: commits,
            retries: self.counters.retries.load(Ordering::Relaxed),
            shed: self.queue.shed(),
            log_bytes: 0,
            statements: self.counters.statements.load(Ordering::Relaxed),
            round_trips: self.counters.round_trips.load(Ordering::Relaxed),
        }
    }

    pub fn health(&self) -> Health {
        if self.queue.is_closed() { Health::Unavailable } else { self.servers.health() }
    }

    pub fn clock_offset(&self, now: i64) -> i64 {
        self.servers.clock_offset(now)
    }

    pub fn close(&self) {
        self.queue.close();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
        // until then it cancels operations that wait for a hanging server
        self.stop.notify();
        if let Some(monitor) = self.monitor.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = monitor.join();
        }
    }
}

/// Checks the TLS files of a connection string; returns those of private keys.
pub fn check_files(url: &str, insecure: bool) -> Result<Vec<PathBuf>, Error> {
    let mut keys = Vec::new();
    for tls in address::read(url, insecure)?.into_iter().filter_map(|host| host.tls) {
        tls.connector().map_err(Error::Unavailable)?;
        keys.extend(tls.own.map(|(_, key)| key));
    }
    Ok(keys)
}

/// Waits until the database is reachable and accepts writes. A standby may be about to be promoted.
fn await_database(servers: &Servers) -> Result<Session, Error> {
    let began = Instant::now();
    loop {
        match servers.open(CONNECT_TIMEOUT).and_then(|session| servers.for_writes(session)) {
            Err(refusal) if refusal.is_transient && began.elapsed() < START => {
                tracing::warn!(why = refusal.why, "the database is not there yet");
                std::thread::sleep(Duration::from_millis(500));
            }
            outcome => return Ok(outcome?),
        }
    }
}

/// Refuses a pooler that assigns one server process to both connections: they would share settings and prepared
/// statements.
fn refuse_shared(one: &Session, other: &Session) -> Result<(), Error> {
    if one.backend != other.backend {
        return Ok(());
    }
    Err(Error::Unavailable(
        "a pooler gives several connections the same process of the database: let it pool sessions instead of \
         transactions, or name the database itself"
            .into(),
    ))
}
