//! An act on many rows, done as it was confirmed: for exactly the rows that were told.

use chancery_resource::Problem;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::json;

use super::{
    Act, Asked, back,
    judge::{Refused, places},
    plan::{hidden, told},
    targets::{Target, chosen, rows_of, seen},
};
use crate::{
    pages::form::fresh_key,
    shell::{
        directory::title_of,
        undo::Undo,
        visit::{Visit, done, one},
    },
};

/// The most rows whose way back is in an address; of more it is on a page.
const MOST_IN_ADDRESS: usize = 40;

/// Does it.
///
/// # Errors
/// Too many rows; what the operation refuses beside rows.
pub async fn run(visit: &Visit<'_>, asked: &Asked<'_>) -> Result<Response<AnswerBody>, Problem> {
    let keys = chosen(visit);
    if keys.is_empty() || keys.len() > asked.most() {
        let bound = visit.words.page("many_bound").replace("{n}", &asked.most().to_string());
        return Err(Problem::invalid(bound));
    }
    asked.check_proof(visit, keys.len())?;
    if asked.act.is_each(asked.op) {
        return run_each(visit, asked, &keys).await;
    }
    let mut input = asked.act.input(asked.op, &keys, asked.group);
    input.key = one(&visit.form, "key").map(str::to_owned);
    input.unchanged = seen(visit, asked.resource);
    let refused = match visit.perform(input).await {
        Ok(_) => return finished(visit, asked, &keys).await,
        Err(problem) if places(&problem).is_empty() => return Err(problem),
        Err(problem) => places(&problem),
    };
    let changed: Vec<(&str, String)> =
        refused.into_iter().filter_map(|(at, detail)| Some((*keys.get(at)?, detail))).collect();
    let refused = named(visit, asked, changed).await?;
    changed_meanwhile(visit, asked, (&keys, &refused))
}

async fn run_each(
    visit: &Visit<'_>,
    asked: &Asked<'_>,
    keys: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    for key in keys {
        match visit.perform(asked.act.input(asked.op, &[key], asked.group)).await {
            Ok(_) => done.push(*key),
            Err(problem) => refused.push((*key, problem.detail)),
        }
    }
    if refused.is_empty() {
        return finished(visit, asked, &done).await;
    }
    let words = visit.words;
    let heading = format!("{}: {}", asked.act.label(words, asked.resource), done.len());
    let refused = named(visit, asked, refused).await?;
    let content = json!({
        "heading": heading, "text": words.page("partly_done"), "facts": told(words, &refused), "trace": "",
        "link": { "href": back(visit, asked.resource), "label": words.resources(asked.resource.name) },
    });
    visit.page(200, "message.html", &heading, &content)
}

/// What was refused, by names as far as it is still there.
async fn named(
    visit: &Visit<'_>,
    asked: &Asked<'_>,
    refused: Vec<(&str, String)>,
) -> Result<Vec<Refused>, Problem> {
    let keys: Vec<&str> = refused.iter().map(|(key, _)| *key).collect();
    let found = rows_of(visit, asked.resource, &keys, asked.reading()).await?;
    let named = refused.into_iter().map(|(key, detail)| {
        let title = found.get(key).map(|row| title_of(asked.resource, row)).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| key.to_owned());
        (Target { key: key.to_owned(), title, token: String::new() }, detail)
    });
    Ok(named.collect())
}

/// Says what is not as it was told, so that nothing was done, and offers to judge it again.
fn changed_meanwhile(
    visit: &Visit<'_>,
    asked: &Asked<'_>,
    (keys, refused): (&[&str], &[Refused]),
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let heading = words.page("many_meanwhile");
    let address = back(visit, asked.resource);
    let content = json!({
        "back": { "href": address, "label": words.resources(asked.resource.name) }, "heading": heading,
        "text": words.page("many_meanwhile_text"), "facts": told(words, refused), "asks": null, "errors": [],
        "action": format!("{}/batch", visit.address(asked.resource)),
        "hidden": hidden(asked.form(visit, asked.act, &keys.join("\n"))),
        "confirm": { "label": words.page("many_again"), "is_dangerous": false },
        "cancel": { "href": address, "label": words.page("cancel") },
    });
    visit.page(409, "confirm.html", heading, &content)
}

/// Goes back to the list, which says that it was done and offers the way back. A way that is too long for an address is on
/// a page of its own.
async fn finished(
    visit: &Visit<'_>,
    asked: &Asked<'_>,
    keys: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let address = back(visit, asked.resource);
    let note = if asked.act == Act::Delete { "deleted" } else { "done" };
    let Some(undo) = way_back(visit, asked, keys).await else { return Ok(done(&address, note)) };
    let action = format!("{}/batch", visit.address(asked.resource));
    let mut fields = asked.form(visit, undo, &keys.join("\n"));
    fields.extend([("sure".to_owned(), "true".to_owned()), ("key".to_owned(), fresh_key())]);
    if keys.len() <= MOST_IN_ADDRESS {
        return Ok(visit.done(&address, note, &Undo::of(visit, action, fields)));
    }
    let words = visit.words;
    let heading = format!("{}: {}", asked.act.label(words, asked.resource), keys.len());
    let list = json!({ "href": address, "label": words.resources(asked.resource.name) });
    let content = json!({
        "back": list, "heading": heading, "text": words.page("many_finished"), "facts": [], "asks": null, "errors": [],
        "action": action, "hidden": hidden(fields), "confirm": { "label": words.page("undo"), "is_dangerous": false },
        "cancel": list,
    });
    visit.page(200, "confirm.html", &heading, &content)
}

/// The act that takes this one back, where it can be: deletions where a quarantine keeps the rows, and few enough.
async fn way_back(visit: &Visit<'_>, asked: &Asked<'_>, keys: &[&str]) -> Option<Act> {
    let undo = asked.act.undo()?;
    let op = visit.may(undo.op(asked.resource))?;
    if undo != Act::Restore {
        return Some(undo);
    }
    let mut input = Input::of(op, keys.iter().take(1).map(|key| (*key).to_owned()).collect());
    input.dry_run = true;
    let can = keys.len() <= super::MOST_EACH && visit.perform(input).await.is_ok();
    can.then_some(undo)
}
