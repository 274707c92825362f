//! One of a resource: its form, what belongs to it, creating and saving. What two people change at once is merged.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Column, DefaultValue, Field, Kind};
use chancery_resource::{Problem, ProblemKind};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    list::{key_of, title_of},
    navigation::{icon, label},
    relate,
};
use crate::{
    arranged,
    directory::{self, Resource, encoded},
    fields::{FormField, changes, filled, is_secret, plain, told, typed},
    proof::is_wanted,
    undo::Undo,
    visit::{Visit, done, one},
};

/// The form of a new one, as it is at first.
///
/// # Errors
/// It cannot be created here.
pub fn show_new(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.may(resource.create).ok_or_else(may_not)?;
    if is_wanted(op) {
        visit.fresh()?;
    }
    let mut preset = Map::new();
    for field in created(resource) {
        let default = match field.access.default {
            DefaultValue::Bool(is_so) => json!(is_so),
            DefaultValue::Int(number) => json!(number),
            DefaultValue::Text(text) => json!(text),
            DefaultValue::None => visit.parameter(field.wire()).map_or(Value::Null, |text| json!(text)),
        };
        preset.insert(field.wire().to_owned(), default);
    }
    new_page(visit, resource, &Value::Object(preset), None)
}

/// Creates one.
///
/// # Errors
/// What has no place in the form.
pub async fn create(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.may(resource.create).ok_or_else(may_not)?;
    let body = filled(created(resource), &visit.form);
    let mut input = Input::of(op, Vec::new());
    input.body = Some(Value::Object(body.clone()));
    input.key = one(&visit.form, "key").map(str::to_owned);
    match visit.perform(input).await {
        Ok(output) => {
            let made = output.json();
            let key = key_of(resource, &made);
            if let Some(shown) = shown_once(visit, resource, &made)? {
                return Ok(shown);
            }
            let address = visit.address(resource);
            let address =
                if resource.read.is_some() { format!("{address}/{}", encoded(&key)) } else { address };
            Ok(done(&address, "created"))
        }
        Err(problem) if is_of_form(&problem) => {
            new_page(visit, resource, &Value::Object(body), Some(&problem))
        }
        Err(problem) => Err(problem),
    }
}

/// A secret that was made, which is shown this once.
fn shown_once(
    visit: &Visit<'_>,
    resource: &Resource,
    made: &Value,
) -> Result<Option<Response<AnswerBody>>, Problem> {
    let secret = made.get("secret").and_then(Value::as_str).filter(|_| resource.name == "ClientAppSecret");
    let Some(secret) = secret else { return Ok(None) };
    let words = visit.words;
    let facts = json!([secret]);
    let content = json!({
        "heading": words.page("secret_title"), "text": words.page("secret_text"), "facts": facts, "trace": "",
        "link": { "href": visit.address(resource), "label": label(visit, resource.name) },
    });
    visit.page(200, "message.html", words.page("secret_title"), &content).map(Some)
}

fn new_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let name = words.resource(resource.name);
    let heading = format!("{} {name}", words.page("new"));
    let fields: Vec<&Field> = created(resource).collect();
    let address = visit.address(resource);
    let content = json!({
        "back": { "href": address, "label": label(visit, resource.name) },
        "heading": heading, "sub": if words.tag == "en" { resource.shape.about } else { "" },
        "icon": icon(resource.name), "avatar": null, "badge": null, "acts": [],
        "errors": errors(visit, problem), "sections": sections(visit, resource, (&fields, values), problem, true),
        "hidden": [{ "name": "key", "value": fresh_key() }], "aside": [],
        "bar": { "save": words.page("create"), "cancel": { "href": address, "label": words.page("cancel") }, "review": false },
        "read_only_note": "", "is_new": true,
    });
    visit.page(status_of(problem), "item.html", &heading, &content)
}

/// Shows one.
///
/// # Errors
/// The operation's own.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let row = read(visit, resource, key).await?;
    item_page(visit, resource, (key, &row), &row, None).await
}

