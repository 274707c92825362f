//! Subresources: entries that are addressed by their owner only, such as metadata and security contacts. One page lists
//! them, adds one and deletes some; each entry that can be changed has a page of its own.

use chancery_record::{Column, Field, Kind};
use chancery_resource::{Action, Body, Custom, Method, Op, Problem, RoleType};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Map, Value, json};

use super::{
    act::{self, label},
    form::{errors, is_of_form, plain_fields},
    item::{is_stale, read},
    review::{Merged, chosen, is_applied, merge_page},
};
use crate::shell::{
    components::FormPage,
    directory::{Owned, Resource, body_fields, encoded, title_of},
    fields::{cell, changes, filled, is_secret, plain},
    reauthentication::is_required,
    role_protection::is_protected,
    visit::{Visit, one, redirect_with_notice},
    words::raised,
};

/// Maximum number of entries on a page.
const MAX_ENTRIES: &str = "200";

/// The path of a subresource.
#[derive(Clone, Copy)]
pub struct OwnedPath<'a> {
    /// The resource of the owner.
    pub resource: &'static Resource,
    /// The key of the owner.
    pub key: &'a str,
    /// The subresource.
    pub owned: &'static Owned,
}

/// The subresource of this name.
pub fn find(resource: &'static Resource, name: &str) -> Option<&'static Owned> {
    resource.owned.iter().find(|owned| owned.name == name)
}

/// The URL of the page of a subresource.
pub fn address(visit: &Visit<'_>, owned_path: OwnedPath<'_>) -> String {
    let OwnedPath { resource, key, owned } = owned_path;
    format!("{}/{}/owned/{}", visit.address(resource), encoded(key), owned.name)
}

impl Owned {
    /// The key of an entry.
    fn key(&self) -> Option<&'static Field> {
        self.shape.fields.iter().find(|field| field.access.key)
    }

    /// The visible fields, without the owner and the scope.
    fn shown(&self) -> Vec<&'static Field> {
        let is_own = |field: &&Field| !matches!(field.access.column, Column::Owner | Column::Scope);
        let is_id = |field: &&Field| field.access.key && matches!(field.kind, Kind::Id);
        let fields = self.shape.fields.iter().filter(|field| field.access.shown && !field.is_token());
        fields.filter(is_own).filter(|field| !is_id(field)).collect()
    }

    /// The fields of the body of a creation.
    fn created(&self) -> Vec<&'static Field> {
        let Some(op) = self.create else { return Vec::new() };
        if let Action::Custom(Custom { body: Body::Form(form), .. }) = op.action {
            return form.fields.iter().collect();
        }
        let is_own = |field: &&Field| !matches!(field.access.column, Column::Owner | Column::Scope);
        let is_generated = |field: &&Field| field.access.key && matches!(field.kind, Kind::Id);
        let fields = self.shape.fields.iter().filter(|field| field.access.create && !field.is_token());
        fields.filter(is_own).filter(|field| !is_generated(field)).collect()
    }

    /// The editable fields.
    fn changed(&self) -> impl Iterator<Item = &'static Field> {
        self.shape.fields.iter().filter(|field| field.access.patch && !field.is_token() && !field.access.key)
    }
}

/// Lists the entries, with a form for a new one.
pub async fn show(visit: &Visit<'_>, owned_path: OwnedPath<'_>) -> Result<Response<AnswerBody>, Problem> {
    page(visit, owned_path, &Value::Null, None).await
}

