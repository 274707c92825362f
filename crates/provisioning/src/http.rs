//! Requests and responses: routing, authentication and rendering (RFC 7644, section 3).

use chancery_record::Timestamp;
use chancery_resource::{Method, Op, Permit, Problem};
use chancery_scim::{ScimError, ScimType, Target};
use chancery_web::{AnswerBody, App, Provision, RequestBody, add_headers, respond, trace_of};
use http::{HeaderValue, Response, header, request::Parts};

use crate::{
    access::{self, Right},
    address::{self, Document, Endpoint, MeMethod, Type, Verb},
    bulk,
    caller::{Caller, Query, SCIM_JSON, base_of, dry_run},
    discovery::document,
    operations::ME,
    search, users,
};

/// Answers a request.
pub async fn answer(
    app: &App,
    parts: &Parts,
    body: &mut RequestBody,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let mut response = match run(app, parts, body, now).await {
        Ok(response) => response,
        Err(problem) => {
            app.log_problem(&problem, parts);
            error_response(problem, parts)
        }
    };
    if response.headers().get(header::CONTENT_TYPE).is_some() && !accepts_plain_json(parts) {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(SCIM_JSON));
    }
    Ok(response)
}

fn accepts_plain_json(parts: &Parts) -> bool {
    let accepted = parts.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<String> = accepted.map(str::to_ascii_lowercase).collect();
    let names = |kind: &str| accepted.iter().any(|line| line.contains(kind));
    names("application/json") && !names(SCIM_JSON)
}

fn error_response(problem: Problem, parts: &Parts) -> Response<AnswerBody> {
    let error = ScimError::from(&problem);
    let mut response = respond(error.status, SCIM_JSON, error.body().to_string());
    add_headers(&mut response, problem.headers);
    let trace = trace_of(parts);
    // a span id of zero is invalid
    let span = (trace.number() & u128::from(u64::MAX)).max(1);
    add_headers(&mut response, vec![("traceresponse", format!("00-{trace}-{span:016x}-00"))]);
    response
}

async fn run(
    app: &App,
    parts: &Parts,
    body: &mut RequestBody,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let (instance, segments) = address::split(parts.uri.path())?;
    let query: Query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let base = base_of(app, parts);
    // the server's capabilities are public
    if let Ok(Endpoint::Document(Document::Config, _)) = address::read(&segments, &parts.method) {
        let body = document(Document::Config, None, Target::Store, &base, &query)?;
        return Ok(respond(200, SCIM_JSON, body.to_string()));
    }
    let endpoint = address::read(&segments, &parts.method);
    let is_own = segments == ["Me"];
    let permit = if is_own { Permit::Person } else { Permit::UserStore };
    let access = match access::of(app, parts, &instance, permit, now).await {
        // `/Me` is not for client apps
        Err(problem) if is_own && problem.status() == 403 => return Ok(me_unsupported()),
        Err(problem) if is_own && problem.status() == 404 => return Err(users::me::not_found()),
        access => access?,
    };
    let caller = Caller { app, parts, access: &access, now };
    match endpoint? {
        Endpoint::Document(which, name) => {
            access.check(Right::Read).await?;
            let body = document(which, name.as_deref(), access.target, &base, &query)?;
            Ok(respond(200, SCIM_JSON, body.to_string()))
        }
        Endpoint::Resources(of, Verb::Search) => {
            access.check(Right::Read).await?;
            let query = search::query_of(&caller.receive(search::body_op(of), body).await?)?;
            caller.perform(of, &Verb::List, query, None).await
        }
        Endpoint::Resources(of, verb) => {
            let (op, right) = caller.op(of, &verb);
            access.check(right).await?;
            reject_idempotency_key(op, parts)?;
            let json = caller.receive_for(op, body).await?;
            caller.perform(of, &verb, query, json).await
        }
        Endpoint::SearchAll => {
            access.check(Right::Read).await?;
            let query = search::query_of(&caller.receive(search::body_op(Type::Users), body).await?)?;
            search::all(&caller, query).await
        }
        Endpoint::Bulk => {
            reject_idempotency_key(bulk::op(), parts)?;
            let (dry_run, _) = dry_run(bulk::op(), query)?;
            let sent = caller.receive(bulk::op(), body).await?;
            bulk::run(&caller, &sent, dry_run).await
        }
        Endpoint::Me(_) if !access.is_person() => Ok(me_unsupported()),
        Endpoint::Me(method) => {
            let op = match method {
                MeMethod::Read => &ME.read,
                MeMethod::Replace => &ME.replace,
                MeMethod::Patch => &ME.patch,
            };
            let body = caller.receive_for(op, body).await?;
            let (dry_run, query) = dry_run(op, query)?;
            caller.run(Right::Read, Provision { op, path: Vec::new(), query, body, dry_run }).await
        }
    }
}

/// The response of `/Me` to a caller that is no person.
fn me_unsupported() -> Response<AnswerBody> {
    let detail = "/Me is for people who signed in: a directory or client app is nobody.".to_owned();
    let error = ScimError { status: 501, scim_type: None, detail, errors: Vec::new() };
    let mut response = respond(501, SCIM_JSON, error.body().to_string());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Rejects an idempotency key, which the API of version 2 supports: a client that sends one relies on it.
fn reject_idempotency_key(op: &Op, parts: &Parts) -> Result<(), Problem> {
    if op.method != Method::Post || !parts.headers.contains_key("idempotency-key") {
        return Ok(());
    }
    let detail = "SCIM has no Idempotency-Key: nothing was done. Leave it out. A creation that is repeated is 409, since its \
                  userName, displayName or externalId is there; search for that, and see what there is.";
    Err(ScimError::new(ScimType::InvalidValue, detail).into())
}