/// Reads one.
///
/// # Errors
/// The operation's own.
pub async fn read(visit: &Visit<'_>, resource: &'static Resource, key: &str) -> Result<Value, Problem> {
    let op = resource.read.ok_or_else(|| Problem::not_found("page of one of these"))?;
    Ok(visit.perform(Input::of(op, vec![key.to_owned()])).await?.json())
}

/// Saves what differs from what was there when the form was opened.
///
/// # Errors
/// What has no place in the form.
pub async fn save(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.may(resource.patch).ok_or_else(may_not)?;
    let base: Value = serde_json::from_str(one(&visit.form, "base").unwrap_or("{}")).unwrap_or_default();
    let changed = match one(&visit.form, "merge") {
        Some(yours) => chosen(resource, yours, &visit.form),
        None => changes(changed_by_form(resource), &visit.form, &base),
    };
    let address = format!("{}/{}", visit.address(resource), encoded(key));
    if changed.is_empty() {
        return Ok(done(&address, "unchanged"));
    }
    let is_review = one(&visit.form, "review") == Some("true");
    let mut body = changed.clone();
    let token = one(&visit.form, "concurrencyToken").unwrap_or_default();
    if resource.shape.fields.iter().any(Field::is_token) {
        body.insert("concurrencyToken".to_owned(), json!(token));
    }
    if !is_review
        && changed_by_form(resource)
            .any(|field| is_secret(field, &base) && changed.contains_key(field.wire()))
    {
        visit.fresh()?;
    }
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = Some(Value::Object(body));
    input.dry_run = is_review;
    match visit.perform(input).await {
        Ok(_) if is_review => review_page(visit, resource, (key, &base), &changed),
        Ok(output) => Ok(saved(visit, resource, (&address, &base), (&changed, &output.json()))),
        Err(problem) if problem.kind == ProblemKind::ConcurrencyConflict => {
            let now = read(visit, resource, key).await?;
            merge_page(visit, resource, (key, &base, &now), &changed)
        }
        Err(problem) if is_of_form(&problem) => {
            let mut row = read(visit, resource, key).await?;
            let mut typed = row.clone();
            if let Some(members) = typed.as_object_mut() {
                members.extend(changed);
            }
            // what was there when the form was opened is still what it is compared with
            if let (Some(row), Value::Object(base)) = (row.as_object_mut(), base) {
                row.extend(base);
                row.insert("concurrencyToken".to_owned(), json!(token));
            }
            item_page(visit, resource, (key, &row), &typed, Some(&problem)).await
        }
        Err(problem) => Err(problem),
    }
}

/// Goes on to what was saved. Saving it again as it was is offered, unless a secret was changed.
fn saved(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (address, base): (&str, &Value),
    (changed, now): (&Map<String, Value>, &Value),
) -> Response<AnswerBody> {
    let fields = || changed_by_form(resource).filter(|field| changed.contains_key(field.wire()));
    if fields().any(|field| is_secret(field, base)) {
        return done(address, "saved");
    }
    let were =
        fields().map(|field| (field.wire().to_owned(), plain(&typed(field, base, at(base, field.wire())))));
    let hidden = [
        ("base".to_owned(), Value::Object(changed.clone()).to_string()),
        ("concurrencyToken".to_owned(), plain(at(now, "concurrencyToken"))),
    ];
    let undo = Undo::of(visit, address.to_owned(), were.chain(hidden).collect());
    visit.done(address, "saved", &undo)
}

