//! An identity replacement: both identities side by side, the completed steps, and the pending action.

use std::collections::BTreeSet;

use chancery_management::{
    application::APPLICATION_USER, client_app::CLIENT_APP, identity_replacement::IDENTITY_REPLACEMENT,
    idp_instance::IDP_INSTANCE,
};
use chancery_resource::{Op, Problem, Shape};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::{act, history, item::read, reference},
    shell::{
        components::{Card, Line},
        directory::{self, OperationName, Resource, encoded, operation_name},
        fields::plain,
        navigation::label,
        presentation::Names,
        visit::Visit,
    },
};

/// Shows a replacement.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let row = &read(visit, resource, key).await?;
    let names = names(visit, row).await?;
    let (words, address) = (visit.words, visit.address(resource));
    let here = format!("{address}/{}", encoded(key));
    let person = named(&names, &row["platformUserId"]);
    let heading =
        words.page("replacement_of").replace("{name}", &plain(person.get("text").unwrap_or(&Value::Null)));
    let pending = pending_action(visit, resource, key, row).await?;
    let mut sidebar = vec![steps(visit, row, &names)];
    sidebar.extend(revocation(visit, row));
    sidebar.extend(history::of_item(visit, resource, &here, row));
    let sides = ["current", "replacement"].map(|side| identity(visit, resource, row, &here, side, &names));
    let content = json!({
        "back": { "href": address, "label": label(visit, resource) }, "heading": heading, "icon": resource.presentation.icon,
        "badge": resource.presentation.badge(row, words), "person": person, "reason": row["reason"],
        "sides": sides, "turn": pending, "acts": acts(visit, resource, row, &here), "sidebar": sidebar,
    });
    visit.page(200, "replacement.html", &heading, &content)
}

/// The action that requests a replacement, on the page of a platform user.
pub fn request(visit: &Visit<'_>, key: &str) -> Option<Value> {
    let own = directory::of_shape(&IDENTITY_REPLACEMENT)?;
    visit.may(own.create)?;
    let href = format!("{}/new?platformUserId={}", visit.address(own), encoded(key));
    let label = visit.words.page("replacement_new");
    Some(json!({ "label": label, "icon": null, "href": href, "is_main": false, "is_dangerous": false }))
}

