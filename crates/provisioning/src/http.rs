//! Requests and answers: whom a path is about, by whom it is called, and what goes back (RFC 7644, section 3).

use chancery_record::{Json, Timestamp};
use chancery_resource::{Method, Op, Permit, Problem, ProblemKind};
use chancery_scim::{Home, Refusal, ScimType, pointer_of, told};
use chancery_web::{AnswerBody, App, Provision, RequestBody, add_headers, respond, trace::TraceId};
use http::{HeaderValue, Response, header, request::Parts};

use crate::{
    access::{self, Access, Right},
    address::{self, Asked, BASE, Document, Own, Type, Verb},
    bulk,
    discovery::document,
    form::{Form, OWN, Operations},
    search, users,
};

/// The media type of all that is answered, unless somebody wants plain JSON.
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
            refuse(problem, parts)
        }
    };
    if response.headers().get(header::CONTENT_TYPE).is_some() && !wants_plain_json(parts) {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(SCIM_JSON));
    }
    Ok(response)
}

fn wants_plain_json(parts: &Parts) -> bool {
    let accepted = parts.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<String> = accepted.map(str::to_ascii_lowercase).collect();
    let names = |kind: &str| accepted.iter().any(|line| line.contains(kind));
    names("application/json") && !names(SCIM_JSON)
}

fn refuse(problem: Problem, parts: &Parts) -> Response<AnswerBody> {
    let refusal = Refusal::from(&problem);
    let mut response = respond(refusal.status, SCIM_JSON, refusal.body().to_string());
    add_headers(&mut response, problem.headers);
    let trace = TraceId::of(parts);
    // a span of zero is none
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
    // what the server can do anyone may ask, before there is a token
    if let Ok(Asked::Document(Document::Config, _)) = address::read(&segments, &parts.method) {
        let told = document(Document::Config, None, Home::Store, (&base, &query))?;
        return Ok(respond(200, SCIM_JSON, told.to_string()));
    }
    let asked = address::read(&segments, &parts.method);
    let is_own = segments == ["Me"];
    let permit = if is_own { Permit::Person } else { Permit::UserStore };
    let access = match access::of(app, parts, &instance, permit, now).await {
        // a client app is nobody
        Err(problem) if is_own && problem.status() == 403 => return Ok(nobody()),
        Err(problem) if is_own && problem.status() == 404 => return Err(users::me::nobody()),
        access => access?,
    };
    let calls = Caller { app, parts, access: &access, now };
    match asked? {
        Asked::Document(which, name) => {
            access.check(Right::Read).await?;
            let told = document(which, name.as_deref(), access.home, (&base, &query))?;
            Ok(respond(200, SCIM_JSON, told.to_string()))
        }
        Asked::Resources(of, Verb::Search) => {
            access.check(Right::Read).await?;
            let asked = search::query_of(&calls.receive(search::body_op(of), body).await?)?;
            calls.perform((of, &Verb::List), asked, None).await
        }
        Asked::Resources(of, verb) => {
            let (op, right) = calls.op(of, &verb);
            access.check(right).await?;
            refuse_key(op, parts)?;
            let json = calls.receive_for(op, body).await?;
            calls.perform((of, &verb), query, json).await
        }
        Asked::SearchAll => {
            access.check(Right::Read).await?;
            let asked = search::query_of(&calls.receive(search::body_op(Type::Users), body).await?)?;
            search::all(&calls, asked).await
        }
        Asked::Bulk => {
            refuse_key(bulk::op(), parts)?;
            let (dry_run, _) = dry_run(bulk::op(), query)?;
            let sent = calls.receive(bulk::op(), body).await?;
            bulk::run(&calls, &sent, dry_run).await
        }
        Asked::Me(_) if !access.is_person() => Ok(nobody()),
        Asked::Me(how) => {
            let op = match how {
                Own::Read => &OWN.read,
                Own::Replace => &OWN.replace,
                Own::Patch => &OWN.patch,
            };
            let body = calls.receive_for(op, body).await?;
            let (dry_run, query) = dry_run(op, query)?;
            calls.run(Right::Read, Provision { op, path: Vec::new(), query, body, dry_run }).await
        }
    }
}

