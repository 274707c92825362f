//! The order of operations, their bounds, and cancellation.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Bounds, JobKind, Next, Queue, WorkerKind};
use crate::{Class, Error, Mode, job::Job};

fn bounded(waiting: usize, heavy: usize, has_background_threads: bool) -> Queue {
    Queue::new(Bounds { waiting, heavy, writes: 10 }, has_background_threads)
}

fn push(queue: &Queue, name: &'static str, class: Class) -> Result<(), Error> {
    let (job, ..) = Job::new(name, None, Box::new(|_| Ok::<(), Error>(())));
    queue.push(job, Mode::Write, class)
}

fn take(queue: &Queue, worker: WorkerKind) -> Option<&'static str> {
    match queue.take(worker, Duration::ZERO) {
        Next::Run(waiting) => Some(waiting.job.name),
        Next::Idle | Next::Closed => None,
    }
}

/// Section 5: tokens and rights go before all else, the rest in the order of arrival.
#[test]
fn urgent_operations_run_first() {
    let queue = bounded(10, 10, true);
    for (name, class) in [
        ("a", Class::Ordinary),
        ("b", Class::Heavy),
        ("c", Class::Urgent),
        ("d", Class::Background),
        ("e", Class::Ordinary),
    ] {
        push(&queue, name, class).unwrap();
    }
    let order: Vec<_> = std::iter::from_fn(|| queue.take_now(WorkerKind::Requests)).collect();
    assert_eq!(order.iter().map(|waiting| waiting.job.name).collect::<Vec<_>>(), ["c", "a", "b", "e"]);
    assert_eq!(take(&queue, WorkerKind::Background), Some("d"));
}

/// Section 5: long lists, batches and synchronizing get at most half of the lanes.
#[test]
fn heavy_operations_leave_slots_for_others() {
    let queue = bounded(10, 1, true);
    for name in ["a", "b"] {
        push(&queue, name, Class::Heavy).unwrap();
    }
    push(&queue, "c", Class::Ordinary).unwrap();
    assert_eq!(queue.take_now(WorkerKind::Requests).map(|it| it.job.name), Some("a"));
    assert_eq!(queue.take_now(WorkerKind::Requests).map(|it| it.job.name), Some("c"));
    assert!(queue.take_now(WorkerKind::Requests).is_none());
    queue.done(Class::Heavy, Mode::Write);
    assert_eq!(queue.take_now(WorkerKind::Requests).map(|it| it.job.name), Some("b"));
}

/// Where one thread serves all, operations that waited for a heavy operation precede the next heavy one,
/// and that one precedes later operations.
#[test]
fn others_run_between_two_heavy_operations() {
    let queue = bounded(10, 10, false);
    for (name, class) in
        [("a", Class::Heavy), ("b", Class::Heavy), ("c", Class::Ordinary), ("d", Class::Background)]
    {
        push(&queue, name, class).unwrap();
    }
    assert_eq!(take(&queue, WorkerKind::Any), Some("a"));
    queue.note_heavy_end();
    push(&queue, "e", Class::Ordinary).unwrap();
    for name in ["c", "d", "b", "e"] {
        assert_eq!(take(&queue, WorkerKind::Any), Some(name));
    }
}

/// Section 5: background work is never refused; others are bounded by 4,096.
#[test]
fn background_work_is_never_refused() {
    let queue = bounded(1, 1, true);
    push(&queue, "a", Class::Ordinary).unwrap();
    assert_eq!(push(&queue, "b", Class::Urgent), Err(Error::Busy));
    assert_eq!(queue.shed(), 1);
    for _ in 0..5 {
        push(&queue, "c", Class::Background).unwrap();
    }
    let one = bounded(1, 1, false);
    push(&one, "d", Class::Background).unwrap();
    assert_eq!(take(&one, WorkerKind::Any), Some("d"), "where one thread serves all, it gets its turn");
}

/// Up to 64 writers that are being served keep waiting; more, or any that are not being served, are refused.
#[test]
fn up_to_64_operations_may_wait_while_others_finish() {
    let ago = |time| Instant::now().checked_sub(time).unwrap();
    let (mut queue, waited) = (bounded(1000, 10, true), Duration::from_secs(5));
    queue.began = ago(Duration::from_mins(1));
    for kind in [JobKind::Read, JobKind::Write] {
        assert!(queue.is_stuck(kind, waited), "nothing was done");
        assert!(!queue.is_stuck(kind, Duration::from_secs(2)), "it waits its time");
        queue.note_progress(kind);
        assert!(!queue.is_stuck(kind, waited));
    }
    assert!(!queue.is_stuck(JobKind::Heavy, waited), "what is heavy may take its time");
    assert!(queue.is_stuck(JobKind::Heavy, Duration::from_secs(31)), "what others do says nothing");
    for _ in 0..=64 {
        push(&queue, "a", Class::Ordinary).unwrap();
    }
    assert!(queue.is_stuck(JobKind::Write, Duration::ZERO), "too many");
}

/// Section 5: an operation that its caller cancelled does not run.
#[test]
fn a_cancelled_operation_does_not_run() {
    let queue = bounded(10, 1, true);
    let (job, ..) = Job::new("a", None, Box::new(|_| Ok::<(), Error>(())));
    let ticket = job.ticket();
    queue.push(job, Mode::Write, Class::Heavy).unwrap();
    assert!(ticket.cancel());
    push(&queue, "b", Class::Heavy).unwrap();
    assert_eq!(take(&queue, WorkerKind::Requests), Some("b"));
    assert!(!ticket.cancel() || queue.waiting() == 0);
}

