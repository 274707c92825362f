//! The responses of a trial, and their schemas.

use chancery_federation::{Check, IdentitySource, has_passed};
use chancery_record::Json;
use serde_json::{Value, json};

use crate::idp_instance::connection::Completed;

/// The maximum number of reported claims.
const MOST: usize = 200;

/// The checks of a trial.
pub fn checks(checks: &[Check]) -> Value {
    let render = |check: &Check| json!({ "name": check.name, "passed": check.passed, "detail": check.detail, "option": check.option });
    checks.iter().map(render).collect()
}

/// The result of a completed trial.
pub fn completed(completed: &Completed) -> Value {
    let identity_source = completed.identity_source.as_ref().map_or("IdToken", IdentitySource::name);
    let sources = [(identity_source, &completed.id_token), ("UserInfo", &completed.user_info)];
    let sources = sources.into_iter().filter_map(|(source, claims)| Some((source, claims.as_ref()?)));
    json!({
        "passed": has_passed(&completed.checks),
        "checks": checks(&completed.checks),
        "claims": claims(sources),
    })
}

/// Each claim with its source: text as it is, anything else as JSON.
fn claims<'a>(sources: impl Iterator<Item = (&'static str, &'a Json)>) -> Value {
    let members = sources.flat_map(|(source, claims)| {
        let members = if let Json::Object(members) = claims { members.as_slice() } else { &[] };
        members.iter().map(move |(name, value)| (source, name, value))
    });
    let reported = members.take(MOST).map(|(source, name, value)| {
        let value = if let Json::Text(text) = value { text.clone() } else { value.to_serde().to_string() };
        json!({ "type": name, "value": value, "source": source })
    });
    reported.collect()
}

fn checks_schema() -> Value {
    json!({
        "type": "array", "description": "The checks that were performed.",
        "items": {
            "type": "object", "required": ["name", "passed", "detail", "option"],
            "properties": {
                "name": { "type": "string", "description": "The name.", "examples": ["issuer"] },
                "passed": { "type": "boolean", "description": "Whether the check passed." },
                "detail": { "type": "string", "description": "What the check found." },
                "option": { "type": ["string", "null"], "description": "The option of the instance that corrects the result, or certStores. Null if it has to be corrected at the identity provider." },
            },
        },
    })
}

/// The schema of the response to a start.
pub fn begun_schema() -> Value {
    json!({
        "type": "object", "description": "A started trial.", "required": ["url", "callback", "checks"],
        "properties": {
            "url": { "type": ["string", "null"], "description": "The URL for the sign-in, valid for ten minutes. Null if the sign-in cannot work." },
            "callback": { "type": "string", "description": "The redirect URI, which must be registered with the identity provider." },
            "checks": checks_schema(),
        },
    })
}

/// The schema of the response to a completion.
pub fn completed_schema() -> Value {
    json!({
        "type": "object", "description": "The result of a trial.", "required": ["passed", "checks", "claims"],
        "properties": {
            "passed": { "type": "boolean", "description": "Whether all checks passed." },
            "checks": checks_schema(),
            "claims": {
                "type": "array", "description": "The claims that the identity provider returned about the person who signed in.",
                "items": {
                    "type": "object", "required": ["type", "value", "source"],
                    "properties": {
                        "type": { "type": "string", "description": "The claim's type.", "examples": ["sub"] },
                        "value": { "type": "string", "description": "The value of the claim. A value that is not text is JSON." },
                        "source": { "type": "string", "enum": ["IdToken", "AccessToken", "Profile", "UserInfo"], "description": "The source of the claim." },
                    },
                },
            },
        },
    })
}
