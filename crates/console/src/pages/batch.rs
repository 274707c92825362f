//! Acts on many rows that were chosen: one after the other, and what was refused is said.

use chancery_resource::Problem;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::item::may_not;
use crate::{
    directory::Resource,
    visit::{Visit, done, one},
};

/// The most rows that are chosen at once: as many as a list shows before it goes on.
const MOST: usize = 500;

/// Does what was chosen, after it was asked once more.
///
/// # Errors
/// The act is unknown, or may not be done.
pub async fn run(visit: &Visit<'_>, resource: &'static Resource) -> Result<Response<AnswerBody>, Problem> {
    let op = visit
        .may(resource.delete)
        .filter(|_| one(&visit.form, "act") == Some("delete"))
        .ok_or_else(may_not)?;
    let chosen: Vec<&str> =
        visit.form.iter().filter(|(name, _)| name == "selected").map(|(_, key)| key.as_str()).collect();
    if chosen.is_empty() || chosen.len() > MOST {
        return Err(Problem::invalid(format!("Choose 1 to {MOST} rows.")));
    }
    let is_sure = one(&visit.form, "sure") == Some("true");
    let mut refused = Vec::new();
    for key in &chosen {
        let mut input = Input::of(op, vec![(*key).to_owned()]);
        input.dry_run = !is_sure;
        if let Err(problem) = visit.perform(input).await {
            refused.push(json!(format!("{key}: {}", problem.detail)));
        }
    }
    let address = visit.address(resource);
    let words = visit.words;
    if is_sure && refused.is_empty() {
        return Ok(done(&address, "deleted"));
    }
    let heading = format!("{}: {}", words.page("delete"), chosen.len());
    if is_sure {
        let content = json!({
            "heading": heading, "text": words.page("partly_done"), "facts": refused, "trace": "",
            "link": { "href": address, "label": words.resources(resource.name) },
        });
        return visit.page(200, "message.html", &heading, &content);
    }
    let keys = chosen.iter().map(|key| json!({ "name": "selected", "value": key }));
    let more = [json!({ "name": "act", "value": "delete" }), json!({ "name": "sure", "value": "true" })];
    let hidden: Vec<Value> = keys.chain(more).collect();
    let content = json!({
        "back": { "href": address, "label": words.page("back") }, "heading": heading,
        "text": words.page("delete_many_text"), "facts": refused, "asks": null, "errors": [], "action": format!("{address}/batch"),
        "hidden": hidden, "confirm": { "label": words.page("delete"), "is_dangerous": true },
        "cancel": { "href": address, "label": words.page("cancel") },
    });
    visit.page(200, "confirm.html", &heading, &content)
}
