//! Searching by a body (RFC 7644, section 3.4.3), among one type of resources or all.

use chancery_record::Json;
use chancery_resource::{Op, Problem};
use chancery_scim::{Refusal, ScimType};
use chancery_web::{AnswerBody, respond};
use http::Response;
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Value, json};

use crate::{
    address::{Type, Verb},
    form::Operations,
    http::{Caller, Query},
};

const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
/// The largest answer that is taken apart, in bytes: a page of a thousand.
const LARGEST: usize = 32 << 20;

/// An operation that takes a body like that of a search.
pub fn body_op(of: Type) -> &'static Op {
    let [users, groups] = Operations::at(chancery_scim::Home::Store);
    match of {
        Type::Users => &users.create,
        Type::Groups => &groups.create,
    }
}

/// The parameters that a body names, as those of a query.
///
/// # Errors
/// The body is no object.
pub fn query_of(body: &Json) -> Result<Query, Problem> {
    let Json::Object(members) = body else {
        return Err(Refusal::wrong(ScimType::InvalidSyntax, "The body must be an object.").into());
    };
    let text = |json: &Json| match json {
        Json::Text(text) => Some(text.clone()),
        Json::Null => None,
        Json::Array(items) => {
            let names: Vec<&str> = items
                .iter()
                .filter_map(|item| if let Json::Text(text) = item { Some(text.as_str()) } else { None })
                .collect();
            Some(names.join(","))
        }
        other => Some(other.to_serde().to_string()),
    };
    Ok(members.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect())
}

/// Searches users and then groups, as one list. What one of them cannot be asked for it has none of.
///
/// # Errors
/// Neither can be asked for this.
pub async fn all(caller: &Caller<'_>, query: Query) -> Result<Response<AnswerBody>, Problem> {
    let asked = |name: &str, default: usize| {
        let text = query.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
        text.and_then(|text| text.parse::<i64>().ok())
            .map_or(default, |number| usize::try_from(number).unwrap_or(0))
    };
    let (mut start, mut left) = (asked("startIndex", 1).max(1), asked("count", 100).min(1000));
    let first = start;
    let (mut total, mut found, mut refused) = (0, Vec::new(), Vec::new());
    for of in [Type::Users, Type::Groups] {
        let mut own = query.clone();
        own.retain(|(name, _)| !matches!(name.as_str(), "startIndex" | "count" | "cursor"));
        own.extend([("startIndex".to_owned(), start.to_string()), ("count".to_owned(), left.to_string())]);
        let page = match caller.perform((of, &Verb::List), own, None).await {
            Ok(response) => json_of(response).await?,
            Err(problem) if problem.status() == 400 => {
                refused.push(problem);
                continue;
            }
            Err(problem) => return Err(problem),
        };
        let there = page.get("totalResults").and_then(Value::as_u64);
        let there = there.and_then(|total| usize::try_from(total).ok()).unwrap_or(0);
        let resources = page.get("Resources").and_then(Value::as_array).cloned().unwrap_or_default();
        total += there;
        left -= resources.len().min(left);
        start = start.saturating_sub(there).max(1);
        found.extend(resources);
    }
    if refused.len() == 2
        && let Some(problem) = refused.pop()
    {
        return Err(problem);
    }
    let told = json!({
        "schemas": [LIST], "totalResults": total, "startIndex": first, "itemsPerPage": found.len(), "Resources": found,
    });
    Ok(respond(200, "application/scim+json", told.to_string()))
}

/// The JSON of an answer.
///
/// # Errors
/// It broke off.
pub async fn json_of(response: Response<AnswerBody>) -> Result<Value, Problem> {
    let body = Limited::new(response.into_body(), LARGEST).collect().await;
    let broken = || Problem::from(chancery_resource::StoreError::Internal("an answer broke off".into()));
    let bytes = body.map_err(|_| broken())?.to_bytes();
    if bytes.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&bytes).map_err(|_| broken()) }
}
