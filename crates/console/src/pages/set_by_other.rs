//! Credentials of users with roles that were set by somebody without these roles: shown where a role is assigned, and
//! counted on the overview.

use std::collections::BTreeSet;

use chancery_management::{
    application::{APPLICATION_GROUP, APPLICATION_USER},
    client_app::CLIENT_APP,
    idp_instance::IDP_INSTANCE,
};
use chancery_resource::{Problem, Shape};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{readiness::list_page, reference, rights::SCOPES};
use crate::shell::{
    call::call,
    components::{Card, Line},
    directory::{encoded, of_shape, operation},
    fields::{Cell, plain},
    presentation::Names,
    visit::Visit,
};

/// The path of the page with the full list.
pub const PATH: &str = "/console/set-by-others";
/// Maximum number of lines of a card.
const MAX_LINES: usize = 12;
/// The parameter of the operation, and of the page, that names a platform user.
pub const PERSON: &str = "platformUserId";
/// The parameter that names a platform group.
pub const GROUP: &str = "platformGroupId";
/// The parameters that name a role to be assigned, and its scope.
const ROLE: &str = "roleType";
const TARGET: &str = "applyToId";

/// The response to these parameters; `None` if the user has no permission.
async fn request(visit: &Visit<'_>, of: &[(&str, &str)]) -> Result<Option<(Value, String)>, Problem> {
    let Some(op) = visit.may(operation!("GetCredentialsSetByOthers")) else { return Ok(None) };
    let mut input = Input::of(op, Vec::new());
    input.query.extend(of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let call = call(visit, &input);
    // boxed, because the futures of pages with many components need much stack already
    Ok(Some((Box::pin(visit.perform(input)).await?.json(), call)))
}

fn items(report: &Value) -> &[Value] {
    report["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether all users were checked.
fn is_complete(report: &Value) -> bool {
    report["isComplete"] == json!(true)
}

/// The number of users with such credentials, and whether all users were checked; `None` if the user has no permission.
pub async fn count(visit: &Visit<'_>) -> Result<Option<(usize, bool)>, Problem> {
    let Some((report, _)) = request(visit, &[]).await? else { return Ok(None) };
    let people: BTreeSet<&str> = items(&report).iter().filter_map(|item| item[PERSON].as_str()).collect();
    Ok(Some((people.len(), is_complete(&report))))
}

/// Shows the list of all, or of the user or group in the query, also for a role to be assigned.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let of = [PERSON, GROUP, ROLE, TARGET].into_iter();
    let of: Vec<(&str, &str)> = of.filter_map(|name| Some((name, visit.parameter(name)?))).collect();
    visit.require(operation!("GetCredentialsSetByOthers"))?;
    let (report, call) = request(visit, &of).await?.unwrap_or_default();
    let names = names(visit, items(&report)).await?;
    let rows: Vec<Value> = items(&report)
        .iter()
        .map(|item| {
            let role = words.choice(&plain(&item["role"])).to_owned();
            let cells = [
                Cell::of("title", name(visit, &item[PERSON], &names)).with_sub(role),
                Cell::of("text", kind_text(visit, item)),
                Cell::of("text", name(visit, &item["setBy"], &names)),
                item["setOn"].as_str().map_or_else(Cell::none, Cell::moment),
            ];
            json!({ "id": plain(item["userId"].as_str().map_or(&item[PERSON], |_| &item["userId"])), "href": credential_href(visit, item), "avatar": null, "cells": cells })
        })
        .collect();
    let about = if is_complete(&report) { "" } else { words.page("first_were_looked_at") };
    let about = format!("{} {about}", words.page("set_by_others_about"));
    let all =
        (!of.is_empty()).then(|| json!({ "icon": "chevron-left", "label": words.page("all"), "href": PATH }));
    let columns = ["col_who", "col_what", "col_set_by", "col_when"];
    let nothing = json!({ "title": words.page("set_by_others_none"), "text": "", "act": null });
    let count = rows.len().to_string();
    list_page(
        visit,
        words.page("set_by_others"),
        columns.as_slice(),
        &rows,
        json!({
            "about": about.trim(), "api_call": call, "more_acts": all.into_iter().collect::<Vec<_>>(), "views": [],
            "count": { "text": count, "href": null }, "empty": nothing,
        }),
    )
}

/// The card of the user or group that this parameter names; none if the list is empty.
pub async fn cards(visit: &Visit<'_>, of: Option<(&str, &str)>) -> Result<Vec<Card>, Problem> {
    let Some(of) = of else { return Ok(Vec::new()) };
    let card = credential_card(visit, &[of], visit.words.page("set_by_others_about")).await?;
    Ok(card.into_iter().collect())
}

/// The card of a group of the user store; none if it is no platform group, or if the list is empty.
pub async fn of_group_of_store(visit: &Visit<'_>, key: &str) -> Result<Vec<Card>, Problem> {
    let id = of_platform(visit, &APPLICATION_GROUP, key).await?;
    cards(visit, id.as_deref().map(|id| (GROUP, id))).await
}

/// The card of a user of the user store; none if it is no platform user, or if the list is empty.
pub async fn of_user_of_store(visit: &Visit<'_>, key: &str) -> Result<Vec<Card>, Problem> {
    let id = of_platform(visit, &APPLICATION_USER, key).await?;
    cards(visit, id.as_deref().map(|id| (PERSON, id))).await
}

/// The platform user or platform group of a row of the user store, if the user may list it and call the operation.
async fn of_platform(visit: &Visit<'_>, shape: &Shape, key: &str) -> Result<Option<String>, Problem> {
    match of_shape(shape) {
        Some(resource) if visit.may(operation!("GetCredentialsSetByOthers")).is_some() => {
            reference::with_identity(visit, resource, key).await
        }
        _ => Ok(None),
    }
}

/// The card of a role assignment to be created: credentials set by others without this role. `None` if the list is empty.
pub async fn assignment_warning(visit: &Visit<'_>, assignment: &Value) -> Result<Option<Card>, Problem> {
    let Some((of, role)) = principal(assignment).zip(assignment[ROLE].as_str()) else { return Ok(None) };
    let mut targets = SCOPES.iter();
    let target = targets.find_map(|shape| assignment[format!("applyTo{}Id", shape.name)].as_str());
    let parameters = [Some(of), Some((ROLE, role)), target.map(|id| (TARGET, id))];
    let parameters: Vec<(&str, &str)> = parameters.into_iter().flatten().collect();
    credential_card(visit, &parameters, visit.words.page("set_by_others_before")).await
}

/// The principal of a role assignment, as a parameter of the operation.
pub fn principal(assignment: &Value) -> Option<(&'static str, &str)> {
    let name = match assignment["principalType"].as_str() {
        Some("PlatformUser") => PERSON,
        Some("PlatformGroup") => GROUP,
        _ => return None,
    };
    Some((name, assignment["principalId"].as_str()?))
}

/// The card with the first credentials for these parameters; `None` if the list is empty.
async fn credential_card(
    visit: &Visit<'_>,
    of: &[(&str, &str)],
    about: &str,
) -> Result<Option<Card>, Problem> {
    let Some((report, _)) = request(visit, of).await? else { return Ok(None) };
    let items = items(&report);
    if items.is_empty() {
        return Ok(None);
    }
    let (words, names) = (visit.words, names(visit, items).await?);
    let is_group = of.iter().any(|(name, _)| *name == GROUP);
    let lines = items.iter().take(MAX_LINES).map(|item| {
        let by = words.page("set_by").replace("{name}", &name(visit, &item["setBy"], &names));
        // for a group, each line names the user
        let person = name(visit, &item[PERSON], &names);
        let sub = if is_group { format!("{person} · {by}") } else { by };
        let (text, href) = (kind_text(visit, item).to_owned(), credential_href(visit, item));
        Line { tone: "warn", text, sub, href, iso: plain(&item["setOn"]), ..Line::default() }
    });
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(of).finish();
    Ok(Some(Card {
        title: words.page("set_by_others").into(),
        kind: "lines",
        tone: "warn",
        about: about.to_owned(),
        count: Some(items.len().to_string()),
        lines: lines.collect(),
        more: Some(json!({ "href": format!("{PATH}?{query}"), "label": words.page("set_by_others_all") })),
        ..Card::default()
    }))
}

/// The line on a user's card about applications, if the list of the user's platform user is not empty.
pub async fn line(visit: &Visit<'_>, person: &str) -> Result<Option<Line>, Problem> {
    let Some((report, _)) = request(visit, &[(PERSON, person)]).await? else { return Ok(None) };
    let kinds: BTreeSet<&str> = items(&report).iter().map(|item| kind_text(visit, item)).collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    Ok(Some(Line {
        tone: "warn",
        text: visit.words.page("set_by_others").into(),
        sub: kinds.into_iter().collect::<Vec<_>>().join(" · "),
        href: Some(format!("{PATH}?{PERSON}={}", encoded(person))),
        ..Line::default()
    }))
}

/// The names of the users and of those who set the credentials, as far as the user may list them.
async fn names(visit: &Visit<'_>, items: &[Value]) -> Result<Names, Problem> {
    let ids = items.iter().flat_map(|item| [&item[PERSON], &item["setBy"]]);
    let mut unknown: BTreeSet<String> = ids.filter_map(Value::as_str).map(str::to_owned).collect();
    let mut names = Names::new();
    let shapes: [&Shape; 2] = [&APPLICATION_USER, &CLIENT_APP];
    for other in shapes.into_iter().filter_map(of_shape) {
        if !unknown.is_empty() {
            Box::pin(reference::find(visit, other, &unknown, &mut names)).await?;
        }
        unknown.retain(|id| !names.contains_key(id));
    }
    Ok(names)
}

fn name(visit: &Visit<'_>, id: &Value, names: &Names) -> String {
    let known = id.as_str().and_then(|id| names.get(id)).filter(|(name, _)| !name.is_empty());
    known.map_or_else(|| visit.words.page("set_by_unknown").to_owned(), |(name, _)| name.clone())
}

fn kind_text<'a>(visit: &Visit<'a>, item: &Value) -> &'a str {
    visit.words.page(match item["kind"].as_str() {
        Some("Password") => "set_by_password",
        Some("Passkey") => "set_by_passkey",
        Some("Contact") => "set_by_contact",
        Some("Identity") => "set_by_identity",
        Some("Provider") => "set_by_provider",
        _ => "set_by_address",
    })
}

/// The page on which the credential is replaced or deleted, or from which an identity is replaced.
fn credential_href(visit: &Visit<'_>, item: &Value) -> Option<String> {
    if item["kind"] == json!("Provider") {
        let providers = of_shape(&IDP_INSTANCE)?;
        visit.may(providers.read)?;
        return Some(format!("{}/{}", visit.address(providers), encoded(&plain(&item["idpInstanceId"]))));
    }
    if item["kind"] == json!("Identity") {
        let people = of_shape(&APPLICATION_USER)?;
        visit.may(people.read)?;
        return Some(format!("{}/{}", visit.address(people), encoded(&plain(&item[PERSON]))));
    }
    let users = of_shape(&USER)?;
    visit.may(users.read)?;
    let user = format!("{}/{}", users.address(item["userStore"].as_str()), encoded(&plain(&item["userId"])));
    Some(match item["kind"].as_str() {
        Some("Passkey") => format!("{user}/owned/PasskeyCredential"),
        Some("Contact") => format!("{user}/owned/security-contact"),
        Some("Address") => format!("{user}#f-emailAddress"),
        _ => user,
    })
}
