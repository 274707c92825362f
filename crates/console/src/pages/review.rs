//! A change before it is made, and what two people changed at once.

use chancery_record::Field;
use chancery_resource::Problem;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    difference::change,
    form::{at, changed_by_form, hidden},
};
use crate::shell::{
    call::call,
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
            change(&words.field(wire), &before, &after)
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
    let Some(op) = resource.patch else { return String::new() };
    let open = changed_by_form(resource).filter(|field| !is_secret(field, before));
    let open = open.filter_map(|field| {
        let value = changed.get(field.wire())?;
        // a file is too long to be read here
        let value = if is_kept(field, before) { json!("…") } else { value.clone() };
        Some((field.wire().to_owned(), value))
    });
    let mut body: Map<String, Value> = open.collect();
    if resource.shape.fields.iter().any(Field::is_token) {
        let token = one(&visit.form, "concurrencyToken").unwrap_or_default();
        body.insert("concurrencyToken".to_owned(), json!(token));
    }
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = Some(Value::Object(body));
    call(visit, &input)
}

/// What is merged: the page of the row, and its fields that can be changed.
pub struct Merged<'a> {
    /// The address of the row's page, which takes the form.
    pub here: &'a str,
    /// The fields.
    pub fields: &'a [&'static Field],
    /// Who changed the row last and when, for who may know it.
    pub last: Option<(String, String)>,
}

/// What two people changed at once: then, now and yours, side by side. What only one of them changed is chosen already.
pub fn merge_page(
    visit: &Visit<'_>,
    merged: &Merged<'_>,
    (base, now): (&Value, &Value),
    yours: &Map<String, Value>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let rows: Vec<Value> = merged
        .fields
        .iter()
        .filter(|field| {
            let wire = field.wire();
            yours.contains_key(wire) || is_changed(field, base, now)
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
    let mut kept = hidden(merged.fields.iter().copied(), now);
    kept.push(json!({ "name": "merge", "value": Value::Object(yours.clone()).to_string() }));
    let (who, when) = merged.last.as_ref().map_or(("", ""), |(who, when)| (who, when));
    let content = json!({
        "back": { "href": merged.here, "label": words.page("back") }, "heading": heading, "who": who, "when_iso": when,
        "rows": rows, "action": merged.here, "hidden": kept, "save": words.page("save"),
    });
    visit.page(409, "merge.html", heading, &content)
}

/// What was chosen of one's own changes where two people changed the same.
pub fn chosen(fields: &[&Field], yours: &str, form: &[(String, String)]) -> Map<String, Value> {
    let yours: Map<String, Value> = serde_json::from_str(yours).unwrap_or_default();
    let is_chosen = |wire: &str| one(form, wire) == Some("yours");
    let known = |wire: &str| fields.iter().any(|field| field.wire() == wire);
    yours.into_iter().filter(|(wire, _)| known(wire) && is_chosen(wire)).collect()
}

/// Whether what somebody changed is there already, as it is after a form that was sent twice. What forms begin without cannot
/// be compared.
pub fn is_there(fields: &[&Field], yours: &Map<String, Value>, now: &Value) -> bool {
    let is_same = |(wire, value): (&String, &Value)| at(now, wire) == value;
    let is_seen = |wire: &str| fields.iter().any(|field| field.wire() == wire && !is_kept(field, now));
    yours.keys().all(|wire| is_seen(wire)) && yours.iter().all(is_same)
}

/// Whether nothing that a form shows, or that somebody changes by it, was changed by anybody else. Of what forms begin without
/// nobody can tell, so a change of that is never untouched.
pub fn is_untouched(fields: &[&Field], yours: &Map<String, Value>, (base, now): (&Value, &Value)) -> bool {
    let is_blind = |field: &Field| yours.contains_key(field.wire()) && is_kept(field, now);
    !fields.iter().any(|field| is_blind(field) || is_changed(field, base, now))
}

/// Whether a field is another now than when the form was opened. What forms begin without, and what the form of an undo does
/// not have, cannot be compared.
fn is_changed(field: &Field, base: &Value, now: &Value) -> bool {
    let wire = field.wire();
    !is_kept(field, now) && base.get(wire).is_some_and(|then| then != at(now, wire))
}
