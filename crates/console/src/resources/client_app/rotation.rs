//! The secrets and keys of a client app in the order of time: when each was made, when it was last used, when it ends. The
//! new one is made beside the old, which ends when nobody uses it any more.

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
        directory::{self, Resource, encoded, title_of},
        fields::{asked, plain, written},
        parts::{Card, FormPage, Line},
        visit::{Visit, done, one},
    },
};

/// The two kinds: the resource, the set of a client app that has them, and the member by which one ends.
static KINDS: [(&Shape, &str, &str); 2] = [
    (&CLIENT_APP_SECRET, "clientAppSecrets", "expiry"),
    (&CLIENT_APP_KEY_SET, "clientAppKeySets", "validTo"),
];
/// Whoever used it in these days uses it still, in ms.
const LATELY_MS: i64 = 7 * DAY_MS;
const DAY_MS: i64 = 24 * 3_600_000;
/// When one may end: the name in the form and the texts, and how long from now, in ms.
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
    /// Of a key set: where it stands.
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

/// The credentials of a client app that the person may see, those made last first.
async fn credentials(visit: &Visit<'_>, app: &Value, key: &str) -> Result<Vec<Credential>, Problem> {
    let uses = match Uuid::try_parse(key) {
        Ok(id) => {
            let looking = move |tx: &mut Tx<'_>| credential_uses(tx, id);
            visit.app.store.run("CredentialUses", Mode::Quick, None, looking).await?
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
    all.sort_by_key(|one| std::cmp::Reverse(one.made_on.map(|made| made.0)));
    Ok(all)
}

/// When a row was made, as ids that this server makes tell.
fn made_on(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanoseconds) = id.get_timestamp()?.to_unix();
    let seconds = i64::try_from(seconds).ok()?;
    Some(Timestamp(seconds * 1000 + i64::from(nanoseconds / 1_000_000)))
}

fn address(visit: &Visit<'_>, resource: &Resource, key: &str) -> String {
    format!("{}/{}/rotation", visit.address(resource), encoded(key))
}

fn day(moment: Timestamp) -> String {
    written(moment).chars().take(10).collect()
}

/// One of them, as a line of the card: its last use is the moment.
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
    let made = one.made_on.map(|made| format!("{} {}", words.page("rotation_made"), day(made)));
    let used = words.page(if one.used_on.is_some() { "last_used" } else { "rotation_unused" }).to_owned();
    let parts: Vec<String> = made.into_iter().chain([end, used]).collect();
    let may_end = !one.is_over(now) && visit.may(one.resource.patch).is_some();
    Line {
        tone,
        text: format!(
            "{}: {}",
            crate::shell::words::raised(&visit.words.resource(one.resource.name)),
            one.name
        ),
        sub: parts.join(" · "),
        iso: one.used_on.map_or_else(String::new, written),
        href: may_end.then(|| format!("{here}/{}", one.id)),
        ..Line::default()
    }
}

/// The card of a client app's page: what it proves itself by.
///
/// # Errors
/// The store's own.
pub async fn card(
    visit: &Visit<'_>,
    resource: &Resource,
    (key, app): (&str, &Value),
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

/// Shows all of them, and how one takes the place of another.
///
/// # Errors
/// The operations' own.
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
            let made = directory::of_shape(shape).filter(|made| visit.may(made.create).is_some())?;
            let label = format!("{}: {}", words.page("new"), words.resource(made.name));
            Some(json!({ "label": label, "href": format!("{}/new?clientAppId={}", visit.address(made), encoded(key)) }))
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

/// Asks when one ends, and says who would be cut off.
///
/// # Errors
/// The operations' own.
pub async fn ask(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, id): (&str, &str),
) -> Result<Response<AnswerBody>, Problem> {
    page(visit, resource, (key, id), None).await
}

/// Lets one end.
///
/// # Errors
/// The operation's own.
pub async fn end(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, id): (&str, &str),
) -> Result<Response<AnswerBody>, Problem> {
    let app = read(visit, resource, key).await?;
    let credential = find(visit, &app, (key, id)).await?;
    let op = visit.need(credential.resource.patch)?;
    let wanted = one(&visit.form, "when");
    let after = WHEN.iter().find(|(name, _)| Some(*name) == wanted).map(|(_, after)| *after);
    let after = after.ok_or_else(|| Problem::invalid("Say when it ends."))?;
    let row = read(visit, credential.resource, id).await?;
    let mut input = Input::of(op, vec![id.to_owned()]);
    input.body = Some(json!({
        credential.end: written(visit.now.plus(after)), "concurrencyToken": plain(at(&row, "concurrencyToken")),
    }));
    match visit.perform(input).await {
        Ok(_) => Ok(done(&address(visit, resource, key), "saved")),
        Err(problem) if is_of_form(&problem) => page(visit, resource, (key, id), Some(&problem)).await,
        Err(problem) => Err(problem),
    }
}

async fn find(visit: &Visit<'_>, app: &Value, (key, id): (&str, &str)) -> Result<Credential, Problem> {
    let wanted = Uuid::try_parse(id).ok();
    let mut all = credentials(visit, app, key).await?.into_iter();
    all.find(|one| Some(one.id) == wanted).ok_or_else(|| Problem::not_found("secret or key set of this app"))
}

async fn page(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, id): (&str, &str),
    problem: Option<&Problem>,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let app = read(visit, resource, key).await?;
    let all = credentials(visit, &app, key).await?;
    let credential = find(visit, &app, (key, id)).await?;
    visit.need(credential.resource.patch)?;
    visit.fresh()?;
    let here = address(visit, resource, key);
    let is_used = credential.is_used_lately(visit.now);
    let others = all.iter().filter(|one| one.id != credential.id && !one.is_over(visit.now));
    let has_other = others.clone().next().is_some();
    let is_other_used = others.clone().any(|one| one.is_used_lately(visit.now));
    // who uses this one is cut off; least so where another is in use already
    let told = [
        (is_used, "rotation_still_used"),
        (!has_other, "rotation_no_other"),
        (has_other && !is_other_used, "rotation_other_unused"),
    ];
    let warnings: Vec<Line> = told
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
    let mut when = asked("when", words.page("rotation_when"), "choice");
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
        aside: vec![card],
        bar: Some(
            json!({ "save": words.page("end"), "cancel": { "href": here, "label": words.page("cancel") }, "review": false }),
        ),
        ..FormPage::default()
    };
    form.show(visit, status_of(problem))
}
