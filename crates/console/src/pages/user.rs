//! A user's own card: why she can or cannot sign in, each line with its remedy.

use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use crate::{
    directory::Resource,
    fields::{plain, readable},
    parts::{Card, Line},
    visit::Visit,
};

/// Why she can or cannot sign in, judged by the code that judges a sign-in.
///
/// # Errors
/// The operation's own.
pub async fn sign_in(
    visit: &Visit<'_>,
    resource: &Resource,
    (key, here): (&str, &str),
) -> Result<Option<Card>, Problem> {
    let op = resource.others.iter().copied().find(|op| op.name == "ExplainSignIn");
    let Some(op) = visit.may(op) else { return Ok(None) };
    let told = &visit.perform(Input::of(op, vec![key.to_owned()])).await?.json();
    let can = told["canSignIn"] == json!(true);
    let lines = told["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    // what keeps nobody out is told of the first things alone; all that does not pass is told
    let is_told =
        |line: &&Value| line["passes"] != json!(true) || TOLD.contains(&plain(&line["check"]).as_str());
    let lines: Vec<Line> = lines.iter().filter(is_told).map(|line| check(visit, line, here)).collect();
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

/// What is told also where it passes.
const TOLD: [&str; 6] = ["Active", "ValidTo", "LockedForNow", "PasswordSet", "HasPasskey", "AccessPass"];

fn check(visit: &Visit<'_>, line: &Value, here: &str) -> Line {
    let (words, passes) = (visit.words, line["passes"] == json!(true));
    let name = plain(&line["check"]);
    let text = words.check(&name, passes).map_or_else(|| plain(&line["text"]), str::to_owned);
    let until = line["until"]
        .as_str()
        .map_or_else(String::new, |until| format!("{} {}", words.page("until"), readable(until)));
    let (act, href) = remedy(visit, line["remedy"].as_str(), here);
    Line { tone: if passes { "good" } else { "bad" }, text, sub: until, href, act, ..Line::default() }
}

/// What mends it: at once where nothing has to be said, else on a page of its own.
fn remedy(visit: &Visit<'_>, remedy: Option<&str>, here: &str) -> (Option<Value>, Option<String>) {
    match remedy {
        Some("ResetAccessFailedCount") => {
            let label = visit.words.page("unlock");
            let act =
                json!({ "action": format!("{here}/ResetAccessFailedCount"), "label": label, "fields": [] });
            (Some(act), None)
        }
        Some(name @ ("SetUserState" | "SetInitialPassword" | "RestoreUserDeletionQuarantine")) => {
            (None, Some(format!("{here}/{name}")))
        }
        _ => (None, None),
    }
}
