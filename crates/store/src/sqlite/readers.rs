//! Long reads: a fixed number of threads, each with a connection that stays open while there are reads. So page
//! caches, prepared statements and heaps never outnumber the threads, whatever the load.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicI64},
    thread::JoinHandle,
    time::Duration,
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
    connection: Option<Connection>,
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
    let threads = all.enumerate().map(|(number, kind)| {
        let (path, epoch, queue) = (path.to_owned(), Arc::clone(epoch), Arc::clone(queue));
        let aborting = Arc::clone(&queue);
        let reader = Reader { path, epoch, kind, queue, connection: None };
        spawn(format!("store-reader-{number}"), move || reader.run(), move || aborting.abort())
    });
    threads.collect()
}

impl Reader {
    fn run(mut self) {
        loop {
            match self.queue.take(self.kind, IDLE) {
                Next::Run(mut waiting) => {
                    let outcome = self.read(&mut waiting.job);
                    waiting.job.finish(outcome);
                    self.queue.done(waiting.class, waiting.mode);
                }
                Next::Idle => self.connection = None,
                Next::Closed => return,
            }
        }
    }

    /// Reads in one snapshot. A connection that fails to end it is not reused.
    fn read(&mut self, job: &mut Job) -> Result<(), Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.path, true, LONG, &self.epoch)?,
        };
        let outcome = connection
            .execute("BEGIN", &[])
            .and_then(|_| job.run(&mut Tx::new(Engine::Sqlite(&connection))).map(drop));
        if connection.execute("COMMIT", &[]).is_ok() {
            self.connection = Some(connection);
        }
        outcome
    }
}
