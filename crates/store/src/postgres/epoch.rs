//! The security epoch, requested by many callers at once: one read of the database answers all of them.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::oneshot;

use crate::{
    Class, Error, Mode,
    job::{Job, Ticket},
    queue::{JobKind, Queue},
};

type Answer = Result<i64, Error>;

/// A waiting caller. Its ticket is `running` once the read that answers it has begun.
type Caller = (oneshot::Sender<Answer>, Ticket);

/// The callers that wait for the next read. A read answers only those that waited before it began, so each gets
/// an epoch that was read after its request.
#[derive(Clone, Default)]
pub struct SharedEpoch(Arc<Mutex<Vec<Caller>>>);

impl SharedEpoch {
    /// The epoch, read after this call begins.
    ///
    /// # Errors
    /// [`Error::Busy`]; the database's.
    pub async fn read(&self, queue: &Queue) -> Answer {
        let ((sender, answer), ticket) = (oneshot::channel(), Ticket::default());
        if self.join((sender, ticket.clone())) {
            self.queue_read(queue);
        }
        let answer = queue.await_answer(JobKind::Read, &ticket, answer).await?;
        answer.unwrap_or_else(|_| Err(Error::Unavailable("a thread of the store broke down".into())))
    }

    /// Waits for the next read; returns whether the caller is the first and so has to queue it.
    fn join(&self, caller: Caller) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(caller);
        waiting.len() == 1
    }

    fn take(&self) -> Vec<Caller> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Queues a read. A caller may disconnect meanwhile; the others are answered anyway.
    fn queue_read(&self, queue: &Queue) {
        let (shared, take) = (Arc::new(Mutex::new((Vec::new(), None))), self.clone());
        let (result, waiting) = (Arc::clone(&shared), self.clone());
        let read = move |tx: &mut crate::Tx<'_>| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.0.extend(take.take().into_iter().filter(|(_, ticket)| ticket.begin()));
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
            let epoch = epoch.unwrap_or_else(|| Err(Error::Unavailable("the epoch was not read".into())));
            let epoch = outcome.and(epoch);
            for (sender, _) in waiters {
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
