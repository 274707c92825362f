//! Operations of pages: the second half of a request, after it was parsed, with a person's current rights.

use std::{ptr, sync::Arc, time::Duration};

use bytes::Bytes;
use chancery_auth::RightsLookup;
use chancery_record::{FieldError, Timestamp, read_json};
use chancery_resource::{Method, Op, Preconditions, Problem, ProblemKind, Request, Unchanged};
use chancery_store::Error;
use http::{HeaderMap, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::{
    idempotency::{self, Claim, ClaimedOperation},
    run::{AuthorizedRequest, run_operation},
};
use crate::{
    app::App,
    auth::{
        authorization::problem_of_denial,
        rights::Rights,
        visitor::{SessionAuthority, SessionLookup, Visitor},
    },
};

/// The most bytes of an answer to a page.
const LARGEST: usize = 8 << 20;

/// How long a form that is sent twice waits for the first answer, and how often it polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const POLLS: usize = 100;

/// An operation that a page runs.
#[derive(Clone)]
pub struct Input {
    /// The operation.
    pub op: &'static Op,
    /// The path parameters in order, without the user store.
    pub path: Vec<String>,
    /// The query parameters.
    pub query: Vec<(String, String)>,
    /// The body, as JSON.
    pub body: Option<serde_json::Value>,
    /// Whether to validate it alone, and change nothing.
    pub dry_run: bool,
    /// The `Idempotency-Key`, where the operation takes one.
    pub key: Option<String>,
    /// Whether changed rows are omitted, and lists come without their sets: the parts that a page does not show can be long.
    pub is_minimal: bool,
    /// The rows that must be unchanged, or nothing is done.
    pub unchanged: Option<Unchanged>,
}

impl PartialEq for Input {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.op, other.op)
            && self.path == other.path
            && self.query == other.query
            && self.body == other.body
            && (self.dry_run, self.is_minimal) == (other.dry_run, other.is_minimal)
    }
}

impl Input {
    /// An operation without a body.
    pub const fn of(op: &'static Op, path: Vec<String>) -> Self {
        Self {
            op,
            path,
            query: Vec::new(),
            body: None,
            dry_run: false,
            key: None,
            is_minimal: false,
            unchanged: None,
        }
    }
}

/// The answer of an operation.
pub struct Output {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as it goes over the wire.
    pub body: Bytes,
}

