//! Deleting one, after it was asked.

use chancery_resource::{Op, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::json;

use super::{
    item::{may_not, read},
    list::title_of,
};
use crate::{
    directory::{Resource, encoded},
    proof::is_wanted,
    undo::Undo,
    visit::{Visit, done},
};

/// Asks whether one is to be deleted, after the interface has judged it.
///
/// # Errors
/// The operation's own: what is in the way is said before anybody is asked.
pub async fn ask(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.may(resource.delete).ok_or_else(may_not)?;
    if is_wanted(op) {
        visit.fresh()?;
    }
    let row = read(visit, resource, key).await?;
    let mut input = Input::of(op, vec![key.to_owned()]);
    input.dry_run = true;
    let judged = visit.perform(input).await;
    let words = visit.words;
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let heading = format!("{}: {}", words.page("delete"), title_of(resource, &row));
    if let Err(problem) = judged {
        return visit.message(problem.status(), &heading, &problem.detail);
    }
    let content = json!({
        "back": { "href": here, "label": words.page("back") }, "heading": heading, "text": words.page("delete_text"),
        "facts": [], "asks": null, "errors": [], "action": format!("{here}/delete"), "hidden": [],
        "confirm": { "label": words.page("delete"), "is_dangerous": true },
        "cancel": { "href": here, "label": words.page("cancel") },
    });
    visit.page(200, "confirm.html", &heading, &content)
}

/// Deletes one.
///
/// # Errors
/// The operation's own.
pub async fn run(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let op = visit.may(resource.delete).ok_or_else(may_not)?;
    visit.perform(Input::of(op, vec![key.to_owned()])).await?;
    let address = visit.address(resource);
    let Some(back) = restoring(visit, resource, key).await else { return Ok(done(&address, "deleted")) };
    let action = format!("{address}/{}/{}", encoded(key), back.name);
    Ok(visit.done(&address, "deleted", &Undo::of(visit, action, Vec::new())))
}

/// The operation that brings back what is in quarantine, if this is.
async fn restoring(visit: &Visit<'_>, resource: &Resource, key: &str) -> Option<&'static Op> {
    let back = super::act::offered(visit, resource).find(|op| op.name.starts_with("Restore"))?;
    let mut input = Input::of(back, vec![key.to_owned()]);
    input.dry_run = true;
    visit.perform(input).await.ok().map(|_| back)
}