async fn page(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    typed: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let OwnedPath { resource, key, owned } = owned_path;
    let op = visit.require(owned.list)?;
    let parent = read(visit, resource, key).await?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.query = vec![("count".to_owned(), MAX_ENTRIES.to_owned())];
    if let Some(cursor) = visit.parameter("cursor") {
        input.query.push(("cursor".to_owned(), cursor.to_owned()));
    }
    let output = visit.perform(input).await?;
    let listed = output.rows();
    let words = visit.words;
    let held = protecting_role(visit, owned_path, &parent).await?;
    let here = address(visit, owned_path);
    let rows: Vec<Value> = listed.iter().map(|row| line(visit, owned, row, &here)).collect();
    let add = visit.may(owned.create).filter(|_| held.is_none()).map(|_| {
        let fields = plain_fields(visit, &owned.created(), typed, problem);
        json!({ "action": format!("{here}/add"), "fields": fields })
    });
    let remove = visit
        .may(owned.delete)
        .filter(|_| held.is_none())
        .map(|_| json!({ "action": format!("{here}/remove"), "label": words.page("delete") }));
    let next = output.header("link").and_then(super::list::cursor_of);
    let next = next.map(|cursor| {
        format!(
            "{here}?{}",
            form_urlencoded::Serializer::new(String::new()).append_pair("cursor", &cursor).finish()
        )
    });
    let columns: Vec<Value> = owned
        .shown()
        .iter()
        .map(|field| json!({ "label": words.field(field.wire()), "sort": null }))
        .collect();
    let title = title_of(resource, &parent);
    let heading = format!("{}: {title}", words.resources(owned.shape.name));
    let content = json!({
        "back": { "href": format!("{}/{}", visit.address(resource), encoded(key)), "label": title }, "heading": heading,
        "errors": errors(visit, problem), "add": add, "columns": columns, "rows": rows, "next": next,
        "empty": { "title": words.page("none"), "text": words.explanation(owned.shape.about) },
        "remove": remove, "held": held.map(|role| visit.carries(role)),
    });
    visit.page(problem.map_or(200, Problem::status), "relation.html", &heading, &content)
}

/// The highest role of the owner that prevents the user from changing entries.
async fn protecting_role(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    parent: &Value,
) -> Result<Option<RoleType>, Problem> {
    let OwnedPath { resource, key, owned } = owned_path;
    let mut ops = [owned.create, owned.change, owned.delete].into_iter().flatten();
    if ops.any(is_protected) { visit.protecting_role(resource, key, parent).await } else { Ok(None) }
}

/// Succeeds unless a role of the owner prevents the user from changing entries.
async fn unbarred(visit: &Visit<'_>, owned_path: OwnedPath<'_>) -> Result<(), Problem> {
    match protecting_role(visit, owned_path, &Value::Null).await? {
        Some(role) => Err(visit.barred_by(role)),
        None => Ok(()),
    }
}

fn line(visit: &Visit<'_>, owned: &Owned, row: &Value, here: &str) -> Value {
    let id =
        owned.key().map_or_else(String::new, |field| plain(row.get(field.wire()).unwrap_or(&Value::Null)));
    let cells = owned
        .shown()
        .into_iter()
        .map(|field| cell(field, row.get(field.wire()).unwrap_or(&Value::Null), visit.words));
    let mut cells: Vec<_> = cells.collect();
    if let Some(first) = cells.first_mut() {
        first.kind = "title";
    }
    let has_page = owned.read.is_some() || offered(visit, owned).next().is_some();
    json!({ "id": id, "href": has_page.then(|| format!("{here}/{}", encoded(&id))), "avatar": null, "cells": cells })
}

/// Adds an entry.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn add(visit: &Visit<'_>, owned_path: OwnedPath<'_>) -> Result<Response<AnswerBody>, Problem> {
    let OwnedPath { key, owned, .. } = owned_path;
    let op = visit.require(owned.create)?;
    unbarred(visit, owned_path).await?;
    let body = Value::Object(filled(owned.created().into_iter(), &visit.form));
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.body = Some(body.clone());
    match visit.perform(input).await {
        Ok(_) => Ok(redirect_with_notice(&address(visit, owned_path), "created")),
        Err(problem) if is_of_form(&problem) => page(visit, owned_path, &body, Some(&problem)).await,
        Err(problem) => Err(problem),
    }
}

/// Deletes the selected entries in one transaction.
pub async fn remove(visit: &Visit<'_>, owned_path: OwnedPath<'_>) -> Result<Response<AnswerBody>, Problem> {
    let OwnedPath { key, owned, .. } = owned_path;
    let op = visit.require(owned.delete)?;
    unbarred(visit, owned_path).await?;
    let chosen: Vec<&str> =
        visit.form.iter().filter(|(name, _)| name == "selected").map(|(_, id)| id.as_str()).collect();
    // entries that cannot be created again here require a confirmation and reauthentication
    if owned.create.is_none() && !chosen.is_empty() {
        visit.fresh()?;
        if one(&visit.form, "sure") != Some("true") {
            return confirm(visit, owned_path, &chosen).await;
        }
    }
    let inputs = chosen.iter().map(|id| Input::of(op, vec![key.to_owned(), (*id).to_owned()]));
    visit.perform_all(inputs.collect()).await.map_err(|(_, problem)| problem)?;
    Ok(redirect_with_notice(&address(visit, owned_path), "deleted"))
}

