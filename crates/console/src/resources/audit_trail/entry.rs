//! One entry of an audit trail: who, what and when, the difference, and what a browser needs to prove it.

use chancery_resource::{Op, Problem, ProblemKind};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::{
        difference::{self, Difference},
        history,
        item::read,
    },
    resources::custom_view::editor,
    shell::{
        call::call,
        directory::{Resource, encoded, operation_name},
        fields::plain,
        navigation::list_label,
        render::data,
        visit::Visit,
    },
};

/// The checks that a browser makes of an entry.
const CHECKS: [&str; 5] = ["contents", "key", "signature", "place", "checkpoint"];

/// Shows an entry.
///
/// # Errors
/// The operations' own.
pub async fn show(
    visit: &Visit<'_>,
    trail: &'static Resource,
    id: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let entry = &read(visit, trail, id).await?;
    let words = visit.words;
    let (before, after) = (content(entry, "originalContent"), content(entry, "currentContent"));
    let area = entry["area"].as_str().unwrap_or_default();
    let resource = history::area(area, trail.is_of_store);
    let Difference { changed, unchanged } = difference::between(visit, resource, (&before, &after)).await?;
    let key = plain(&entry["primaryKey"]);
    let action = entry["action"].as_str().unwrap_or_default();
    let names = history::names(visit, trail, std::slice::from_ref(entry)).await?;
    let title = history::item(entry, &names);
    let heading = format!("{}: {} {title}", words.choice(action), words.resource(area));
    let here = format!("{}/{}", visit.address(trail), encoded(id));
    let content = json!({
        "back": { "href": visit.address(trail), "label": list_label(visit, trail) },
        "heading": heading, "icon": trail.presentation.icon, "who": history::actor(visit, entry, &names),
        "when_iso": plain(&entry["timestamp"]), "changes": changed, "unchanged": unchanged,
        "original": entry["originalContent"], "current": entry["currentContent"], "is_erased": is_erased(entry),
        "facts": facts(visit, entry), "item": item(visit, resource, &key, action),
        "proof": { "href": format!("{here}/proof"), "checks": checks(visit) },
        "version": editor::version(visit, entry), "offline": offline(visit, trail), "api_call": calls(visit, trail, id),
    });
    visit.page(200, "entry.html", &heading, &content)
}

/// What a browser needs to prove an entry: the entry, and its place in the tree; null where it is in none yet.
///
/// # Errors
/// The operations' own.
pub async fn proof(
    visit: &Visit<'_>,
    trail: &'static Resource,
    id: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let entry = &read(visit, trail, id).await?;
    let op = visit.need(proving(trail))?;
    let place = match visit.perform(Input::of(op, vec![id.to_owned()])).await {
        Ok(output) => output.json(),
        Err(problem) if problem.kind == ProblemKind::NotFound => Value::Null,
        Err(problem) => return Err(problem),
    };
    Ok(data(&json!({ "entry": entry, "place": place })))
}

/// A content that an entry tells; null where there is none.
fn content(entry: &Value, wire: &str) -> Value {
    let text = entry[wire].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// Whether the contents of an entry went with a person.
fn is_erased(entry: &Value) -> bool {
    let is_gone = |(content, digest): (&str, &str)| entry[content].is_null() && !entry[digest].is_null();
    [("originalContent", "originalDigest"), ("currentContent", "currentDigest")].into_iter().any(is_gone)
}

/// What an entry tells besides.
fn facts(visit: &Visit<'_>, entry: &Value) -> Vec<Value> {
    let wires = ["id", "area", "primaryKey", "user", "dataSource", "person"];
    let facts = wires.into_iter().filter(|wire| !entry[wire].is_null());
    facts.map(|wire| json!({ "label": visit.words.field(wire), "value": plain(&entry[wire]) })).collect()
}

/// The way to the item, where it may still be there.
fn item(visit: &Visit<'_>, resource: Option<&'static Resource>, key: &str, action: &str) -> Value {
    let resource = resource.filter(|one| visit.may(one.read).is_some() && action != "Deleted");
    // one that is no id stands behind its owner's
    let resource = resource.filter(|_| !key.contains('|'));
    resource.map_or(Value::Null, |resource| {
        let href = format!("{}/{}", visit.address(resource), encoded(key));
        json!({ "href": href, "label": visit.words.page("to_item"), "icon": resource.presentation.icon })
    })
}

/// The checks, each with what it says when it is good and when it is bad.
fn checks(visit: &Visit<'_>) -> Vec<Value> {
    let words = visit.words;
    let told = |name: &&str| {
        let say = |how: &str| words.page(&format!("proof_{name}{how}")).to_owned();
        json!({ "name": name, "label": say(""), "good": say("_good"), "bad": say("_bad") })
    };
    CHECKS.iter().map(told).collect()
}

/// How the whole trail is proven without this server's own script.
fn offline(visit: &Visit<'_>, trail: &Resource) -> String {
    let store = visit.store.as_deref().filter(|_| trail.is_of_store).unwrap_or("management");
    let url = &visit.app.token_service.public_url;
    format!(
        "chancery audit export --store '{store}' --output trail.jsonl\n\
         curl -s '{url}/.well-known/audit-keys.json' > audit-keys.json\n\
         chancery audit verify trail.jsonl --keys audit-keys.json"
    )
}

/// The same by the interface: the entry, and its place in the tree.
fn calls(visit: &Visit<'_>, trail: &Resource, id: &str) -> String {
    let ops = [trail.read, proving(trail)];
    let calls = ops.into_iter().flatten().map(|op| call(visit, &Input::of(op, vec![id.to_owned()])));
    calls.collect::<Vec<_>>().join("\n")
}

/// The operation that tells where an entry is in the tree.
fn proving(trail: &Resource) -> Option<&'static Op> {
    trail.other(operation_name!("GetAuditTrailInclusionProof"))
}
