//! The operations of a request, run one by one.

use std::collections::{BTreeMap, BTreeSet};

use chancery_record::Json;
use chancery_resource::Problem;
use chancery_scim::{ScimError, ScimType};
use http::{Method, header};
use serde_json::{Map, Value};

use super::{BulkOperation, REFERENCE_PREFIX, cycles, dry_run, shortened};
use crate::{
    address::{self, Endpoint, Verb},
    caller::Caller,
    search::json_of,
};

/// Replaces references by ids.
fn resolve(value: &mut Value, created: &BTreeMap<String, String>) -> Result<(), Problem> {
    match value {
        Value::String(text) => {
            if let Some(id) = text.strip_prefix(REFERENCE_PREFIX) {
                *text = created.get(id).cloned().ok_or_else(|| pending(id))?;
            }
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| resolve(item, created))?,
        Value::Object(members) => members.values_mut().try_for_each(|value| resolve(value, created))?,
        _ => {}
    }
    Ok(())
}

fn pending(id: &str) -> Problem {
    conflict(format!("Nothing was created under the bulkId {}.", shortened(id)))
}

/// A conflict that names no value of the body.
fn conflict(detail: String) -> Problem {
    let mut problem = Problem::conflict(detail);
    problem.errors = Vec::new().into();
    problem
}

/// The result of an operation.
pub struct OperationResult {
    /// Its entry in the response.
    pub response: Map<String, Value>,
    /// The id of the resource that it created.
    pub created: Option<String>,
    /// Whether it failed.
    pub failed: bool,
}

/// Status, location and version of a written resource.
pub type Written = (u16, Option<String>, Option<String>);

/// A bulk request that is being run.
pub struct Execution<'a> {
    pub caller: &'a Caller<'a>,
    /// Whether the operations are validated only.
    pub dry_run: bool,
    /// The ids of created resources, by bulkId.
    pub created: &'a BTreeMap<String, String>,
    /// The bulkIds of resources that are still to be created.
    pub pending: &'a BTreeSet<String>,
}

impl Execution<'_> {
    /// Runs an operation.
    pub async fn run(&self, operation: &BulkOperation) -> OperationResult {
        let mut response = Map::new();
        response.insert("method".into(), operation.method.as_str().into());
        response.extend(operation.bulk_id.as_ref().map(|id| ("bulkId".to_owned(), id.as_str().into())));
        match self.perform(operation).await {
            Ok((status, location, version)) => {
                response.insert("status".into(), status.to_string().into());
                let created = location.as_deref().and_then(|location| location.rsplit_once('/'));
                let created = created.map(|(_, id)| id.to_owned());
                response.extend(location.map(|location| ("location".to_owned(), location.into())));
                response.extend(version.map(|version| ("version".to_owned(), version.into())));
                OperationResult { response, created, failed: false }
            }
            Err(problem) => {
                refuse(&mut response, &problem);
                if operation.method != Method::POST {
                    response.insert("location".into(), operation.path.as_str().into());
                }
                OperationResult { response, created: None, failed: true }
            }
        }
    }

    /// Adds the manager that was taken out of a creation because it was created later.
    pub async fn add_manager(&self, operation: &mut BulkOperation, manager: &str) {
        let own = operation.bulk_id.as_ref().and_then(|id| self.created.get(id));
        let (Some(own), Some(response)) = (own, &mut operation.response) else { return };
        let result = match self.created.get(manager) {
            Some(_) if self.dry_run => return,
            Some(id) => {
                let patch = BulkOperation {
                    method: Method::PATCH,
                    path: format!("{}/{own}", operation.path.trim_end_matches('/')),
                    bulk_id: None,
                    version: None,
                    data: Some(cycles::patch(id)),
                    response: None,
                };
                self.perform(&patch).await
            }
            None => Err(pending(manager)),
        };
        match result {
            Ok((_, _, version)) => {
                response.insert("version".into(), version.into());
            }
            Err(problem) => refuse(response, &problem),
        }
    }

    async fn perform(&self, operation: &BulkOperation) -> Result<Written, Problem> {
        let caller = self.caller;
        let mut path = operation.path.clone();
        let refers = operation.path.split_once(REFERENCE_PREFIX);
        if let Some((before, after)) = refers {
            let id = after.split('/').next().unwrap_or_default();
            path = format!("{before}{}", self.created.get(id).ok_or_else(|| pending(id))?);
        }
        let segments: Vec<String> = path.trim_start_matches('/').split('/').map(str::to_owned).collect();
        let Endpoint::Resources(of, verb) = address::read(&segments, &operation.method)? else {
            return Err(ScimError::new(ScimType::InvalidPath, "A path names users or groups.").into());
        };
        if verb == Verb::Search {
            let detail = "A request changes things; it does not search.";
            return Err(ScimError::new(ScimType::InvalidPath, detail).into());
        }
        let (op, right) = caller.op(of, &verb);
        caller.access.check(right).await?;
        let body = if op.takes_body() { Some(self.body_of(operation)?) } else { None };
        if self.dry_run && refers.is_some() {
            return dry_run::validate(op, body.as_ref());
        }
        let version = operation.version.as_deref();
        let reply = caller.perform_if(of, &verb, body, version, self.dry_run).await?;
        // 204 is for deletions: the other operations only leave out the resource
        let status = match reply.status().as_u16() {
            204 if !matches!(verb, Verb::Delete(_)) => 200,
            status => status,
        };
        let header =
            |name| reply.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let version = header(header::ETAG).map(str::to_owned);
        let location = header(header::LOCATION).map(str::to_owned);
        if location.is_some() || version.is_some() || status == 204 {
            let location = location.or_else(|| Some(caller.address_of(&path)));
            return Ok((status, location, version));
        }
        let reply = json_of(reply).await?;
        let location = reply.pointer("/meta/location").and_then(Value::as_str).map(str::to_owned);
        Ok((status, location.or_else(|| Some(caller.address_of(&path))), version))
    }

    /// The body of an operation, with ids instead of references. A dry run removes references: their resources
    /// never exist.
    fn body_of(&self, operation: &BulkOperation) -> Result<Json, Problem> {
        let mut data = operation.data.clone().unwrap_or_default();
        if operation.method == Method::POST
            && let Some(id) = cycles::pending_member(&data, self.pending)
        {
            let detail =
                "would put a group inside itself. Leave out one of the members that form the circle.";
            return Err(conflict(format!("The member {} {detail}", shortened(id))));
        }
        let original = self.dry_run.then(|| data.clone());
        resolve(&mut data, self.created)?;
        if let Some(original) = original {
            data = original;
            dry_run::remove_references(&mut data);
        }
        Ok(Json::from_serde(data))
    }
}

/// Adds an error to an operation's response.
fn refuse(response: &mut Map<String, Value>, problem: &Problem) {
    let error = ScimError::from(problem);
    response.insert("status".into(), error.status.to_string().into());
    response.insert("response".into(), error.body());
}