/// Asks for confirmation before the selected entries are deleted.
async fn confirm(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    chosen: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let OwnedPath { key, owned, .. } = owned_path;
    let mut input = Input::of(visit.require(owned.list)?, vec![key.to_owned()]);
    input.query.push(("count".to_owned(), MAX_ENTRIES.to_owned()));
    let rows = visit.perform(input).await?.rows();
    let is_chosen =
        |row: &&Value| owned.key().is_some_and(|field| chosen.contains(&plain(&row[field.wire()]).as_str()));
    let facts = rows.iter().filter(is_chosen).map(|row| {
        let cells = owned.shown().into_iter().map(|field| cell(field, &row[field.wire()], visit.words).text);
        cells.filter(|text| !text.is_empty()).take(3).collect::<Vec<_>>().join(" · ")
    });
    let facts: Vec<String> = facts.collect();
    let words = visit.words;
    let here = address(visit, owned_path);
    let hidden = chosen.iter().map(|id| ("selected", *id)).chain([("sure", "true")]);
    let hidden: Vec<Value> = hidden.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let heading = format!("{}: {}", words.page("delete"), words.resources(owned.shape.name));
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "text": words.page("delete_text"),
        "facts": facts, "asks": null, "errors": [], "action": format!("{here}/remove"), "hidden": hidden,
        "confirm": { "label": words.page("delete"), "is_dangerous": true },
        "cancel": { "href": here, "label": words.page("cancel") },
    });
    visit.page(200, "confirm.html", &heading, &content)
}

/// The further operations on an entry that the user may call and that have a form.
fn offered<'a>(visit: &'a Visit<'_>, owned: &'a Owned) -> impl Iterator<Item = &'static Op> + 'a {
    of_one(owned).filter(|op| visit.visitor.may(op))
}

fn of_one(owned: &Owned) -> impl Iterator<Item = &'static Op> + '_ {
    owned.others.iter().copied().filter(|op| op.method != Method::Get && act::has_form(op))
}

/// Shows an entry with its editable fields and further operations.
pub async fn show_one(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    id: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let row = read_one(visit, owned_path, id).await?;
    one_page(visit, owned_path, id, &row, &row, None).await
}

async fn read_one(visit: &Visit<'_>, owned_path: OwnedPath<'_>, id: &str) -> Result<Value, Problem> {
    let OwnedPath { key, owned, .. } = owned_path;
    let Some(op) = owned.read else { return Ok(Value::Null) };
    Ok(visit.perform(Input::of(op, vec![key.to_owned(), id.to_owned()])).await?.json())
}

async fn one_page(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    id: &str,
    row: &Value,
    typed: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let owned = owned_path.owned;
    let words = visit.words;
    let here = address(visit, owned_path);
    let fields: Vec<&Field> = owned.changed().collect();
    let held = protecting_role(visit, owned_path, &Value::Null).await?;
    let can_change = visit.may(owned.change).is_some() && !fields.is_empty() && held.is_none();
    let sections: Vec<Value> = if can_change || owned.read.is_some() {
        let mut rendered = plain_fields(visit, &fields, typed, problem);
        for field in rendered.iter_mut().filter_map(Value::as_object_mut).filter(|_| !can_change) {
            field.insert("control".to_owned(), json!("shown"));
        }
        vec![json!({ "title": "", "about": "", "fields": rendered, "is_readonly": !can_change })]
    } else {
        Vec::new()
    };
    let base: Map<String, Value> = fields
        .iter()
        .filter(|field| !is_secret(field, row))
        .map(|field| (field.wire().to_owned(), row.get(field.wire()).cloned().unwrap_or_default()))
        .collect();
    let acts: Vec<Value> = offered(visit, owned)
        .filter(|_| held.is_none())
        .map(|op| {
            json!({ "label": label(visit, op), "icon": null, "href": format!("{here}/{}/{}", encoded(id), op.name), "is_main": false, "is_dangerous": false })
        })
        .collect();
    let token = plain(row.get("concurrencyToken").unwrap_or(&Value::Null));
    let bar = can_change.then(|| {
        json!({ "save": words.page("save"), "cancel": { "href": here, "label": words.page("cancel") }, "review": false })
    });
    let heading = owned
        .key()
        .filter(|field| !matches!(field.kind, Kind::Id))
        .map_or_else(|| raised(&words.resource(owned.shape.name)), |_| id.to_owned());
    let page = FormPage {
        back: json!({ "href": here, "label": words.resources(owned.shape.name) }),
        heading,
        icon: Some("tag"),
        acts,
        errors: errors(visit, problem),
        sections,
        hidden: vec![
            json!({ "name": "base", "value": Value::Object(base).to_string() }),
            json!({ "name": "concurrencyToken", "value": token }),
        ],
        bar,
        read_only_note: held.map_or_else(String::new, |role| visit.carries(role)),
        ..FormPage::default()
    };
    page.show(visit, problem.map_or(200, Problem::status))
}

