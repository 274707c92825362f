//! Leases of jobs that one process at a time does. They are in the database and expire by its clock; the
//! holder stops, by its monotonic clock, before another process may begin.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chancery_record::{Timestamp, Value};
use chancery_resource::random;
use chancery_store::{
    Class, Error, Mode, READ_FLOOR, StateTable, Store, refusal_below, schema_version, selectable,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use uuid::Uuid;

use crate::build::VERSION;

/// How long other processes respect a lease, in milliseconds.
const LEASE: i64 = 5_000;
/// How long its holder relies on a lease, counted from before it was requested.
const HELD: Duration = Duration::from_secs(4);
/// The interval of renewals.
const PERIOD: Duration = Duration::from_secs(2);
/// Renewals between two heartbeats.
const RENEWALS_PER_HEARTBEAT: u32 = 5;
/// How long after its last heartbeat a process counts as serving, in milliseconds.
const SEEN_LATELY: i64 = 30_000;
/// How long a process without a heartbeat is remembered, in milliseconds.
const REMEMBERED: i64 = 24 * 3600 * 1000;

selectable! {
    /// The lease of a job.
    struct JobLease<'r> from "FROM job_lease" {
        name: &'r str = "name",
        holder: Option<Uuid> = "holder",
        until: i64 = "until",
    }
}

/// The leases of this process.
pub struct Leases {
    store: Store,
    now: fn() -> Timestamp,
    /// This process's id.
    holder: Uuid,
    /// This process's public URL.
    public_url: String,
    /// The public URLs of other processes that were seen last.
    others: Mutex<BTreeSet<String>>,
    held: Mutex<HashMap<&'static str, Instant>>,
    /// Locked during each transaction that registers this process or its leases, and during the release: a transaction after the
    /// release would register them again.
    registration: Arc<tokio::sync::Mutex<()>>,
    /// The era of the installation that this process serves.
    era: Option<String>,
    /// Why this program cannot serve the database any more.
    outdated: watch::Sender<Option<String>>,
}

impl Leases {
    /// Leases of this process, none of them held yet.
    pub fn new(store: &Store, now: fn() -> Timestamp, public_url: &str) -> Self {
        Self {
            // a renewal must not wait behind the job's own work
            store: store.with(Class::Urgent),
            now,
            holder: Uuid::from_bytes(random::<16>()),
            public_url: public_url.to_owned(),
            others: Mutex::default(),
            held: Mutex::default(),
            registration: Arc::default(),
            era: None,
            outdated: watch::Sender::new(None),
        }
    }

    /// The same, of a process that serves this era of the installation: it ends when another begins.
    #[must_use]
    pub fn of_era(self, era: &str) -> Self {
        Self { era: Some(era.to_owned()), ..self }
    }

