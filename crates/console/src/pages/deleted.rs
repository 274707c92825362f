//! What is in quarantine: it can be looked at, restored and erased, and nothing else.

use chancery_resource::{Op, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{act, form::sections_shown};
use crate::shell::{
    carried::is_protected,
    directory::{Resource, encoded, title_of},
    navigation::label,
    parts::FormPage,
    presentation::Item,
    visit::Visit,
};

/// The view of a list that shows what is in quarantine.
pub const VIEW: &str = "deleted";

/// Whether what is deleted waits in a quarantine first.
pub fn has_quarantine(resource: &Resource) -> bool {
    resource.shape.deletes.deletion.hiding().is_some()
}

/// One that is in quarantine.
///
/// # Errors
/// The operation's own.
pub async fn find(visit: &Visit<'_>, resource: &Resource, key: &str) -> Result<Option<Value>, Problem> {
    let wanted = resource.key().filter(|_| has_quarantine(resource)).zip(visit.may(resource.list));
    let Some((field, op)) = wanted else { return Ok(None) };
    let mut input = Input::of(op, Vec::new());
    let filter = format!("{} eq {}", field.wire(), json!(key));
    input.query = vec![("filter".to_owned(), filter), ("quarantined".to_owned(), "true".to_owned())];
    let found = visit.perform(input).await?.json();
    Ok(found.as_array().and_then(|rows| rows.first()).cloned())
}

/// Shows one.
///
/// # Errors
/// The operations' own.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, row): (&str, &Value),
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let address = visit.address(resource);
    let here = format!("{address}/{}", encoded(key));
    let title = title_of(resource, row);
    let barrier = visit.barrier(resource, (key, row)).await?;
    let is_free = |op: &Op| barrier.is_none() || !is_protected(op);
    let presentation = resource.presentation;
    let is_offered =
        |op: &&Op| (presentation.is_restoring(op) || presentation.is_for_good(op)) && is_free(op);
    let offered = act::offered(visit, resource).filter(is_offered);
    let acts: Vec<Value> = offered
        .map(|op| {
            json!({
                "label": act::label(visit, op), "icon": null, "href": format!("{here}/{}", op.name),
                "is_main": false, "is_dangerous": presentation.is_for_good(op),
            })
        })
        .collect();
    let item = Item { resource, key, here: &here, row, barrier };
    let cards = (resource.presentation.cards_deleted)(visit, item).await?;
    let page = FormPage {
        back: json!({ "href": format!("{address}?view={VIEW}"), "label": label(visit, resource) }),
        heading: title,
        sub: (resource.presentation.sub)(row).unwrap_or_default(),
        avatar: resource.presentation.picture(row),
        badge: json!({ "text": words.page("status_deleted"), "tone": "off" }),
        acts,
        sections: sections_shown(visit, resource, row),
        aside: cards,
        after: super::history::of_item(visit, resource, (&here, row)).into_iter().collect(),
        read_only_note: barrier
            .map_or_else(|| words.page("deleted_note").to_owned(), |role| visit.carries(role)),
        ..FormPage::default()
    };
    page.show(visit, 200)
}
