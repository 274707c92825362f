//! Operations that wait for a connection, in the order in which they are served.

use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{Class, Error, Mode, job::Job};

/// An operation that waits.
pub struct Waiting {
    pub job: Job,
    pub mode: Mode,
    class: Class,
}

/// Which operations a thread serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// All but background work.
    Requests,
    /// Background work alone.
    Background,
    /// All: there is one thread.
    Any,
}

/// What came of waiting for an operation.
pub enum Next {
    /// This one is to be run.
    Run(Waiting),
    /// There was none for so long.
    Idle,
    /// There will be none any more.
    Over,
}

pub struct Queue {
    lines: Mutex<Lines>,
    /// Rings for [`Place::Requests`] and [`Place::Any`].
    bell: Condvar,
    background_bell: Condvar,
    /// Operations that may wait, background work apart.
    bound: usize,
    /// Heavy operations that may run at once.
    heavy: usize,
    /// Whether background work has threads of its own.
    is_parted: bool,
    shed: AtomicU64,
}

#[derive(Default)]
struct Lines {
    urgent: VecDeque<Waiting>,
    ordinary: VecDeque<Waiting>,
    heavy: VecDeque<Waiting>,
    background: VecDeque<Waiting>,
    heavy_running: usize,
    closing: bool,
}

impl Lines {
    fn requests(&self) -> usize {
        self.urgent.len() + self.ordinary.len() + self.heavy.len()
    }

    fn line(&mut self, class: Class) -> &mut VecDeque<Waiting> {
        match class {
            Class::Urgent => &mut self.urgent,
            Class::Ordinary => &mut self.ordinary,
            Class::Heavy => &mut self.heavy,
            Class::Background => &mut self.background,
        }
    }

    /// Takes the next one for a place: what is urgent, then what has waited longest.
    fn pop(&mut self, place: Place, heavy: usize) -> Option<Waiting> {
        let candidates: &[Class] = match place {
            Place::Background => &[Class::Background],
            Place::Requests => &[Class::Ordinary, Class::Heavy],
            Place::Any => &[Class::Ordinary, Class::Heavy, Class::Background],
        };
        if place != Place::Background
            && let Some(waiting) = self.urgent.pop_front()
        {
            return Some(waiting);
        }
        let is_full = self.heavy_running >= heavy;
        let allowed = candidates.iter().filter(|class| !(is_full && **class == Class::Heavy));
        let oldest = allowed.filter_map(|class| {
            let since = match class {
                Class::Ordinary => self.ordinary.front(),
                Class::Heavy => self.heavy.front(),
                Class::Background => self.background.front(),
                Class::Urgent => None,
            };
            Some((since?.job.since, *class))
        });
        let (_, class) = oldest.min_by_key(|(since, _)| *since)?;
        let waiting = self.line(class).pop_front()?;
        if class == Class::Heavy {
            self.heavy_running += 1;
        }
        Some(waiting)
    }
}

