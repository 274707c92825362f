//! Where identity providers lead people back to. Only trials of a provider end here: each leads on to its page of the console,
//! which takes the answer by a form.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_federation::TrialState;
use chancery_record::{Uuid, parse_id};
use chancery_resource::{Problem, ProblemKind};
use http::{HeaderValue, Method, Response, header, request::Parts};

use crate::{
    answer::{AnswerBody, respond},
    app::App,
    route::not_allowed,
};

/// The longest query that is passed on, in bytes.
const LONGEST: usize = 8 << 10;

/// Leads on from the callback of an instance.
pub fn of_instance(parts: &Parts, instance: &str) -> Result<Response<AnswerBody>, Problem> {
    let id = parse_id(instance).ok_or_else(|| Problem::not_found("identity provider instance"))?;
    onward(parts, id)
}

/// Leads on from a path that is none of ours, where it is the `CallbackPath` of the trial that the state is of. Nothing is
/// looked up for a stranger's request.
pub fn of_path(app: &App, parts: &Parts) -> Option<Response<AnswerBody>> {
    if !app.sign_in.is_on || parts.method != Method::GET {
        return None;
    }
    let query = parts.uri.query().filter(|query| query.len() <= LONGEST)?;
    let (_, sealed) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "state")?;
    let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed.as_bytes()).ok()?;
    let state = TrialState::read(app.context.master.open(TrialState::LABEL, &sealed)?.expose())?;
    (state.path == parts.uri.path()).then(|| onward(parts, state.instance).ok()).flatten()
}

/// To this server's page of the trial, with the query as it came.
fn onward(parts: &Parts, instance: Uuid) -> Result<Response<AnswerBody>, Problem> {
    if parts.method != Method::GET {
        return Err(not_allowed("GET"));
    }
    let query = parts.uri.query().unwrap_or_default();
    if query.len() > LONGEST {
        return Err(Problem::new(ProblemKind::InvalidRequest, "The query is longer than 8 KiB."));
    }
    let address = format!("/console/IdpInstance/{instance}/trial?{query}");
    let mut response = respond(303, "text/plain", "");
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    Ok(response)
}