    /// Waits until the floor of the schema is above this program, or the database was restored; returns the reason.
    pub async fn outdated(&self) -> String {
        let mut why = self.outdated.subscribe();
        match why.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(why)) => why,
            // this value holds the sender
            _ => std::future::pending().await,
        }
    }

    /// Whether the database is embedded: it has one process, which holds every lease.
    fn is_only_process(&self) -> bool {
        !self.store.is_shared()
    }

    fn until(&self, name: &str) -> Option<Instant> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Whether this process may do the job now.
    pub fn holds(&self, name: &str) -> bool {
        self.is_only_process() || self.until(name).is_some_and(|until| until > Instant::now())
    }

    /// Waits until this process no longer holds the job's lease.
    pub async fn lost(&self, name: &str) {
        if self.is_only_process() {
            return std::future::pending().await;
        }
        while let Some(until) = self.until(name).filter(|until| *until > Instant::now()) {
            sleep_until(until).await;
        }
    }

    /// Takes and renews the leases of these jobs, and sends heartbeats, until it is dropped.
    pub async fn renew(self: Arc<Self>, names: Vec<&'static str>) {
        let mut round = 0;
        while !self.is_only_process() {
            if let Err(error) = self.renew_once(&names).await {
                tracing::warn!(%error, "leases could not be renewed");
            }
            if round % RENEWALS_PER_HEARTBEAT == 0
                && let Err(error) = self.send_heartbeat().await
            {
                tracing::warn!(%error, "the heartbeat of this process failed");
            }
            round = round.wrapping_add(1);
            sleep(PERIOD).await;
        }
    }

    fn database_time(&self) -> i64 {
        let now = (self.now)().0;
        now.saturating_add(self.store.clock_offset(now))
    }

    /// Renews this process's leases, and takes those that have expired or were never held.
    pub async fn renew_once(&self, names: &[&'static str]) -> Result<(), Error> {
        let (began, now, holder) = (Instant::now(), self.database_time(), self.holder);
        if names.iter().all(|name| self.holds(name)) && self.extend(names, now).await? {
            self.hold(names.iter().copied(), began);
            return Ok(());
        }
        let read = self.store.run("ReadLeases", Mode::Quick, None, move |tx| {
            let mut taken = Vec::new();
            tx.query(JobLease::SELECT, &[], |row| {
                let lease = JobLease::read(row)?;
                if lease.holder != Some(holder) && lease.until >= now {
                    taken.push(lease.name.to_owned());
                }
                Ok(())
            })?;
            Ok::<_, Error>(taken)
        });
        let taken = read.await?;
        let missing: Vec<_> =
            names.iter().copied().filter(|name| taken.iter().all(|it| it != name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let guard = Arc::clone(&self.registration).lock_owned().await;
        let taken = self.store.run("TakeLeases", Mode::Write, None, move |tx| {
            let _guard = &guard;
            tx.note_routine();
            let text = StateTable::JobLease.insert(
                "(holder, until, name) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET holder = ?1, until = ?2 \
                 WHERE job_lease.holder = ?1 OR job_lease.until < ?4",
            );
            let mut taken = Vec::new();
            for name in &missing {
                let until = Value::Int(now + LEASE);
                if tx.execute(&text, &[Value::Id(holder), until, (*name).into(), Value::Int(now)])? == 1 {
                    taken.push(*name);
                }
            }
            Ok::<_, Error>(taken)
        });
        let taken = taken.await?;
        self.hold(taken.into_iter(), began);
        Ok(())
    }

    /// Extends all leases of this process by one statement. Returns whether it still held all of these.
    async fn extend(&self, names: &[&'static str], now: i64) -> Result<bool, Error> {
        let (holder, count) = (self.holder, names.len() as u64);
        let guard = Arc::clone(&self.registration).lock_owned().await;
        let extended = self.store.run("ExtendLeases", Mode::Write, None, move |tx| {
            let _guard = &guard;
            tx.note_routine();
            let text = StateTable::JobLease.update("SET until = ?2 WHERE holder = ?1");
            let rows = tx.execute(&text, &[Value::Id(holder), Value::Int(now + LEASE)])?;
            Ok::<_, Error>(rows == count)
        });
        extended.await
    }

    fn hold(&self, names: impl Iterator<Item = &'static str>, began: Instant) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend(names.map(|name| (name, began + HELD)));
    }

    /// Sends a heartbeat, and warns when other serving processes have other public URLs than before: the
    /// issuer of their tokens would differ from this one's. Returns the URLs in the warning.
    pub async fn send_heartbeat(&self) -> Result<BTreeSet<String>, Error> {
        let (now, holder, public_url) = (self.database_time(), self.holder, self.public_url.clone());
        // the transaction owns the lock: it goes on when this future is dropped
        let guard = Arc::clone(&self.registration).lock_owned().await;
        let sign = self.store.run("GiveSign", Mode::Write, None, move |tx| {
            let _guard = &guard;
            tx.note_routine();
            let (version, schema) = (VERSION, Value::Int(schema_version()));
            let url = public_url.as_str().into();
            tx.queue(
                &StateTable::Process.insert(
                    "(id, version, schema, seen_on, public_url) VALUES (?1, ?2, ?3, ?4, ?5) \
                 ON CONFLICT (id) DO UPDATE SET seen_on = ?4",
                ),
                vec![Value::Id(holder), version.into(), schema, Value::Int(now), url],
            )?;
            tx.queue(&StateTable::Process.delete("WHERE seen_on < ?1"), vec![Value::Int(now - REMEMBERED)])
        });
        sign.await?;
        let floor =
            self.store.run("ReadFloor", Mode::Quick, None, |tx| tx.one(READ_FLOOR, &[], |row| row.int(0)));
        if let Some(why) = refusal_below(floor.await?.unwrap_or(0)) {
            self.outdated.send_replace(Some(why));
        }
        self.compare_era().await?;
        let others = self.other_addresses(now).await?;
        let before = std::mem::replace(
            &mut *self.others.lock().unwrap_or_else(PoisonError::into_inner),
            others.clone(),
        );
        if others.is_empty() || others == before {
            return Ok(BTreeSet::new());
        }
        tracing::warn!(
            ours = self.public_url,
            ?others,
            "other processes on this database go by another public URL: set the same CHANCERY_PUBLIC_URL everywhere"
        );
        Ok(others)
    }

    /// Notices that the database was restored under this process: its cached token state is outdated.
    async fn compare_era(&self) -> Result<(), Error> {
        let read = self.store.run("ReadEra", Mode::Quick, None, |tx| {
            tx.one("SELECT era FROM installation", &[], |row| Ok(row.text(0)?.to_owned()))
        });
        let era: Option<String> = read.await?;
        if era.is_some() && self.era.is_some() && era != self.era {
            self.outdated.send_replace(Some("the database was restored meanwhile: start again".to_owned()));
        }
        Ok(())
    }

    /// The public URLs of other processes seen lately. An older version does not report its own.
    async fn other_addresses(&self, now: i64) -> Result<BTreeSet<String>, Error> {
        let own = self.public_url.clone();
        let read = self.store.run("ReadProcesses", Mode::Quick, None, move |tx| {
            let text = "SELECT public_url FROM process WHERE seen_on >= ?1 AND public_url NOT IN ('', ?2)";
            let mut others = BTreeSet::new();
            tx.query(text, &[Value::Int(now - SEEN_LATELY), own.as_str().into()], |row| {
                others.insert(row.text(0)?.to_owned());
                Ok(())
            })?;
            Ok::<_, Error>(others)
        });
        read.await
    }

    /// Releases every lease, so that other processes need not wait.
    pub async fn release(&self) {
        if self.is_only_process() {
            return;
        }
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let holder = self.holder;
        let released = async {
            // waits for a registration in progress
            let _guard = self.registration.lock().await;
            let release = self.store.run("ReleaseLeases", Mode::Write, None, move |tx| {
                tx.queue(
                    &StateTable::JobLease.update("SET until = 0 WHERE holder = ?1"),
                    vec![Value::Id(holder)],
                )?;
                tx.queue(&StateTable::Process.delete("WHERE id = ?1"), vec![Value::Id(holder)])
            });
            release.await
        };
        let released: Result<Result<(), Error>, _> = timeout(PERIOD, released).await;
        if !matches!(released, Ok(Ok(()))) {
            tracing::warn!("the leases of this process were not released: they expire");
        }
    }
}
