//! PostgreSQL: a number of lanes, each a thread that owns one connection and drives it itself,
//! so that a statement costs no hop between threads.

mod session;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use tokio::sync::Semaphore;

pub use session::Session;

use crate::{Error, Figures, Limits, Mode, Tx, job::Job, migrate, tx::Engine};

/// How often an operation runs beside others. One that they got in the way of so often runs alone.
const BESIDE_OTHERS: u32 = 3;
/// How often an operation runs at the most before [`Error::Retry`] leaves: alone only two of its keys
/// that are made from the time can be taken.
const ATTEMPTS: u32 = 12;

/// The store on a PostgreSQL server.
pub struct Postgres {
    queue: Arc<Queue>,
    /// Long reads under way; bounded, so that they cannot take all connections.
    long: Arc<Semaphore>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Queue {
    waiting: Mutex<Waiting>,
    bell: Condvar,
    bound: usize,
    commits: AtomicU64,
    retries: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<(Job, Mode)>,
    closing: bool,
}

impl Postgres {
    pub fn open(url: &str, limits: Limits) -> Result<Arc<Self>, Error> {
        let config = session::config(url)?;
        Session::open(&config)?.migrate()?;
        Self::start(&config, limits)
    }

    pub fn open_to_read(url: &str, limits: Limits) -> Result<Arc<Self>, Error> {
        let config = session::config(url)?;
        let mut applied = Vec::new();
        Session::open(&config)?.query_all(&[(migrate::APPLIED, &[])], &mut |_, row| {
            applied.push(row.int(0)?);
            Ok(())
        })?;
        migrate::check(&applied)?;
        Self::start(&config, limits)
    }

    fn start(config: &tokio_postgres::Config, limits: Limits) -> Result<Arc<Self>, Error> {
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            bell: Condvar::new(),
            bound: limits.waiting,
            commits: AtomicU64::new(0),
            retries: AtomicU64::new(0),
        });
        let lanes = limits.connections.max(2);
        let threads = (0..lanes).map(|number| {
            let (queue, config) = (Arc::clone(&queue), config.clone());
            Builder::new()
                .name(format!("store-{number}"))
                .spawn(move || Lane { config, session: None, queue }.run())
                .map_err(|error| Error::Unavailable(error.to_string()))
        });
        Ok(Arc::new(Self {
            threads: Mutex::new(threads.collect::<Result<_, _>>()?),
            long: Arc::new(Semaphore::new(lanes / 2)),
            queue,
        }))
    }

    pub async fn run(&self, mut job: Job, mode: Mode) -> Result<(), Error> {
        if mode == Mode::Long {
            let permit = Arc::clone(&self.long).acquire_owned().await;
            let permit = permit.map_err(|_| Error::Unavailable("the store is closing".into()))?;
            job = job.holding(permit);
        }
        let mut waiting = self.queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.closing {
            return Err(Error::Unavailable("the store is closing".into()));
        }
        if waiting.jobs.len() >= self.queue.bound {
            return Err(Error::Busy);
        }
        waiting.jobs.push_back((job, mode));
        drop(waiting);
        self.queue.bell.notify_one();
        Ok(())
    }

    pub fn figures(&self) -> Figures {
        let commits = self.queue.commits.load(Ordering::Relaxed);
        Figures {
            waiting: self.queue.waiting.lock().unwrap_or_else(PoisonError::into_inner).jobs.len(),
            commits,
            writes: commits,
            retries: self.queue.retries.load(Ordering::Relaxed),
            log_bytes: 0,
        }
    }

    pub fn close(&self) {
        self.queue.waiting.lock().unwrap_or_else(PoisonError::into_inner).closing = true;
        self.queue.bell.notify_all();
        let threads: Vec<_> = self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn take(&self) -> Option<(Job, Mode)> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |waiting: &mut Waiting| waiting.jobs.is_empty() && !waiting.closing;
        let mut waiting = self.bell.wait_while(waiting, idle).unwrap_or_else(PoisonError::into_inner);
        waiting.jobs.pop_front()
    }
}

struct Lane {
    config: tokio_postgres::Config,
    session: Option<Session>,
    queue: Arc<Queue>,
}

impl Lane {
    fn run(mut self) {
        while let Some((mut job, mode)) = self.queue.take() {
            let mut attempt = 0;
            let outcome = loop {
                attempt += 1;
                let outcome = self.attempt(&mut job, mode, attempt > BESIDE_OTHERS);
                // an idle connection that the server closed is found out only by using it
                let lost = matches!(outcome, Err(Error::Unavailable(_))) && attempt == 1;
                if !(lost || matches!(outcome, Err(Error::Retry))) || attempt >= ATTEMPTS {
                    break outcome;
                }
                self.queue.retries.fetch_add(1, Ordering::Relaxed);
            };
            job.finish(outcome);
            // the answer does not wait for a reading transaction to end
            let ended = self.session.as_mut().is_none_or(|session| session.end().is_ok());
            if !ended {
                self.session = None;
            }
        }
    }

    fn attempt(&mut self, job: &mut Job, mode: Mode, alone: bool) -> Result<(), Error> {
        if self.session.as_ref().is_none_or(Session::is_closed) {
            self.session = Some(Session::open(&self.config)?);
        }
        let Some(session) = &mut self.session else { return Err(Error::Retry) };
        session.begin(mode, alone);
        let keep = match job.run(&mut Tx::new(Engine::Postgres(session))) {
            Ok(keep) => keep,
            Err(error) => {
                let rolled_back = session.roll_back();
                if rolled_back.is_err() || matches!(error, Error::Unavailable(_)) {
                    self.session = None;
                }
                return Err(error);
            }
        };
        if mode != Mode::Write {
            return Ok(());
        }
        if !keep {
            return session.roll_back();
        }
        let outcome = session.commit();
        match outcome {
            Ok(()) => {
                self.queue.commits.fetch_add(1, Ordering::Relaxed);
            }
            Err(Error::Unavailable(_) | Error::Unknown(_)) => self.session = None,
            Err(_) => session.roll_back()?,
        }
        outcome
    }
}
