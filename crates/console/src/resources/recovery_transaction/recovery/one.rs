//! One recovery: the request, the steps, and the access pass at its end.

use chancery_management::{application::APPLICATION_USER, client_app::CLIENT_APP};
use chancery_resource::{Op, Problem, Shape};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{address, allowed, member_cell, people, person_name, protecting_role, read_page};
use crate::{
    pages::{cells::full_name, form::fresh_key, reference::rows_of},
    shell::{
        components::{Card, FormPage, Line},
        directory::{self, OperationName, encoded, operation_name},
        fields::{FormField, plain, readable},
        visit::{Visit, one as sent, redirect_with_notice},
    },
};

/// The shown fields besides the steps.
const SHOWN: [&str; 3] = ["method", "reason", "expiresOn"];

/// The recovery with this id.
async fn read(visit: &Visit<'_>, id: &str) -> Result<Value, Problem> {
    let filter = format!("id eq {}", json!(id));
    let (rows, ..) = read_page(visit, &[("filter", &filter), ("count", "1")]).await?;
    rows.into_iter().next().ok_or_else(|| Problem::not_found("recovery"))
}

/// Shows a recovery.
///
/// # Errors
/// There is no such recovery in this store.
pub async fn show(visit: &Visit<'_>, id: &str) -> Result<Response<AnswerBody>, Problem> {
    let row = &read(visit, id).await?;
    let words = visit.words;
    let person = person_name(&people(visit, std::slice::from_ref(row)).await?, &plain(&row["userId"]));
    let heading = format!("{}: {person}", words.page("recovery_of"));
    let status = member_cell(visit, row, "status");
    let page = FormPage {
        back: json!({ "href": address(visit), "label": words.page("recovery") }),
        heading,
        icon: Some("rotate-ccw"),
        badge: json!({ "text": status.text, "tone": status.tone }),
        sections: vec![
            json!({ "title": words.page("recovery_wrote"), "about": "", "fields": reported_fields(visit, row, &person), "is_readonly": true }),
        ],
        sidebar: vec![steps(visit, row).await?],
        ..FormPage::default()
    };
    page.show(visit, 200)
}

/// The fields that the first administrator entered.
fn reported_fields(visit: &Visit<'_>, row: &Value, person: &str) -> Vec<Value> {
    let user = directory::of_shape(&USER).map(|users| visit.address(users));
    let href = user.map(|users| format!("{users}/{}", encoded(&plain(&row["userId"]))));
    let label = visit.words.field("person");
    let person = json!({ "name": "userId", "id": "f-userId", "label": label, "control": "shown", "shown": person, "href": href, "error": "", "hint": "", "required": false, "is_wide": false });
    let fields = SHOWN.iter().filter_map(|wire| super::field(visit, wire)).map(|field| {
        FormField { field, row, is_fixed: true, is_required: false, error: "", href: None, search: None }
            .render(visit.words)
    });
    std::iter::once(person).chain(fields).collect()
}

/// The steps from the request to the access pass: the completed ones with their actors, and the next one.
async fn steps(visit: &Visit<'_>, row: &Value) -> Result<Card, Problem> {
    let words = visit.words;
    let (requested_by, approved_by) = (
        actor_name(visit, row, "requestedByActorId").await?,
        actor_name(visit, row, "approvedByActorId").await?,
    );
    let mut lines = vec![line("good", words.page("recovery_asked"), &requested_by, &row["requestedOn"])];
    if !approved_by.is_empty() {
        lines.push(line("good", words.page("recovery_approved"), &approved_by, &Value::Null));
    }
    if !row["completedOn"].is_null() {
        lines.push(line("good", words.page("recovery_completed"), "", &row["completedOn"]));
    }
    let mut due = next(visit, row);
    if let Some(role) = protecting_role(visit, &plain(&row["userId"])).await?.filter(|_| !due.is_empty()) {
        due = vec![line("warn", &visit.carries(role), "", &Value::Null)];
    }
    lines.extend(due);
    Ok(Card { title: words.page("recovery_steps").into(), kind: "checks", lines, ..Card::default() })
}

