//! A user's passkeys, and the obstacles to passwordless sign-in.

use chancery_resource::Problem;
use chancery_userstore::passkey::PASSKEY;
use chancery_web::Input;
use serde_json::json;

use crate::shell::{
    components::{Card, Line},
    directory::operation,
    fields::plain,
    visit::Visit,
};

/// The card with the number of usable and required passkeys, and the obstacles.
pub async fn card(visit: &Visit<'_>, key: &str, here: &str) -> Result<Option<Card>, Problem> {
    let Some(op) = visit.may(operation!("GetUserOverview")) else { return Ok(None) };
    let overview = &visit.perform(Input::of(op, vec![key.to_owned()])).await?.json();
    let words = visit.words;
    let readiness = &overview["readiness"];
    let reasons = readiness["blockingReasons"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines: Vec<Line> = reasons
        .iter()
        .map(|reason| {
            let reason = plain(reason);
            let (text, mends) = (format!("blocks_{reason}"), format!("mend_{reason}"));
            line("warn", words.page(&text), words.page(&mends))
        })
        .collect();
    if lines.is_empty() {
        lines.push(line("good", words.page("blocks_Ready"), ""));
    }
    let count = |member: &str| readiness[member].as_i64().unwrap_or_default();
    let about = format!(
        "{} / {} {}",
        count("usableCredentialCount"),
        count("requiredCredentialCount"),
        words.resources(PASSKEY.name)
    );
    let tone = if reasons.is_empty() { "good" } else { "" };
    Ok(Some(Card {
        title: words.page("without_password").into(),
        kind: "checks",
        tone,
        about,
        lines,
        more: Some(
            json!({ "href": format!("{here}/owned/{}", PASSKEY.name), "label": words.resources(PASSKEY.name) }),
        ),
        ..Card::default()
    }))
}

fn line(tone: &'static str, text: &str, sub: &str) -> Line {
    Line { tone, text: text.into(), sub: sub.into(), ..Line::default() }
}
