//! `Idempotency-Key`: the first answer is stored, encrypted, and repeated.
//!
//! A claim is written first, in a transaction of its own, so that a second request knows of the
//! first while it runs. The answer is written in the transaction of the change itself.

use aws_lc_rs::digest::{Context, SHA256};
use chancery_record::{Timestamp, Value, parse_id};
use chancery_resource::{
    Answer, Call, MasterKey, Persons, Problem, ProblemKind, Reply, Shape, is_personal, keys_of_persons,
    random, shows_persons,
};
use chancery_store::{Error, Mode, StateTable, Tx, selectable};
use http::{HeaderName, HeaderValue, Response, request::Parts};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    app::App,
    auth::rights::Rights,
    message::{
        answer::{AnswerBody, add_headers, problem_body, respond},
        peer::trace_of,
    },
};

/// How long an answer is stored, in milliseconds.
pub const RETENTION: i64 = 24 * 3600 * 1000;
/// How long an unanswered claim lasts after it was last renewed, in milliseconds.
const ABANDONED: i64 = 10_000;
/// How often a claim is renewed while its request runs.
const HELD: std::time::Duration = std::time::Duration::from_secs(3);
/// The most bytes of a stored problem: the refusals of a caller are unlimited, and have no effect.
const LARGEST_PROBLEM: usize = 768;
/// The most stored refusals of one caller.
const MAX_REFUSALS: i64 = 10_000;
/// The longest key, in bytes.
const MAX_KEY: usize = 255;
const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// What a key is claimed for.
#[derive(Clone, Copy)]
pub struct ClaimedOperation {
    /// The caller: others may use the same key.
    pub caller: Uuid,
    /// The operation's resource.
    pub shape: &'static Shape,
    /// The operation's user store.
    pub store: i64,
}

/// The result of claiming a key.
pub enum Claim {
    /// The request is the first with its key.
    Held(HeldClaim),
    /// It was answered before: the stored answer.
    Answered(Response<AnswerBody>),
}

/// A claim: the right to answer first.
#[derive(Clone)]
pub struct HeldClaim {
    caller: Uuid,
    key: Vec<u8>,
    attempt: Uuid,
    master: MasterKey,
    /// The operation's resource and user store.
    shape: &'static Shape,
    store: i64,
}

/// The part of a stored answer that precedes its body.
#[derive(Serialize, Deserialize)]
struct Head {
    status: u16,
    content_type: String,
    headers: Vec<(String, String)>,
}

/// The idempotency key of a request; `None` without one, or where it may not have one.
pub fn key(parts: &Parts) -> Result<Option<&[u8]>, Problem> {
    let key = parts.headers.get("idempotency-key").map(http::HeaderValue::as_bytes);
    if key.is_some_and(|key| key.is_empty() || key.len() > MAX_KEY) {
        return Err(Problem::invalid(format!("An Idempotency-Key has 1 to {MAX_KEY} bytes.")));
    }
    Ok(key.filter(|_| parts.method == http::Method::POST))
}