async fn item_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, row): (&str, &Value),
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let address = visit.address(resource);
    let title = title_of(resource, row);
    let title = if title.is_empty() { key.to_owned() } else { title };
    let can_change = visit.may(resource.patch).is_some() && changed_by_form(resource).next().is_some();
    let fields: Vec<&Field> = resource.shown().filter(|field| !field.is_token()).collect();
    let here = format!("{address}/{}", encoded(key));
    let bar = can_change.then(|| {
        json!({ "save": words.page("save"), "cancel": { "href": here, "label": words.page("discard") }, "review": true })
    });
    let mut cards = match resource.name {
        "User" => super::user::cards(visit, resource, (key, &here)).await?,
        _ => Vec::new(),
    };
    cards.extend(aside(visit, resource, (key, row)));
    let note = if can_change { "" } else { words.page("read_only") };
    let avatar = arranged::avatar(resource.name, row);
    let icon = if avatar.is_null() { json!(icon(resource.name)) } else { Value::Null };
    let content = json!({
        "back": { "href": address, "label": label(visit, resource.name) },
        "heading": title, "sub": arranged::sub(resource.name, row).unwrap_or_default(), "icon": icon, "avatar": avatar,
        "badge": arranged::badge(resource.name, row, words), "acts": acts(visit, resource, &here),
        "errors": errors(visit, problem),
        "sections": sections(visit, resource, (&fields, values), problem, false),
        "hidden": hidden(resource, row), "aside": cards, "bar": bar,
        "read_only_note": note, "is_new": false,
    });
    visit.page(status_of(problem), "item.html", &title, &content)
}

/// The members of a row that its form can change, and the token that it was read with.
fn hidden(resource: &Resource, row: &Value) -> Value {
    // what is secret, or long, is not told twice: a form that leaves it empty changes nothing
    let base: Map<String, Value> = changed_by_form(resource)
        .filter(|field| !is_secret(field, row))
        .map(|field| (field.wire().to_owned(), at(row, field.wire()).clone()))
        .collect();
    json!([
        { "name": "base", "value": Value::Object(base).to_string() },
        { "name": "concurrencyToken", "value": plain(at(row, "concurrencyToken")) },
    ])
}

/// A member of a row.
fn at<'a>(row: &'a Value, wire: &str) -> &'a Value {
    row.get(wire).unwrap_or(&Value::Null)
}

/// What can be done with one, besides changing it: each has a page of its own.
fn acts(visit: &Visit<'_>, resource: &Resource, here: &str) -> Vec<Value> {
    let first = arranged::first_acts(resource.name);
    let mut offered: Vec<_> = super::act::offered(visit, resource).collect();
    offered.sort_by_key(|op| first.iter().position(|name| *name == op.name).unwrap_or(first.len()));
    let mut acts: Vec<Value> = offered
        .into_iter()
        .map(|op| {
            let label = super::act::label(visit, op);
            json!({ "label": label, "icon": null, "href": format!("{here}/{}", op.name), "is_main": false, "is_dangerous": false })
        })
        .collect();
    if visit.may(resource.delete).is_some() {
        acts.push(json!({
            "label": visit.words.page("delete"), "icon": "trash-2", "href": format!("{here}/delete"),
            "is_main": false, "is_dangerous": true,
        }));
    }
    acts
}

/// What belongs to a row: its relations, and the resources that name it.
fn aside(visit: &Visit<'_>, resource: &'static Resource, (key, row): (&str, &Value)) -> Vec<Value> {
    let mut cards = Vec::new();
    for relation in resource.shape.relations {
        let other = directory::of_shape(relation.target);
        let rows = match row.get(relation.name) {
            Some(Value::Array(rows)) => rows.clone(),
            Some(Value::Object(one)) => vec![Value::Object(one.clone())],
            _ => Vec::new(),
        };
        let lines: Vec<Value> = rows.iter().take(MOST_LINES).map(|row| line_of(visit, other, row)).collect();
        let mut card = card(visit, &visit.words.field(relation.name), &lines, rows.len());
        if relate::is_offered(visit, resource, relation)
            && let Some(card) = card.as_object_mut()
        {
            let href = format!("{}/{}/relation/{}", visit.address(resource), encoded(key), relation.name);
            card.insert("more".to_owned(), json!({ "href": href, "label": visit.words.page("edit") }));
        }
        cards.push(card);
    }
    let children = directory::resources().iter().filter_map(|child| {
        let parent = child.shape.parents.iter().find(|parent| std::ptr::eq(parent.shape, resource.shape))?;
        visit.may(child.list)?;
        let href = format!("{}?of={}:{}", visit.address(child), parent.field.wire(), encoded(key));
        Some(line(&visit.words.resources(child.name), Some(&href)))
    });
    let children: Vec<Value> = children.collect();
    if !children.is_empty() {
        cards.push(card(visit, visit.words.page("belongs"), &children, 0));
    }
    cards
}

