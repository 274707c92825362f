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
        "greeting": greeting, "tiles": [], "changes": changes(visit).await?, "steps": steps(visit).await?, "places": doors,
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

/// What a new installation still lacks, told from the data; nothing where the person may not look.
async fn steps(visit: &Visit<'_>) -> Result<Vec<Value>, Problem> {
    let words = visit.words;
    let mut steps = Vec::new();
    let mut add = |key: &str, href: String, is_done: bool| {
        let about = words.page(&format!("{key}_about")).to_owned();
        steps.push(json!({ "label": words.page(key), "about": about, "href": href, "is_done": is_done }));
    };
    let administrators = rows(visit, "RoleAssignment", "roleType eq \"SystemAdmin\"").await?;
    if let Some((resource, rows)) = administrators {
        add("step_second", visit.address(resource), rows.len() > 1);
    }
    if let Some((resource, rows)) = rows(visit, "ClientApp", "allowUserLogin eq true").await? {
        let is_own = |row: &&Value| {
            row.get("id") != Some(&json!(chancery_signin::CONSOLE)) && row.get("name") != Some(&json!("root"))
        };
        add("step_app", format!("{}/new", visit.address(resource)), rows.iter().any(|row| is_own(&row)));
    }
    let is_all_done = steps.iter().all(|step| step.get("is_done") == Some(&json!(true)));
    Ok(if is_all_done { Vec::new() } else { steps })
}

/// Some rows of a resource, for who may list it.
async fn rows(
    visit: &Visit<'_>,
    name: &str,
    filter: &str,
) -> Result<Option<(&'static directory::Resource, Vec<Value>)>, Problem> {
    let Some(resource) = directory::find(name, false) else { return Ok(None) };
    let Some(op) =
        visit.may(resource.list).filter(|_| visit.may(resource.create.or(resource.patch)).is_some())
    else {
        return Ok(None);
    };
    let mut input = Input::of(op, Vec::new());
    input.query.extend(
        [("filter", filter), ("count", "5")].map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let rows = visit.perform(input).await?.json();
    Ok(Some((resource, rows.as_array().cloned().unwrap_or_default())))
}