/// The answer to whoever asks about oneself, and is no person.
fn nobody() -> Response<AnswerBody> {
    let detail = "/Me is for people who signed in: a directory or client app is nobody.".to_owned();
    let refusal = Refusal { status: 501, scim_type: None, detail, errors: Vec::new() };
    let mut response = respond(501, SCIM_JSON, refusal.body().to_string());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Refuses a key for repetitions, which is known elsewhere: whoever sends one counts on it.
fn refuse_key(op: &Op, parts: &Parts) -> Result<(), Problem> {
    if op.method != Method::Post || !parts.headers.contains_key("idempotency-key") {
        return Ok(());
    }
    let detail = "SCIM has no Idempotency-Key: nothing was done. Leave it out. A creation that is repeated is 409, since its \
                  userName, displayName or externalId is there; search for that, and see what there is.";
    Err(Refusal::wrong(ScimType::InvalidValue, detail).into())
}

/// Whether an operation is only to be judged, and the parameters without that.
fn dry_run(op: &Op, mut query: Query) -> Result<(bool, Query), Problem> {
    let mut dry_run = false;
    for (_, value) in query.iter().filter(|(name, _)| op.writes() && name == "dryRun") {
        // a value that is not understood must not write
        dry_run |= match value.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => return Err(Refusal::wrong(ScimType::InvalidValue, "dryRun is true or false.").into()),
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

/// A request, and who sent it.
pub struct Caller<'a> {
    pub app: &'a App,
    pub parts: &'a Parts,
    pub access: &'a Access<'a>,
    pub now: Timestamp,
}

impl Caller<'_> {
    /// The operation of a verb, and the right that it needs.
    pub fn op(&self, of: Type, verb: &Verb) -> (&'static Op, Right) {
        let [users, groups] = Operations::at(self.access.home);
        let (all, writes) = match of {
            Type::Users => (users, Right::WriteUsers),
            Type::Groups => (groups, Right::WriteGroups),
        };
        match verb {
            Verb::List | Verb::Search => (&all.list, Right::Read),
            Verb::Read(_) => (&all.read, Right::Read),
            Verb::Create => (&all.create, writes),
            Verb::Replace(_) => (&all.replace, writes),
            Verb::Patch(_) => (&all.patch, writes),
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
            ProblemKind::InvalidRequest => Refusal::wrong(ScimType::InvalidSyntax, problem.detail).into(),
            _ => problem,
        })?;
        json.ok_or_else(|| Problem::invalid("This operation needs a JSON body."))
    }

    /// The address of what a path below the instance names.
    pub fn address_of(&self, path: &str) -> String {
        format!("{}/{}", base_of(self.app, self.parts), path.trim_start_matches('/'))
    }

    /// Runs an operation of many, or tries it, if what it is about still has this version, without telling what there is
    /// then. The other headers are the whole request's.
    pub async fn perform_if(
        &self,
        (of, verb): (Type, &Verb),
        body: Option<Json>,
        (version, dry_run): (Option<&str>, bool),
    ) -> Result<Response<AnswerBody>, Problem> {
        let (op, right) = self.op(of, verb);
        let wanted = Provision { op, path: verb.path(), query: Vec::new(), body, dry_run };
        let parts = self.parts_if(version);
        Caller { parts: &parts, ..*self }.run(right, wanted).await
    }

    /// The request with this condition alone.
    fn parts_if(&self, version: Option<&str>) -> Parts {
        let mut parts = self.parts.clone();
        parts.headers.remove(header::IF_MATCH);
        parts.headers.remove(header::IF_NONE_MATCH);
        if let Some(version) = version.and_then(|version| HeaderValue::from_str(version).ok()) {
            parts.headers.insert(header::IF_MATCH, version);
        }
        parts
    }

    /// Runs an operation, and tells what there is then.
    pub async fn perform(
        &self,
        (of, verb): (Type, &Verb),
        query: Query,
        body: Option<Json>,
    ) -> Result<Response<AnswerBody>, Problem> {
        let (op, right) = self.op(of, verb);
        let (dry_run, mut query) = dry_run(op, query)?;
        // who may write and not read learns what the write is known by, and nothing of what was there
        let reads = right == Right::Read || self.access.check(Right::Read).await.is_ok();
        if !reads {
            query = vec![("attributes".to_owned(), "id,meta".to_owned())];
        }
        let changed = changed(of, verb, self.access.home).filter(|_| !dry_run && reads);
        let path = verb.path();
        let Some(changed) = changed else {
            return self.run(right, Provision { op, path, query, body, dry_run }).await;
        };
        let wanted = Provision { op, path: path.clone(), query: query.clone(), body, dry_run };
        let done = self.run(right, wanted).await?;
        let wanted = Provision { op: changed, path, query, body: None, dry_run };
        let parts = self.parts_if(None);
        let told = Caller { parts: &parts, ..*self }.run(right, wanted).await;
        // the change is committed: that it cannot be told is no failure of it
        Ok(told.unwrap_or(done))
    }

    /// Runs an operation; what it refuses is told in SCIM's names.
    async fn run(&self, right: Right, wanted: Provision) -> Result<Response<AnswerBody>, Problem> {
        let op = wanted.op;
        // who has the transaction keeps others waiting: a patch that is too much work is refused before
        if let (Method::Patch, Some(body)) = (op.method, &wanted.body) {
            Form::of_shape(op.shape).check_body(op, body)?;
        }
        let granted = (&self.access.allowed(), self.access.authority(right));
        let outcome = self.app.provision(self.parts, granted, wanted, self.now).await;
        outcome.map_err(|problem| in_scim_names(op, problem))
    }
}

/// The operation that tells a change after its commit, where that is not told within it.
fn changed(of: Type, verb: &Verb, home: Home) -> Option<&'static Op> {
    let [users, groups] = Operations::at(home);
    let all = if of == Type::Users { users } else { groups };
    all.changed.as_ref().filter(|_| matches!(verb, Verb::Replace(_) | Verb::Patch(_)))
}

impl Verb {
    /// The parameters of its path.
    pub fn path(&self) -> Vec<String> {
        match self {
            Self::Read(id) | Self::Replace(id) | Self::Patch(id) | Self::Delete(id) => vec![id.clone()],
            Self::List | Self::Search | Self::Create => Vec::new(),
        }
    }
}

/// Refuses bodies that are no JSON.
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

/// A problem that names the members of version 2, in SCIM's names.
fn in_scim_names(op: &'static Op, mut problem: Problem) -> Problem {
    let form = Form::of_shape(op.shape);
    let mut errors = problem.errors.as_slice().to_vec();
    let mut is_renamed = false;
    for error in &mut errors {
        let mut segments = error.pointer.splitn(3, '/').skip(1);
        let (Some(member), rest) = (segments.next(), segments.next()) else { continue };
        if let Some(pointer) = pointer_of(form.of, form.home, member) {
            error.pointer = rest.map_or_else(|| format!("/{pointer}"), |rest| format!("/{pointer}/{rest}"));
            is_renamed = true;
        }
    }
    if is_renamed || errors.len() > 1 {
        problem.detail = told(&errors);
    }
    // the version of the other form is none of this one's
    problem.headers.retain(|(name, _)| *name != "etag");
    problem.errors = errors.into();
    problem
}
