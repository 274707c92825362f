//! `Idempotency-Key`: the first answer is kept, encrypted, and given again.
//!
//! A claim is written first, in a transaction of its own, so that a second request knows of the
//! first while it runs. The answer is written in the transaction of the change itself.

use aws_lc_rs::digest::{Context, SHA256};
use chancery_record::{Timestamp, Value};
use chancery_resource::{Answer, Problem, ProblemKind, random};
use chancery_store::{Error, Mode, Tx};
use http::{Response, request::Parts};
use uuid::Uuid;

use crate::{
    answer::{AnswerBody, add_headers, respond},
    app::{App, trace_id},
    authority::Rights,
};

/// How long an answer is kept, in milliseconds.
pub const KEPT: i64 = 24 * 3600 * 1000;
/// How long a claim without an answer stands: longer than any operation runs, or any piece of one.
const ABANDONED: i64 = 2 * 60 * 1000;
/// The longest key, in bytes.
const MAX_KEY: usize = 255;
const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// What came of claiming a key.
pub enum Claim {
    /// The request is the first.
    Ours(Ours),
    /// It was answered before.
    Answered(Response<AnswerBody>),
}

/// The right to answer first.
#[derive(Clone)]
pub struct Ours {
    caller: Uuid,
    key: Vec<u8>,
    attempt: Uuid,
    master: chancery_resource::MasterKey,
}

/// The key of a request, if it has one and may have one.
pub fn key(parts: &Parts) -> Result<Option<&[u8]>, Problem> {
    let key = parts.headers.get("idempotency-key").map(http::HeaderValue::as_bytes);
    if key.is_some_and(|key| key.is_empty() || key.len() > MAX_KEY) {
        return Err(Problem::invalid(format!("An Idempotency-Key has 1 to {MAX_KEY} bytes.")));
    }
    Ok(key.filter(|_| parts.method == http::Method::POST))
}