impl Queue {
    pub fn new(bound: usize, heavy: usize, is_parted: bool) -> Self {
        Self {
            lines: Mutex::default(),
            bell: Condvar::new(),
            background_bell: Condvar::new(),
            bound,
            heavy,
            is_parted,
            shed: AtomicU64::new(0),
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an operation into its line. Background work is never refused for load.
    pub fn push(&self, job: Job, mode: Mode, class: Class) -> Result<(), Error> {
        let mut lines = self.lines();
        if lines.closing {
            return Err(Error::Unavailable("the store is closing".into()));
        }
        if class != Class::Background && lines.requests() >= self.bound {
            self.note_shed();
            return Err(Error::Busy);
        }
        lines.line(class).push_back(Waiting { job, mode, class });
        drop(lines);
        if class == Class::Background && self.is_parted {
            self.background_bell.notify_one();
        } else {
            self.bell.notify_one();
        }
        Ok(())
    }

    /// Waits for the next operation of a place whose caller still waits.
    pub fn take(&self, place: Place, patience: Duration) -> Next {
        let bell = if place == Place::Background { &self.background_bell } else { &self.bell };
        let mut lines = self.lines();
        loop {
            while let Some(waiting) = lines.pop(place, self.heavy) {
                if waiting.job.begin() {
                    return Next::Run(waiting);
                }
                if waiting.class == Class::Heavy {
                    lines.heavy_running -= 1;
                }
            }
            if lines.closing {
                return Next::Over;
            }
            let waited = bell.wait_timeout(lines, patience).unwrap_or_else(PoisonError::into_inner);
            lines = waited.0;
            if waited.1.timed_out() && lines.requests() + lines.background.len() == 0 {
                return if lines.closing { Next::Over } else { Next::Idle };
            }
        }
    }

    /// The next operation if there is one.
    pub fn take_now(&self, place: Place) -> Option<Waiting> {
        let mut lines = self.lines();
        while let Some(waiting) = lines.pop(place, self.heavy) {
            if waiting.job.begin() {
                return Some(waiting);
            }
            if waiting.class == Class::Heavy {
                lines.heavy_running -= 1;
            }
        }
        None
    }

    /// Notes that an operation is done, so that the next heavy one may begin.
    pub fn done(&self, class: Class) {
        if class == Class::Heavy {
            self.lines().heavy_running -= 1;
            self.bell.notify_one();
        }
    }

    pub fn close(&self) {
        self.lines().closing = true;
        self.bell.notify_all();
        self.background_bell.notify_all();
    }

    /// Refuses what waits and what comes: nobody will serve it.
    pub fn break_down(&self) {
        let mut lines = self.lines();
        let given_up = std::mem::replace(&mut *lines, Lines { closing: true, ..Lines::default() });
        drop(lines);
        drop(given_up);
        self.bell.notify_all();
        self.background_bell.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.lines().closing
    }

    pub fn waiting(&self) -> usize {
        let lines = self.lines();
        lines.requests() + lines.background.len()
    }

    /// Operations refused because there was too much to do.
    pub fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    pub fn note_shed(&self) {
        self.shed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Waiting {
    pub const fn class(&self) -> Class {
        self.class
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Next, Place, Queue};
    use crate::{Class, Error, Mode, job::Job};

    fn push(queue: &Queue, name: &'static str, class: Class) -> Result<(), Error> {
        let (job, _answer) = Job::new(name, None, |_| Ok::<(), Error>(()));
        queue.push(job, Mode::Write, class)
    }

    fn take(queue: &Queue, place: Place) -> Option<&'static str> {
        match queue.take(place, Duration::ZERO) {
            Next::Run(waiting) => Some(waiting.job.name),
            Next::Idle | Next::Over => None,
        }
    }

    /// Section 5: tokens and rights before all else, the rest in the order in which it came.
    #[test]
    fn what_is_urgent_goes_first() {
        let queue = Queue::new(10, 10, true);
        for (name, class) in [
            ("a", Class::Ordinary),
            ("b", Class::Heavy),
            ("c", Class::Urgent),
            ("d", Class::Background),
            ("e", Class::Ordinary),
        ] {
            push(&queue, name, class).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.take_now(Place::Requests)).collect();
        assert_eq!(order.iter().map(|waiting| waiting.job.name).collect::<Vec<_>>(), ["c", "a", "b", "e"]);
        assert_eq!(take(&queue, Place::Background), Some("d"));
    }

    /// Section 5: long lists, batches and synchronizing hold at most half of the lanes.
    #[test]
    fn heavy_work_leaves_places() {
        let queue = Queue::new(10, 1, true);
        for name in ["a", "b"] {
            push(&queue, name, Class::Heavy).unwrap();
        }
        push(&queue, "c", Class::Ordinary).unwrap();
        assert_eq!(queue.take_now(Place::Requests).map(|it| it.job.name), Some("a"));
        assert_eq!(queue.take_now(Place::Requests).map(|it| it.job.name), Some("c"));
        assert!(queue.take_now(Place::Requests).is_none());
        queue.done(Class::Heavy);
        assert_eq!(queue.take_now(Place::Requests).map(|it| it.job.name), Some("b"));
    }

    /// Section 5: background work is never refused; 4,096 stays as the bound of the others.
    #[test]
    fn background_work_is_never_refused() {
        let queue = Queue::new(1, 1, true);
        push(&queue, "a", Class::Ordinary).unwrap();
        assert_eq!(push(&queue, "b", Class::Urgent), Err(Error::Busy));
        assert_eq!(queue.shed(), 1);
        for _ in 0..5 {
            push(&queue, "c", Class::Background).unwrap();
        }
        let one = Queue::new(1, 1, false);
        push(&one, "d", Class::Background).unwrap();
        assert_eq!(take(&one, Place::Any), Some("d"), "where one thread serves all, it gets its turn");
    }

    /// Section 5: what was given up by its caller does not run.
    #[test]
    fn what_was_given_up_does_not_run() {
        let queue = Queue::new(10, 1, true);
        let (job, _answer) = Job::new("a", None, |_| Ok::<(), Error>(()));
        let ticket = job.ticket();
        queue.push(job, Mode::Write, Class::Heavy).unwrap();
        assert!(ticket.give_up());
        push(&queue, "b", Class::Heavy).unwrap();
        assert_eq!(take(&queue, Place::Requests), Some("b"));
        assert!(!ticket.give_up() || queue.waiting() == 0);
    }
}
