//! The callbacks of external identity providers: a sign-in continues here, and a trial of a provider redirects to its page of the
//! console, which takes the answer by a form.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_federation::TrialState;
use chancery_record::{Timestamp, Uuid, parse_id};
use chancery_resource::{Problem, ProblemKind};
use chancery_signin::flow_of_state;
use http::{HeaderValue, Method, Response, header, request::Parts};

use crate::{
    app::App,
    message::answer::{AnswerBody, respond},
    pages,
    routes::not_allowed,
};

/// The longest query that is passed on, in bytes.
const LONGEST: usize = 8 << 10;

/// Continues at the callback of an instance.
///
/// # Errors
/// The path names no instance, the method is not GET, or the query is too long.
pub async fn instance_callback(
    app: &App,
    parts: &Parts,
    instance: &str,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let id = parse_id(instance).ok_or_else(|| Problem::not_found("identity provider instance"))?;
    let query = query(parts)?;
    match state(query).as_deref().and_then(flow_of_state).filter(|_| pages::are_served(app)) {
        Some(flow) => pages::returned(app, parts, flow, now).await,
        None => Ok(redirect_to_trial(query, id)),
    }
}

/// The query of a callback.
fn query(parts: &Parts) -> Result<&str, Problem> {
    if parts.method != Method::GET {
        return Err(not_allowed("GET"));
    }
    let query = parts.uri.query().unwrap_or_default();
    if query.len() > LONGEST {
        return Err(Problem::new(ProblemKind::InvalidRequest, "The query is longer than 8 KiB."));
    }
    Ok(query)
}

fn state(query: &str) -> Option<String> {
    let found = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "state")?;
    Some(found.1.into_owned())
}

/// Continues at an unknown path, where it is the `CallbackPath` of the sign-in or trial that the state is of. Nothing is
/// looked up for an anonymous request: a browser that signs in stores its flow, and the state of a trial is sealed.
pub async fn configured_callback(
    app: &App,
    parts: &Parts,
    now: Timestamp,
) -> Option<Result<Response<AnswerBody>, Problem>> {
    if !pages::are_served(app) || parts.method != Method::GET {
        return None;
    }
    let query = query(parts).ok()?;
    let state = state(query)?;
    if let Some(flow) = flow_of_state(&state) {
        let cookies = pages::Cookies::read(&parts.headers, &app.token_service.public_url);
        cookies.flow(flow)?;
        return Some(pages::returned(app, parts, flow, now).await);
    }
    let sealed = BASE64_URL_SAFE_NO_PAD.decode(state.as_bytes()).ok()?;
    let state = TrialState::read(app.context.master.open(TrialState::LABEL, &sealed)?.expose())?;
    (state.path == parts.uri.path()).then(|| Ok(redirect_to_trial(query, state.instance)))
}

/// Redirects to this server's page of the trial, with the query as it came.
fn redirect_to_trial(query: &str, instance: Uuid) -> Response<AnswerBody> {
    let address = format!("/console/IdpInstance/{instance}/trial?{query}");
    let mut response = respond(303, "text/plain", "");
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}