/// The names of all rows that a replacement refers to.
async fn names(visit: &Visit<'_>, row: &Value) -> Result<Names, Problem> {
    let approved = row["approvedByActorIds"].as_array().map(Vec::as_slice).unwrap_or_default();
    let people = approved.iter().chain([&row["platformUserId"], &row["requestedByActorId"]]);
    let sides = || [&row["currentIdentity"], &row["replacementIdentity"]].into_iter();
    let all = |ids: Vec<&Value>| -> BTreeSet<String> {
        ids.into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let people = all(people.collect());
    let store = visit.visitor.store.as_ref().map(|store| json!(store.scope.id.to_string()));
    let of_store = sides().filter(|side| Some(&side["idpInstanceId"]) == store.as_ref());
    let subjects = all(of_store.map(|side| &side["subject"]).collect());
    let instances = all(sides().map(|side| &side["idpInstanceId"]).collect());
    let mut names = Names::new();
    let lookups: [(&Shape, _); 4] = [
        (&APPLICATION_USER, &people),
        (&CLIENT_APP, &people),
        (&IDP_INSTANCE, &instances),
        (&USER, &subjects),
    ];
    for (shape, ids) in lookups {
        if let Some(resource) = directory::of_shape(shape) {
            reference::find(visit, resource, ids, &mut names).await?;
        }
    }
    Ok(names)
}

/// A name with its link.
fn named(names: &Names, id: &Value) -> Value {
    let id = plain(id);
    let (text, href) = names.get(&id).cloned().unwrap_or((id, None));
    json!({ "text": text, "href": href })
}

/// One of the two identities.
fn identity(
    visit: &Visit<'_>,
    resource: &Resource,
    row: &Value,
    here: &str,
    side: &str,
    names: &Names,
) -> Value {
    let words = visit.words;
    let own = &row[format!("{side}Identity").as_str()];
    let proven = &row[format!("{side}IdentityProvenOn").as_str()];
    let status = plain(&own["lifecycleStatus"]);
    let proving = operation(visit, resource, operation_name!("ProveReplacementIdentity"))
        .filter(|_| proven.is_null() && is_open(row) && !is_mine(visit, row));
    let which = if side == "current" { "Current" } else { "Replacement" };
    json!({
        "title": words.choice(which), "who": named(names, &own["subject"]), "issuer": own["issuer"],
        "instance": named(names, &own["idpInstanceId"]), "status": words.choice(&status),
        "tone": match status.as_str() { "Active" => "good", "Pending" => "warn", _ => "off" }, "proven": plain(proven),
        "act": proving.map(|op| json!({
            "action": format!("{here}/{}", op.name), "label": words.page("replacement_prove"), "which": which,
        })),
    })
}

fn operation(visit: &Visit<'_>, resource: &Resource, name: OperationName) -> Option<&'static Op> {
    visit.may(resource.other(name))
}

/// Whether it is still pending.
fn is_open(row: &Value) -> bool {
    row["status"] == json!("PendingApproval") || row["status"] == json!("Approved")
}

/// Whether the user requested it.
fn is_mine(visit: &Visit<'_>, row: &Value) -> bool {
    row["requestedByActorId"] == json!(visit.visitor.caller.id.to_string())
}

fn has_approved(visit: &Visit<'_>, row: &Value) -> bool {
    let me = json!(visit.visitor.caller.id.to_string());
    row["approvedByActorIds"].as_array().is_some_and(|all| all.contains(&me))
}

/// The number of missing approvals.
fn missing(row: &Value) -> u64 {
    let given = row["approvedByActorIds"].as_array().map_or(0, Vec::len);
    row["requiredApprovals"].as_u64().unwrap_or(0).saturating_sub(u64::try_from(given).unwrap_or(u64::MAX))
}

/// The pending action, as a sentence.
async fn pending_action(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    row: &Value,
) -> Result<Value, Problem> {
    let words = visit.words;
    let said = |key: &str, tone: &str| json!({ "text": words.page(key).replace("{n}", &missing(row).to_string()), "tone": tone });
    Ok(match row["status"].as_str().unwrap_or_default() {
        "PendingApproval" if is_mine(visit, row) => said("turn_others", "warn"),
        "PendingApproval" if has_approved(visit, row) => said("turn_more", "warn"),
        "PendingApproval" if operation(visit, resource, operation_name!("Approve")).is_some() => {
            said("turn_yours", "info")
        }
        "PendingApproval" => said("turn_more", "warn"),
        "Approved" => {
            let Some(op) = operation(visit, resource, operation_name!("Execute")) else {
                return Ok(said("turn_execute", "warn"));
            };
            let mut input = Input::of(op, vec![key.to_owned()]);
            input.dry_run = true;
            match visit.perform(input).await {
                Ok(_) => said("turn_ready", "good"),
                // reasons against the execution are shown before the button is pressed
                Err(problem) => json!({ "text": problem.detail, "tone": "warn" }),
            }
        }
        "Cancelled" => said("turn_cancelled", "off"),
        "Expired" => said("turn_expired", "off"),
        _ => said("turn_done", "good"),
    })
}

/// The actions of the user, each with a page of its own.
fn acts(visit: &Visit<'_>, resource: &Resource, row: &Value, here: &str) -> Vec<Value> {
    let status = row["status"].as_str().unwrap_or_default();
    let may_approve = status == "PendingApproval" && !is_mine(visit, row) && !has_approved(visit, row);
    let candidates = [
        (operation_name!("Approve"), may_approve, false),
        (operation_name!("Execute"), status == "Approved", false),
        (operation_name!("Cancel"), is_open(row), true),
    ];
    let offered = candidates.into_iter().filter(|(_, is_possible, _)| *is_possible);
    offered
        .filter_map(|(name, _, is_dangerous)| Some((operation(visit, resource, name)?, is_dangerous)))
        .map(|(op, is_dangerous)| {
            json!({
                "label": act::label(visit, op), "href": format!("{here}/{}", op.name), "is_main": !is_dangerous,
                "is_dangerous": is_dangerous,
            })
        })
        .collect()
}

/// The completed steps in order, and the expiry.
fn steps(visit: &Visit<'_>, row: &Value, names: &Names) -> Card {
    let words = visit.words;
    let who = |id: &Value| plain(named(names, id).get("text").unwrap_or(&Value::Null));
    let approved = row["approvedByActorIds"].as_array().map(Vec::as_slice).unwrap_or_default();
    let approvers = approved.iter().map(who).collect::<Vec<_>>().join(", ");
    let required = plain(&row["requiredApprovals"]);
    let count = words.page("replacement_approvals").replace("{n}", &approved.len().to_string());
    let approval = format!("{} {approvers}", count.replace("{all}", &required));
    let all = [
        ("replacement_asked", "requestedOn", who(&row["requestedByActorId"])),
        ("replacement_approved", "approvalSatisfiedOn", approval),
        ("replacement_executed", "executedOn", String::new()),
        ("replacement_ended", "revocationCompletedOn", String::new()),
        ("replacement_expires", "expiresOn", String::new()),
    ];
    let is_shown = |wire: &str| match wire {
        "approvalSatisfiedOn" => true,
        "expiresOn" => is_open(row),
        wire => !row[wire].is_null(),
    };
    let lines: Vec<Line> = all
        .into_iter()
        .filter(|(_, wire, _)| is_shown(wire))
        .map(|(key, wire, sub)| {
            let tone = if row[wire].is_null() || wire == "expiresOn" { "off" } else { "good" };
            Line {
                tone,
                text: words.page(key).into(),
                sub: sub.trim().into(),
                iso: plain(&row[wire]),
                ..Line::default()
            }
        })
        .collect();
    Card { title: words.page("replacement_steps").into(), kind: "timeline", lines, ..Card::default() }
}

/// The progress of the revocation of sessions and tokens of the replaced identity.
fn revocation(visit: &Visit<'_>, row: &Value) -> Option<Card> {
    let words = visit.words;
    let (key, tone) = match row["status"].as_str()? {
        "Executed" => ("revocation_waits", "warn"),
        "RevocationFailed" => ("revocation_failed", "bad"),
        "Completed" => ("revocation_done", "good"),
        _ => return None,
    };
    let tried = words.page("revocation_tried").replace("{n}", &plain(&row["revocationAttempts"]));
    let error = plain(&row["revocationError"]);
    let sub = if error.is_empty() { tried } else { format!("{tried}. {error}") };
    let mut lines = vec![Line { tone, text: words.page(key).into(), sub, ..Line::default() }];
    let due = plain(&row["revocationDueOn"]);
    if !due.is_empty() {
        lines.push(Line {
            icon: Some("clock"),
            text: words.page("revocation_next").into(),
            iso: due,
            ..Line::default()
        });
    }
    Some(Card {
        title: words.page("revocation").into(),
        kind: "checks",
        tone,
        about: words.page("revocation_about").into(),
        lines,
        ..Card::default()
    })
}