/// The most lines of a card.
const MOST_LINES: usize = 12;

fn line_of(visit: &Visit<'_>, resource: Option<&'static Resource>, row: &Value) -> Value {
    let text = resource.map_or_else(|| plain(row), |resource| title_of(resource, row));
    let readable = resource.filter(|resource| resource.read.is_some());
    let href =
        readable.map(|resource| format!("{}/{}", visit.address(resource), encoded(&key_of(resource, row))));
    line(&text, href.as_deref())
}

fn line(text: &str, href: Option<&str>) -> Value {
    json!({ "icon": null, "tone": "", "text": text, "sub": "", "href": href, "act": null, "iso": "" })
}

fn card(visit: &Visit<'_>, title: &str, lines: &[Value], count: usize) -> Value {
    let about = if lines.is_empty() { visit.words.page("none") } else { "" };
    json!({
        "title": title, "kind": "lines", "tone": "", "about": about, "count": if count > 0 { json!(count) } else { Value::Null },
        "lines": lines, "more": null, "later": null,
    })
}

/// The fields of a creation.
fn created(resource: &Resource) -> impl Iterator<Item = &'static Field> {
    // an id is made by the server, and where a row is the address says
    let is_made = |field: &Field| field.access.key && matches!(field.kind, Kind::Id);
    let is_placed = |field: &Field| field.access.column == Column::Scope;
    let is_open = move |field: &&Field| {
        field.access.create && !field.is_token() && !is_made(field) && !is_placed(field)
    };
    resource.shape.fields.iter().filter(is_open)
}

/// The fields that a form of what is there changes.
fn changed_by_form(resource: &Resource) -> impl Iterator<Item = &'static Field> {
    // files cannot be sent yet
    let is_file = |field: &Field| matches!(field.kind, Kind::Bytes(_));
    let is_open =
        move |field: &&Field| field.access.patch && !field.is_token() && !field.access.key && !is_file(field);
    resource.shape.fields.iter().filter(is_open)
}

/// The sections of a form: texts, switches, and what the server sets.
fn sections(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (fields, values): (&[&Field], &Value),
    problem: Option<&Problem>,
    is_new: bool,
) -> Vec<Value> {
    let can_change = is_new || visit.may(resource.patch).is_some();
    let is_file = |field: &Field| matches!(field.kind, Kind::Bytes(_));
    let is_open = |field: &Field| {
        if is_file(field) {
            return false;
        }
        can_change && if is_new { field.access.create } else { field.access.patch && !field.access.key }
    };
    let shown = |field: &Field| {
        let other = resource.referenced(field);
        let id = at(values, field.wire()).as_str().unwrap_or_default();
        let href = other.filter(|other| other.read.is_some() && !id.is_empty());
        let href = href.map(|other| format!("{}/{}", visit.address(other), encoded(id)));
        let error = error_at(problem, field.wire());
        let is_required = is_new
            && !field.nullable
            && matches!(field.access.default, DefaultValue::None)
            && !matches!(field.kind, Kind::Bool);
        let search = other.map(|other| format!("/console/find?in={}", other.name));
        FormField { field, row: values, is_fixed: !is_open(field), is_required, error: &error, href, search }
            .told(visit.words)
    };
    let of = |wanted: &dyn Fn(&Field) -> bool| -> Vec<Value> {
        fields
            .iter()
            .filter(|field| field.access.column != Column::Owner || is_new)
            .filter(|field| wanted(field))
            .map(|field| shown(field))
            .collect()
    };
    let is_switch = |field: &Field| matches!(field.kind, Kind::Bool);
    let words = visit.words;
    let arranged = arranged::sections(resource.name);
    let is_arranged = |field: &Field| arranged.iter().any(|(_, wires)| wires.contains(&field.wire()));
    let mut all: Vec<(&str, Vec<Value>, bool)> = Vec::new();
    for (title, wires) in arranged {
        let own = wires
            .iter()
            .filter_map(|wire| fields.iter().find(|field| field.wire() == *wire && is_open(field)));
        all.push((words.page(title), own.map(|field| shown(field)).collect(), false));
    }
    let rest = if arranged.is_empty() { "section_general" } else { "section_more" };
    all.push((
        words.page(rest),
        of(&|field| is_open(field) && !is_switch(field) && !is_arranged(field)),
        false,
    ));
    all.push(("", of(&|field| is_open(field) && is_switch(field) && !is_arranged(field)), false));
    all.push((words.page("section_server"), of(&|field| !is_open(field)), true));
    let some = all.into_iter().filter(|(_, fields, _)| !fields.is_empty());
    some.map(|(title, fields, is_readonly)| json!({ "title": title, "about": "", "fields": fields, "is_readonly": is_readonly })).collect()
}

