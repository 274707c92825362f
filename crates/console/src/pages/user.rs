//! A user's own cards: why she can or cannot sign in, each line with its remedy, and what was changed last.

use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use crate::{
    directory::{self, Resource},
    fields::{plain, readable},
    visit::Visit,
    words::raised,
};

/// Changes that are shown.
const CHANGES: &str = "5";

/// The cards of a user.
///
/// # Errors
/// The operations' own.
pub async fn cards(
    visit: &Visit<'_>,
    resource: &Resource,
    (key, here): (&str, &str),
) -> Result<Vec<Value>, Problem> {
    let mut cards = Vec::new();
    cards.extend(sign_in(visit, resource, (key, here)).await?);
    cards.extend(history(visit, key).await?);
    Ok(cards)
}

/// Why she can or cannot sign in, judged by the code that judges a sign-in.
async fn sign_in(
    visit: &Visit<'_>,
    resource: &Resource,
    (key, here): (&str, &str),
) -> Result<Option<Value>, Problem> {
    let op = resource.others.iter().copied().find(|op| op.name == "ExplainSignIn");
    let Some(op) = visit.may(op) else { return Ok(None) };
    let told = &visit.perform(Input::of(op, vec![key.to_owned()])).await?.json();
    let can = told["canSignIn"] == json!(true);
    let lines = told["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    // what keeps nobody out is told of the first things alone; all that does not pass is told
    let is_told =
        |line: &&Value| line["passes"] != json!(true) || TOLD.contains(&plain(&line["check"]).as_str());
    let lines: Vec<Value> = lines.iter().filter(is_told).map(|line| check(visit, line, here)).collect();
    let words = visit.words;
    let (title, tone) = if can { ("can_sign_in", "good") } else { ("cannot_sign_in", "bad") };
    Ok(Some(json!({
        "title": words.page(title), "kind": "checks", "tone": tone, "about": words.page("sign_in_order"), "count": null,
        "lines": lines, "more": null, "later": null,
    })))
}

/// What is told also where it passes.
const TOLD: [&str; 6] = ["Active", "ValidTo", "LockedForNow", "PasswordSet", "HasPasskey", "AccessPass"];

fn check(visit: &Visit<'_>, line: &Value, here: &str) -> Value {
    let (words, passes) = (visit.words, line["passes"] == json!(true));
    let name = plain(&line["check"]);
    let text = words.check(&name, passes).map_or_else(|| plain(&line["text"]), str::to_owned);
    let until = line["until"]
        .as_str()
        .map_or_else(String::new, |until| format!("{} {}", words.page("until"), readable(until)));
    let (act, href) = remedy(visit, line["remedy"].as_str(), here);
    json!({
        "icon": null, "tone": if passes { "good" } else { "bad" }, "text": text, "sub": until, "href": href,
        "act": act, "iso": "",
    })
}

/// What mends it: at once where nothing has to be said, else on a page of its own.
fn remedy(visit: &Visit<'_>, remedy: Option<&str>, here: &str) -> (Value, Value) {
    match remedy {
        Some("ResetAccessFailedCount") => {
            let label = visit.words.page("unlock");
            let act =
                json!({ "action": format!("{here}/ResetAccessFailedCount"), "label": label, "fields": [] });
            (act, Value::Null)
        }
        Some(name @ ("SetUserState" | "SetInitialPassword" | "RestoreUserDeletionQuarantine")) => {
            (Value::Null, json!(format!("{here}/{name}")))
        }
        _ => (Value::Null, Value::Null),
    }
}

/// What was changed last, for who may read the trail.
async fn history(visit: &Visit<'_>, key: &str) -> Result<Option<Value>, Problem> {
    let Some(trail) = directory::find("CustomAuditTrail", true) else { return Ok(None) };
    let Some(op) = visit.may(trail.list) else { return Ok(None) };
    let mut input = Input::of(op, Vec::new());
    let filter = format!("primaryKey eq {}", json!(key));
    let query = [("filter", filter.as_str()), ("count", CHANGES), ("sortOrder", "descending")];
    input.query.extend(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let rows = visit.perform(input).await?.json();
    let words = visit.words;
    let lines: Vec<Value> = rows
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|row| {
            let text = raised(words.choice(&plain(&row["action"])));
            let who = plain(&row["user"]);
            let who = if who.is_empty() { words.page("the_server").to_owned() } else { who };
            json!({ "icon": null, "tone": "", "text": text, "sub": who, "href": null, "act": null, "iso": plain(&row["timestamp"]) })
        })
        .collect();
    let more = format!("{}?of=primaryKey:{key}", visit.address(trail));
    Ok(Some(json!({
        "title": words.page("recent_changes"), "kind": "timeline", "tone": "", "about": "", "count": null,
        "lines": lines, "more": { "href": more, "label": words.page("all") }, "later": null,
    })))
}