/// The next actions. The administrator who requested the recovery sees who has to act, instead of a button.
fn next(visit: &Visit<'_>, row: &Value) -> Vec<Line> {
    let is_own = row["requestedByActorId"] == json!(visit.visitor.caller.id.to_string());
    let step = |tone: &'static str, key: &str, act: Option<Value>| {
        let about = visit.words.page.get(&format!("{key}_about")).map_or("", String::as_str);
        Line { act, ..line(tone, visit.words.page(key), about, &Value::Null) }
    };
    let act = |name: &str, operation: OperationName, label: &str| button(visit, row, name, operation, label);
    let cancel =
        || step("", "recovery_cancel", act("cancel", operation_name!("CancelRecovery"), "cancel_it"));
    match row["status"].as_str() {
        Some("Requested") if is_own => vec![step("", "recovery_others_turn", None), cancel()],
        Some("Requested") => {
            vec![
                step(
                    "warn",
                    "recovery_your_turn",
                    act("approve", operation_name!("ApproveRecovery"), "approve"),
                ),
                cancel(),
            ]
        }
        Some("Approved") => {
            vec![
                step(
                    "warn",
                    "recovery_complete",
                    act("complete", operation_name!("CompleteRecovery"), "complete"),
                ),
                cancel(),
            ]
        }
        Some("Completed") => {
            vec![step(
                "",
                "recovery_pass",
                act("pass", operation_name!("IssueTemporaryAccessPass"), "issue_pass"),
            )]
        }
        _ => Vec::new(),
    }
}

fn line(tone: &'static str, text: &str, sub: &str, iso: &Value) -> Line {
    Line { tone, text: text.into(), sub: sub.into(), iso: plain(iso), ..Line::default() }
}

fn button(
    visit: &Visit<'_>,
    row: &Value,
    name: &str,
    operation: OperationName,
    label: &str,
) -> Option<Value> {
    visit.may(directory::of_name(operation))?;
    let action = format!("{}/{}/{name}", address(visit), encoded(&plain(&row["id"])));
    let key = json!({ "name": "key", "value": fresh_key() });
    Some(json!({ "action": action, "label": visit.words.page(label), "fields": [key] }))
}

/// The name of the actor in this member: the user, a person, a client app, or else the id.
async fn actor_name(visit: &Visit<'_>, row: &Value, wire: &str) -> Result<String, Problem> {
    let Some(id) = row[wire].as_str() else { return Ok(String::new()) };
    if visit.visitor.caller.id.to_string() == id {
        return Ok(visit.words.page("yourself").to_owned());
    }
    let shapes: [&Shape; 2] = [&APPLICATION_USER, &CLIENT_APP];
    for resource in shapes.into_iter().filter_map(directory::of_shape) {
        if let Some(row) = rows_of(visit, resource, &[id.to_owned()]).await?.first() {
            let own = plain(row.get("name").unwrap_or(&Value::Null));
            return Ok(if own.is_empty() { full_name(row) } else { own });
        }
    }
    Ok(id.to_owned())
}

/// Runs the action of a button.
///
/// # Errors
/// The requesting administrator cannot approve.
pub async fn act(visit: &Visit<'_>, id: &str, name: &str) -> Result<Response<AnswerBody>, Problem> {
    let op: &'static Op = match name {
        "approve" => allowed(visit, operation_name!("ApproveRecovery"))?,
        "complete" => allowed(visit, operation_name!("CompleteRecovery"))?,
        "cancel" => allowed(visit, operation_name!("CancelRecovery"))?,
        "pass" => return issue_pass(visit, id).await,
        _ => return Err(Problem::not_found("act on a recovery")),
    };
    let mut input = Input::of(op, vec![id.to_owned()]);
    input.key = sent(&visit.form, "key").map(str::to_owned);
    visit.perform(input).await?;
    Ok(redirect_with_notice(&format!("{}/{}", address(visit), encoded(id)), "done"))
}

/// Issues an access pass for a completed recovery, and shows it once.
async fn issue_pass(visit: &Visit<'_>, id: &str) -> Result<Response<AnswerBody>, Problem> {
    let op = allowed(visit, operation_name!("IssueTemporaryAccessPass"))?;
    let row = &read(visit, id).await?;
    if row["status"] != "Completed" {
        return Err(Problem::conflict(visit.words.page("recovery_not_completed")));
    }
    let mut input = Input::of(op, Vec::new());
    input.body = Some(json!({ "userId": row["userId"] }));
    input.key = sent(&visit.form, "key").map(str::to_owned);
    let issued = &visit.perform(input).await?.json();
    let words = visit.words;
    let heading = words.page("pass_title");
    let until = format!("{} {}", words.page("until"), readable(&plain(&issued["expiresOn"])));
    let content = json!({
        "heading": heading, "text": words.page("pass_text"), "facts": [plain(&issued["value"]), until], "trace": "",
        "link": { "href": format!("{}/{}", address(visit), encoded(id)), "label": words.page("back") },
    });
    visit.page(200, "message.html", heading, &content)
}
