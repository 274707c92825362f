//! Rotation of secrets and keys of a client app: creation, last use and expiry, by time. The new credential is created
//! before the old one, no longer in use, expires.

use std::collections::HashMap;

use chancery_auth::credential_uses;
use chancery_management::client_app::{key_set::CLIENT_APP_KEY_SET, secret::CLIENT_APP_SECRET};
use chancery_record::{Timestamp, parse_timestamp};
use chancery_resource::{Problem, Shape};
use chancery_store::{Mode, Tx};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    pages::{
        cells::SOON_MS,
        form::{at, errors, is_of_form, status_of},
        item::read,
    },
    shell::{
        components::{Card, FormPage, Line},
        directory::{self, Resource, encoded, title_of},
        fields::{control_field, plain, rfc3339},
        visit::{Visit, one, redirect_with_notice},
    },
};

/// The kinds of credentials: resource, relation of the client app, and expiry member.
static KINDS: [(&Shape, &str, &str); 2] = [
    (&CLIENT_APP_SECRET, "clientAppSecrets", "expiry"),
    (&CLIENT_APP_KEY_SET, "clientAppKeySets", "validTo"),
];
/// A credential used within this time counts as in use, in ms.
const LATELY_MS: i64 = 7 * DAY_MS;
const DAY_MS: i64 = 24 * 3_600_000;
/// The choices of an expiry: the name in the form and the texts, and the delay in ms.
const WHEN: [(&str, i64); 4] = [("now", 0), ("day", DAY_MS), ("week", 7 * DAY_MS), ("month", 30 * DAY_MS)];

/// A secret or a key set.
struct Credential {
    resource: &'static Resource,
    end: &'static str,
    id: Uuid,
    name: String,
    made_on: Option<Timestamp>,
    used_on: Option<Timestamp>,
    ends_on: Option<Timestamp>,
    /// Status of a key set.
    status: String,
}

impl Credential {
    fn is_over(&self, now: Timestamp) -> bool {
        let is_out = ["Retired", "Revoked"].contains(&self.status.as_str());
        is_out || self.ends_on.is_some_and(|end| end <= now)
    }

    fn is_used_lately(&self, now: Timestamp) -> bool {
        self.used_on.is_some_and(|used| now.0 - used.0 < LATELY_MS)
    }
}

/// The credentials of a client app that the user may see, the newest first.
async fn credentials(visit: &Visit<'_>, app: &Value, key: &str) -> Result<Vec<Credential>, Problem> {
    let uses = match Uuid::try_parse(key) {
        Ok(id) => {
            let query = move |tx: &mut Tx<'_>| credential_uses(tx, id);
            visit.app.store.run("CredentialUses", Mode::Quick, None, query).await?
        }
        Err(_) => HashMap::new(),
    };
    let mut all = Vec::new();
    for (shape, set, end) in KINDS {
        let Some(resource) = directory::of_shape(shape).filter(|one| visit.may(one.list).is_some()) else {
            continue;
        };
        let rows = app[set].as_array().map(Vec::as_slice).unwrap_or_default();
        all.extend(rows.iter().filter_map(|row| {
            let id = Uuid::try_parse(row["id"].as_str()?).ok()?;
            let name = row["name"].as_str().filter(|name| !name.is_empty());
            Some(Credential {
                resource,
                end,
                id,
                name: name.map_or_else(|| visit.words.resource(resource.name), str::to_owned),
                made_on: made_on(id),
                used_on: uses.get(&id).copied(),
                ends_on: row[end].as_str().and_then(parse_timestamp),
                status: row["status"].as_str().unwrap_or_default().to_owned(),
            })
        }));
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.made_on.map(|created| created.0)));
    Ok(all)
}

/// The time of creation, from an id that this server generated.
fn made_on(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanoseconds) = id.get_timestamp()?.to_unix();
    let seconds = i64::try_from(seconds).ok()?;
    Some(Timestamp(seconds * 1000 + i64::from(nanoseconds / 1_000_000)))
}

fn address(visit: &Visit<'_>, resource: &Resource, key: &str) -> String {
    format!("{}/{}/rotation", visit.address(resource), encoded(key))
}

fn day(moment: Timestamp) -> String {
    rfc3339(moment).chars().take(10).collect()
}

/// A credential as a line of a card, with its last use as timestamp.
fn line(visit: &Visit<'_>, one: &Credential, here: &str) -> Line {
    let (words, now) = (visit.words, visit.now);
    let is_soon = one.ends_on.is_some_and(|end| end.0 - now.0 < SOON_MS);
    let tone = match (one.is_over(now), is_soon) {
        (true, _) => "off",
        (false, true) => "warn",
        (false, false) => "good",
    };
    let end = match one.ends_on {
        _ if one.status == "Retired" || one.status == "Revoked" => words.choice(&one.status).to_owned(),
        Some(end) => {
            let key = if one.is_over(now) { "rotation_ended" } else { "rotation_ends" };
            format!("{} {}", words.page(key), day(end))
        }
        None => words.page("rotation_endless").to_owned(),
    };
    let created = one.made_on.map(|created| format!("{} {}", words.page("rotation_made"), day(created)));
    let used = words.page(if one.used_on.is_some() { "last_used" } else { "rotation_unused" }).to_owned();
    let parts: Vec<String> = created.into_iter().chain([end, used]).collect();
    let may_end = !one.is_over(now) && visit.may(one.resource.patch).is_some();
    Line {
        tone,
        text: format!(
            "{}: {}",
            crate::shell::words::raised(&visit.words.resource(one.resource.name)),
            one.name
        ),
        sub: parts.join(" · "),
        iso: one.used_on.map_or_else(String::new, rfc3339),
        href: may_end.then(|| format!("{here}/{}", one.id)),
        ..Line::default()
    }
}