/// What is wrong with a field.
fn error_at(problem: Option<&Problem>, wire: &str) -> String {
    let errors = problem.into_iter().flat_map(|problem| problem.errors.as_slice());
    let own = errors.filter(|error| error.pointer.trim_start_matches('/').split('/').next() == Some(wire));
    own.map(|error| error.detail.clone()).collect::<Vec<_>>().join(" ")
}

/// What is wrong with the form, with the way to each place.
pub fn errors(visit: &Visit<'_>, problem: Option<&Problem>) -> Vec<Value> {
    let Some(problem) = problem else { return Vec::new() };
    let placed = problem.errors.as_slice().iter().map(|error| {
        let wire = error.pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
        json!({ "text": format!("{} {}", visit.words.field(wire), error.detail), "href": format!("#f-{wire}") })
    });
    let placed: Vec<Value> = placed.collect();
    if placed.is_empty() { vec![json!({ "text": problem.detail, "href": null })] } else { placed }
}

/// Whether a problem is about what was typed, so that the form is shown again.
pub fn is_of_form(problem: &Problem) -> bool {
    matches!(
        problem.kind,
        ProblemKind::InvalidRequest | ProblemKind::Conflict | ProblemKind::ConcurrencyConflict
    )
}

fn status_of(problem: Option<&Problem>) -> u16 {
    problem.map_or(200, Problem::status)
}

/// The problem of who may not.
pub fn may_not() -> Problem {
    Problem::new(ProblemKind::Forbidden, "None of your roles allows this.")
}

/// By what the server knows that a form was sent twice.
pub fn fresh_key() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(chancery_resource::random::<16>())
}

/// What a change would do, before it is made.
fn review_page(
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
    let open = open.filter_map(|field| Some((field.wire().to_owned(), changed.get(field.wire())?.clone())));
    let body = Value::Object(open.collect()).to_string().replace('\'', "'\\''");
    let url = &visit.app.token_service.public_url;
    format!(
        "curl -X PATCH -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\\n  -d '{body}' \\\n  '{url}{base}/{}/{}'",
        resource.name,
        encoded(key)
    )
}

/// What two people changed at once: then, now and yours, side by side. What only one of them changed is chosen already.
fn merge_page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, base, now): (&str, &Value, &Value),
    yours: &Map<String, Value>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let rows: Vec<Value> = changed_by_form(resource)
        .filter(|field| yours.contains_key(field.wire()) || at(base, field.wire()) != at(now, field.wire()))
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
    if let Some(kept) = kept.as_array_mut() {
        kept.push(json!({ "name": "merge", "value": Value::Object(yours.clone()).to_string() }));
    }
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "who": "", "when_iso": "",
        "rows": rows, "action": here, "hidden": kept, "save": words.page("save"),
    });
    visit.page(409, "merge.html", heading, &content)
}

/// What was chosen of one's own changes where two people changed the same.
fn chosen(resource: &Resource, yours: &str, form: &[(String, String)]) -> Map<String, Value> {
    let yours: Map<String, Value> = serde_json::from_str(yours).unwrap_or_default();
    let is_chosen = |wire: &str| one(form, wire) == Some("yours");
    let known = |wire: &str| changed_by_form(resource).any(|field| field.wire() == wire);
    yours.into_iter().filter(|(wire, _)| known(wire) && is_chosen(wire)).collect()
}
