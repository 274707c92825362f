//! What an act would do, in numbers, before anybody confirms it.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::{
    Asked, back, groups,
    judge::{Refused, judge},
    targets::{self, Target},
};
use crate::{
    pages::{form::fresh_key, look_up::Reading},
    shell::{
        call::call,
        directory::title_of,
        visit::Visit,
        words::{Words, raised},
    },
};

/// The most rows that are named.
const MOST_NAMED: usize = 5;
/// The most refusals that are told one by one.
const MOST_TOLD: usize = 50;

/// Shows what an act would do, and asks whether it is to be done.
///
/// # Errors
/// The operations' own.
pub async fn show(visit: &Visit<'_>, asked: &Asked<'_>) -> Result<Response<AnswerBody>, Problem> {
    let found = targets::read(visit, asked).await?;
    asked.check_proof(visit, found.wanted.len())?;
    let (wanted, refused) = judge(visit, asked, found.wanted).await?;
    let words = visit.words;
    let mut facts = group(visit, asked).await?;
    if !wanted.is_empty() {
        facts.push(format!("{} {}: {}", wanted.len(), words.page("many_changed"), named(&wanted)));
    }
    for (key, count) in
        [("many_done", found.done), ("many_gone", found.gone.len()), ("many_refused", refused.len())]
    {
        if count > 0 {
            facts.push(format!("{count} {}", words.page(key)));
        }
    }
    facts.extend(told(words, &refused));
    let address = back(visit, asked.resource);
    let heading = format!("{}: {}", asked.act.label(words, asked.resource), wanted.len());
    let list = json!({ "href": address, "label": words.resources(asked.resource.name) });
    if wanted.is_empty() {
        let content = json!({ "heading": heading, "text": words.page("many_nothing"), "facts": facts, "trace": "", "link": list });
        return visit.page(200, "message.html", &heading, &content);
    }
    let keys: Vec<&str> = wanted.iter().map(|one| one.key.as_str()).collect();
    let mut fields = asked.form(visit, asked.act, &targets::written(&wanted));
    fields.extend([("sure".to_owned(), "true".to_owned()), ("key".to_owned(), fresh_key())]);
    let several = if asked.act.is_each(asked.op) { keys.get(..1).unwrap_or(&keys) } else { &keys };
    let api_call = call(visit, &asked.act.input(asked.op, several, asked.group));
    let text = if asked.act.is_each(asked.op) { "many_each_text" } else { "many_once_text" };
    let content = json!({
        "back": list, "heading": heading, "text": words.page(text), "facts": facts, "asks": null, "errors": [],
        "action": format!("{}/batch", visit.address(asked.resource)), "hidden": hidden(fields),
        "confirm": { "label": heading, "is_dangerous": asked.act == super::Act::Delete },
        "cancel": { "href": address, "label": words.page("cancel") }, "api_call": api_call,
    });
    visit.page(200, "confirm.html", &heading, &content)
}

/// The group that the act is about.
async fn group(visit: &Visit<'_>, asked: &Asked<'_>) -> Result<Vec<String>, Problem> {
    let Some(groups) = groups().filter(|_| asked.act.wants_group()) else { return Ok(Vec::new()) };
    let found = targets::rows_of(visit, groups, &[asked.group], Reading::default()).await?;
    let name = found.values().next().map(|row| title_of(groups, row));
    Ok(name
        .map(|name| format!("{}: {name}", raised(&visit.words.resource(groups.name))))
        .into_iter()
        .collect())
}

/// Fields as templates take them.
pub fn hidden(fields: Vec<(String, String)>) -> Vec<Value> {
    fields.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

/// The names of the first rows, and how many more there are.
fn named(rows: &[Target]) -> String {
    let names: Vec<&str> = rows.iter().take(MOST_NAMED).map(|one| one.title.as_str()).collect();
    let more = rows.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" (+{more})") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// What was refused, each with its reason.
pub fn told(words: &Words, refused: &[Refused]) -> Vec<String> {
    let lines = refused.iter().take(MOST_TOLD).map(|(one, reason)| format!("{}: {reason}", one.title));
    let more = refused.len().saturating_sub(MOST_TOLD);
    lines.chain((more > 0).then(|| format!("+{more} {}", words.page("more_of_them")))).collect()
}
