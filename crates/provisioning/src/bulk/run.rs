//! The operations of a request, run one by one.

use std::collections::{BTreeMap, BTreeSet};

use chancery_record::Json;
use chancery_resource::Problem;
use chancery_scim::{Refusal, ScimType};
use http::{Method, header};
use serde_json::{Map, Value};

use super::{REFERENCE, Step, circle, shortened, trial};
use crate::{
    address::{self, Asked, Verb},
    http::Caller,
    search::json_of,
};

/// Puts ids in place of references.
fn resolve(value: &mut Value, made: &BTreeMap<String, String>) -> Result<(), Problem> {
    match value {
        Value::String(text) => {
            if let Some(id) = text.strip_prefix(REFERENCE) {
                *text = made.get(id).cloned().ok_or_else(|| unmade(id))?;
            }
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| resolve(item, made))?,
        Value::Object(members) => members.values_mut().try_for_each(|value| resolve(value, made))?,
        _ => {}
    }
    Ok(())
}

fn unmade(id: &str) -> Problem {
    conflict(format!("Nothing was created under the bulkId {}.", shortened(id)))
}

/// A conflict that names no value of the body.
fn conflict(detail: String) -> Problem {
    let mut problem = Problem::conflict(detail);
    problem.errors = Vec::new().into();
    problem
}

/// What an operation came to.
pub struct Outcome {
    /// What the answer says of it.
    pub told: Map<String, Value>,
    /// The id of what it created.
    pub made: Option<String>,
    /// Whether it was refused.
    pub is_error: bool,
}

/// Status, address and version of what an operation wrote.
pub type Written = (u16, Option<String>, Option<String>);

/// A request that is under way.
pub struct Execution<'a> {
    pub caller: &'a Caller<'a>,
    /// Whether the operations are tried, and nothing is written.
    pub dry_run: bool,
    /// What was created, by its bulkId.
    pub made: &'a BTreeMap<String, String>,
    /// The bulkIds of what is still to be created.
    pub unmade: &'a BTreeSet<String>,
}

impl Execution<'_> {
    /// Runs an operation.
    pub async fn one(&self, step: &Step) -> Outcome {
        let mut told = Map::new();
        told.insert("method".into(), step.method.as_str().into());
        told.extend(step.bulk_id.as_ref().map(|id| ("bulkId".to_owned(), id.as_str().into())));
        match self.perform(step).await {
            Ok((status, location, version)) => {
                told.insert("status".into(), status.to_string().into());
                let made = location.as_deref().and_then(|location| location.rsplit_once('/'));
                let made = made.map(|(_, id)| id.to_owned());
                told.extend(location.map(|location| ("location".to_owned(), location.into())));
                told.extend(version.map(|version| ("version".to_owned(), version.into())));
                Outcome { told, made, is_error: false }
            }
            Err(problem) => {
                refuse(&mut told, &problem);
                if step.method != Method::POST {
                    told.insert("location".into(), step.path.as_str().into());
                }
                Outcome { told, made: None, is_error: true }
            }
        }
    }

    /// Adds the manager that was taken out of a creation, because that one was created later.
    pub async fn close(&self, step: &mut Step, manager: &str) {
        let own = step.bulk_id.as_ref().and_then(|id| self.made.get(id));
        let (Some(own), Some(outcome)) = (own, &mut step.outcome) else { return };
        let closed = match self.made.get(manager) {
            Some(_) if self.dry_run => return,
            Some(id) => {
                let closing = Step {
                    method: Method::PATCH,
                    path: format!("{}/{own}", step.path.trim_end_matches('/')),
                    bulk_id: None,
                    version: None,
                    data: Some(circle::patch(id)),
                    outcome: None,
                };
                self.perform(&closing).await
            }
            None => Err(unmade(manager)),
        };
        match closed {
            Ok((_, _, version)) => {
                outcome.insert("version".into(), version.into());
            }
            Err(problem) => refuse(outcome, &problem),
        }
    }

    async fn perform(&self, step: &Step) -> Result<Written, Problem> {
        let caller = self.caller;
        let mut path = step.path.clone();
        let refers = step.path.split_once(REFERENCE);
        if let Some((before, after)) = refers {
            let id = after.split('/').next().unwrap_or_default();
            path = format!("{before}{}", self.made.get(id).ok_or_else(|| unmade(id))?);
        }
        let segments: Vec<String> = path.trim_start_matches('/').split('/').map(str::to_owned).collect();
        let Asked::Resources(of, verb) = address::read(&segments, &step.method)? else {
            return Err(Refusal::wrong(ScimType::InvalidPath, "A path names users or groups.").into());
        };
        if verb == Verb::Search {
            let detail = "A request changes things; it does not search.";
            return Err(Refusal::wrong(ScimType::InvalidPath, detail).into());
        }
        let (op, right) = caller.op(of, &verb);
        caller.access.check(right).await?;
        let body = if op.takes_body() { Some(self.body_of(step)?) } else { None };
        if self.dry_run && refers.is_some() {
            return trial::judge(op, body.as_ref());
        }
        let version = step.version.as_deref();
        let response = caller.perform_if((of, &verb), body, (version, self.dry_run)).await?;
        // what is there then is not told here, but 204 is for what is gone
        let status = match response.status().as_u16() {
            204 if !matches!(verb, Verb::Delete(_)) => 200,
            status => status,
        };
        let header =
            |name| response.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let version = header(header::ETAG).map(str::to_owned);
        let location = header(header::LOCATION).map(str::to_owned);
        if location.is_some() || version.is_some() || status == 204 {
            let location = location.or_else(|| Some(caller.address_of(&path)));
            return Ok((status, location, version));
        }
        let told = json_of(response).await?;
        let location = told.pointer("/meta/location").and_then(Value::as_str).map(str::to_owned);
        Ok((status, location.or_else(|| Some(caller.address_of(&path))), version))
    }

    /// The body of an operation, with ids in place of references. A dry run leaves these out: what they name is never
    /// there.
    fn body_of(&self, step: &Step) -> Result<Json, Problem> {
        let mut data = step.data.clone().unwrap_or_default();
        if step.method == Method::POST
            && let Some(id) = circle::group_behind(&data, self.unmade)
        {
            let detail =
                "would put a group inside itself. Leave out one of the members that form the circle.";
            return Err(conflict(format!("The member {} {detail}", shortened(id))));
        }
        let tried = self.dry_run.then(|| data.clone());
        resolve(&mut data, self.made)?;
        if let Some(tried) = tried {
            data = tried;
            trial::leave_out(&mut data);
        }
        Ok(Json::from_serde(data))
    }
}

/// Tells why an operation was refused.
fn refuse(outcome: &mut Map<String, Value>, problem: &Problem) {
    let refusal = Refusal::from(problem);
    outcome.insert("status".into(), refusal.status.to_string().into());
    outcome.insert("response".into(), refusal.body());
}
