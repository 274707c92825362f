//! The sign-in card of a user: why the user can or cannot sign in, each line with its remedy.

use std::collections::BTreeMap;

use chancery_management::{
    application::APPLICATION_USER,
    sign_in::{
        factor::SIGN_IN_FACTOR, grant::SIGN_IN_GRANT, record::SIGN_IN_RECORD, session::SIGN_IN_SESSION,
    },
};
use chancery_resource::{Problem, RoleType, Shape};
use chancery_userstore::passkey::ACCESS_PASS;
use chancery_web::Input;
use serde_json::{Value, json};

use crate::{
    pages::{reference, set_by_other},
    shell::{
        components::{Card, Line},
        directory::{self, OperationName, Resource, encoded, operation, operation_name},
        fields::{plain, rfc3339},
        visit::Visit,
        words::raised,
    },
};

/// Why the user can or cannot sign in, determined by the code of the sign-in itself.
pub async fn sign_in(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    here: &str,
    protecting_role: Option<RoleType>,
) -> Result<Option<Card>, Problem> {
    let op = resource.other(operation_name!("ExplainSignIn"));
    let Some(op) = visit.may(op) else { return Ok(None) };
    let explanation = &visit.perform(Input::of(op, vec![key.to_owned()])).await?.json();
    let can = explanation["canSignIn"] == json!(true);
    let lines = explanation["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    // failed checks are shown; of the passed ones only the main ones
    let is_shown =
        |line: &&Value| line["passes"] != json!(true) || TOLD.contains(&plain(&line["check"]).as_str());
    let mut lines: Vec<Line> =
        lines.iter().filter(is_shown).map(|line| check(visit, line, key, here)).collect();
    if protecting_role.is_some() {
        // every remedy is protected
        for line in &mut lines {
            (line.act, line.href) = (None, None);
        }
    }
    let words = visit.words;
    let (title, tone) = if can { ("can_sign_in", "good") } else { ("cannot_sign_in", "bad") };
    Ok(Some(Card {
        title: words.page(title).into(),
        kind: "checks",
        tone,
        about: words.page("sign_in_order").into(),
        lines,
        ..Card::default()
    }))
}

/// The checks that are shown even if they pass.
const TOLD: [&str; 6] = ["Active", "ValidTo", "LockedForNow", "PasswordSet", "HasPasskey", "AccessPass"];

fn check(visit: &Visit<'_>, line: &Value, key: &str, here: &str) -> Line {
    let (words, passes) = (visit.words, line["passes"] == json!(true));
    let name = plain(&line["check"]);
    let detail = plain(&line["text"]);
    let text = words.check(&name, passes).map_or_else(|| detail.clone(), str::to_owned);
    // the actor, and the number of attempts
    let details = if passes { None } else { Some(words.error_text(&detail).into_owned()) };
    let sub = details.filter(|details| *details != text).unwrap_or_default();
    let until = line["until"].as_str().unwrap_or_default().to_owned();
    let (act, href) = remedy(visit, &name, line["remedy"].as_str(), key, here);
    let tone = if passes { "good" } else { "bad" };
    Line { tone, text, sub, href, act, until, ..Line::default() }
}

/// How an obstacle is removed.
enum Remedy {
    /// By a button, immediately.
    AtOnce,
    /// On the page of the operation.
    Page,
    /// On the page of a new access pass.
    Pass,
    /// In the field of the form that the check is about.
    Field,
}

/// The operations that the API names as remedies.
const REMEDIES: [(OperationName, Remedy); 6] = [
    (operation_name!("ResetAccessFailedCount"), Remedy::AtOnce),
    (operation_name!("SetUserState"), Remedy::Page),
    (operation_name!("SetInitialPassword"), Remedy::Page),
    (operation_name!("RestoreUserDeletionQuarantine"), Remedy::Page),
    (operation_name!("IssueTemporaryAccessPass"), Remedy::Pass),
    (operation_name!("PatchUser"), Remedy::Field),
];

/// The remedy of a check: a button if no input is needed, else a link.
fn remedy(
    visit: &Visit<'_>,
    check: &str,
    remedy: Option<&str>,
    key: &str,
    here: &str,
) -> (Option<Value>, Option<String>) {
    let known = REMEDIES.iter().find(|(name, _)| remedy == Some(name.text()));
    let known = known.filter(|(name, _)| visit.may(directory::of_name(*name)).is_some());
    let Some((name, remedy)) = known else { return (None, None) };
    match remedy {
        Remedy::AtOnce => {
            let label = visit.words.page("unlock");
            let act = json!({ "action": format!("{here}/{}", name.text()), "label": label, "fields": [] });
            (Some(act), None)
        }
        Remedy::Page => (None, Some(format!("{here}/{}", name.text()))),
        Remedy::Pass => {
            let passes = directory::of_shape(&ACCESS_PASS);
            (None, passes.map(|passes| format!("{}/new?userId={}", visit.address(passes), encoded(key))))
        }
        Remedy::Field => (None, Some(format!("{here}#f-user{check}"))),
    }
}

/// Sign-in data of a user, each with the filter of its list.
static OF_SIGN_IN: [(&Shape, &str); 4] = [
    (&SIGN_IN_RECORD, ""),
    (&SIGN_IN_SESSION, "&view=live"),
    (&SIGN_IN_GRANT, "&view=live"),
    (&SIGN_IN_FACTOR, ""),
];

/// The card of a user in applications: the platform user, and links to its sign-in data.
pub async fn in_applications(visit: &Visit<'_>, key: &str) -> Result<Option<Card>, Problem> {
    let Some(people) = directory::of_shape(&APPLICATION_USER) else { return Ok(None) };
    let Some(id) = reference::with_identity(visit, people, key).await? else { return Ok(None) };
    let mut lines: Vec<Line> = attack(visit, &id).await?.into_iter().collect();
    lines.extend(Box::pin(set_by_other::line(visit, &id)).await?);
    lines.push(Line {
        icon: Some(people.presentation.icon),
        text: raised(&visit.words.resource(people.name)),
        href: Some(format!("{}/{}", visit.address(people), encoded(&id))),
        ..Line::default()
    });
    for (shape, view) in OF_SIGN_IN {
        let Some(of) = directory::of_shape(shape).filter(|of| visit.may(of.list).is_some()) else {
            continue;
        };
        lines.push(Line {
            icon: Some(of.presentation.icon),
            text: visit.words.resources(of.name),
            href: Some(format!("{}?of=platformUserId:{}{view}", visit.address(of), encoded(&id))),
            ..Line::default()
        });
    }
    Ok(Some(Card {
        title: visit.words.page("in_applications").into(),
        kind: "lines",
        lines,
        ..Card::default()
    }))
}

/// Number of refused attempts from one address within a day that is reported as an attack.
const MAX_REFUSED: u64 = 10;
/// Maximum number of records that are read.
const LOOKED_AT: &str = "200";
const DAY_MS: i64 = 24 * 3_600_000;

/// The address with the most refused attempts of the last day, if there are that many.
async fn attack(visit: &Visit<'_>, person: &str) -> Result<Option<Line>, Problem> {
    let Some(op) = visit.may(operation!("GetSignInRecords")) else { return Ok(None) };
    let mut input = Input::of(op, Vec::new());
    let since = json!(rfc3339(visit.now.plus(-DAY_MS)));
    let filter = format!(
        "platformUserId eq {} and outcome eq \"Refused\" and lastAttemptOn gt {since}",
        json!(person)
    );
    let query = [("filter", filter.as_str()), ("count", LOOKED_AT)];
    input.query.extend(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let rows = visit.perform(input).await?.json();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows.as_array().into_iter().flatten() {
        if let Some(address) = row["address"].as_str() {
            *counts.entry(address).or_default() += row["attempts"].as_u64().unwrap_or(1);
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count >= MAX_REFUSED);
    Ok(most.map(|(address, count)| {
        let text = visit
            .words
            .page("looks_like_attack")
            .replace("{n}", &count.to_string())
            .replace("{from}", address);
        Line { icon: Some("triangle-alert"), tone: "bad", text, ..Line::default() }
    }))
}
