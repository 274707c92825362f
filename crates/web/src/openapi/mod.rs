//! The `OpenAPI` 3.1 document of a service, generated from its operations and field tables.

#![expect(clippy::indexing_slicing, reason = "indexing a serde_json::Value to write makes the member")]

pub mod event_types;
mod operation;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use chancery_resource::{ProblemKind, Service, envelope_schema};
use serde_json::{Map, Value, json};

/// Generates the document, of a server below this path.
pub fn document(service: &Service, base: &str) -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut schemas = schema::shared();
    let mut tags: Vec<(&str, &str)> = Vec::new();
    for op in service.all() {
        schema::add_shape(&mut schemas, op.shape);
        let tag = (op.shape.name, op.shape.about.trim());
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        let path = paths.entry(format!("{}{}", service.base, op.path)).or_default();
        path.insert(op.method.name().to_lowercase(), operation::describe(service, op, &mut schemas));
    }
    let webhooks = if service.is_deprecated { Map::new() } else { event_types::webhooks(service) };
    schemas.insert("Event".to_owned(), envelope_schema());
    retain_used(&mut schemas, &json!([paths, webhooks]));
    let tags: Vec<Value> =
        tags.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": service.title,
            "version": service.version,
            "description": "Every response that is not a success is a problem (RFC 9457) that explains what to do. Members of the response form that a body may not write are ignored.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "contact": { "name": "The operators of this server" },
        },
        "servers": [{ "url": if base.is_empty() { "/" } else { base }, "description": "This server" }],
        "security": [{ "clientCredentials": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": problems(),
            "securitySchemes": { "clientCredentials": {
                "type": "oauth2",
                "description": "An access token of a client app that holds the role for the operation.",
                "flows": { "clientCredentials": { "tokenUrl": format!("{base}/connect/token"), "scopes": {} } },
            } },
        },
    });
    if !webhooks.is_empty() {
        document["components"]["parameters"] = Value::Object(event_types::headers());
        document["webhooks"] = Value::Object(webhooks);
    }
    document
}

/// Removes the schemas that nothing references. Problems reference one.
fn retain_used(schemas: &mut Map<String, Value>, paths: &Value) {
    let mut used = BTreeSet::from(["Problem".to_owned()]);
    let mut open = vec![paths.clone()];
    open.extend(schemas.get("Problem").cloned());
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.into_iter().map(|(_, member)| member)),
            Value::String(text) => {
                if let Some(name) = text.strip_prefix("#/components/schemas/")
                    && used.insert(name.to_owned())
                {
                    open.extend(schemas.get(name).cloned());
                }
            }
            _ => {}
        }
    }
    schemas.retain(|name, _| used.contains(name));
}

/// One response for each status of a problem.
fn problems() -> Value {
    let mut responses = Map::new();
    for kind in ProblemKind::ALL {
        let (status, _, title) = kind.facts();
        let response = responses.entry(format!("Problem{status}")).or_insert_with(|| {
            json!({
                "description": "",
                "content": { "application/problem+json": {
                    "schema": { "$ref": "#/components/schemas/Problem" }, "examples": {},
                } },
            })
        });
        let before = response["description"].as_str().unwrap_or_default().to_owned();
        let separator = if before.is_empty() { "" } else { " Or: " };
        response["description"] = json!(format!("{before}{separator}{title} (`{}`).", kind.type_uri()));
        response["content"]["application/problem+json"]["examples"][kind.facts().1] = json!({ "value": {
            "type": kind.type_uri(), "title": title, "status": status, "detail": "What happened and what to do.",
            "instance": "/api", "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
        } });
        let header = match status {
            401 => Some(("WWW-Authenticate", "How to authenticate (RFC 6750).")),
            405 => Some(("Allow", "The methods that the path supports.")),
            429 | 503 => Some(("Retry-After", "The number of seconds after which to retry.")),
            _ => None,
        };
        if let Some((name, about)) = header {
            response["headers"] = json!({ name: { "description": about, "schema": { "type": "string" } } });
        }
    }
    Value::Object(responses)
}
