//! Runs a confirmed batch action on exactly the rows that the confirmation page showed.

use chancery_resource::Problem;
use chancery_userstore::group::Group;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::json;

use super::{
    Act, BatchRequest, groups, list_address,
    plan::{hidden, refusal_lines},
    targets::{Target, chosen, expected_versions, rows_of},
    validate::{Refused, failed_elements},
};
use crate::{
    pages::{form::fresh_key, set_by_other},
    shell::{
        directory::{encoded, title_of},
        undo::Undo,
        visit::{Visit, one, redirect_with_notice},
    },
};

/// Maximum number of rows whose undo form fits in a URL; the undo of more rows is on a page.
const MAX_IN_ADDRESS: usize = 40;

/// Runs the action.
///
/// # Errors
/// There are too many rows, or the operation fails for another reason than a row.
pub async fn run(visit: &Visit<'_>, request: &BatchRequest<'_>) -> Result<Response<AnswerBody>, Problem> {
    let keys = chosen(visit);
    if keys.is_empty() || keys.len() > request.most() {
        let bound = visit.words.page("many_bound").replace("{n}", &request.most().to_string());
        return Err(Problem::invalid(bound));
    }
    request.check_proof(visit, keys.len())?;
    if request.act.is_each(request.op) {
        return run_each(visit, request, &keys).await;
    }
    let mut input = request.act.input(request.op, &keys, request.group);
    input.key = one(&visit.form, "key").map(str::to_owned);
    input.unchanged = expected_versions(visit, request.resource);
    let refused = match visit.perform(input).await {
        Ok(_) => return finished(visit, request, &keys).await,
        Err(problem) if failed_elements(&problem).is_empty() => return Err(problem),
        Err(problem) => failed_elements(&problem),
    };
    let changed: Vec<(&str, String)> =
        refused.into_iter().filter_map(|(at, detail)| Some((*keys.get(at)?, detail))).collect();
    let refused = named(visit, request, changed).await?;
    changed_meanwhile(visit, request, &keys, &refused)
}

async fn run_each(
    visit: &Visit<'_>,
    request: &BatchRequest<'_>,
    keys: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    for key in keys {
        match visit.perform(request.act.input(request.op, &[key], request.group)).await {
            Ok(_) => done.push(*key),
            Err(problem) => refused.push((*key, problem.detail)),
        }
    }
    if refused.is_empty() {
        return finished(visit, request, &done).await;
    }
    let words = visit.words;
    let heading = format!("{}: {}", request.act.label(words, request.resource), done.len());
    let refused = named(visit, request, refused).await?;
    let content = json!({
        "heading": heading, "text": words.page("partly_done"), "facts": refusal_lines(words, &refused), "trace": "",
        "link": { "href": list_address(visit, request.resource), "label": words.resources(request.resource.name) },
    });
    visit.page(200, "message.html", &heading, &content)
}

/// The refused rows by name, as far as they still exist.
async fn named(
    visit: &Visit<'_>,
    request: &BatchRequest<'_>,
    refused: Vec<(&str, String)>,
) -> Result<Vec<Refused>, Problem> {
    let keys: Vec<&str> = refused.iter().map(|(key, _)| *key).collect();
    let rows = rows_of(visit, request.resource, &keys, request.reading()).await?;
    let named = refused.into_iter().map(|(key, detail)| {
        let title =
            rows.get(key).map(|row| title_of(request.resource, row)).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| key.to_owned());
        (Target { key: key.to_owned(), title, token: String::new() }, detail)
    });
    Ok(named.collect())
}

/// Reports rows that have changed since the confirmation page, so that nothing was done, and offers to validate again.
fn changed_meanwhile(
    visit: &Visit<'_>,
    request: &BatchRequest<'_>,
    keys: &[&str],
    refused: &[Refused],
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let heading = words.page("many_meanwhile");
    let address = list_address(visit, request.resource);
    let content = json!({
        "back": { "href": address, "label": words.resources(request.resource.name) }, "heading": heading,
        "text": words.page("many_meanwhile_text"), "facts": refusal_lines(words, refused), "asks": null, "errors": [],
        "action": format!("{}/batch", visit.address(request.resource)),
        "hidden": hidden(request.form(visit, request.act, &keys.join("\n"))),
        "confirm": { "label": words.page("many_again"), "is_dangerous": false },
        "cancel": { "href": address, "label": words.page("cancel") },
    });
    visit.page(409, "confirm.html", heading, &content)
}

/// A link to the page that follows.
struct Next {
    href: String,
    label: String,
}

/// The page after an action: the list; or, after users were added to a group with roles, the members of the group, if that page lists
/// credentials of theirs that others set. The action is done: a failed look-up leads to the list.
async fn next_page(visit: &Visit<'_>, request: &BatchRequest<'_>) -> Next {
    if let Some(groups) = groups().filter(|_| request.act == Act::AddTo)
        && set_by_other::of_group_of_store(visit, request.group).await.is_ok_and(|cards| !cards.is_empty())
    {
        let (group, relation) = (encoded(request.group), Group::MEMBER_USERS.name);
        let href = format!("{}/{group}/relation/{relation}", visit.address(groups));
        return Next { href, label: visit.words.field(relation) };
    }
    let label = visit.words.resources(request.resource.name);
    Next { href: list_address(visit, request.resource), label }
}

/// Redirects to the list with a notification and an undo button. An undo form that is too long for a URL is on a page of
/// its own.
async fn finished(
    visit: &Visit<'_>,
    request: &BatchRequest<'_>,
    keys: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let next = next_page(visit, request).await;
    let note = if request.act == Act::Delete { "deleted" } else { "done" };
    let Some(undo) = undo_act(visit, request, keys).await else {
        return Ok(redirect_with_notice(&next.href, note));
    };
    let action = format!("{}/batch", visit.address(request.resource));
    let mut fields = request.form(visit, undo, &keys.join("\n"));
    fields.extend([("sure".to_owned(), "true".to_owned()), ("key".to_owned(), fresh_key())]);
    if keys.len() <= MAX_IN_ADDRESS {
        return Ok(visit.redirect_with_undo(&next.href, note, &Undo::of(visit, action, fields)));
    }
    let words = visit.words;
    let heading = format!("{}: {}", request.act.label(words, request.resource), keys.len());
    let next = json!({ "href": next.href, "label": next.label });
    let content = json!({
        "back": next, "heading": heading, "text": words.page("many_finished"), "facts": [], "asks": null, "errors": [],
        "action": action, "hidden": hidden(fields), "confirm": { "label": words.page("undo"), "is_dangerous": false },
        "cancel": next,
    });
    visit.page(200, "confirm.html", &heading, &content)
}

/// The action that undoes this one, if possible: of deletions only with a quarantine, and up to a number of rows.
async fn undo_act(visit: &Visit<'_>, request: &BatchRequest<'_>, keys: &[&str]) -> Option<Act> {
    let undo = request.act.undo()?;
    let op = visit.may(undo.op(request.resource))?;
    if undo != Act::Restore {
        return Some(undo);
    }
    let mut input = Input::of(op, keys.iter().take(1).map(|key| (*key).to_owned()).collect());
    input.dry_run = true;
    let can = keys.len() <= super::MAX_EACH && visit.perform(input).await.is_ok();
    can.then_some(undo)
}
