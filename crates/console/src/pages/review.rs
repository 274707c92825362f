//! Review of a change before it is saved, and merge of concurrent changes.

use chancery_record::Field;
use chancery_resource::Problem;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    difference::change,
    form::{at, editable_fields, hidden},
};
use crate::shell::{
    call::call,
    directory::{Resource, encoded},
    fields::{display_value, is_secret, is_write_only},
    visit::{Visit, one},
};

/// The review page of a change.
pub fn review_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    base: &Value,
    changed: &Map<String, Value>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let rows: Vec<Value> = editable_fields(resource)
        .filter_map(|field| Some((field, changed.get(field.wire())?)))
        .map(|(field, now)| {
            let wire = field.wire();
            let (before, after) =
                (display_value(field, base, at(base, wire)), display_value(field, base, now));
            change(&words.field(wire), &before, &after)
        })
        .collect();
    let sent = visit.form.iter().filter(|(name, _)| name != "review" && name != "csrf");
    let hidden: Vec<Value> = sent.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let heading = words.page("review_title");
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "changes": rows,
        "verdict": { "tone": "good", "text": words.page("review_good") },
        "api_call": patch_call(visit, resource, key, base, changed), "action": here, "hidden": hidden,
        "confirm": words.page("save"), "cancel": { "href": here, "label": words.page("cancel") },
    });
    visit.page(200, "review.html", heading, &content)
}

/// The change as a curl command, without secrets.
fn patch_call(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    before: &Value,
    changed: &Map<String, Value>,
) -> String {
    let Some(op) = resource.patch else { return String::new() };
    let open = editable_fields(resource).filter(|field| !is_secret(field, before));
    let open = open.filter_map(|field| {
        let value = changed.get(field.wire())?;
        // a file is too long for the command
        let value = if is_write_only(field, before) { json!("…") } else { value.clone() };
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

/// The context of a merge: the page of the row, and its editable fields.
pub struct Merged<'a> {
    /// The path of the row's page, which receives the form.
    pub here: &'a str,
    /// The fields.
    pub fields: &'a [&'static Field],
    /// Who changed the row last and when, if the user may know.
    pub last: Option<(String, String)>,
}

/// The merge page of concurrent changes: original, current and own values. If only one side changed a field, its value is
/// preselected.
pub fn merge_page(
    visit: &Visit<'_>,
    merged: &Merged<'_>,
    base: &Value,
    now: &Value,
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
                "label": words.field(wire), "name": wire, "then": display_value(field, base, then), "now": display_value(field, now, present),
                "yours": display_value(field, base, mine),
                "chosen": if is_mine { "yours" } else { "now" }, "differs": yours.contains_key(wire) && then != present,
            })
        })
        .collect();
    let heading = words.page("merge_title");
    let mut hidden_fields = hidden(merged.fields.iter().copied(), now);
    hidden_fields.push(json!({ "name": "merge", "value": Value::Object(yours.clone()).to_string() }));
    let (who, when) = merged.last.as_ref().map_or(("", ""), |(who, when)| (who, when));
    let content = json!({
        "back": { "href": merged.here, "label": words.page("back") }, "heading": heading, "who": who, "when_iso": when,
        "rows": rows, "action": merged.here, "hidden": hidden_fields, "save": words.page("save"),
    });
    visit.page(409, "merge.html", heading, &content)
}

/// The own values that were selected in a merge.
pub fn chosen(fields: &[&Field], yours: &str, form: &[(String, String)]) -> Map<String, Value> {
    let yours: Map<String, Value> = serde_json::from_str(yours).unwrap_or_default();
    let is_chosen = |wire: &str| one(form, wire) == Some("yours");
    let known = |wire: &str| fields.iter().any(|field| field.wire() == wire);
    yours.into_iter().filter(|(wire, _)| known(wire) && is_chosen(wire)).collect()
}

/// Whether the change is already stored, as after a repeated submission. Write-only fields cannot be compared.
pub fn is_applied(fields: &[&Field], yours: &Map<String, Value>, now: &Value) -> bool {
    let is_same = |(wire, value): (&String, &Value)| at(now, wire) == value;
    let is_seen = |wire: &str| fields.iter().any(|field| field.wire() == wire && !is_write_only(field, now));
    yours.keys().all(|wire| is_seen(wire)) && yours.iter().all(is_same)
}

/// Whether no field of the form has changed since it was rendered. Write-only fields cannot be compared, so a change of
/// one counts as a possible conflict.
pub fn is_unmodified(fields: &[&Field], yours: &Map<String, Value>, base: &Value, now: &Value) -> bool {
    let is_blind = |field: &Field| yours.contains_key(field.wire()) && is_write_only(field, now);
    !fields.iter().any(|field| is_blind(field) || is_changed(field, base, now))
}

/// Whether a field has changed since the form was rendered. Write-only fields, and fields that the form of an undo lacks,
/// cannot be compared.
fn is_changed(field: &Field, base: &Value, now: &Value) -> bool {
    let wire = field.wire();
    !is_write_only(field, now) && base.get(wire).is_some_and(|then| then != at(now, wire))
}