/// A cancelled operation is not counted and holds no memory, even while its kind may not run.
#[test]
fn a_cancelled_operation_leaves_its_queue() {
    let queue = Queue::new(Bounds { waiting: 1, heavy: 10, writes: 0 }, true);
    let memory = std::sync::Arc::new(());
    let captured = std::sync::Arc::clone(&memory);
    let operation = move |_: &mut crate::Tx<'_>| {
        let _ = &captured;
        Ok::<(), Error>(())
    };
    let (job, ..) = Job::new("a", None, Box::new(operation));
    let ticket = job.ticket();
    queue.push(job, Mode::Write, Class::Ordinary).unwrap();
    assert!(queue.take_now(WorkerKind::Requests).is_none());
    assert!(ticket.cancel());
    queue.sweep();
    assert_eq!((queue.waiting(), std::sync::Arc::strong_count(&memory)), (0, 1));
    push(&queue, "b", Class::Ordinary).unwrap();
}

/// Code review (C): when the writer has ended, waiting and later callers get the error that no thread will
/// serve them, instead of Busy for ever.
#[test]
fn a_queue_without_threads_refuses_everything() {
    let queue = bounded(10, 10, true);
    let is_aborted = |outcome: Result<(), Error>| match outcome {
        Err(Error::Unavailable(why)) => why.contains("broke down"),
        _ => false,
    };
    let classes = [Class::Urgent, Class::Ordinary, Class::Heavy, Class::Background];
    let answers = classes.map(|class| {
        let (job, done, slot) = Job::new("waits", None, Box::new(|_| Ok::<(), Error>(())));
        queue.push(job, Mode::Write, class).unwrap();
        (done, slot)
    });
    assert!(!queue.is_closed());
    queue.abort();
    for (done, slot) in answers {
        done.blocking_recv().unwrap();
        assert!(is_aborted(slot.take().unwrap()));
    }
    for class in classes {
        assert!(is_aborted(push(&queue, "late", class)));
    }
    assert!(queue.is_closed() && queue.waiting() == 0);
    for worker in [WorkerKind::Requests, WorkerKind::Background, WorkerKind::Any] {
        assert!(matches!(queue.take(worker, Duration::ZERO), Next::Closed));
    }
}

/// The thread that was busy last is woken first, so that the connections of the others can be closed.
#[test]
fn the_warmest_thread_is_woken_first() {
    let queue = Arc::new(bounded(10, 10, true));
    let (sender, receiver) = std::sync::mpsc::channel();
    let threads = ["cold", "warm"].map(|name| {
        let (taking, sender) = (Arc::clone(&queue), sender.clone());
        let thread = std::thread::spawn(move || {
            while let Next::Run(waiting) = taking.take(WorkerKind::Requests, Duration::from_hours(1)) {
                sender.send(name).unwrap();
                waiting.job.finish(Ok(()));
            }
        });
        let before = usize::from(name == "warm");
        while queue.queues().idle(WorkerKind::Requests).count() == before {
            std::thread::yield_now();
        }
        thread
    });
    for _ in 0..3 {
        push(&queue, "a", Class::Ordinary).unwrap();
        assert_eq!(receiver.recv().unwrap(), "warm");
        while queue.queues().idle(WorkerKind::Requests).count() < 2 {
            std::thread::yield_now();
        }
    }
    queue.close();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Section 15 (chaos): while commits wait for a standby that is away, reads go on.
#[test]
fn writes_leave_slots_for_reads() {
    let queue = Queue::new(Bounds { waiting: 10, heavy: 10, writes: 1 }, true);
    for name in ["a", "b"] {
        push(&queue, name, Class::Ordinary).unwrap();
    }
    let (job, ..) = Job::new("read", None, Box::new(|_| Ok::<(), Error>(())));
    queue.push(job, Mode::Quick, Class::Ordinary).unwrap();
    assert_eq!(take(&queue, WorkerKind::Requests), Some("a"));
    assert_eq!(take(&queue, WorkerKind::Requests), Some("read"));
    assert_eq!(queue.take_now(WorkerKind::Requests).map(|it| it.job.name), None);
    queue.done(Class::Ordinary, Mode::Write);
    assert_eq!(take(&queue, WorkerKind::Requests), Some("b"));
}

/// Of two changes of rights one would fail by the commit of the other: the second waits, and needs no thread meanwhile.
#[test]
fn one_change_of_rights_runs_at_a_time() {
    let queue = bounded(10, 10, true);
    for (name, mode) in [("a", Mode::WriteRights), ("b", Mode::WriteRights), ("c", Mode::Write)] {
        let (job, ..) = Job::new(name, None, Box::new(|_| Ok::<(), Error>(())));
        queue.push(job, mode, Class::Ordinary).unwrap();
    }
    assert_eq!(take(&queue, WorkerKind::Requests), Some("a"));
    assert_eq!(take(&queue, WorkerKind::Requests), Some("c"));
    queue.done(Class::Ordinary, Mode::Write);
    assert!(queue.take_now(WorkerKind::Requests).is_none());
    queue.done(Class::Ordinary, Mode::WriteRights);
    assert_eq!(take(&queue, WorkerKind::Requests), Some("b"));
}
