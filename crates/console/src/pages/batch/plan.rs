//! Confirmation page of a batch action, with the numbers of affected rows.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::{
    BatchRequest, groups, list_address,
    targets::{self, Target},
    validate::{Refused, validate},
};
use crate::{
    pages::{batch_lookup::ReadOptions, form::fresh_key},
    shell::{
        call::call,
        directory::title_of,
        visit::Visit,
        words::{Words, raised},
    },
};

/// Maximum number of rows that are named.
const MAX_NAMED: usize = 5;
/// Maximum number of refusals that are listed.
const MAX_REFUSALS: usize = 50;

/// Shows what an action would do, and asks for confirmation.
pub async fn show(visit: &Visit<'_>, request: &BatchRequest<'_>) -> Result<Response<AnswerBody>, Problem> {
    let selection = targets::read(visit, request).await?;
    request.check_proof(visit, selection.pending.len())?;
    let (accepted, refused) = validate(visit, request, selection.pending).await?;
    let words = visit.words;
    let mut facts = group(visit, request).await?;
    if !accepted.is_empty() {
        facts.push(format!("{} {}: {}", accepted.len(), words.page("many_changed"), named(&accepted)));
    }
    for (key, count) in
        [("many_done", selection.done), ("many_gone", selection.gone.len()), ("many_refused", refused.len())]
    {
        if count > 0 {
            facts.push(format!("{count} {}", words.page(key)));
        }
    }
    facts.extend(refusal_lines(words, &refused));
    let address = list_address(visit, request.resource);
    let heading = format!("{}: {}", request.act.label(words, request.resource), accepted.len());
    let list = json!({ "href": address, "label": words.resources(request.resource.name) });
    if accepted.is_empty() {
        let content = json!({ "heading": heading, "text": words.page("many_nothing"), "facts": facts, "trace": "", "link": list });
        return visit.page(200, "message.html", &heading, &content);
    }
    let keys: Vec<&str> = accepted.iter().map(|one| one.key.as_str()).collect();
    let mut fields = request.form(visit, request.act, &targets::keys_with_tokens(&accepted));
    fields.extend([("sure".to_owned(), "true".to_owned()), ("key".to_owned(), fresh_key())]);
    let several = if request.act.is_each(request.op) { keys.get(..1).unwrap_or(&keys) } else { &keys };
    let api_call = call(visit, &request.act.input(request.op, several, request.group));
    let text = if request.act.is_each(request.op) { "many_each_text" } else { "many_once_text" };
    let content = json!({
        "back": list, "heading": heading, "text": words.page(text), "facts": facts, "asks": null, "errors": [],
        "action": format!("{}/batch", visit.address(request.resource)), "hidden": hidden(fields),
        "confirm": { "label": heading, "is_dangerous": request.act == super::Act::Delete },
        "cancel": { "href": address, "label": words.page("cancel") }, "api_call": api_call,
    });
    visit.page(200, "confirm.html", &heading, &content)
}

/// The group of the action.
async fn group(visit: &Visit<'_>, request: &BatchRequest<'_>) -> Result<Vec<String>, Problem> {
    let Some(groups) = groups().filter(|_| request.act.wants_group()) else { return Ok(Vec::new()) };
    let rows = targets::rows_of(visit, groups, &[request.group], ReadOptions::default()).await?;
    let name = rows.values().next().map(|row| title_of(groups, row));
    Ok(name
        .map(|name| format!("{}: {name}", raised(&visit.words.resource(groups.name))))
        .into_iter()
        .collect())
}

/// Hidden fields, in the form that templates expect.
pub fn hidden(fields: Vec<(String, String)>) -> Vec<Value> {
    fields.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

/// The names of the first rows, and the number of the others.
fn named(rows: &[Target]) -> String {
    let names: Vec<&str> = rows.iter().take(MAX_NAMED).map(|one| one.title.as_str()).collect();
    let more = rows.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" (+{more})") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// The refused rows, each with the reason.
pub fn refusal_lines(words: &Words, refused: &[Refused]) -> Vec<String> {
    let lines = refused.iter().take(MAX_REFUSALS).map(|(one, reason)| format!("{}: {reason}", one.title));
    let more = refused.len().saturating_sub(MAX_REFUSALS);
    lines.chain((more > 0).then(|| format!("+{more} {}", words.page("more_of_them")))).collect()
}
