//! Recovery of users who have lost all authenticators: requested by one administrator and approved by another.

mod one;

use chancery_record::Field;
use chancery_resource::{Op, Problem, RoleType};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::{
        form::{error_at, errors, fresh_key, is_of_form},
        list::{cursor_of, with},
        reference::rows_of,
    },
    shell::{
        call::call,
        components::{Card, FormPage, Line},
        directory::{self, OperationName, encoded, key_of, operation, operation_name, title_of},
        fields::{Cell, FormField, cell, filled, plain},
        visit::{Visit, hue, initials, one as sent, redirect_with_notice},
    },
};

pub use self::one::{act, show as show_one};

/// Page size.
const PAGE_SIZE: &str = "50";

/// An operation on recoveries, if the user may call it.
fn allowed(visit: &Visit<'_>, name: OperationName) -> Result<&'static Op, Problem> {
    visit.require(directory::of_name(name))
}

/// The URL of the recoveries of the user store.
pub fn address(visit: &Visit<'_>) -> String {
    format!("/console/store/{}/recovery", encoded(visit.store.as_deref().unwrap_or_default()))
}

/// A page of recoveries, the newest first; the cursor of the next page, and the request as a curl command.
async fn read_page(
    visit: &Visit<'_>,
    query: &[(&str, &str)],
) -> Result<(Vec<Value>, Option<String>, String), Problem> {
    let mut input = Input::of(allowed(visit, operation_name!("ListRecoveryTransactions"))?, Vec::new());
    let query = query.iter().chain(&[("sortOrder", "descending")]);
    input.query.extend(query.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let call = call(visit, &input);
    let output = visit.perform(input).await?;
    let next = output.header("link").and_then(cursor_of);
    let rows = match output.json().get_mut("items").map(Value::take) {
        Some(Value::Array(rows)) => rows,
        _ => Vec::new(),
    };
    Ok((rows, next, call))
}

/// The names of the users of recoveries, by id.
async fn people(visit: &Visit<'_>, rows: &[Value]) -> Result<Vec<(String, String)>, Problem> {
    let Some(users) = directory::of_shape(&USER) else { return Ok(Vec::new()) };
    let mut ids: Vec<String> = rows.iter().map(|row| plain(&row["userId"])).collect();
    ids.sort();
    ids.dedup();
    let rows = rows_of(visit, users, &ids).await?;
    Ok(rows.iter().map(|user| (key_of(users, user), title_of(users, user))).collect())
}

/// The name of the user of a recovery.
fn person_name(people: &[(String, String)], id: &str) -> String {
    people.iter().find(|(known, _)| known == id).map_or_else(|| id.to_owned(), |(_, name)| name.clone())
}

/// Shows the list.
pub async fn list(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let cursor = visit.parameter("cursor").map(|cursor| ("cursor", cursor));
    let query: Vec<(&str, &str)> = [("count", PAGE_SIZE)].into_iter().chain(cursor).collect();
    let (rows, next, call) = read_page(visit, &query).await?;
    let people = people(visit, &rows).await?;
    let words = visit.words;
    let rows: Vec<Value> = rows.iter().map(|row| row_of(visit, row, &people)).collect();
    let create = visit
        .may(operation!("StartRecovery"))
        .map(|_| json!({ "href": format!("{}/new", address(visit)), "label": words.page("recovery_begin") }));
    let columns = ["col_who", "col_status", "col_reason_given", "col_when"];
    let columns: Vec<Value> =
        columns.iter().map(|key| json!({ "label": words.page(key), "sort": null })).collect();
    let content = json!({
        "heading": words.page("recovery"), "about": words.page("recovery_about"), "api_call": call, "create": create,
        "more_acts": [], "search": null, "views": [], "columns": columns, "rows": rows, "selectable": false, "batch": [],
        "next": next.map(|cursor| with(visit, &[("cursor", &cursor)])), "count": { "text": "", "href": null },
        "empty": { "title": words.page("nothing_yet"), "text": words.page("recovery_none"), "act": create },
    });
    visit.page(200, "list.html", words.page("recovery"), &content)
}

fn field(visit: &Visit<'_>, wire: &str) -> Option<&'static Field> {
    let op = visit.may(operation!("ListRecoveryTransactions"))?;
    op.shape.fields.iter().find(|field| field.wire() == wire)
}

/// A member of a recovery as a cell.
fn member_cell(visit: &Visit<'_>, row: &Value, wire: &str) -> Cell {
    field(visit, wire).map_or_else(Cell::none, |field| cell(field, &row[wire], visit.words))
}

fn row_of(visit: &Visit<'_>, row: &Value, people: &[(String, String)]) -> Value {
    let (id, name) = (plain(&row["id"]), person_name(people, &plain(&row["userId"])));
    let cells = [
        Cell::of("title", &name),
        member_cell(visit, row, "status"),
        Cell::of("text", plain(&row["reason"])),
        member_cell(visit, row, "requestedOn"),
    ];
    let avatar = json!({ "initials": initials(&name), "hue": hue(&name) });
    json!({ "id": id, "href": format!("{}/{}", address(visit), encoded(&id)), "avatar": avatar, "cells": cells })
}

/// The highest role of a user that prevents the signed-in user from recovering them.
async fn protecting_role(visit: &Visit<'_>, user: &str) -> Result<Option<RoleType>, Problem> {
    let Some(users) = directory::of_shape(&USER) else { return Ok(None) };
    visit.protecting_role(users, user, &Value::Null).await
}

/// Shows the form that requests a recovery.
///
/// # Errors
/// The user may not request a recovery.
pub async fn show_form(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let op = allowed(visit, operation_name!("StartRecovery"))?;
    visit.fresh()?;
    if let Some(role) = protecting_role(visit, visit.parameter("user").unwrap_or_default()).await? {
        return Err(visit.barred_by(role));
    }
    let values = json!({ "userId": visit.parameter("user") });
    form(visit, op, &values, None)
}

fn form(
    visit: &Visit<'_>,
    op: &'static Op,
    values: &Value,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let fields = directory::body_fields(op).into_iter().map(|field| {
        let error = error_at(problem, field.wire());
        let is_person = field.wire() == "userId";
        let search = is_person.then(|| "/console/find?in=User".to_owned());
        FormField {
            field,
            row: values,
            is_fixed: false,
            is_required: true,
            error: &error,
            href: None,
            search,
        }
        .render(words)
    });
    let fields: Vec<Value> = fields.collect();
    let heading = words.page("recovery_begin");
    let page = FormPage {
        back: json!({ "href": address(visit), "label": words.page("recovery") }),
        heading: heading.into(),
        sub: words.page("recovery_about").into(),
        icon: Some("rotate-ccw"),
        errors: errors(visit, problem),
        sections: vec![
            json!({ "title": "", "about": words.page("recovery_written"), "fields": fields, "is_readonly": false }),
        ],
        hidden: vec![json!({ "name": "key", "value": fresh_key() })],
        bar: Some(
            json!({ "save": heading, "cancel": { "href": address(visit), "label": words.page("cancel") }, "review": false }),
        ),
        is_new: true,
        ..FormPage::default()
    };
    page.show(visit, problem.map_or(200, Problem::status))
}

/// Requests a recovery.
///
/// # Errors
/// Any problem that the form cannot display.
pub async fn start(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let op = allowed(visit, operation_name!("StartRecovery"))?;
    let body = Value::Object(filled(directory::body_fields(op).into_iter(), &visit.form));
    let mut input = Input::of(op, Vec::new());
    input.body = Some(body.clone());
    input.key = sent(&visit.form, "key").map(str::to_owned);
    match visit.perform(input).await {
        Ok(output) => {
            let created = &output.json();
            Ok(redirect_with_notice(
                &format!("{}/{}", address(visit), encoded(&plain(&created["id"]))),
                "created",
            ))
        }
        Err(problem) if is_of_form(&problem) => form(visit, op, &body, Some(&problem)),
        Err(problem) => Err(problem),
    }
}

/// The card with the recoveries of a user.
pub async fn card(
    visit: &Visit<'_>,
    user: &str,
    protecting_role: Option<RoleType>,
) -> Result<Option<Card>, Problem> {
    if allowed(visit, operation_name!("ListRecoveryTransactions")).is_err() {
        return Ok(None);
    }
    let filter = format!("userId eq {}", json!(user));
    let (rows, ..) = read_page(visit, &[("filter", &filter), ("count", "3")]).await?;
    let words = visit.words;
    let lines = rows.iter().map(|row| {
        let status = member_cell(visit, row, "status");
        let href = format!("{}/{}", address(visit), encoded(&plain(&row["id"])));
        Line {
            icon: Some("rotate-ccw"),
            tone: status.tone,
            text: status.text,
            href: Some(href),
            iso: plain(&row["requestedOn"]),
            ..Line::default()
        }
    });
    let lines: Vec<Line> = lines.collect();
    let is_open = rows.iter().any(|row| matches!(row["status"].as_str(), Some("Requested" | "Approved")));
    let begin = visit.may(operation!("StartRecovery")).filter(|_| !is_open && protecting_role.is_none()).map(
        |_| json!({ "href": format!("{}/new?user={}", address(visit), encoded(user)), "label": words.page("recovery_begin") }),
    );
    let about = if lines.is_empty() { words.page("recovery_lost") } else { "" };
    Ok(Some(Card {
        title: words.page("recovery").into(),
        kind: "lines",
        about: about.into(),
        lines,
        more: begin,
        ..Card::default()
    }))
}
