//! An audit trail entry: actor, time, difference, and the data for verification in the browser.

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

/// The checks that the browser runs on an entry.
const CHECKS: [&str; 5] = ["contents", "key", "signature", "place", "checkpoint"];

/// Shows an entry.
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
    let Difference { changed, unchanged } = difference::between(visit, resource, &before, &after).await?;
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

/// The data for the verification of an entry: the entry and its inclusion proof; null while it is not yet in the tree.
pub async fn proof(
    visit: &Visit<'_>,
    trail: &'static Resource,
    id: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let entry = &read(visit, trail, id).await?;
    let op = visit.require(proving(trail))?;
    let inclusion = match visit.perform(Input::of(op, vec![id.to_owned()])).await {
        Ok(output) => output.json(),
        Err(problem) if problem.kind == ProblemKind::NotFound => Value::Null,
        Err(problem) => return Err(problem),
    };
    Ok(data(&json!({ "entry": entry, "place": inclusion })))
}

/// A content of an entry; null if there is none.
fn content(entry: &Value, wire: &str) -> Value {
    let text = entry[wire].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// Whether the contents of an entry were erased with a person.
fn is_erased(entry: &Value) -> bool {
    let is_gone = |(content, digest): (&str, &str)| entry[content].is_null() && !entry[digest].is_null();
    [("originalContent", "originalDigest"), ("currentContent", "currentDigest")].into_iter().any(is_gone)
}

/// Further members of an entry.
fn facts(visit: &Visit<'_>, entry: &Value) -> Vec<Value> {
    let wires = ["id", "area", "primaryKey", "user", "dataSource", "person"];
    let facts = wires.into_iter().filter(|wire| !entry[wire].is_null());
    facts.map(|wire| json!({ "label": visit.words.field(wire), "value": plain(&entry[wire]) })).collect()
}

/// The link to the item, if it may still exist.
fn item(visit: &Visit<'_>, resource: Option<&'static Resource>, key: &str, action: &str) -> Value {
    let resource = resource.filter(|one| visit.may(one.read).is_some() && action != "Deleted");
    // a key that is no id follows that of its owner
    let resource = resource.filter(|_| !key.contains('|'));
    resource.map_or(Value::Null, |resource| {
        let href = format!("{}/{}", visit.address(resource), encoded(key));
        json!({ "href": href, "label": visit.words.page("to_item"), "icon": resource.presentation.icon })
    })
}

/// The checks, each with its texts for success and failure.
fn checks(visit: &Visit<'_>) -> Vec<Value> {
    let words = visit.words;
    let check = |name: &&str| {
        let say = |how: &str| words.page(&format!("proof_{name}{how}")).to_owned();
        json!({ "name": name, "label": say(""), "good": say("_good"), "bad": say("_bad") })
    };
    CHECKS.iter().map(check).collect()
}

/// The commands that verify the whole trail without this server's own script.
fn offline(visit: &Visit<'_>, trail: &Resource) -> String {
    let store = visit.store.as_deref().filter(|_| trail.is_of_store).unwrap_or("management");
    let url = &visit.app.token_service.public_url;
    format!(
        "chancery audit export --store '{store}' --output trail.jsonl\n\
         curl -s '{url}/.well-known/audit-keys.json' > audit-keys.json\n\
         chancery audit verify trail.jsonl --keys audit-keys.json"
    )
}

/// The same as curl commands: the entry and its inclusion proof.
fn calls(visit: &Visit<'_>, trail: &Resource, id: &str) -> String {
    let ops = [trail.read, proving(trail)];
    let calls = ops.into_iter().flatten().map(|op| call(visit, &Input::of(op, vec![id.to_owned()])));
    calls.collect::<Vec<_>>().join("\n")
}

/// The operation that returns the inclusion proof of an entry.
fn proving(trail: &Resource) -> Option<&'static Op> {
    trail.other(operation_name!("GetAuditTrailInclusionProof"))
}
