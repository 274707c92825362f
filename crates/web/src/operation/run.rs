//! An operation in transactions, until there is an answer.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use chancery_auth::Caller;
use chancery_record::{Timestamp, Value};
use chancery_resource::{
    Action, Answer, Authority, Call, Chunk, Context, Op, Out, Part, Permit, Problem, Request, Steps, explain,
    finish, read_later, run,
};
use chancery_store::{Class, Error, Mode, Tx};
use http::{Response, header, request::Parts};
use tokio::sync::mpsc;
use tracing::Instrument as _;
use uuid::Uuid;

use super::idempotency::{self, Claim, ClaimedOperation};
use crate::{
    app::App,
    auth::{
        authorization::Authorization,
        rights::{Requirement, Rights},
    },
    message::{
        answer::{AnswerBody, add_headers, respond, stream},
        answer_headers::{add_answer_headers, check_preconditions},
        peer::trace_of,
    },
};

/// How long a reader of a long answer may pause before it is given up.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
/// Parts of an answer that may be queued for the reader.
const PARTS: usize = 4;
/// Attempts of an operation while signing keys change between the verification of its token and its
/// transaction. Changed rights alone are read within it.
const MAX_ATTEMPTS: usize = 64;
/// Items after which an operation in chunks logs its progress.
const PROGRESS: u64 = 10_000;

/// Runs an operation that its caller may call, as far as is known: the transaction decides.
pub async fn run_operation(
    authorized: AuthorizedRequest<'_>,
    request: Request,
    allowed: &Authorization,
    rights: Rights,
    claim: Option<&idempotency::HeldClaim>,
) -> Result<Response<AnswerBody>, Problem> {
    let app = authorized.app;
    let caller = allowed.caller.as_ref();
    let token = allowed.provisioner.as_ref().and_then(|provisioner| provisioner.token);
    let actor = caller.map(|caller| caller.id).or(token);
    let acting = caller.and_then(|caller| caller.acting());
    let scope = allowed.scope.clone().to_be_changed(request.op.writes());
    // receiving a body takes time: decisions use the time after it
    let mut context = Context::new(&app.context, scope, app.clock.now(), actor, acting);
    context.is_person = caller.is_some_and(|caller| caller.is_person);
    context.authority = authority(request.op, caller.map(AsRef::as_ref));
    context.provisioner.clone_from(&allowed.provisioner);
    context.trace = Some(trace_of(authorized.parts).number());
    let call = Call { request, context, steps: Steps::default(), answer: Out::default() };
    let running = Running { authorized, call: Arc::new(Mutex::new(call)), continues: AtomicBool::new(false) };
    match claim {
        Some(claim) => claim.held(app, running.finish(rights, Some(claim))).await,
        None => running.finish(rights, None).await,
    }
}

/// The rights by which a caller writes, and by which custom operations decide further. Operations about oneself are for the
/// authenticated person.
pub fn authority(op: &Op, caller: Option<&Caller>) -> Authority {
    match (op.permit, caller) {
        (Permit::Public | Permit::Person, _) => Authority::Own,
        (_, Some(caller)) if op.writes() || matches!(op.action, Action::Custom(_)) => {
            Authority::Roles(caller.roles.clone())
        }
        _ => Authority::Roles(Vec::new()),
    }
}

/// A request: its caller, its permit, its time.
pub struct AuthorizedRequest<'a> {
    pub app: &'a App,
    pub parts: &'a Parts,
    /// The requirements of its token; none where a session of the console or a directory's token calls.
    pub requirement: Option<Requirement>,
    /// The rights that replace stale ones, where a directory's token calls.
    pub renewed: Option<Rights>,
    pub store: Option<String>,
    /// The client app that calls, and its subscription.
    pub caller: Option<(Uuid, Uuid)>,
    pub now: Timestamp,
}

impl AuthorizedRequest<'_> {
    /// The rights after a change that made the earlier ones stale.
    async fn renew_rights(&self, over: &Rights) -> Result<Rights, Problem> {
        match &self.requirement {
            Some(requirement) => {
                self.app.renew_rights(self.parts, requirement, self.store.as_deref(), over).await
            }
            // a session's rights are read in each transaction
            None => Ok(self.renewed.as_ref().unwrap_or(over).clone()),
        }
    }

    /// Claims an idempotency key, with rights that are current then.
    pub async fn claim(
        &self,
        rights: &mut Rights,
        operation: ClaimedOperation,
        key: &[u8],
        request: Vec<u8>,
    ) -> Result<Claim, Problem> {
        for _ in 0..MAX_ATTEMPTS {
            match idempotency::claim(self.app, operation, rights, key, request.clone(), self.now).await {
                Err(problem) if problem.cause == Some(Error::Stale) => {
                    *rights = self.renew_rights(rights).await?;
                }
                // another request with the key came first, at the same moment: now it is in the table
                Err(problem) if matches!(problem.cause, Some(Error::Unique(_))) => {}
                claimed => return claimed,
            }
        }
        Err(Error::Retry.into())
    }
}

