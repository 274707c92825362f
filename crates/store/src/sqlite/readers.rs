//! Long reads: a fixed number of threads, and at most as many connections, which stay open while there are reads. So page
//! caches, prepared statements and heaps never outnumber the threads, whatever the load.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicI64},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    Error, Tx,
    connection::sqlite::{Connection, ConnectionLimits},
    guard::spawn,
    job::Job,
    queue::{Next, Queue, WorkerKind},
    tx::Engine,
};

/// Limits of a connection for long reads: a scan gains little from a cache.
const LONG: ConnectionLimits = ConnectionLimits { cache_kib: 2 << 10, statements: 64 };
/// Long reads of background work that run at once.
const BACKGROUND: usize = 2;
/// How long an unused connection stays open.
const IDLE: Duration = Duration::from_mins(1);

struct Reader {
    path: PathBuf,
    epoch: Arc<AtomicI64>,
    kind: WorkerKind,
    queue: Arc<Queue>,
    free: Arc<FreeConnections>,
}

/// The connections that no thread uses now, each with the time of its last use. The one that was used last is taken first:
/// reads one after another need one connection, whichever threads run them.
#[derive(Default)]
struct FreeConnections(Mutex<Vec<(Connection, Instant)>>);

impl FreeConnections {
    fn take(&self) -> Option<Connection> {
        self.lock().pop().map(|(connection, _)| connection)
    }

    fn put(&self, connection: Connection) {
        self.lock().push((connection, Instant::now()));
    }

    fn close_unused(&self) {
        self.lock().retain(|(_, used)| used.elapsed() < IDLE);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the threads: `count` for requests, and those for background work.
pub fn start(
    path: &Path,
    epoch: &Arc<AtomicI64>,
    queue: &Arc<Queue>,
    count: usize,
) -> Result<Vec<JoinHandle<()>>, Error> {
    let requests = std::iter::repeat_n(WorkerKind::Requests, count);
    let all = requests.chain(std::iter::repeat_n(WorkerKind::Background, BACKGROUND));
    let free = Arc::<FreeConnections>::default();
    let threads = all.enumerate().map(|(number, kind)| {
        let (path, epoch, queue) = (path.to_owned(), Arc::clone(epoch), Arc::clone(queue));
        let aborting = Arc::clone(&queue);
        let reader = Reader { path, epoch, kind, queue, free: Arc::clone(&free) };
        spawn(format!("store-reader-{number}"), move || reader.run(), move || aborting.abort())
    });
    threads.collect()
}

impl Reader {
    fn run(self) {
        loop {
            match self.queue.take(self.kind, IDLE) {
                Next::Run(mut waiting) => {
                    let outcome = self.read(&mut waiting.job);
                    waiting.job.finish(outcome);
                    self.queue.done(waiting.class, waiting.mode);
                }
                Next::Idle => self.free.close_unused(),
                Next::Closed => return,
            }
        }
    }

    /// Reads in one snapshot. A connection that fails to end it is not reused.
    fn read(&self, job: &mut Job) -> Result<(), Error> {
        let open = || Connection::open(&self.path, true, LONG, &self.epoch);
        let connection = self.free.take().map_or_else(open, Ok)?;
        let outcome = connection
            .execute("BEGIN", &[])
            .and_then(|_| job.run(&mut Tx::new(Engine::Sqlite(&connection))).map(drop));
        if connection.execute("COMMIT", &[]).is_ok() {
            self.free.put(connection);
        }
        outcome
    }
}
