//! Several operations of a page in one transaction: all are done, or none.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_record::Timestamp;
use chancery_resource::{Action, AppContext, Call, Context, Out, Problem, Steps, Work, finish, flush, run};
use chancery_store::{Class, Error, Mode, Tx};
use http::HeaderMap;

use super::{
    from_page::{Input, Output},
    run::authority,
};
use crate::{
    app::App,
    auth::visitor::{SessionRights, Visitor},
};

/// How often work outside of the transaction can be needed before it goes through.
const ROUNDS: usize = 64;

/// A transaction in which operations of a person run, one after the other. Each has its own permit, checked by the rights that
/// the person has as the transaction begins, and its own audit entries and events.
pub struct OperationTransaction<'a, 'tx> {
    tx: &'a mut Tx<'tx>,
    rights: &'a SessionRights,
    app: &'a Arc<AppContext>,
    now: Timestamp,
    progress: &'a mut Progress,
    /// The number of the operation that runs next.
    next: usize,
}

/// The shared state of the attempts of one transaction.
#[derive(Default)]
struct Progress {
    calls: Vec<(Input, Call)>,
    /// The number of the operation that ran last.
    reached: usize,
    /// Work that must run before it can decide.
    needed: Option<Work>,
}

impl OperationTransaction<'_, '_> {
    /// Runs an operation. The transaction must end with its problem.
    ///
    /// # Errors
    /// The operation's own; the permit is missing.
    pub fn perform(&mut self, input: &Input) -> Result<Output, Problem> {
        let at = self.next;
        self.next += 1;
        self.progress.reached = at;
        let allowed = self.rights.decide(input.op.permit)?;
        let scope = allowed.scope.to_be_changed(input.op.writes());
        // another attempt may run another operation here, since it reads the state of its own time, such as newly generated ids
        if self.progress.calls.get(at).is_none_or(|(known, _)| known != input) {
            let caller = allowed.caller.as_ref();
            let (actor, acting) = (caller.map(|caller| caller.id), caller.and_then(|caller| caller.acting()));
            let mut context = Context::new(self.app, scope.clone(), self.now, actor, acting);
            context.is_person = caller.is_some_and(|caller| caller.is_person);
            context.authority = authority(input.op, caller.map(AsRef::as_ref));
            let request = input.request()?;
            let call = Call { request, context, steps: Steps::default(), answer: Out::default() };
            match self.progress.calls.get_mut(at) {
                Some(slot) => *slot = (input.clone(), call),
                None => self.progress.calls.push((input.clone(), call)),
            }
        }
        let Some((_, call)) = self.progress.calls.get_mut(at) else {
            return Err(Error::Internal("an operation is not where it was put".into()).into());
        };
        call.context.scope = scope;
        // an attempt before this one may have left the beginning of its answer
        call.answer = Out::default();
        let answer = run(call, self.tx)?;
        if let Some(problem) = answer.refusal {
            return Err(*problem);
        }
        // the writes of a custom operation before its work would have to be committed
        if matches!(call.request.op.action, Action::Custom(_)) && !answer.is_final() {
            let what = "an operation of several steps cannot share a transaction";
            return Err(Error::Internal(what.into()).into());
        }
        if let Some(work) = answer.work {
            self.progress.needed = Some(work);
            return Err(Error::Suspended.into());
        }
        call.answer.finish();
        let body = std::mem::take(&mut call.answer.bytes);
        flush(call, self.tx)?;
        Ok(Output { status: answer.status, headers: HeaderMap::new(), body: body.into() })
    }
}

impl App {
    /// Runs several operations for a person in one transaction, in their order: all are done, or none.
    ///
    /// # Errors
    /// The number of the first operation that refuses, with its problem.
    pub async fn perform_all(
        &self,
        visitor: &Visitor,
        inputs: Vec<Input>,
        now: Timestamp,
    ) -> Result<Vec<Output>, (usize, Problem)> {
        let class =
            if inputs.iter().any(|input| input.op.is_batch()) { Class::Heavy } else { Class::Ordinary };
        let one_by_one = move |together: &mut OperationTransaction<'_, '_>| {
            inputs.iter().map(|input| together.perform(input)).collect()
        };
        self.perform_in_transaction(visitor, class, one_by_one, now).await
    }

    /// Runs operations for a person in one transaction, where the answer of one can determine the next one. Work that they
    /// need outside of it is done, and the transaction begins again: so `acting` runs more than once.
    ///
    /// # Errors
    /// The number of the operation that ran last, with the problem.
    pub async fn perform_in_transaction<T: Send + 'static>(
        &self,
        visitor: &Visitor,
        class: Class,
        acting: impl Fn(&mut OperationTransaction<'_, '_>) -> Result<T, Problem> + Send + Sync + 'static,
        now: Timestamp,
    ) -> Result<T, (usize, Problem)> {
        let session = Arc::new(self.session(visitor, now).await.map_err(|problem| (0, problem))?);
        let (acting, progress) = (Arc::new(acting), Arc::new(Mutex::new(Progress::default())));
        for _ in 0..ROUNDS {
            let (session, acting, app) =
                (Arc::clone(&session), Arc::clone(&acting), Arc::clone(&self.context));
            let shared = Arc::clone(&progress);
            let running = move |tx: &mut Tx<'_>| {
                let mut progress = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let rights = &session.look_up(tx)?;
                let progress = &mut *progress;
                let mut together = OperationTransaction { tx, rights, app: &app, now, progress, next: 0 };
                let done = acting(&mut together)?;
                let (tx, last) = (together.tx, together.next.checked_sub(1));
                // the commit includes the requests that the last one has queued
                let last = last.and_then(|last| together.progress.calls.get_mut(last));
                last.map_or(Ok(()), |(_, call)| finish(call, tx))?;
                Ok::<_, Problem>(done)
            };
            let done = self.store.with(class).run("Together", Mode::Write, None, running).await;
            let (reached, needed) = {
                let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                (progress.reached, progress.needed.take())
            };
            let at = |problem: Problem| (reached, problem);
            match (done, needed) {
                (Err(_), Some(work)) => {
                    let result = self.pool.run(Some(visitor.caller.id), work).await;
                    let result = result.map_err(|error| at(error.into()))?;
                    let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some((_, call)) = progress.calls.get_mut(reached) {
                        call.steps.results.push(result);
                    }
                }
                (done, _) => return done.map_err(at),
            }
        }
        Err((0, Error::Retry.into()))
    }
}