/// A call in progress.
struct Running<'a> {
    authorized: AuthorizedRequest<'a>,
    call: Arc<Mutex<Call>>,
    /// Whether it continues in chunks.
    continues: AtomicBool,
}

type CompleteAnswer = (Answer, Vec<u8>);

impl Running<'_> {
    /// Runs the operation until there is an answer: with stale rights again, reading them itself.
    async fn finish(
        &self,
        mut rights: Rights,
        claim: Option<&idempotency::HeldClaim>,
    ) -> Result<Response<AnswerBody>, Problem> {
        let op = self.with(|call| call.request.op);
        let (mut stale, mut done) = (0, 0);
        while stale < MAX_ATTEMPTS {
            let outcome = self.attempt(op.name, op.mode(), &rights, claim, run).await;
            match outcome {
                Err(problem) if problem.cause == Some(Error::Stale) => {
                    stale += 1;
                    rights = self.authorized.renew_rights(&rights).await?;
                }
                Ok(AttemptResult::Whole((Answer { work: Some(work), .. }, _))) => {
                    let result = self
                        .authorized
                        .app
                        .pool
                        .run(self.with(|call| call.context.actor), work)
                        .await
                        .map_err(pool_is_full)?;
                    let now = self.authorized.app.clock.now();
                    self.with(|call| {
                        call.steps.results.push(result);
                        call.context.now = now;
                    });
                }
                Ok(AttemptResult::Whole((Answer { chunk: Some(chunk), .. }, _))) => {
                    stale = 0;
                    self.continue_with(chunk, &mut done);
                }
                Ok(AttemptResult::Whole((Answer { refusal: Some(problem), .. }, _))) => return Err(*problem),
                Ok(AttemptResult::Whole((answer, body))) => return self.answer(answer, body, &rights).await,
                Ok(AttemptResult::Streaming(response)) => return Ok(response),
                Err(problem) => return Err(problem),
            }
        }
        Err(Error::Retry.into())
    }

    /// Prepares the call for its next chunk. Each chunk has its own time.
    fn continue_with(&self, chunk: Chunk, done: &mut u64) {
        self.continues.store(true, Ordering::Relaxed);
        let now = self.authorized.app.clock.now();
        let operation = self.with(|call| {
            call.steps.results = vec![chunk.state];
            call.context.now = now;
            call.request.op.name
        });
        self.authorized.app.metrics.note_items(operation, chunk.done.saturating_sub(*done));
        if chunk.done / PROGRESS > *done / PROGRESS {
            tracing::info!(done = chunk.done, total = chunk.total, "under way");
        }
        *done = chunk.done;
    }

    fn with<T>(&self, change: impl FnOnce(&mut Call) -> T) -> T {
        change(&mut self.call.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The class: batches, large sets and the later chunks of an operation are heavy, so that others go first.
    fn class(&self) -> Class {
        let is_heavy = self.continues.load(Ordering::Relaxed) || self.with(|call| call.request.is_of_many());
        if is_heavy { Class::Heavy } else { Class::Ordinary }
    }

    /// Runs the operation in a transaction. An answer above a bound is streamed as it is produced.
    async fn attempt(
        &self,
        name: &'static str,
        mode: Mode,
        rights: &Rights,
        claim: Option<&idempotency::HeldClaim>,
        operation: impl Fn(&mut Call, &mut Tx<'_>) -> Result<Answer, Problem> + Send + Sync + 'static,
    ) -> Result<AttemptResult, Problem> {
        let call = Arc::clone(&self.call);
        let (claim, epoch, rights) = (claim.cloned(), rights.epoch(), rights.clone());
        let operation = move |tx: &mut Tx<'_>| -> Result<CompleteAnswer, Problem> {
            let mut call = call.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(allowed) = rights.authorize(tx)? {
                call.context.scope = allowed.scope.to_be_changed(call.request.op.writes());
                if allowed.provisioner.is_some() {
                    call.context.provisioner = allowed.provisioner;
                }
            }
            let mut answer = operation(&mut call, tx)?;
            call.answer.finish();
            let mut body = std::mem::take(&mut call.answer.bytes);
            if answer.is_final() && answer.read_later.is_none() {
                add_answer_headers(&mut call, &mut answer, &mut body);
            }
            match &claim {
                Some(claim) if answer.is_final() => {
                    // the requests that the operation has queued may be sent here, and be refused
                    let recorded = claim.record(tx, &call, &answer, &body);
                    recorded.map_err(|problem| explain(&mut call, tx, problem))?;
                }
                Some(claim) if answer.chunk.is_some() => claim.renew(tx, call.context.now)?,
                _ => {}
            }
            if mode.is_write() {
                finish(&mut call, tx)?;
            }
            Ok((answer, body))
        };
        let store = self.authorized.app.store.with(self.class());
        if mode != Mode::Long {
            return store.run(name, mode, epoch, operation).await.map(AttemptResult::Whole);
        }
        let share = self.authorized.app.reads.take(self.authorized.caller).await?;
        let operation = move |tx: &mut Tx<'_>| {
            let _until_it_is_done = &share;
            operation(tx)
        };
        let (sender, mut parts) = mpsc::channel(PARTS);
        let handle = tokio::runtime::Handle::current();
        self.with(|call| {
            call.answer = Out::streaming(Box::new(move |part| {
                handle.block_on(sender.send_timeout(part, PATIENCE)).is_ok()
            }));
        });
        let mut running = Box::pin(async move { store.run(name, mode, epoch, operation).await });
        let head = tokio::select! {
            biased;
            outcome = &mut running => match parts.try_recv() {
                // the producer was faster than the reader
                Ok(Part::Head(status, headers)) => (status, headers),
                _ => return outcome.map(AttemptResult::Whole),
            },
            Some(Part::Head(status, headers)) = parts.recv() => {
                let rest = async move {
                    if let Err(problem) = running.await {
                        tracing::warn!(name, detail = problem.detail, "an answer broke off");
                    }
                };
                tokio::spawn(rest.in_current_span());
                (status, headers)
            }
        };
        let mut response = stream(head.0, parts);
        add_headers(&mut response, head.1);
        Ok(AttemptResult::Streaming(response))
    }

    /// Reads the answer to a change. The change itself can have made the rights stale.
    async fn read_later(&self, key: Value, mut rights: Rights) -> Result<AttemptResult, Problem> {
        for _ in 0..MAX_ATTEMPTS {
            let key = key.clone();
            let read = move |call: &mut Call, tx: &mut Tx<'_>| read_later(call, tx, &key);
            match self.attempt("ReadLater", Mode::Long, &rights, None, read).await {
                Err(problem) if problem.cause == Some(Error::Stale) => {
                    rights = self.authorized.renew_rights(&rights).await?;
                }
                outcome => return outcome,
            }
        }
        Err(Error::Retry.into())
    }

    async fn answer(
        &self,
        mut answer: Answer,
        mut body: Vec<u8>,
        rights: &Rights,
    ) -> Result<Response<AnswerBody>, Problem> {
        if let Some(key) = answer.read_later.take() {
            match self.read_later(key, rights.clone()).await {
                Ok(AttemptResult::Streaming(response)) => return Ok(response),
                Ok(AttemptResult::Whole((found, read))) => {
                    body = read;
                    answer.headers.retain(|(name, _)| *name != header::ETAG.as_str());
                    answer.headers.extend(found.headers);
                }
                // the change is committed: an answer that cannot be produced is no failure of it
                Err(problem) => {
                    if problem.status() >= 500 {
                        let cause = problem.cause.as_ref().map(ToString::to_string);
                        tracing::warn!(
                            detail = problem.detail,
                            cause,
                            "a change was answered without its item"
                        );
                    }
                    body.clear();
                }
            }
        }
        let status = self.with(|call| check_preconditions(call, &answer, &body))?;
        if status == 304 {
            body.clear();
        }
        let content_type = answer.content_type.unwrap_or("application/json");
        let mut response = respond(status, content_type, body);
        add_headers(&mut response, answer.headers);
        Ok(response)
    }
}

enum AttemptResult {
    Whole(CompleteAnswer),
    Streaming(Response<AnswerBody>),
}

/// The pool filled up after the first step was committed: a counted attempt stays counted.
fn pool_is_full(error: Error) -> Problem {
    let detail =
        "There is too much to do. What was begun was given up: an attempt that it counted stays counted.";
    Problem::from(error).with_detail(detail)
}
