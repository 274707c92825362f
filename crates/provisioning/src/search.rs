//! Search by POST (RFC 7644, section 3.4.3), over one resource type or all.

use chancery_record::Json;
use chancery_resource::{Op, Problem};
use chancery_scim::{ScimError, ScimType};
use chancery_web::{AnswerBody, respond};
use http::Response;
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Value, json};

use crate::{
    address::{Type, Verb},
    caller::{Caller, Query},
    operations::Operations,
};

const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
/// The largest response that is parsed, in bytes: a page of a thousand.
const MAX_RESPONSE: usize = 32 << 20;

/// An operation with the body limits of a search.
pub fn body_op(of: Type) -> &'static Op {
    let [users, groups] = Operations::at(chancery_scim::Target::Store);
    match of {
        Type::Users => &users.create,
        Type::Groups => &groups.create,
    }
}

/// The parameters of a body, as those of a query.
///
/// # Errors
/// The body is no object.
pub fn query_of(body: &Json) -> Result<Query, Problem> {
    let Json::Object(members) = body else {
        return Err(ScimError::new(ScimType::InvalidSyntax, "The body must be an object.").into());
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

/// Searches users and then groups, as one list. A type that does not support the query has no matches.
///
/// # Errors
/// No type supports the query.
pub async fn all(caller: &Caller<'_>, query: Query) -> Result<Response<AnswerBody>, Problem> {
    let parameter = |name: &str, default: usize| {
        let text = query.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
        text.and_then(|text| text.parse::<i64>().ok())
            .map_or(default, |number| usize::try_from(number).unwrap_or(0))
    };
    let (mut start, mut left) = (parameter("startIndex", 1).max(1), parameter("count", 100).min(1000));
    let first = start;
    let (mut total, mut resources_found, mut problems) = (0, Vec::new(), Vec::new());
    for of in [Type::Users, Type::Groups] {
        let mut own = query.clone();
        own.retain(|(name, _)| !matches!(name.as_str(), "startIndex" | "count" | "cursor"));
        own.extend([("startIndex".to_owned(), start.to_string()), ("count".to_owned(), left.to_string())]);
        let page = match caller.perform(of, &Verb::List, own, None).await {
            Ok(response) => json_of(response).await?,
            Err(problem) if problem.status() == 400 => {
                problems.push(problem);
                continue;
            }
            Err(problem) => return Err(problem),
        };
        let matches = page.get("totalResults").and_then(Value::as_u64);
        let matches = matches.and_then(|total| usize::try_from(total).ok()).unwrap_or(0);
        let resources = page.get("Resources").and_then(Value::as_array).cloned().unwrap_or_default();
        total += matches;
        left -= resources.len().min(left);
        start = start.saturating_sub(matches).max(1);
        resources_found.extend(resources);
    }
    if problems.len() == 2
        && let Some(problem) = problems.pop()
    {
        return Err(problem);
    }
    let body = json!({
        "schemas": [LIST], "totalResults": total, "startIndex": first, "itemsPerPage": resources_found.len(), "Resources": resources_found,
    });
    Ok(respond(200, "application/scim+json", body.to_string()))
}

/// The JSON of a response.
///
/// # Errors
/// The body broke off.
pub async fn json_of(response: Response<AnswerBody>) -> Result<Value, Problem> {
    let body = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
    let broken = || Problem::from(chancery_resource::StoreError::Internal("an answer broke off".into()));
    let bytes = body.map_err(|_| broken())?.to_bytes();
    if bytes.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&bytes).map_err(|_| broken()) }
}
