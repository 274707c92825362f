//! Passwordless readiness of a user store: the number of users that each reason blocks, and the remedies.

use chancery_resource::{Op, Problem};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::batch::{Act, buttons};
use crate::shell::{
    call::call,
    directory::{self, encoded, operation},
    fields::{Cell, plain, with},
    visit::{Visit, hue, initials},
};

/// Numbers of required passkeys to simulate.
const WHAT_IF: [&str; 3] = ["1", "2", "3"];
const READY: &str = "Ready";
/// The reason of users without a password, which may have been removed.
const NO_PASSWORD: &str = "PasswordNotSet";

fn operation(visit: &Visit<'_>) -> Result<&'static Op, Problem> {
    visit.require(operation!("PasskeyReadiness"))
}

/// Shows the numbers, or the users of one reason.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let mut input = Input::of(operation(visit)?, Vec::new());
    for (parameter, sent) in [("reason", "reason"), ("required", "requiredCredentialCount")] {
        input.query.extend(visit.parameter(parameter).map(|value| (sent.to_owned(), value.to_owned())));
    }
    let call = call(visit, &input);
    let report = visit.perform(input).await?.json();
    match visit.parameter("reason") {
        Some(reason) => people(visit, &report, reason, &call),
        None => reasons(visit, &report, &call),
    }
}

/// The URL of this page for a reason, with the same simulation.
fn address(visit: &Visit<'_>, reason: Option<&str>, required: Option<&str>) -> String {
    let all = [("reason", reason), ("required", required)];
    let all: Vec<String> =
        all.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded((*value)?)))).collect();
    if all.is_empty() { visit.path().to_owned() } else { format!("{}?{}", visit.path(), all.join("&")) }
}

fn reasons(visit: &Visit<'_>, report: &Value, call: &str) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let required = visit.parameter("required");
    let rows: Vec<Value> = report["reasons"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|one| {
            let (reason, users) = (plain(&one["reason"]), one["users"].as_u64().unwrap_or_default());
            let href = (users > 0).then(|| address(visit, Some(&reason), required));
            let number =
                if users > 0 { Cell::of("badge", users.to_string()).toned("warn") } else { Cell::none() };
            let mend = Cell::of("text", words.page(&format!("mend_{reason}")));
            let cells = [Cell::of("title", words.page(&format!("blocks_{reason}"))), number, mend];
            json!({ "id": reason, "href": href, "avatar": null, "cells": cells })
        })
        .collect();
    let ready = report["ready"].as_u64().unwrap_or_default();
    let text = format!("{} {} {}", ready, words.page("of_people_ready"), plain(&report["users"]));
    let href = (ready > 0).then(|| address(visit, Some(READY), required));
    let about = if report["isComplete"] == json!(true) { "" } else { words.page("first_were_counted") };
    let about = format!("{} {about}", words.page("readiness_about"));
    let columns = ["col_reason", "col_people", "col_remedy"];
    list_page(
        visit,
        words.page("readiness"),
        columns.as_slice(),
        &rows,
        json!({
            "about": about.trim(), "api_call": call, "more_acts": [], "views": views(visit, report),
            "count": { "text": text, "href": href }, "empty": null,
        }),
    )
}

/// The simulations of other numbers of required passkeys.
fn views(visit: &Visit<'_>, report: &Value) -> Vec<Value> {
    let (words, requested) = (visit.words, visit.parameter("required"));
    let now = plain(&report["requiredCredentialCount"]);
    let as_set = if requested.is_none() {
        format!("{}: {now}", words.page("as_required"))
    } else {
        words.page("as_required").to_owned()
    };
    let as_set = json!({ "label": as_set, "href": visit.path(), "is_current": requested.is_none() });
    let others = WHAT_IF.iter().map(|count| {
        let label = format!("{} {count}", words.page("if_required"));
        json!({ "label": label, "href": address(visit, None, Some(count)), "is_current": requested == Some(count) })
    });
    std::iter::once(as_set).chain(others).collect()
}

fn people(
    visit: &Visit<'_>,
    report: &Value,
    reason: &str,
    call: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let users = directory::of_shape(&USER).filter(|users| visit.may(users.read).is_some());
    let people = report["people"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Value> = people
        .iter()
        .map(|person| {
            let (id, name) = (plain(&person["id"]), plain(&person["displayName"]));
            let href = users.map(|users| format!("{}/{}", visit.address(users), encoded(&id)));
            let cells = [Cell::of("title", &name), Cell::of("text", plain(&person["loginName"]))];
            json!({ "id": id, "href": href, "avatar": { "initials": initials(&name), "hue": hue(&name) }, "cells": cells })
        })
        .collect();
    let of = |one: &&Value| plain(&one["reason"]) == reason;
    let all = report["reasons"].as_array().and_then(|all| all.iter().find(of)).map(|one| &one["users"]);
    let all = plain(all.unwrap_or(&report["ready"]));
    let text = if all == rows.len().to_string() { all } else { format!("{} / {all}", rows.len()) };
    let back = json!({ "icon": "chevron-left", "label": words.page("readiness"), "href": address(visit, None, visit.parameter("required")) });
    let columns = ["col_name", "login_name"];
    let empty = json!({ "title": words.page("nothing_found"), "text": "", "act": null });
    let act = match reason {
        READY => Some(Act::RemovePasswords),
        NO_PASSWORD => Some(Act::GiveBackPasswords),
        _ => None,
    };
    let more = users.zip(act).map_or_else(
        || json!({}),
        |(users, act)| {
            let batch = buttons(visit, users, &[act]);
            json!({ "selectable": !batch.is_empty(), "batch": batch, "acts_at": visit.address(users) })
        },
    );
    list_page(
        visit,
        words.page(&format!("blocks_{reason}")),
        columns.as_slice(),
        &rows,
        with(
            json!({
                "about": words.page(&format!("mend_{reason}")), "api_call": call, "more_acts": [back], "views": [],
                "count": { "text": text, "href": null }, "empty": empty,
            }),
            more,
        ),
    )
}

/// Renders a list, without selection unless `more` enables it.
pub fn list_page(
    visit: &Visit<'_>,
    heading: &str,
    columns: &[&str],
    rows: &[Value],
    more: Value,
) -> Result<Response<AnswerBody>, Problem> {
    let columns = columns.iter().map(|key| json!({ "label": visit.words.page(key), "sort": null }));
    let columns: Vec<Value> = columns.collect();
    let content = json!({
        "heading": heading, "create": null, "search": null, "columns": columns, "rows": rows, "selectable": false,
        "batch": [], "next": null,
    });
    visit.page(200, "list.html", heading, &with(content, more))
}
