//! Tasks beside a test.

use tokio::task::JoinHandle;

/// Starts a task, as [`tokio::spawn`] does. A task is compiled for each type of results, and not for each future.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let future: std::pin::Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    tokio::spawn(future)
}

/// Runs what blocks on a thread of its own, as [`tokio::task::spawn_blocking`] does; compiled as [`spawn`] is.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work)
}
