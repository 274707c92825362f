//! Error messages of the API are translated: every message that a test gets from an operation that the console calls has a German text.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde_json::Value;

/// The services whose operations the console calls.
const OF_CONSOLE: [&str; 2] = ["/api/userstore/v2", "/api/management/v2"];

/// Asserts that the messages of an answer have German texts: those of a problem, and those of checks within an answer.
///
/// # Panics
/// When one has none.
pub fn check(path: &str, headers: &HeaderMap, body: &[u8]) {
    let is_json = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().ends_with(b"json"));
    if is_json && OF_CONSOLE.iter().any(|service| path.starts_with(service)) {
        check_messages(path, &serde_json::from_slice(body).unwrap_or_default());
    }
}

fn check_messages(path: &str, value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| check_messages(path, item)),
        Value::Object(members) => {
            if let Some(message) =
                members.get("detail").and_then(Value::as_str).filter(|message| !message.is_empty())
            {
                assert!(
                    chancery_console::is_translated(message),
                    "{path} answers {message:?}, which has no German text: add it to [refusal] of crates/console/texts/de.toml"
                );
            }
            members.values().for_each(|member| check_messages(path, member));
        }
        _ => (),
    }
}
