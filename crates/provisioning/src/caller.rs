//! A request to SCIM resources with its authenticated caller: it performs operations in the caller's name.

use chancery_record::{Json, Timestamp};
use chancery_resource::{Method, Op, Problem, ProblemKind};
use chancery_scim::{ScimError, ScimType, Target, error_summary, pointer_of};
use chancery_web::{AnswerBody, App, Provision, RequestBody};
use http::{HeaderValue, Response, header, request::Parts};

use crate::{
    access::{Access, Right},
    address::{BASE, Type, Verb},
    form::Form,
    operations::Operations,
};

/// The media type of all responses, unless the client accepts plain JSON only.
pub const SCIM_JSON: &str = "application/scim+json";

/// The parameters of a query.
pub type Query = Vec<(String, String)>;

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
    pub async fn receive_for(
        &self,
        op: &'static Op,
        body: &mut RequestBody,
    ) -> Result<Option<Json>, Problem> {
        if op.takes_body() { self.receive(op, body).await.map(Some) } else { Ok(None) }
    }

    /// Receives a body.
    pub async fn receive(&self, op: &'static Op, body: &mut RequestBody) -> Result<Json, Problem> {
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
        of: Type,
        verb: &Verb,
        body: Option<Json>,
        version: Option<&str>,
        dry_run: bool,
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
        of: Type,
        verb: &Verb,
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
    pub async fn run(&self, right: Right, provision: Provision) -> Result<Response<AnswerBody>, Problem> {
        let op = provision.op;
        // a transaction keeps others waiting: a patch above the limits is rejected before it
        if let (Method::Patch, Some(body)) = (op.method, &provision.body) {
            Form::of_shape(op.shape).check_body(op, body)?;
        }
        let (allowed, authority) = (self.access.allowed(), self.access.authority(right));
        let outcome = self.app.provision(self.parts, &allowed, authority, provision, self.now).await;
        outcome.map_err(|problem| in_scim_names(op, problem))
    }
}

/// Reads and removes the parameter `dryRun`.
pub fn dry_run(op: &Op, mut query: Query) -> Result<(bool, Query), Problem> {
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

pub fn base_of(app: &App, parts: &Parts) -> String {
    let named = parts.uri.path().strip_prefix(BASE).unwrap_or_default();
    let instance = named.split('/').next().unwrap_or_default();
    format!("{}{BASE}{instance}", app.context.public_url)
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
