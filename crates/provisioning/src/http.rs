//! Requests and responses: routing, authentication and rendering (RFC 7644, section 3).

use chancery_record::{Json, Timestamp};
use chancery_resource::{Method, Op, Permit, Problem, ProblemKind};
use chancery_scim::{ScimError, ScimType, Target, error_summary, pointer_of};
use chancery_web::{AnswerBody, App, Provision, RequestBody, add_headers, respond, trace_of};
use http::{HeaderValue, Response, header, request::Parts};

use crate::{
    access::{self, Access, Right},
    address::{self, BASE, Document, Endpoint, MeMethod, Type, Verb},
    bulk,
    discovery::document,
    form::{Form, ME, Operations},
    search, users,
};

/// The media type of all responses, unless the client accepts plain JSON only.
const SCIM_JSON: &str = "application/scim+json";

/// The parameters of a query.
pub type Query = Vec<(String, String)>;

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
        let body = document(Document::Config, None, Target::Store, (&base, &query))?;
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
            let body = document(which, name.as_deref(), access.target, (&base, &query))?;
            Ok(respond(200, SCIM_JSON, body.to_string()))
        }
        Endpoint::Resources(of, Verb::Search) => {
            access.check(Right::Read).await?;
            let query = search::query_of(&caller.receive(search::body_op(of), body).await?)?;
            caller.perform((of, &Verb::List), query, None).await
        }
        Endpoint::Resources(of, verb) => {
            let (op, right) = caller.op(of, &verb);
            access.check(right).await?;
            reject_idempotency_key(op, parts)?;
            let json = caller.receive_for(op, body).await?;
            caller.perform((of, &verb), query, json).await
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

/// Reads and removes the parameter `dryRun`.
fn dry_run(op: &Op, mut query: Query) -> Result<(bool, Query), Problem> {
    let mut dry_run = false;
    for (_, value) in query.iter().filter(|(name, _)| op.writes() && name == "dryRun") {
        // a value that is not understood must not write
        dry_run |= match value.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => return Err(ScimError::new(ScimType::InvalidValue, "dryRun is true or false.").into()),
        };
    }
    query.retain(|(name, _)| name != "dryRun");
    Ok((dry_run, query))
}

fn base_of(app: &App, parts: &Parts) -> String {
    let named = parts.uri.path().strip_prefix(BASE).unwrap_or_default();
    let instance = named.split('/').next().unwrap_or_default();
    format!("{}{BASE}{instance}", app.context.public_url)
}

/// A request with its authenticated caller.
pub struct Caller<'a> {
    pub app: &'a App,
    pub parts: &'a Parts,
    pub access: &'a Access<'a>,
    pub now: Timestamp,
}

