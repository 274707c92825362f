//! The discovery documents (RFC 7644, section 4).

use chancery_resource::{Problem, ProblemKind};
use chancery_scim::{Target, resource_types, schemas, service_provider_config};
use serde_json::{Value, json};

use crate::address::Document;

const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

/// A document, or the named item of a list.
///
/// # Errors
/// A filter, which these lists do not support, or an unknown name.
pub fn document(
    document: Document,
    name: Option<&str>,
    target: Target,
    base: &str,
    query: &[(String, String)],
) -> Result<Value, Problem> {
    if query.iter().any(|(name, _)| name == "filter") {
        return Err(Problem::new(ProblemKind::Forbidden, "This is a list of a few, and takes no filter."));
    }
    let all = match document {
        Document::Config => return Ok(service_provider_config(base)),
        Document::Schemas => schemas(target, base),
        Document::Types => resource_types(base),
    };
    let Some(name) = name else {
        return Ok(json!({
            "schemas": [LIST], "totalResults": all.len(), "itemsPerPage": all.len(), "startIndex": 1, "Resources": all,
        }));
    };
    let named = |one: &Value| one["id"].as_str().is_some_and(|id| id.eq_ignore_ascii_case(name));
    all.into_iter().find(named).ok_or_else(|| Problem::not_found("schema or type of resources"))
}