/// A digest of what makes a request the same: method, path, query and body.
pub fn digest(parts: &Parts, body: &[u8]) -> Vec<u8> {
    let mut digest = Context::new(&SHA256);
    for part in [parts.method.as_str(), parts.uri.path(), parts.uri.query().unwrap_or_default()] {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.update(body);
    digest.finish().as_ref().to_vec()
}

enum Found {
    Nothing,
    Running,
    Other,
    Answer(Vec<u8>),
}

/// Claims a key for a request, or finds its answer.
pub async fn claim(
    app: &App,
    caller: Uuid,
    rights: &Rights,
    key: &[u8],
    request: Vec<u8>,
    now: Timestamp,
) -> Result<Claim, Problem> {
    // a body can hold a password: keyed, so that the database alone does not let anyone try some
    let request = app.desk.master.digest("idempotency", &request);
    let ours = Ours {
        caller,
        key: aws_lc_rs::digest::digest(&SHA256, key).as_ref().to_vec(),
        attempt: Uuid::from_bytes(random::<16>()),
        master: app.desk.master.clone(),
    };
    let (claim, rights) = (ours.clone(), rights.clone());
    let found = app.store.run("ClaimIdempotencyKey", Mode::Write, rights.epoch(), move |tx| {
        rights.look(tx)?;
        claim.claim(tx, &request, now)
    });
    match found.await? {
        Found::Nothing => Ok(Claim::Ours(ours)),
        Found::Running => Err(Problem::conflict(
            "The first request with this Idempotency-Key is still being worked on. Ask again in a moment.",
        )),
        Found::Other => Err(Problem::new(
            ProblemKind::IdempotencyKeyReused,
            "This Idempotency-Key was used for another request. Make a new key for each request.",
        )),
        Found::Answer(sealed) => ours
            .open(&sealed)
            .map(Claim::Answered)
            .ok_or_else(|| Error::Internal("a kept answer cannot be opened".into()).into()),
    }
}

impl Ours {
    fn claim(&self, tx: &mut Tx<'_>, request: &[u8], now: Timestamp) -> Result<Found, Problem> {
        let row = [Value::Id(self.caller), Value::Bytes(self.key.clone())];
        let text = "SELECT request_digest, started_on, answer FROM idempotent_answer \
                    WHERE caller = ?1 AND key_digest = ?2";
        let found = tx.one(text, &row, |row| {
            let answer = if row.is_null(2)? { None } else { Some(row.bytes(2)?.to_vec()) };
            Ok((row.bytes(0)?.to_vec(), row.int(1)?, answer))
        })?;
        if let Some((digest, started, answer)) = found {
            let stands = if answer.is_some() { KEPT } else { ABANDONED };
            if now.0 - started < stands {
                return Ok(match answer {
                    _ if digest != request => Found::Other,
                    Some(answer) => Found::Answer(answer),
                    None => Found::Running,
                });
            }
            tx.queue("DELETE FROM idempotent_answer WHERE caller = ?1 AND key_digest = ?2", row.to_vec())?;
        }
        let [caller, key] = row;
        tx.prove_by(
            "SELECT 1 FROM idempotent_answer WHERE caller = ?1 AND key_digest = ?2 AND attempt = ?3",
            vec![caller.clone(), key.clone(), Value::Id(self.attempt)],
        );
        tx.queue(
            "INSERT INTO idempotent_answer (caller, key_digest, request_digest, attempt, started_on) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
            vec![caller, key, Value::Bytes(request.to_vec()), Value::Id(self.attempt), Value::Int(now.0)],
        )?;
        Ok(Found::Nothing)
    }

    /// Keeps the answer, in the transaction of the change. If the claim was given up meanwhile,
    /// the change is, too.
    pub fn record(&self, tx: &mut Tx<'_>, answer: &Answer, body: &[u8]) -> Result<(), Problem> {
        let sealed = self.seal(answer.status, JSON, body, answer.tagged);
        Ok(self.write(tx, sealed)?)
    }

    /// Holds the claim while the operation goes on in pieces.
    pub fn renew(&self, tx: &mut Tx<'_>, now: Timestamp) -> Result<(), Problem> {
        let text = "UPDATE idempotent_answer SET started_on = ?1 WHERE caller = ?2 AND key_digest = ?3 AND attempt = ?4";
        let parameters = vec![
            Value::Int(now.0),
            Value::Id(self.caller),
            Value::Bytes(self.key.clone()),
            Value::Id(self.attempt),
        ];
        Ok(tx.queue_one(text, parameters)?)
    }

    fn write(&self, tx: &mut Tx<'_>, sealed: Vec<u8>) -> Result<(), Error> {
        tx.queue_one(
            "UPDATE idempotent_answer SET answer = ?1 WHERE caller = ?2 AND key_digest = ?3 AND attempt = ?4",
            vec![
                Value::Bytes(sealed),
                Value::Id(self.caller),
                Value::Bytes(self.key.clone()),
                Value::Id(self.attempt),
            ],
        )
    }

    /// Settles what a failed request leaves: a refusal is kept like an answer; what may pass when
    /// tried again is not.
    pub async fn settle(
        self,
        app: &App,
        parts: &Parts,
        outcome: Result<Response<AnswerBody>, Problem>,
    ) -> Result<Response<AnswerBody>, Problem> {
        let problem = match outcome {
            Ok(response) => return Ok(response),
            Err(problem) => problem,
        };
        // the change may be there, with its answer: the key stays for who asks for it again
        if matches!(problem.cause, Some(Error::Unknown(_))) {
            return Err(problem);
        }
        let status = problem.status();
        let passing = matches!(status, 401 | 429 | 500..);
        let body = problem.body(parts.uri.path(), &trace_id(parts));
        let response = respond(status, PROBLEM, body.clone());
        let claim = self;
        let settled = app.store.run("SettleIdempotencyKey", Mode::Write, None, move |tx| {
            if passing {
                tx.queue(
                    "DELETE FROM idempotent_answer WHERE caller = ?1 AND key_digest = ?2 AND attempt = ?3",
                    vec![Value::Id(claim.caller), Value::Bytes(claim.key.clone()), Value::Id(claim.attempt)],
                )
            } else {
                claim.write(tx, claim.seal(status, PROBLEM, &body, false))
            }
        });
        if let Err(error) = settled.await {
            tracing::warn!(%error, "an idempotency key could not be settled");
        }
        if passing { Err(problem) } else { Ok(response) }
    }

    fn place(&self) -> String {
        format!("idempotent_answer/{}", self.caller)
    }

    fn seal(&self, status: u16, content_type: &str, body: &[u8], tagged: bool) -> Vec<u8> {
        let mut bytes = status.to_be_bytes().to_vec();
        bytes.push(u8::from(tagged));
        bytes.push(u8::from(content_type == JSON));
        bytes.extend_from_slice(body);
        self.master.seal(&self.place(), &bytes)
    }

    fn open(&self, sealed: &[u8]) -> Option<Response<AnswerBody>> {
        let opened = self.master.open(&self.place(), sealed)?;
        let (head, body) = opened.expose().split_at_checked(4)?;
        let [high, low, tagged, is_json] = *<&[u8; 4]>::try_from(head).ok()?;
        let content_type = if is_json == 1 { JSON } else { PROBLEM };
        let tag = chancery_resource::etag(body);
        let mut response = respond(u16::from_be_bytes([high, low]), content_type, body.to_vec());
        if tagged == 1 {
            add_headers(&mut response, vec![("etag", tag)]);
        }
        add_headers(&mut response, vec![("idempotency-replayed", "true".into())]);
        Some(response)
    }
}
