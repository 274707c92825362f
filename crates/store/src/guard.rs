//! Threads that must not end. If one panicked, the server would look alive and answer nothing; the process ends
//! instead and is restarted.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
    thread::{Builder, JoinHandle},
};

use crate::Error;

static HOOK: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the hook for a panic of an essential thread. The program exits; tests do nothing.
pub fn on_panic(hook: fn(&str)) {
    let _ = HOOK.set(hook);
}

/// Reports the panic of an essential thread.
pub fn report_panic(what: &str) {
    // the log itself may have panicked
    let _ = catch_unwind(|| tracing::error!(what, "panicked: the process cannot go on"));
    if let Some(hook) = HOOK.get() {
        hook(what);
    }
}

/// Starts a thread whose panic ends the process; `clear` is called before that.
pub fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
    clear: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    let what = name.clone();
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            clear();
            report_panic(&what);
        }
    };
    Builder::new().name(name).spawn(guarded).map_err(|error| Error::Unavailable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{on_panic, spawn};

    static BROKEN: AtomicUsize = AtomicUsize::new(0);
    static CLEARED: AtomicUsize = AtomicUsize::new(0);

    /// Section 5: a panic in a lane, the writer or a job ends the process.
    #[test]
    fn a_panic_is_reported_to_the_process() {
        on_panic(|_| {
            BROKEN.fetch_add(1, Ordering::SeqCst);
        });
        let clear = || {
            CLEARED.fetch_add(1, Ordering::SeqCst);
        };
        spawn("store-test".into(), || {}, clear).unwrap().join().unwrap();
        assert_eq!(BROKEN.load(Ordering::SeqCst), 0, "an end is none");
        spawn("store-test".into(), || panic!("on purpose"), clear).unwrap().join().unwrap();
        assert_eq!((BROKEN.load(Ordering::SeqCst), CLEARED.load(Ordering::SeqCst)), (1, 1));
    }
}