/// A digest of the identity of a request: method, path, query and body.
pub fn digest(parts: &Parts, body: &[u8]) -> Vec<u8> {
    let mut digest = Context::new(&SHA256);
    for part in [parts.method.as_str(), parts.uri.path(), parts.uri.query().unwrap_or_default()] {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.update(body);
    digest.finish().as_ref().to_vec()
}

enum ClaimState {
    New,
    /// The first request runs; retry after so many seconds.
    Running(i64),
    OtherRequest,
    Erased,
    /// Too many refusals of the caller are stored; for so many seconds.
    Full(i64),
    Answer(Vec<u8>, Persons),
}

/// Claims a key for a request, or returns the stored answer.
pub async fn claim(
    app: &App,
    operation: ClaimedOperation,
    rights: &Rights,
    key: &[u8],
    request: Vec<u8>,
    now: Timestamp,
) -> Result<Claim, Problem> {
    // a body can hold a password: the digest is keyed, so that the database alone allows no attempts at it
    let request = app.context.master.digest("idempotency", &request);
    let ClaimedOperation { caller, shape, store } = operation;
    let held = HeldClaim {
        caller,
        key: aws_lc_rs::digest::digest(&SHA256, key).as_ref().to_vec(),
        attempt: Uuid::from_bytes(random::<16>()),
        master: app.context.master.clone(),
        shape,
        store,
    };
    let (claim, rights) = (held.clone(), rights.clone());
    let found = app.store.run("ClaimIdempotencyKey", Mode::Write, rights.epoch(), move |tx| {
        rights.authorize(tx)?;
        claim.claim(tx, &request, now)
    });
    match found.await? {
        ClaimState::New => Ok(Claim::Held(held)),
        ClaimState::Running(seconds) => Err(Problem::conflict(
            "The first request with this Idempotency-Key is still being worked on. Ask again in a moment.",
        )
        .with_header("retry-after", seconds.to_string())),
        ClaimState::Erased => Err(Problem::new(
            ProblemKind::Erased,
            "The request was answered already, and the answer is no longer stored: it contained data of a person who was \
                erased since, or an earlier release stored it.",
        )),
        ClaimState::Full(seconds) => Err(Problem::new(
            ProblemKind::TooManyRequests,
            format!(
                "{MAX_REFUSALS} requests of this caller with an Idempotency-Key were refused within a day, and no more refusals \
                 are kept. Nothing was done. Send it without a key, or later."
            ),
        )
        .with_header("retry-after", seconds.to_string())),
        ClaimState::OtherRequest => Err(Problem::new(
            ProblemKind::IdempotencyKeyReused,
            "This Idempotency-Key was used for another request. Make a new key for each request.",
        )),
        ClaimState::Answer(sealed, persons) => held
            .open(&sealed, &persons)
            .map(Claim::Answered)
            .ok_or_else(|| Error::Internal("a kept answer cannot be opened".into()).into()),
    }
}

impl HeldClaim {
    fn claim(&self, tx: &mut Tx<'_>, request: &[u8], now: Timestamp) -> Result<ClaimState, Problem> {
        let row = [Value::Id(self.caller), Value::Bytes(self.key.clone())];
        let (stored, full) = find(tx, &row, now)?;
        if let Some(stored) = stored {
            let lifetime = if stored.answer.is_some() { RETENTION } else { ABANDONED };
            let age = now.0 - stored.since;
            if age < lifetime {
                return match stored.answer {
                    _ if stored.request != request => Ok(ClaimState::OtherRequest),
                    Some(answer) => {
                        let Some(persons) = stored.persons else { return Ok(ClaimState::Erased) };
                        let persons =
                            keys_of_persons(&self.master, tx, self.shape, self.store, &ids_of(&persons))?;
                        Ok(persons.map_or(ClaimState::Erased, |persons| ClaimState::Answer(answer, persons)))
                    }
                    None => {
                        Ok(ClaimState::Running(((lifetime - age) / 1000).clamp(0, ABANDONED / 1000 - 1) + 1))
                    }
                };
            }
            tx.queue(
                &StateTable::IdempotentAnswer.delete("WHERE caller = ?1 AND key_digest = ?2"),
                row.to_vec(),
            )?;
        }
        if let Some(seconds) = full {
            return Ok(ClaimState::Full(seconds));
        }
        let [caller, key] = row;
        tx.set_commit_proof(
            "SELECT 1 FROM idempotent_answer WHERE caller = ?1 AND key_digest = ?2 AND attempt = ?3",
            vec![caller.clone(), key.clone(), Value::Id(self.attempt)],
        );
        tx.queue(
            &StateTable::IdempotentAnswer.insert(
                "(caller, key_digest, request_digest, attempt, started_on) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
            ),
            vec![caller, key, Value::Bytes(request.to_vec()), Value::Id(self.attempt), Value::Int(now.0)],
        )?;
        Ok(ClaimState::New)
    }

    /// Stores the answer, in the transaction of the change. If the claim was given up meanwhile, the change
    /// is rolled back, too. Personal data in the answer is encrypted under those persons' keys.
    pub fn record(&self, tx: &mut Tx<'_>, call: &Call, answer: &Answer, body: &[u8]) -> Result<(), Problem> {
        let (persons, body) = self.stored_part(tx, call, body)?;
        let headers =
            answer.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let content_type = answer.content_type.unwrap_or(JSON).to_owned();
        let head = Head { status: answer.status, content_type, headers };
        Ok(self.write(tx, self.seal(&head, body, &persons)?, &persons, None)?)
    }

    /// The persons whom an answer is about, and the part of its body to store. Where nothing changed no
    /// persons were recorded: the answer is about the person in the path. If that person does not exist, only
    /// the head is stored.
    fn stored_part<'a>(
        &self,
        tx: &mut Tx<'_>,
        call: &Call,
        body: &'a [u8],
    ) -> Result<(Persons, &'a [u8]), Error> {
        if !is_personal(self.shape) || body.is_empty() {
            return Ok((Persons::default(), body));
        }
        let noted = call.context.persons.borrow().clone();
        if noted.ids().next().is_some() {
            return Ok((noted, body));
        }
        let named = match parse_id(call.request.parameter(0)) {
            Some(id) => keys_of_persons(&self.master, tx, self.shape, self.store, &[id])?,
            None => None,
        };
        let has_body = named.is_some() || call.request.op.reply != Reply::One;
        Ok((named.unwrap_or_default(), if has_body { body } else { &[] }))
    }

    /// Renews the claim while `running` runs: a repeated request sees that it is in progress.
    pub async fn held<T>(&self, app: &App, running: impl Future<Output = T>) -> T {
        let mut running = std::pin::pin!(running);
        loop {
            tokio::select! {
                biased;
                outcome = &mut running => return outcome,
                () = tokio::time::sleep(HELD) => {}
            }
            let hold = self.hold(app);
            let mut hold = std::pin::pin!(hold);
            tokio::select! {
                biased;
                outcome = &mut running => return outcome,
                () = &mut hold => {}
            }
        }
    }

    /// Renews the claim in a row of its own: the operation's transaction writes the claim itself.
    async fn hold(&self, app: &App) {
        let (attempt, now) = (self.attempt, app.clock.now());
        let held = app.store.run("HoldIdempotencyKey", Mode::Write, None, move |tx| {
            tx.queue(
                &StateTable::IdempotentClaim.insert(
                    "(attempt, held_on) VALUES (?1, ?2) \
                 ON CONFLICT (attempt) DO UPDATE SET held_on = excluded.held_on",
                ),
                vec![Value::Id(attempt), Value::Int(now.0)],
            )
        });
        if let Err(error) = held.await {
            tracing::warn!(%error, "an idempotency key could not be held");
        }
    }

    /// Renews the claim while the operation continues in chunks.
    pub fn renew(&self, tx: &mut Tx<'_>, now: Timestamp) -> Result<(), Problem> {
        let text = StateTable::IdempotentAnswer
            .update("SET started_on = ?1 WHERE caller = ?2 AND key_digest = ?3 AND attempt = ?4");
        let parameters = vec![
            Value::Int(now.0),
            Value::Id(self.caller),
            Value::Bytes(self.key.clone()),
            Value::Id(self.attempt),
        ];
        Ok(tx.queue_one(&text, parameters)?)
    }

    fn write(
        &self,
        tx: &mut Tx<'_>,
        sealed: Vec<u8>,
        persons: &Persons,
        refused_on: Option<Timestamp>,
    ) -> Result<(), Error> {
        let shows_of = if shows_persons(self.shape) { Value::Int(self.store) } else { Value::Null };
        let persons: Vec<u8> = persons.ids().flat_map(Uuid::into_bytes).collect();
        tx.queue_one(
            &StateTable::IdempotentAnswer.update("SET answer = ?1, persons = ?5, shows_of = ?6, refused_on = ?7 WHERE caller = ?2 AND key_digest = ?3 AND attempt = ?4"),
            vec![
                Value::Bytes(sealed),
                Value::Id(self.caller),
                Value::Bytes(self.key.clone()),
                Value::Id(self.attempt),
                Value::Bytes(persons),
                shows_of,
                refused_on.map_or(Value::Null, |time| Value::Int(time.0)),
            ],
        )
    }

    /// Ends the claim of a failed request: a refusal is stored like an answer, if it is long only the beginning of it; one that
    /// may succeed when repeated is not.
    pub async fn finish(
        self,
        app: &App,
        parts: &Parts,
        outcome: Result<Response<AnswerBody>, Problem>,
    ) -> Result<Response<AnswerBody>, Problem> {
        let problem = match outcome {
            Ok(response) => return Ok(response),
            Err(problem) => problem,
        };
        // the change may be committed, with its answer: the key stays for a repeated request
        if matches!(problem.cause, Some(Error::Unknown(_))) {
            return Err(problem);
        }
        let status = problem.status();
        let passing = matches!(status, 401 | 429 | 500..);
        let body = problem_body(&problem, parts);
        let mut response = respond(status, PROBLEM, body);
        add_headers(&mut response, problem.headers.clone());
        let headers =
            problem.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let head = Head { status, content_type: PROBLEM.to_owned(), headers };
        let stored = if passing { Vec::new() } else { shortened(problem.clone(), parts) };
        let (claim, now) = (self, app.clock.now());
        let settled = app.store.run("SettleIdempotencyKey", Mode::Write, None, move |tx| {
            if passing {
                tx.queue(
                    &StateTable::IdempotentAnswer
                        .delete("WHERE caller = ?1 AND key_digest = ?2 AND attempt = ?3"),
                    vec![Value::Id(claim.caller), Value::Bytes(claim.key.clone()), Value::Id(claim.attempt)],
                )
            } else {
                let no_persons = Persons::default();
                claim.write(tx, claim.seal(&head, &stored, &no_persons)?, &no_persons, Some(now))
            }
        });
        if let Err(error) = settled.await {
            tracing::warn!(%error, "an idempotency key could not be settled");
        }
        if passing { Err(problem) } else { Ok(response) }
    }

    fn associated_data(&self) -> String {
        format!("idempotent_answer/{}", self.caller)
    }

    /// The answer, encrypted under the master key, and within that under the keys of the persons it is about.
    fn seal(&self, head: &Head, body: &[u8], persons: &Persons) -> Result<Vec<u8>, Error> {
        let head = serde_json::to_vec(head).map_err(|error| Error::Internal(error.to_string()))?;
        let bytes = [head.as_slice(), b"\n", body].concat();
        Ok(self.master.seal(&self.associated_data(), &persons.seal(&self.associated_data(), &bytes)))
    }

    fn open(&self, sealed: &[u8], persons: &Persons) -> Option<Response<AnswerBody>> {
        let opened = self.master.open(&self.associated_data(), sealed)?;
        let opened = persons.open(&self.associated_data(), opened.expose())?;
        let end = opened.expose().iter().position(|byte| *byte == b'\n')?;
        let (head, body) = opened.expose().split_at_checked(end)?;
        let head: Head = serde_json::from_slice(head).ok()?;
        let known = [JSON, PROBLEM];
        let content_type = known.into_iter().find(|known| *known == head.content_type)?;
        let mut response = respond(head.status, content_type, body.get(1..)?.to_vec());
        for (name, value) in head.headers {
            let (name, value) = (HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
            response.headers_mut().append(name, value);
        }
        add_headers(&mut response, vec![("idempotency-replayed", "true".into())]);
        Some(response)
    }
}

/// The stored part of a problem: of many errors the first, and how many more there are.
fn shortened(mut problem: Problem, parts: &Parts) -> Vec<u8> {
    let counts = problem.detail == Problem::wrong(problem.errors.clone()).detail;
    loop {
        let body = problem_body(&problem, parts);
        if body.len() <= LARGEST_PROBLEM {
            return body;
        }
        if problem.errors.is_empty() {
            break;
        }
        let (remaining, all) = (problem.errors.len() / 2, problem.errors.all());
        while problem.errors.len() > remaining {
            problem.errors.pop();
        }
        problem.errors.count_more(all - problem.errors.all());
        if counts {
            problem.detail = Problem::wrong(problem.errors.clone()).detail;
        }
    }
    let detail = "The request was refused before. What was told then was too long to be kept: send it with another key.";
    Problem::new(problem.kind, detail).body("", &trace_of(parts).to_string())
}

selectable! {
    /// The stored state of a key.
    struct StoredClaim from "FROM idempotent_answer a LEFT JOIN idempotent_claim c ON c.attempt = a.attempt \
        LEFT JOIN idempotent_erasure e ON e.store = a.shows_of AND e.erased_on >= a.started_on \
        WHERE a.caller = ?1 AND a.key_digest = ?2" {
        request: Vec<u8> = "a.request_digest",
        /// When the key was claimed or last renewed.
        since: i64 = "CASE WHEN c.held_on > a.started_on THEN c.held_on ELSE a.started_on END",
        answer: Option<Vec<u8>> = "a.answer",
        /// The ids of the persons whom the answer is about. `None` where the answer shows several people of a store, one of whom
        /// was erased, and where an earlier release stored it, in a form that is no longer read.
        persons: Option<Vec<u8>> = "CASE WHEN e.store IS NULL THEN a.persons END",
    }
}

selectable! {
    /// The stored refusals of a caller, as far as they are counted.
    struct Refusals {
        count: i64 = "count(*)",
        oldest: i64 = "COALESCE(min(refused_on), 0)",
    }
}

/// Reads the stored state of a caller's key, and for how many seconds no more refusals of the caller are stored, if there are
/// too many.
fn find(tx: &mut Tx<'_>, row: &[Value], now: Timestamp) -> Result<(Option<StoredClaim>, Option<i64>), Error> {
    let refusals = format!(
        "SELECT {} FROM (SELECT refused_on FROM idempotent_answer \
         WHERE caller = ?1 AND refused_on > ?2 ORDER BY refused_on LIMIT {MAX_REFUSALS}) refused",
        Refusals::COLUMNS
    );
    let caller: Vec<Value> = row.iter().take(1).cloned().chain([Value::Int(now.0 - RETENTION)]).collect();
    let (mut stored, mut full) = (None, None);
    tx.query_all(&[(StoredClaim::SELECT, row), (&refusals, &caller)], &mut |statement, row| {
        if statement == 1 {
            let Refusals { count, oldest } = Refusals::read(row)?;
            full = (count >= MAX_REFUSALS).then(|| ((oldest + RETENTION - now.0) / 1000).max(1));
        } else {
            stored = Some(StoredClaim::read(row)?);
        }
        Ok::<_, Error>(())
    })?;
    Ok((stored, full))
}

/// The ids that bytes contain, one after another.
fn ids_of(bytes: &[u8]) -> Vec<Uuid> {
    bytes.chunks(16).filter_map(|id| Uuid::from_slice(id).ok()).collect()
}
