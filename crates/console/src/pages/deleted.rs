//! Rows in quarantine: read-only, with the actions restore and erase.

use chancery_resource::{Op, Problem};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{act, form::sections_shown};
use crate::shell::{
    components::FormPage,
    directory::{Resource, encoded, title_of},
    navigation::label,
    presentation::Item,
    role_protection::is_protected,
    visit::Visit,
};

/// The view of a list that shows quarantined rows.
pub const VIEW: &str = "deleted";

/// Whether deleted rows go to a quarantine first.
pub fn has_quarantine(resource: &Resource) -> bool {
    resource.shape.deletes.deletion.hiding().is_some()
}

/// A row in quarantine.
pub async fn find(visit: &Visit<'_>, resource: &Resource, key: &str) -> Result<Option<Value>, Problem> {
    let key_and_list = resource.key().filter(|_| has_quarantine(resource)).zip(visit.may(resource.list));
    let Some((field, op)) = key_and_list else { return Ok(None) };
    let mut input = Input::of(op, Vec::new());
    let filter = format!("{} eq {}", field.wire(), json!(key));
    input.query = vec![("filter".to_owned(), filter), ("quarantined".to_owned(), "true".to_owned())];
    let rows = visit.perform(input).await?.json();
    Ok(rows.as_array().and_then(|rows| rows.first()).cloned())
}

/// Shows a row in quarantine.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    row: &Value,
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let address = visit.address(resource);
    let here = format!("{address}/{}", encoded(key));
    let title = title_of(resource, row);
    let protecting_role = visit.protecting_role(resource, key, row).await?;
    let is_free = |op: &Op| protecting_role.is_none() || !is_protected(op);
    let presentation = resource.presentation;
    let is_offered =
        |op: &&Op| (presentation.is_restoring(op) || presentation.is_irreversible(op)) && is_free(op);
    let offered = act::offered(visit, resource).filter(is_offered);
    let acts: Vec<Value> = offered
        .map(|op| {
            json!({
                "label": act::label(visit, op), "icon": null, "href": format!("{here}/{}", op.name),
                "is_main": false, "is_dangerous": presentation.is_irreversible(op),
            })
        })
        .collect();
    let item = Item { resource, key, here: &here, row, protecting_role };
    let cards = (resource.presentation.cards_deleted)(visit, item).await?;
    let page = FormPage {
        back: json!({ "href": format!("{address}?view={VIEW}"), "label": label(visit, resource) }),
        heading: title,
        sub: (resource.presentation.sub)(row).unwrap_or_default(),
        avatar: resource.presentation.picture(row),
        badge: json!({ "text": words.page("status_deleted"), "tone": "off" }),
        acts,
        sections: sections_shown(visit, resource, row),
        sidebar: cards,
        after: super::history::of_item(visit, resource, &here, row).into_iter().collect(),
        read_only_note: protecting_role
            .map_or_else(|| words.page("deleted_note").to_owned(), |role| visit.carries(role)),
        ..FormPage::default()
    };
    page.show(visit, 200)
}