impl Caller<'_> {
    /// The operation of a verb, and the right that it requires.
    pub fn op(&self, of: Type, verb: &Verb) -> (&'static Op, Right) {
        let [users, groups] = Operations::at(self.access.target);
        let (all, write_right) = match of {
            Type::Users => (users, Right::WriteUsers),
            Type::Groups => (groups, Right::WriteGroups),
        };
        match verb {
            Verb::List | Verb::Search => (&all.list, Right::Read),
            Verb::Read(_) => (&all.read, Right::Read),
            Verb::Create => (&all.create, write_right),
            Verb::Replace(_) => (&all.replace, write_right),
            Verb::Patch(_) => (&all.patch, write_right),
            Verb::Delete(_) => (&all.delete, Right::Delete),
        }
    }

    /// Receives the body of an operation that takes one.
    async fn receive_for(&self, op: &'static Op, body: &mut RequestBody) -> Result<Option<Json>, Problem> {
        if op.takes_body() { self.receive(op, body).await.map(Some) } else { Ok(None) }
    }

    /// Receives a body.
    async fn receive(&self, op: &'static Op, body: &mut RequestBody) -> Result<Json, Problem> {
        check_media(self.parts)?;
        let json = self.app.receive_json(op, &self.parts.headers, body, &self.access.allowed()).await;
        let json = json.map_err(|problem| match problem.kind {
            ProblemKind::InvalidRequest => ScimError::new(ScimType::InvalidSyntax, problem.detail).into(),
            _ => problem,
        })?;
        json.ok_or_else(|| Problem::invalid("This operation needs a JSON body."))
    }

    /// The URL of a path below the instance.
    pub fn address_of(&self, path: &str) -> String {
        format!("{}/{}", base_of(self.app, self.parts), path.trim_start_matches('/'))
    }

    /// Runs an operation of a bulk request, or validates it, if the resource still has this version, without reading the
    /// result. The other headers are those of the whole request.
    pub async fn perform_if(
        &self,
        (of, verb): (Type, &Verb),
        body: Option<Json>,
        (version, dry_run): (Option<&str>, bool),
    ) -> Result<Response<AnswerBody>, Problem> {
        let (op, right) = self.op(of, verb);
        let provision = Provision { op, path: verb.path(), query: Vec::new(), body, dry_run };
        let parts = self.parts_if(version);
        Caller { parts: &parts, ..*self }.run(right, provision).await
    }

    /// The request with this condition only.
    fn parts_if(&self, version: Option<&str>) -> Parts {
        let mut parts = self.parts.clone();
        parts.headers.remove(header::IF_MATCH);
        parts.headers.remove(header::IF_NONE_MATCH);
        if let Some(version) = version.and_then(|version| HeaderValue::from_str(version).ok()) {
            parts.headers.insert(header::IF_MATCH, version);
        }
        parts
    }

    /// Runs an operation, and returns the resource afterwards.
    pub async fn perform(
        &self,
        (of, verb): (Type, &Verb),
        query: Query,
        body: Option<Json>,
    ) -> Result<Response<AnswerBody>, Problem> {
        let (op, right) = self.op(of, verb);
        let (dry_run, mut query) = dry_run(op, query)?;
        // a caller who may write and not read gets only id and version, and nothing of the previous resource
        let may_read = right == Right::Read || self.access.check(Right::Read).await.is_ok();
        if !may_read {
            query = vec![("attributes".to_owned(), "id,meta".to_owned())];
        }
        let changed = changed(of, verb, self.access.target).filter(|_| !dry_run && may_read);
        let path = verb.path();
        let Some(changed) = changed else {
            return self.run(right, Provision { op, path, query, body, dry_run }).await;
        };
        let provision = Provision { op, path: path.clone(), query: query.clone(), body, dry_run };
        let done = self.run(right, provision).await?;
        let provision = Provision { op: changed, path, query, body: None, dry_run };
        let parts = self.parts_if(None);
        let read_back = Caller { parts: &parts, ..*self }.run(right, provision).await;
        // the change is committed: a failure to read it back is no failure of the change
        Ok(read_back.unwrap_or(done))
    }

    /// Runs an operation; errors name SCIM's attributes.
    async fn run(&self, right: Right, provision: Provision) -> Result<Response<AnswerBody>, Problem> {
        let op = provision.op;
        // a transaction keeps others waiting: a patch above the limits is rejected before it
        if let (Method::Patch, Some(body)) = (op.method, &provision.body) {
            Form::of_shape(op.shape).check_body(op, body)?;
        }
        let granted = (&self.access.allowed(), self.access.authority(right));
        let outcome = self.app.provision(self.parts, granted, provision, self.now).await;
        outcome.map_err(|problem| in_scim_names(op, problem))
    }
}

/// The operation that reads a resource after the commit of a change, if the change does not return it.
fn changed(of: Type, verb: &Verb, target: Target) -> Option<&'static Op> {
    let [users, groups] = Operations::at(target);
    let all = if of == Type::Users { users } else { groups };
    all.changed.as_ref().filter(|_| matches!(verb, Verb::Replace(_) | Verb::Patch(_)))
}

impl Verb {
    /// The path parameters.
    pub fn path(&self) -> Vec<String> {
        match self {
            Self::Read(id) | Self::Replace(id) | Self::Patch(id) | Self::Delete(id) => vec![id.clone()],
            Self::List | Self::Search | Self::Create => Vec::new(),
        }
    }
}

/// Rejects bodies that are not JSON.
fn check_media(parts: &Parts) -> Result<(), Problem> {
    let media =
        parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == SCIM_JSON || kind == "application/json" {
        return Ok(());
    }
    let detail = "Send the body as application/scim+json or application/json.";
    Err(Problem::new(ProblemKind::UnsupportedMediaType, detail).with_header("accept", SCIM_JSON))
}

/// Translates the members of version 2 in a problem to SCIM's names.
fn in_scim_names(op: &'static Op, mut problem: Problem) -> Problem {
    let form = Form::of_shape(op.shape);
    let mut errors = problem.errors.as_slice().to_vec();
    let mut is_renamed = false;
    for error in &mut errors {
        let mut segments = error.pointer.splitn(3, '/').skip(1);
        let (Some(member), rest) = (segments.next(), segments.next()) else { continue };
        if let Some(pointer) = pointer_of(form.of, form.target, member) {
            error.pointer = rest.map_or_else(|| format!("/{pointer}"), |rest| format!("/{pointer}/{rest}"));
            is_renamed = true;
        }
    }
    if is_renamed || errors.len() > 1 {
        problem.detail = error_summary(&errors);
    }
    // the version of the other API is not the version here
    problem.headers.retain(|(name, _)| *name != "etag");
    problem.errors = errors.into();
    problem
}