/// Saves an entry.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn save(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    id: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let OwnedPath { key, owned, .. } = owned_path;
    let op = visit.require(owned.change)?;
    let base: Value = serde_json::from_str(one(&visit.form, "base").unwrap_or("{}")).unwrap_or_default();
    let fields: Vec<&'static Field> = owned.changed().collect();
    let changed = match one(&visit.form, "merge") {
        Some(yours) => chosen(&fields, yours, &visit.form),
        None => changes(fields.iter().copied(), &visit.form, &base),
    };
    let here = address(visit, owned_path);
    if changed.is_empty() {
        return Ok(redirect_with_notice(&here, "unchanged"));
    }
    // PUT needs the unchanged members, too
    let mut body =
        if op.method == Method::Put { base.as_object().cloned().unwrap_or_default() } else { Map::new() };
    body.extend(changed.clone());
    body.insert(
        "concurrencyToken".to_owned(),
        json!(one(&visit.form, "concurrencyToken").unwrap_or_default()),
    );
    let mut input = Input::of(op, vec![key.to_owned(), id.to_owned()]);
    input.body = Some(Value::Object(body));
    let answer = visit.perform(input).await;
    if is_stale(&answer) && owned.read.is_some() {
        let now = read_one(visit, owned_path, id).await?;
        if is_applied(&fields, &changed, &now) {
            return Ok(redirect_with_notice(&here, "saved"));
        }
        let one = format!("{here}/{}", encoded(id));
        return merge_page(visit, &Merged { here: &one, fields: &fields, last: None }, &base, &now, &changed);
    }
    match answer {
        Ok(_) => Ok(redirect_with_notice(&here, "saved")),
        Err(problem) if is_of_form(&problem) => {
            let row = read_one(visit, owned_path, id).await?;
            let mut typed = row.clone();
            typed.as_object_mut().into_iter().for_each(|members| members.extend(changed.clone()));
            one_page(visit, owned_path, id, &row, &typed, Some(&problem)).await
        }
        Err(problem) => Err(problem),
    }
}

/// Shows the form of a further operation on an entry.
///
/// # Errors
/// The operation is unknown, or the user may not call it.
pub async fn show_act(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    id: &str,
    name: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(of_one(owned_path.owned).find(|op| op.name == name))?;
    if is_required(op) {
        visit.fresh()?;
    }
    unbarred(visit, owned_path).await?;
    act_page(visit, owned_path, id, name, &Value::Null, None)
}

fn act_page(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    id: &str,
    name: &str,
    typed: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.require(of_one(owned_path.owned).find(|op| op.name == name))?;
    let here = address(visit, owned_path);
    let back = json!({ "href": format!("{here}/{}", encoded(id)), "label": visit.words.page("back") });
    act::form_page(visit, op, &[owned_path.key, id], back, typed, problem)
}

/// Runs a further operation on an entry.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn run(
    visit: &Visit<'_>,
    owned_path: OwnedPath<'_>,
    id: &str,
    name: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let OwnedPath { key, owned, .. } = owned_path;
    let op = visit.require(of_one(owned).find(|op| op.name == name))?;
    unbarred(visit, owned_path).await?;
    let body = Value::Object(filled(body_fields(op).into_iter(), &visit.form));
    let mut input = Input::of(op, vec![key.to_owned(), id.to_owned()]);
    input.body = op.takes_body().then(|| body.clone());
    input.key = one(&visit.form, "key").map(str::to_owned);
    match visit.perform(input).await {
        Ok(_) => Ok(redirect_with_notice(&address(visit, owned_path), "done")),
        Err(problem) if is_of_form(&problem) => act_page(visit, owned_path, id, name, &body, Some(&problem)),
        Err(problem) => Err(problem),
    }
}
