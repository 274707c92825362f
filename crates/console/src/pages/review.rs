//! A change before it is made, and what two people changed at once.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Map, Value, json};

use super::form::{at, changed_by_form, hidden};
use crate::{
    directory::{Resource, encoded},
    fields::{is_kept, is_secret, told},
    visit::{Visit, one},
};

/// What a change would do, before it is made.
pub fn review_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, base): (&str, &Value),
    changed: &Map<String, Value>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let rows: Vec<Value> = changed_by_form(resource)
        .filter_map(|field| Some((field, changed.get(field.wire())?)))
        .map(|(field, now)| {
            let wire = field.wire();
            let (before, after) = (told(field, base, at(base, wire)), told(field, base, now));
            json!({ "label": words.field(wire), "before": before, "after": after })
        })
        .collect();
    let sent = visit.form.iter().filter(|(name, _)| name != "review" && name != "csrf");
    let hidden: Vec<Value> = sent.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let heading = words.page("review_title");
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "changes": rows,
        "verdict": { "tone": "good", "text": words.page("review_good") },
        "api_call": patch_call(visit, resource, (key, base), changed), "action": here, "hidden": hidden,
        "confirm": words.page("save"), "cancel": { "href": here, "label": words.page("cancel") },
    });
    visit.page(200, "review.html", heading, &content)
}

/// The same change by the interface, without what is secret.
fn patch_call(
    visit: &Visit<'_>,
    resource: &Resource,
    (key, before): (&str, &Value),
    changed: &Map<String, Value>,
) -> String {
    let base = match (&visit.store, resource.is_of_store) {
        (Some(store), true) => format!("/api/userstore/v2/{}/administration", encoded(store)),
        _ => "/api/management/v2".to_owned(),
    };
    let open = changed_by_form(resource).filter(|field| !is_secret(field, before));
    let open = open.filter_map(|field| {
        let value = changed.get(field.wire())?;
        // a file is too long to be read here
        let value = if is_kept(field, before) { json!("…") } else { value.clone() };
        Some((field.wire().to_owned(), value))
    });
    let body = Value::Object(open.collect()).to_string().replace('\'', "'\\''");
    let url = &visit.app.token_service.public_url;
    format!(
        "curl -X PATCH -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\\n  -d '{body}' \\\n  '{url}{base}/{}/{}'",
        resource.name,
        encoded(key)
    )
}

/// What two people changed at once: then, now and yours, side by side. What only one of them changed is chosen already.
pub fn merge_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, base, now): (&str, &Value, &Value),
    yours: &Map<String, Value>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let rows: Vec<Value> = changed_by_form(resource)
        .filter(|field| {
            let wire = field.wire();
            // what forms begin without cannot be compared
            yours.contains_key(wire) || (!is_kept(field, base) && at(base, wire) != at(now, wire))
        })
        .map(|field| {
            let wire = field.wire();
            let (then, present) = (at(base, wire), at(now, wire));
            let mine = yours.get(wire).unwrap_or(then);
            let is_mine = yours.contains_key(wire) && then == present;
            json!({
                "label": words.field(wire), "name": wire, "then": told(field, base, then), "now": told(field, now, present),
                "yours": told(field, base, mine),
                "chosen": if is_mine { "yours" } else { "now" }, "differs": yours.contains_key(wire) && then != present,
            })
        })
        .collect();
    let heading = words.page("merge_title");
    let mut kept = hidden(resource, now);
    kept.push(json!({ "name": "merge", "value": Value::Object(yours.clone()).to_string() }));
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "who": "", "when_iso": "",
        "rows": rows, "action": here, "hidden": kept, "save": words.page("save"),
    });
    visit.page(409, "merge.html", heading, &content)
}

/// What was chosen of one's own changes where two people changed the same.
pub fn chosen(resource: &Resource, yours: &str, form: &[(String, String)]) -> Map<String, Value> {
    let yours: Map<String, Value> = serde_json::from_str(yours).unwrap_or_default();
    let is_chosen = |wire: &str| one(form, wire) == Some("yours");
    let known = |wire: &str| changed_by_form(resource).any(|field| field.wire() == wire);
    yours.into_iter().filter(|(wire, _)| known(wire) && is_chosen(wire)).collect()
}
