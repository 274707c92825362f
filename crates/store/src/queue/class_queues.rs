//! The queues by class, and the choice of the next operation.

use std::{collections::VecDeque, time::Instant};

use super::idle::Idle;
use crate::{Class, Mode, job::Job};

/// A waiting operation.
pub struct QueuedJob {
    pub job: Job,
    pub mode: Mode,
    pub class: Class,
}

/// The operations that a thread serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerKind {
    /// All but background work.
    Requests,
    /// Background work alone.
    Background,
    /// All operations: there is one thread.
    Any,
}

/// Bounds of operations other than background work.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Operations that may wait.
    pub waiting: usize,
    /// Heavy operations that may run at once.
    pub heavy: usize,
    /// Writes that may run at once: while commits wait for an absent standby, reads continue.
    pub writes: usize,
}

/// The queues, and the numbers of running bounded operations.
#[derive(Default)]
pub struct ClassQueues {
    pub urgent: VecDeque<QueuedJob>,
    pub ordinary: VecDeque<QueuedJob>,
    pub heavy: VecDeque<QueuedJob>,
    pub background: VecDeque<QueuedJob>,
    pub threads: Idle,
    pub background_threads: Idle,
    pub heavy_running: usize,
    pub writes_running: usize,
    /// Whether a [`Mode::WriteRights`] runs. Another would only wait for it, and keep a connection meanwhile.
    pub is_changing_rights: bool,
    /// The end of the last heavy operation of the single thread.
    pub heavy_ended: Option<Instant>,
    pub closing: bool,
    /// Whether the serving threads have ended.
    pub is_aborted: bool,
}

impl ClassQueues {
    pub fn requests(&self) -> usize {
        self.urgent.len() + self.ordinary.len() + self.heavy.len()
    }

    /// The idle threads of a kind.
    pub const fn idle(&mut self, worker: WorkerKind) -> &mut Idle {
        match worker {
            WorkerKind::Background => &mut self.background_threads,
            WorkerKind::Requests | WorkerKind::Any => &mut self.threads,
        }
    }

    pub fn queue(&mut self, class: Class) -> &mut VecDeque<QueuedJob> {
        match class {
            Class::Urgent => &mut self.urgent,
            Class::Ordinary => &mut self.ordinary,
            Class::Heavy => &mut self.heavy,
            Class::Background => &mut self.background,
        }
    }

    /// Removes the next operation for a kind of thread: urgent ones first, then the one that has waited
    /// longest.
    fn pop(&mut self, worker: WorkerKind, bounds: Bounds) -> Option<QueuedJob> {
        let classes: &[Class] = match worker {
            WorkerKind::Background => &[Class::Background],
            WorkerKind::Requests => &[Class::Ordinary, Class::Heavy],
            WorkerKind::Any => &[Class::Ordinary, Class::Heavy, Class::Background],
        };
        if worker != WorkerKind::Background
            && let Some((_, at)) = self.first(Class::Urgent, bounds)
        {
            return self.remove(Class::Urgent, at);
        }
        let firsts = classes.iter().filter_map(|class| Some((self.first(*class, bounds)?, *class)));
        let mut firsts: Vec<_> = firsts.collect();
        // operations that waited while a heavy operation ran precede the next one
        if firsts.iter().any(|((since, _), class)| *class != Class::Heavy && Some(*since) <= self.heavy_ended)
        {
            firsts.retain(|(_, class)| *class != Class::Heavy);
        }
        let ((_, at), class) = firsts.into_iter().min_by_key(|((since, _), _)| *since)?;
        self.remove(class, at)
    }

    /// The first operation of a class that may run now: its queue time, and its index.
    fn first(&mut self, class: Class, bounds: Bounds) -> Option<(Instant, usize)> {
        if class == Class::Heavy && self.heavy_running >= bounds.heavy {
            return None;
        }
        let is_background = class == Class::Background;
        let may_write = self.writes_running < bounds.writes;
        let may_change_rights = may_write && !self.is_changing_rights;
        let may_run = |mode: Mode| match mode {
            _ if is_background => true,
            Mode::WriteRights => may_change_rights,
            Mode::Write => may_write,
            Mode::Quick | Mode::Long => true,
        };
        let mut queue = self.queue(class).iter().enumerate();
        let (at, waiting) = queue.find(|(_, waiting)| may_run(waiting.mode))?;
        Some((waiting.job.since, at))
    }

    fn remove(&mut self, class: Class, at: usize) -> Option<QueuedJob> {
        let waiting = self.queue(class).remove(at)?;
        if class != Class::Background {
            self.heavy_running += usize::from(class == Class::Heavy);
            self.writes_running += usize::from(waiting.mode.is_write());
            self.is_changing_rights |= waiting.mode == Mode::WriteRights;
        }
        Some(waiting)
    }

    pub fn note_done(&mut self, class: Class, mode: Mode) {
        if class != Class::Background {
            self.heavy_running -= usize::from(class == Class::Heavy);
            self.writes_running -= usize::from(mode.is_write());
            self.is_changing_rights &= mode != Mode::WriteRights;
        }
    }

    /// The next operation whose caller still waits.
    pub fn next(&mut self, worker: WorkerKind, bounds: Bounds) -> Option<QueuedJob> {
        loop {
            let waiting = self.pop(worker, bounds)?;
            if waiting.job.begin() {
                return Some(waiting);
            }
            self.note_done(waiting.class, waiting.mode);
        }
    }

    /// Removes the cancelled operations.
    pub fn take_cancelled(&mut self) -> Vec<QueuedJob> {
        let mut cancelled = Vec::new();
        for queue in [&mut self.urgent, &mut self.ordinary, &mut self.heavy, &mut self.background] {
            if !queue.iter().any(|waiting| waiting.job.is_cancelled()) {
                continue;
            }
            let (removed, remaining): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(queue).into_iter().partition(|waiting| waiting.job.is_cancelled());
            *queue = remaining;
            cancelled.extend(removed);
        }
        cancelled
    }
}