impl Output {
    /// The body as JSON; null where there is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The rows of a list, which some answers hold as `items`.
    pub fn rows(&self) -> Vec<serde_json::Value> {
        let listed = match self.json() {
            serde_json::Value::Object(mut members) => members.remove("items").unwrap_or_default(),
            listed => listed,
        };
        if let serde_json::Value::Array(rows) = listed { rows } else { Vec::new() }
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn written_body(body: Option<&serde_json::Value>) -> Vec<u8> {
    body.map(|body| body.to_string().into_bytes()).unwrap_or_default()
}

impl Input {
    /// The request that the operation reads.
    pub(crate) fn request(&self) -> Result<Request, Problem> {
        let json = self.body.is_some().then(|| read_json(&written_body(self.body.as_ref()))).transpose();
        let json = json.map_err(|error| Problem::invalid(error.0))?;
        Ok(Request {
            op: self.op,
            address: format!("?{}", written(&self.query)),
            path: self.path.clone(),
            query: self.query.clone(),
            preconditions: Preconditions { if_match: None, if_none_match: None },
            merge_patch: json.is_some() && self.op.method == Method::Patch,
            body: json,
            bytes: None,
            dry_run: self.dry_run,
            reads_later: false,
            minimal: self.is_minimal,
            unchanged: self.unchanged.clone(),
        })
    }
}

impl App {
    /// Runs an operation for a person, with the person's rights at the time of its transaction.
    ///
    /// # Errors
    /// The operation's own; the session has ended; the permit is missing.
    pub async fn perform(
        &self,
        parts: &Parts,
        visitor: &Visitor,
        input: Input,
        now: Timestamp,
    ) -> Result<Output, Problem> {
        let (op, key) = (input.op, input.key.clone().filter(|_| !input.dry_run && input.op.writes()));
        let allowed = visitor.authorize(op.permit).map_err(problem_of_denial)?;
        let store = visitor.store.as_ref().map(|store| store.scope.name.clone());
        let authority = SessionAuthority { session: self.session(visitor, now).await?, permit: op.permit };
        let mut rights = Rights::Session(Arc::new(authority));
        let digested = key.is_some().then(|| written_body(input.body.as_ref()));
        let mut request = input.request()?;
        let caller = visitor.caller.as_ref();
        let authorized = AuthorizedRequest {
            app: self,
            parts,
            requirement: None,
            renewed: None,
            store,
            caller: Some((caller.id, caller.subscription)),
            now,
        };
        let claim = match key {
            Some(key) => {
                let request = idempotency::digest(parts, &digested.unwrap_or_default());
                let operation =
                    ClaimedOperation { caller: caller.id, shape: op.shape, store: allowed.scope.store() };
                match claim_or_wait(&authorized, &mut rights, operation, key.as_bytes(), request).await? {
                    Claim::Held(claim) => Some(claim),
                    Claim::Answered(response) => return collect(response).await,
                }
            }
            None => None,
        };
        request.reads_later = !request.dry_run && claim.is_none();
        let outcome = run_operation(authorized, request, &allowed, rights, claim.as_ref()).await;
        let outcome = match claim {
            Some(claim) => claim.finish(self, parts, outcome).await,
            None => outcome,
        };
        collect(outcome?).await
    }
}

/// Claims the key of a form. One that is sent twice waits for the first answer, so that both get the same.
async fn claim_or_wait(
    authorized: &AuthorizedRequest<'_>,
    rights: &mut Rights,
    operation: ClaimedOperation,
    key: &[u8],
    request: Vec<u8>,
) -> Result<Claim, Problem> {
    let is_running = |problem: &Problem| {
        problem.kind == ProblemKind::Conflict
            && problem.headers.iter().any(|(name, _)| *name == "retry-after")
    };
    for _ in 0..POLLS {
        match authorized.claim(rights, operation, key, request.clone()).await {
            Err(problem) if is_running(&problem) => tokio::time::sleep(POLL_INTERVAL).await,
            claimed => return claimed,
        }
    }
    authorized.claim(rights, operation, key, request).await
}

impl App {
    /// The session, which the transaction of an operation reads.
    pub(crate) async fn session(&self, visitor: &Visitor, now: Timestamp) -> Result<SessionLookup, Problem> {
        let store = visitor.store.as_ref().map(|store| store.scope.name.as_str());
        let lookup = RightsLookup::new(&self.store, &self.token_service, None, store, now).await?;
        Ok(SessionLookup {
            digest: visitor.digest.clone(),
            store: lookup,
            idle: self.console_lifetimes.idle,
            admin_acr: self.sign_in.admin_acr,
            now,
        })
    }
}

fn written(query: &[(String, String)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish()
}

/// Collects an answer. A stored problem of a repeated request is a problem again.
async fn collect(response: http::Response<crate::message::answer::AnswerBody>) -> Result<Output, Problem> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, LARGEST).collect().await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            let detail =
                "There is more of this than a page takes. Use the interface, or the program's commands.";
            return Problem::new(ProblemKind::PayloadTooLarge, detail);
        }
        Error::Internal("an answer for a page broke off".into()).into()
    })?;
    let output = Output { status: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes() };
    if output.status < 400 { Ok(output) } else { Err(parse_problem(&output.json())) }
}

/// Parses a problem (RFC 9457).
fn parse_problem(body: &serde_json::Value) -> Problem {
    let text = |value: Option<&serde_json::Value>| {
        value.and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    let kind = text(body.get("type"));
    let kind = ProblemKind::ALL.into_iter().find(|known| known.type_uri() == kind);
    let mut problem = Problem::new(kind.unwrap_or(ProblemKind::Conflict), text(body.get("detail")));
    for error in body.get("errors").and_then(serde_json::Value::as_array).into_iter().flatten() {
        problem.errors.note(|| FieldError::new(text(error.get("pointer")), text(error.get("detail"))));
    }
    problem
}

#[cfg(test)]
mod tests {
    use chancery_resource::{Problem, ProblemKind};

    use super::parse_problem;

    #[test]
    fn a_stored_problem_is_parsed() {
        let problem = Problem::wrong_at("/name", "is taken");
        let body = serde_json::from_slice(&problem.body("/x", "t")).unwrap();
        let read = parse_problem(&body);
        assert_eq!((read.kind, &read.detail, &read.errors), (problem.kind, &problem.detail, &problem.errors));
        assert_eq!(parse_problem(&serde_json::Value::Null).kind, ProblemKind::Conflict);
    }
}
