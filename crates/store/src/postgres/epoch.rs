//! The security epoch, requested by many callers at once: one read of the database answers all of them.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use tokio::{sync::oneshot, time::timeout};

use crate::{
    Class, Error, Mode, PATIENCE, RECHECK_INTERVAL,
    job::Job,
    queue::{JobKind, Queue},
};

type Answer = Result<i64, Error>;

/// The callers that wait for the next read. A read answers only those that waited before it began, so each gets
/// an epoch that was read after its request.
#[derive(Clone, Default)]
pub struct SharedEpoch(Arc<Mutex<Vec<oneshot::Sender<Answer>>>>);

impl SharedEpoch {
    /// The epoch, read after this call begins.
    ///
    /// # Errors
    /// [`Error::Busy`]; the database's.
    pub async fn read(&self, queue: &Queue) -> Answer {
        let (sender, mut answer) = oneshot::channel();
        if self.join(sender) {
            self.queue_read(queue);
        }
        let (mut patience, began) = (PATIENCE, Instant::now());
        loop {
            match timeout(patience, &mut answer).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => return Err(Error::Unavailable("a thread of the store broke down".into())),
                Err(_) if queue.is_stuck(JobKind::Read, began.elapsed()) => {
                    queue.note_shed();
                    return Err(Error::Busy);
                }
                Err(_) => patience = RECHECK_INTERVAL,
            }
        }
    }

    /// Waits for the next read; returns whether the caller is the first and so has to queue it.
    fn join(&self, sender: oneshot::Sender<Answer>) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(sender);
        waiting.len() == 1
    }

    fn take(&self) -> Vec<oneshot::Sender<Answer>> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Queues a read. A caller may disconnect meanwhile; the others are answered anyway.
    fn queue_read(&self, queue: &Queue) {
        let (shared, take) = (Arc::new(Mutex::new((Vec::new(), None))), self.clone());
        let (result, waiting) = (Arc::clone(&shared), self.clone());
        let read = move |tx: &mut crate::Tx<'_>| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.0.extend(take.take());
            let epoch = tx.epoch();
            let is_there = epoch.is_ok();
            shared.1 = Some(epoch);
            is_there
        };
        let answer = move |outcome: Result<(), Error>| {
            let (mut waiters, epoch) = mem::take(&mut *result.lock().unwrap_or_else(PoisonError::into_inner));
            // the read failed before it began
            if epoch.is_none() {
                waiters = waiting.take();
            }
            let epoch = epoch.unwrap_or_else(|| Err(Error::Unavailable("there was no look".into())));
            let epoch = outcome.and(epoch);
            for sender in waiters {
                // a disconnected caller needs no answer
                let _ = sender.send(epoch.clone());
            }
        };
        let job = Job::shared("SecurityEpoch", read, answer);
        if let Err((error, job)) = queue.push_or_return(job, Mode::Quick, Class::Urgent) {
            job.finish(Err(error));
        }
    }
}
