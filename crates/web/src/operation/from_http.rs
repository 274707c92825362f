//! One request to an operation: permit, body, transaction, answer.

use std::sync::Arc;

use bytes::Bytes;
use chancery_record::Timestamp;
use chancery_resource::{Action, Body, Custom, Permit, Problem, Reply, Request};
use chancery_store::Error;
use http::{Response, header, request::Parts};

use super::{
    event_stream::{self, Reader},
    idempotency::{self, Claim, ClaimedOperation},
    run::{AuthorizedRequest, run_operation},
};
use crate::{
    app::App,
    auth::rights::Rights,
    body::{
        blocking::run_blocking,
        compress::{compress, is_compressible},
        parse::{self, max_body_of},
    },
    connection::request_body::{RequestBody, SMALL_BODY},
    message::{
        answer::AnswerBody,
        answer_headers::wants_minimal,
        request::{
            check_accept, check_query, conditions, is_merge_patch, media_type, read_form, take_dry_run, text,
        },
    },
    routes::Entry,
};

/// Executes an operation.
pub async fn answer_operation(
    app: &Arc<App>,
    entry: Entry,
    parts: &Parts,
    body: &mut RequestBody,
    mut parameters: Vec<String>,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let op = entry.op;
    let store = if entry.is_user_store { Some(parameters.remove(0)) } else { None };
    if op.permit == Permit::Public {
        app.admit_address(parts, now)?;
    }
    let (requirement, allowed) = app.authorize(parts, op.permit, store.as_deref(), now).await?;
    if op.permit == Permit::Public {
        let name = parameters.first().map_or("", String::as_str);
        app.limiter.admit_name(allowed.scope.store(), name, now)?;
    }
    if op.successor.is_some() {
        let service = if entry.is_user_store { "userstore" } else { "management" };
        let client = allowed.caller.as_ref().map(|caller| caller.id);
        app.metrics.note_deprecated(service, op.name, client);
    }
    check_accept(&parts.headers, op)?;
    let preconditions = conditions(&parts.headers, op)?;
    let mut query = read_form(parts.uri.query().unwrap_or_default())?;
    let dry_run = op.writes() && take_dry_run(&mut query)?;
    check_query(op, &query)?;
    if op.reply == Reply::Events {
        let reader = Reader { op, parts: parts.clone(), store, path: parameters, query };
        return Box::pin(event_stream::open(Arc::clone(app), reader, requirement, allowed)).await;
    }
    let (mut json, mut merge_patch, mut upload, mut reservation) = (None, false, None, None);
    let has_key = matches!(idempotency::key(parts), Ok(Some(_)));
    let mut request_digest = if has_key { idempotency::digest(parts, &[]) } else { Vec::new() };
    if op.takes_body() {
        let caller = allowed.caller.as_ref().map(|caller| caller.holder);
        let taken =
            reservation.insert(app.bodies.reserve(caller, &parts.headers, max_body_of(app, op)).await?);
        let bytes = body.receive(&app.connections, &parts.headers, taken).await?;
        request_digest = digest(app, parts, &bytes).await?;
        if let Action::Custom(Custom { body: Body::Bytes(..), .. }) = op.action {
            let media = text(&parts.headers, header::CONTENT_TYPE).unwrap_or_default();
            upload = Some((media.to_owned(), bytes.into()));
        } else if !bytes.is_empty() {
            merge_patch = is_merge_patch(op, media_type(&parts.headers))?;
            json = Some(parse::parse_json(app, op, bytes, merge_patch).await?);
        } else if !matches!(op.action, Action::Custom(Custom { is_optional: true, .. })) {
            return Err(Problem::invalid("This operation needs a JSON body."));
        }
    }
    if let Action::Custom(Custom { works: Some(purpose), .. }) = op.action
        && app.pool.is_full(purpose)
    {
        return Err(Error::Busy.into());
    }
    let caller = allowed.caller.as_ref().map(|caller| (caller.id, caller.subscription));
    let requirement = Some(requirement);
    let authorized = AuthorizedRequest { app, parts, requirement, renewed: None, store, caller, now };
    let mut rights = Rights::Cached(allowed.epoch);
    let key = idempotency::key(parts)?.filter(|_| !dry_run && op.writes());
    let claim = match key.zip(allowed.caller.as_ref()) {
        Some((key, caller)) => {
            let operation =
                ClaimedOperation { caller: caller.id, shape: op.shape, store: allowed.scope.store() };
            match authorized.claim(&mut rights, operation, key, request_digest).await? {
                Claim::Held(claim) => Some(claim),
                Claim::Answered(response) => return Ok(response),
            }
        }
        None => None,
    };
    let request = Request {
        op,
        path: parameters,
        address: parts.uri.to_string(),
        query,
        preconditions,
        body: json,
        bytes: upload,
        merge_patch,
        dry_run,
        reads_later: !dry_run && claim.is_none(),
        minimal: wants_minimal(&parts.headers, op),
        unchanged: None,
    };
    let outcome = run_operation(authorized, request, &allowed, rights, claim.as_ref()).await;
    drop(reservation);
    let outcome = match claim {
        Some(claim) => claim.finish(app, parts, outcome).await,
        None => outcome,
    };
    let response = outcome?;
    if is_compressible(op) { compress(app, &parts.headers, response).await } else { Ok(response) }
}

/// The digest of a request with this body, where it has an idempotency key.
async fn digest(app: &App, parts: &Parts, bytes: &Bytes) -> Result<Vec<u8>, Problem> {
    if bytes.len() <= SMALL_BODY {
        // an invalid key is answered after the body was read
        let has_key = matches!(idempotency::key(parts), Ok(Some(_)));
        return Ok(if has_key { idempotency::digest(parts, bytes) } else { Vec::new() });
    }
    if idempotency::key(parts)?.is_none() {
        return Ok(Vec::new());
    }
    let (parts, bytes) = (parts.clone(), bytes.clone());
    run_blocking(app, move || idempotency::digest(&parts, &bytes)).await
}