/// The card with the credentials on the page of a client app.
pub async fn card(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    app: &Value,
) -> Result<Option<Card>, Problem> {
    let here = address(visit, resource, key);
    let all = credentials(visit, app, key).await?;
    let lines: Vec<Line> =
        all.iter().filter(|one| !one.is_over(visit.now)).map(|one| line(visit, one, &here)).collect();
    Ok((!all.is_empty()).then(|| Card {
        title: visit.words.page("rotation").into(),
        kind: "checks",
        lines,
        more: Some(json!({ "href": here, "label": visit.words.page("rotation_rotate") })),
        ..Card::default()
    }))
}

/// Shows all credentials and how to rotate them.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let app = read(visit, resource, key).await?;
    let here = address(visit, resource, key);
    let all = credentials(visit, &app, key).await?;
    let lines: Vec<Line> = all.iter().map(|one| line(visit, one, &here)).collect();
    let acts: Vec<Value> = KINDS
        .iter()
        .filter_map(|(shape, ..)| {
            let target = directory::of_shape(shape).filter(|target| visit.may(target.create).is_some())?;
            let label = format!("{}: {}", words.page("new"), words.resource(target.name));
            Some(json!({ "label": label, "href": format!("{}/new?clientAppId={}", visit.address(target), encoded(key)) }))
        })
        .collect();
    let about = if lines.is_empty() { words.page("nothing_yet") } else { "" };
    let card = Card {
        title: words.page("rotation_time").into(),
        kind: "checks",
        about: about.into(),
        lines,
        ..Card::default()
    };
    let content = json!({
        "back": { "href": format!("{}/{}", visit.address(resource), encoded(key)), "label": title_of(resource, &app) },
        "heading": words.page("rotation"), "about": words.page("rotation_about"), "acts": acts, "cards": [card],
    });
    visit.page(200, "cards.html", words.page("rotation"), &content)
}

/// Shows the form for an expiry, with the consequences.
pub async fn show_end_form(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    id: &str,
) -> Result<Response<AnswerBody>, Problem> {
    page(visit, resource, key, id, None).await
}

/// Sets the expiry of a credential.
pub async fn end(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    id: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let app = read(visit, resource, key).await?;
    let credential = find(visit, &app, key, id).await?;
    let op = visit.require(credential.resource.patch)?;
    let choice = one(&visit.form, "when");
    let after = WHEN.iter().find(|(name, _)| Some(*name) == choice).map(|(_, after)| *after);
    let after = after.ok_or_else(|| Problem::invalid("Say when it ends."))?;
    let row = read(visit, credential.resource, id).await?;
    let mut input = Input::of(op, vec![id.to_owned()]);
    input.body = Some(json!({
        credential.end: rfc3339(visit.now.plus(after)), "concurrencyToken": plain(at(&row, "concurrencyToken")),
    }));
    match visit.perform(input).await {
        Ok(_) => Ok(redirect_with_notice(&address(visit, resource, key), "saved")),
        Err(problem) if is_of_form(&problem) => page(visit, resource, key, id, Some(&problem)).await,
        Err(problem) => Err(problem),
    }
}

async fn find(visit: &Visit<'_>, app: &Value, key: &str, id: &str) -> Result<Credential, Problem> {
    let wanted_id = Uuid::try_parse(id).ok();
    let mut all = credentials(visit, app, key).await?.into_iter();
    all.find(|one| Some(one.id) == wanted_id)
        .ok_or_else(|| Problem::not_found("secret or key set of this app"))
}

async fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    id: &str,
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let app = read(visit, resource, key).await?;
    let all = credentials(visit, &app, key).await?;
    let credential = find(visit, &app, key, id).await?;
    visit.require(credential.resource.patch)?;
    visit.fresh()?;
    let here = address(visit, resource, key);
    let is_used = credential.is_used_lately(visit.now);
    let others = all.iter().filter(|one| one.id != credential.id && !one.is_over(visit.now));
    let has_other = others.clone().next().is_some();
    let is_other_used = others.clone().any(|one| one.is_used_lately(visit.now));
    // clients with this credential are cut off, less likely if another one is in use
    let conditions = [
        (is_used, "rotation_still_used"),
        (!has_other, "rotation_no_other"),
        (has_other && !is_other_used, "rotation_other_unused"),
    ];
    let warnings: Vec<Line> = conditions
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, text)| Line { tone: "warn", text: words.page(text).into(), ..Line::default() })
        .collect();
    let well = Line { tone: "good", text: words.page("rotation_can_end").into(), ..Line::default() };
    let is_well = warnings.is_empty();
    let card = Card {
        title: words.page("rotation_cut_off").into(),
        kind: "checks",
        tone: if is_well { "good" } else { "warn" },
        lines: if is_well { vec![well] } else { warnings },
        ..Card::default()
    };
    let first = if is_well { "now" } else { "week" };
    let mut when = control_field("when", words.page("rotation_when"), "choice");
    let choices = WHEN.iter().map(|(name, _)| {
        json!({ "value": name, "label": words.page(&format!("rotation_in_{name}")), "is_current": *name == first })
    });
    when.insert("choices".to_owned(), choices.collect());
    let heading = words.page("rotation_end").replace("{n}", &credential.name);
    let form = FormPage {
        back: json!({ "href": here, "label": words.page("rotation") }),
        heading,
        sub: line(visit, &credential, &here).sub,
        errors: errors(visit, problem),
        sections: vec![json!({ "title": "", "about": "", "fields": [when], "is_readonly": false })],
        sidebar: vec![card],
        bar: Some(
            json!({ "save": words.page("end"), "cancel": { "href": here, "label": words.page("cancel") }, "review": false }),
        ),
        ..FormPage::default()
    };
    form.show(visit, status_of(problem))
}
