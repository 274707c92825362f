//! What others set of people with roles, who do not hold these roles: told where a role is given, and counted on the first page.

use std::collections::BTreeSet;

use chancery_resource::Problem;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    readiness::shown,
    reference::{self, Names},
};
use crate::{
    call::call,
    directory::{Resource, encoded, find, operation},
    fields::{Cell, plain, readable},
    parts::{Card, Line},
    visit::Visit,
};

/// The page with all of it.
pub const HERE: &str = "/console/set-by-others";
/// The most lines of a card.
const MOST_LINES: usize = 12;
/// The parameters of the operation, which the page takes, too.
const PERSON: &str = "platformUserId";
const GROUP: &str = "platformGroupId";

/// What the operation tells of a person, of a group's people, or of everybody; none where the person may not ask.
async fn asked(visit: &Visit<'_>, of: Option<(&str, &str)>) -> Result<Option<(Value, String)>, Problem> {
    let Some(op) = visit.may(operation("GetCredentialsSetByOthers")) else { return Ok(None) };
    let mut input = Input::of(op, Vec::new());
    input.query.extend(of.map(|(name, id)| (name.to_owned(), id.to_owned())));
    let call = call(visit, &input);
    // pages that tell of many things poll deep already: what is on the heap takes no room of their stack
    Ok(Some((Box::pin(visit.perform(input)).await?.json(), call)))
}

