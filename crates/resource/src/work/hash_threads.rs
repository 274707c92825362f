//! Threads that hash passwords. There are as many as processors, with a lower scheduling priority than all other threads:
//! hashing gets the time that other requests leave, and does not delay them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, OnceLock, PoisonError, mpsc},
    thread::Builder,
};

use chancery_store::Error;
use rustix::{process::setpriority_process, thread::gettid};
use tokio::sync::oneshot;

type Task = Box<dyn FnOnce() + Send>;

/// The nice value of the threads. With 10, Linux gives a thread about a tenth of the time of a thread with 0, while both work.
const NICE: i32 = 10;

/// The threads. They begin with the first task, and end with this value.
pub struct HashThreads {
    count: usize,
    tasks: OnceLock<mpsc::Sender<Task>>,
}

impl HashThreads {
    /// So many threads.
    pub const fn new(count: usize) -> Self {
        Self { count, tasks: OnceLock::new() }
    }

    /// Runs a task on the next free thread. The caller bounds the number of tasks.
    ///
    /// # Errors
    /// The task panicked, or the system refused a thread.
    pub async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, answer) = oneshot::channel();
        let task = Box::new(move || {
            // the caller may be gone
            let _ = sender.send(task());
        });
        let broken = || Error::Internal("a thread for hashing broke".into());
        self.tasks.get_or_init(|| start(self.count)).send(task).map_err(|_| broken())?;
        answer.await.map_err(|_| broken())
    }
}

/// Starts the threads. If the system refuses one, the others do the work; if it refuses all, tasks fail.
fn start(count: usize) -> mpsc::Sender<Task> {
    let (sender, tasks) = mpsc::channel::<Task>();
    let tasks = Arc::new(Mutex::new(tasks));
    for _ in 0..count {
        let tasks = Arc::clone(&tasks);
        if let Err(error) = Builder::new().name("hashing".to_owned()).spawn(move || work(&tasks)) {
            tracing::error!(%error, "a thread for hashing could not be started");
        }
    }
    sender
}

fn work(tasks: &Mutex<mpsc::Receiver<Task>>) {
    // on Linux the priority is that of a thread
    if let Err(error) = setpriority_process(Some(gettid()), NICE) {
        tracing::warn!(%error, "hashing has the same priority as other work");
    }
    loop {
        let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = next else { return };
        // a panic drops the answer, which the caller notices
        let _ = catch_unwind(AssertUnwindSafe(task));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustix::{process::getpriority_process, thread::gettid};
    use tokio::sync::Barrier;

    use super::{HashThreads, NICE};

    #[tokio::test]
    async fn tasks_run_with_a_lower_priority() {
        let own = getpriority_process(Some(gettid())).unwrap();
        let threads = HashThreads::new(1);
        assert_eq!(threads.run(|| getpriority_process(Some(gettid())).unwrap()).await, Ok(own.max(NICE)));
        assert_eq!(getpriority_process(Some(gettid())).unwrap(), own);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn as_many_tasks_run_at_once_as_there_are_threads() {
        let (threads, barrier) = (Arc::new(HashThreads::new(2)), Arc::new(std::sync::Barrier::new(2)));
        let all_begin = Arc::new(Barrier::new(2));
        let run = |threads: Arc<HashThreads>, barrier: Arc<std::sync::Barrier>, all_begin: Arc<Barrier>| async move {
            all_begin.wait().await;
            threads.run(move || barrier.wait().is_leader()).await
        };
        let one = tokio::spawn(run(Arc::clone(&threads), Arc::clone(&barrier), Arc::clone(&all_begin)));
        let other = tokio::spawn(run(threads, barrier, all_begin));
        let leaders = [one.await.unwrap().unwrap(), other.await.unwrap().unwrap()];
        assert_ne!(leaders[0], leaders[1]);
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_thread_goes_on() {
        let threads = HashThreads::new(1);
        assert!(threads.run(|| panic!("broken on purpose")).await.is_err());
        assert_eq!(threads.run(|| 1).await, Ok(1));
    }
}
