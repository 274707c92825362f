//! The first page: what happened last, and where to go.

use chancery_resource::Problem;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::navigation::places;
use crate::{directory, fields::plain, visit::Visit, words::raised};

/// Changes that are shown.
const CHANGES: &str = "8";

/// Shows it.
///
/// # Errors
/// The operations' own.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let name = visit.visitor.name.split_whitespace().next().unwrap_or_default();
    let greeting = if name.is_empty() {
        words.page("overview").to_owned()
    } else {
        format!("{} {name}", words.page("hello"))
    };
    let doors: Vec<Value> = places(visit)
        .into_iter()
        .flat_map(|(_, items)| items)
        .take(6)
        .map(|place| json!({ "label": place.label, "text": "", "href": place.href, "icon": place.icon }))
        .collect();
    let content = json!({
        "greeting": greeting, "tiles": [], "changes": changes(visit).await?, "steps": [], "places": doors,
    });
    visit.page(200, "overview.html", words.page("overview"), &content)
}

/// The last changes of the user store, for who may read its trail.
async fn changes(visit: &Visit<'_>) -> Result<Value, Problem> {
    let trail = directory::find("CustomAuditTrail", true);
    let Some(op) = trail.and_then(|trail| visit.may(trail.list)) else { return Ok(Value::Null) };
    let mut input = Input::of(op, Vec::new());
    let query = [("count", CHANGES), ("sortBy", "timestamp"), ("sortOrder", "descending")];
    input.query.extend(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let rows = visit.perform(input).await?.json();
    let words = visit.words;
    let lines: Vec<Value> = rows
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|row| {
            let of = |name: &str| plain(row.get(name).unwrap_or(&Value::Null));
            let text = format!("{}: {}", raised(&words.resource(&of("area"))), words.choice(&of("action")));
            json!({ "icon": null, "tone": "", "text": text, "sub": of("primaryKey"), "href": null, "act": null, "iso": of("timestamp") })
        })
        .collect();
    if lines.is_empty() {
        return Ok(Value::Null);
    }
    Ok(json!({
        "title": words.page("recent_changes"), "kind": "timeline", "tone": "", "about": "", "count": null, "lines": lines,
        "more": trail.map(|trail| json!({ "href": visit.address(trail), "label": words.page("all") })), "later": null,
    }))
}