fn items(told: &Value) -> &[Value] {
    told["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether everybody was looked at.
fn is_complete(told: &Value) -> bool {
    told["isComplete"] == json!(true)
}

/// Of how many people something is told, and whether everybody was looked at; none where the person may not ask.
///
/// # Errors
/// The operation's own.
pub async fn count(visit: &Visit<'_>) -> Result<Option<(usize, bool)>, Problem> {
    let Some((told, _)) = asked(visit, None).await? else { return Ok(None) };
    let people: BTreeSet<&str> = items(&told).iter().filter_map(|item| item[PERSON].as_str()).collect();
    Ok(Some((people.len(), is_complete(&told))))
}

/// Shows what is told of everybody, or of those whom the address names.
///
/// # Errors
/// The operation's own.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let of = [PERSON, GROUP].into_iter().find_map(|name| Some((name, visit.parameter(name)?)));
    visit.need(operation("GetCredentialsSetByOthers"))?;
    let (told, call) = asked(visit, of).await?.unwrap_or_default();
    let names = names(visit, items(&told)).await?;
    let rows: Vec<Value> = items(&told)
        .iter()
        .map(|item| {
            let role = words.choice(&plain(&item["role"])).to_owned();
            let set_on = plain(&item["setOn"]);
            let moment = match set_on.as_str() {
                "" => Cell::none(),
                _ => Cell { iso: set_on.clone(), ..Cell::of("moment", readable(&set_on)) },
            };
            let cells = [
                Cell::of("title", name(visit, &item[PERSON], &names)).with_sub(role),
                Cell::of("text", kind(visit, item)),
                Cell::of("text", name(visit, &item["setBy"], &names)),
                moment,
            ];
            json!({ "id": plain(&item["userId"]), "href": place(visit, item), "avatar": null, "cells": cells })
        })
        .collect();
    let about = if is_complete(&told) { "" } else { words.page("first_were_looked_at") };
    let about = format!("{} {about}", words.page("set_by_others_about"));
    let all = of.map(|_| json!({ "icon": "chevron-left", "label": words.page("all"), "href": HERE }));
    let columns = ["col_who", "col_what", "col_set_by", "col_when"];
    let nothing = json!({ "title": words.page("set_by_others_none"), "text": "", "act": null });
    let count = rows.len().to_string();
    shown(
        visit,
        words.page("set_by_others"),
        (columns.as_slice(), rows),
        json!({
            "about": about.trim(), "api_call": call, "more_acts": all.into_iter().collect::<Vec<_>>(), "views": [],
            "count": { "text": count, "href": null }, "empty": nothing,
        }),
    )
}

/// The card of a platform user, or of a role that was assigned; none where nothing is told.
///
/// # Errors
/// The operation's own.
pub async fn card(
    visit: &Visit<'_>,
    resource: &Resource,
    (key, row): (&str, &Value),
) -> Result<Option<Card>, Problem> {
    let of = match resource.name {
        "ApplicationUser" => Some((PERSON, key)),
        "RoleAssignment" => row["principalId"].as_str().and_then(|id| match row["principalType"].as_str() {
            Some("PlatformUser") => Some((PERSON, id)),
            Some("PlatformGroup") => Some((GROUP, id)),
            _ => None,
        }),
        _ => None,
    };
    let Some(of) = of else { return Ok(None) };
    let Some((told, _)) = asked(visit, Some(of)).await? else { return Ok(None) };
    let items = items(&told);
    if items.is_empty() {
        return Ok(None);
    }
    let (words, names) = (visit.words, names(visit, items).await?);
    let lines = items.iter().take(MOST_LINES).map(|item| {
        let by = words.page("set_by").replace("{name}", &name(visit, &item["setBy"], &names));
        // of a group it is told of whom
        let whose = name(visit, &item[PERSON], &names);
        let sub = if of.0 == GROUP { format!("{whose} · {by}") } else { by };
        let (text, href) = (kind(visit, item).to_owned(), place(visit, item));
        Line { tone: "warn", text, sub, href, iso: plain(&item["setOn"]), ..Line::default() }
    });
    let (name, id) = of;
    Ok(Some(Card {
        title: words.page("set_by_others").into(),
        kind: "lines",
        tone: "warn",
        about: words.page("set_by_others_about").into(),
        count: Some(items.len().to_string()),
        lines: lines.collect(),
        more: Some(
            json!({ "href": format!("{HERE}?{name}={}", encoded(id)), "label": words.page("set_by_others_all") }),
        ),
        ..Card::default()
    }))
}

/// The line of a user's card about applications, where something is told of the platform user that the user is.
///
/// # Errors
/// The operation's own.
pub async fn line(visit: &Visit<'_>, person: &str) -> Result<Option<Line>, Problem> {
    let Some((told, _)) = asked(visit, Some((PERSON, person))).await? else { return Ok(None) };
    let kinds: BTreeSet<&str> = items(&told).iter().map(|item| kind(visit, item)).collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    Ok(Some(Line {
        tone: "warn",
        text: visit.words.page("set_by_others").into(),
        sub: kinds.into_iter().collect::<Vec<_>>().join(" · "),
        href: Some(format!("{HERE}?{PERSON}={}", encoded(person))),
        ..Line::default()
    }))
}

/// The names of the people, and of those who set something, as far as the person may list them.
async fn names(visit: &Visit<'_>, items: &[Value]) -> Result<Names, Problem> {
    let ids = items.iter().flat_map(|item| [&item[PERSON], &item["setBy"]]);
    let mut unknown: BTreeSet<String> = ids.filter_map(Value::as_str).map(str::to_owned).collect();
    let mut names = Names::new();
    for other in ["ApplicationUser", "ClientApp"].into_iter().filter_map(|name| find(name, false)) {
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

fn kind<'a>(visit: &Visit<'a>, item: &Value) -> &'a str {
    visit.words.page(match item["kind"].as_str() {
        Some("Password") => "set_by_password",
        Some("Passkey") => "set_by_passkey",
        Some("Contact") => "set_by_contact",
        _ => "set_by_address",
    })
}

/// Where it is set anew, or ended.
fn place(visit: &Visit<'_>, item: &Value) -> Option<String> {
    let users = find("User", true)?;
    visit.may(users.read)?;
    let user = format!("{}/{}", users.address(item["userStore"].as_str()), encoded(&plain(&item["userId"])));
    Some(match item["kind"].as_str() {
        Some("Passkey") => format!("{user}/owned/PasskeyCredential"),
        Some("Contact") => format!("{user}/owned/security-contact"),
        Some("Address") => format!("{user}#f-emailAddress"),
        _ => user,
    })
}
