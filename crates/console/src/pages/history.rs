//! Recent changes, of one item or of all: each line links to its audit trail entry.

use std::collections::BTreeSet;

use chancery_management::{application::APPLICATION_USER, client_app::CLIENT_APP};
use chancery_record::{Column, Kind};
use chancery_resource::{Op, Problem, Shape};
use chancery_userstore::user::USER;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{item::read_any, reference};
use crate::shell::{
    components::{Card, FormPage, Line},
    directory::{self, Resource, encoded, key_of, title_of},
    fields::plain,
    presentation::Names,
    visit::{Visit, not_found},
    words::raised,
};

/// Number of changes of one item.
const OF_ITEM: &str = "5";
/// Number of changes of all items.
const OF_ALL: &str = "8";

/// The audit trail of the user store, or of the configuration.
pub fn trail(is_of_store: bool) -> Option<&'static Resource> {
    directory::of_shape(if is_of_store {
        &chancery_userstore::audit_trail::AUDIT_TRAIL
    } else {
        &chancery_management::audit_trail::AUDIT_TRAIL
    })
}

/// The resource of an entry's `area`.
pub fn area(name: &str, is_of_store: bool) -> Option<&'static Resource> {
    directory::resources().iter().find(|one| one.shape.name == name && one.is_of_store == is_of_store)
}

/// A placeholder for the recent changes of an item, if the user may read its trail: they are loaded after the page.
pub fn of_item(visit: &Visit<'_>, resource: &Resource, here: &str, row: &Value) -> Option<Card> {
    let trail = trail(resource.is_of_store)?;
    visit.may(trail.list)?;
    let more = all_of(visit, trail, resource, row);
    Some(Card { later: Some(format!("{here}/history")), ..empty(visit, &more) })
}

/// An empty card, with a link to all changes.
fn empty(visit: &Visit<'_>, more: &str) -> Card {
    Card {
        title: visit.words.page("recent_changes").into(),
        kind: "timeline",
        more: Some(json!({ "href": more, "label": visit.words.page("all") })),
        ..Card::default()
    }
}

/// The URL of the trail of an item.
fn all_of(visit: &Visit<'_>, trail: &Resource, resource: &Resource, row: &Value) -> String {
    let key = audited_key(resource, row);
    format!("{}?of=primaryKey:{}", visit.address(trail), encoded(&key))
}

/// Shows the recent changes of an item.
///
/// # Errors
/// The user may not read the trail.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let trail = trail(resource.is_of_store).ok_or_else(not_found)?;
    visit.require(trail.list)?;
    let row = read_any(visit, resource, key).await?;
    let filter = filter_of(resource, &audited_key(resource, &row));
    let more = all_of(visit, trail, resource, &row);
    let words = visit.words;
    let card = card(visit, trail, &[("filter", &filter), ("count", OF_ITEM)], &more).await?;
    let none = || Card { about: words.page("no_changes").into(), ..empty(visit, &more) };
    let title = Some(title_of(resource, &row)).filter(|title| !title.is_empty());
    let page = FormPage {
        back: json!({ "href": format!("{}/{}", visit.address(resource), encoded(key)), "label": words.page("back") }),
        heading: title.unwrap_or_else(|| key.to_owned()),
        middle: vec![card.unwrap_or_else(none)],
        ..FormPage::default()
    };
    page.show(visit, 200)
}

/// The recent changes of the user store and of the configuration, of the trails that the user may read.
pub async fn of_all(visit: &Visit<'_>) -> Result<Vec<Card>, Problem> {
    let mut cards = Vec::new();
    for trail in [true, false].into_iter().filter_map(trail) {
        let card = card(visit, trail, &[("count", OF_ALL)], &visit.address(trail)).await?;
        let title = if trail.is_of_store { "recent_changes" } else { "recent_configuration" };
        cards.extend(card.map(|card| Card { title: visit.words.page(title).into(), ..card }));
    }
    Ok(cards)
}

/// Who changed an item last, and when, if the user may read its trail.
pub async fn last_change(
    visit: &Visit<'_>,
    resource: &'static Resource,
    row: &Value,
) -> Result<Option<(String, String)>, Problem> {
    let trail = trail(resource.is_of_store);
    let Some((trail, op)) = trail.and_then(|trail| Some((trail, visit.may(trail.list)?))) else {
        return Ok(None);
    };
    let filter = filter_of(resource, &audited_key(resource, row));
    let rows = last(visit, op, &[("filter", &filter), ("count", "1")]).await?;
    let names = names(visit, trail, &rows).await?;
    Ok(rows.first().map(|row| (actor(visit, row, &names), plain(&row["timestamp"]))))
}

/// The filter for the entries of an item. The index is on the key alone; items of other resources may have the same key.
fn filter_of(resource: &Resource, key: &str) -> String {
    format!("primaryKey eq {} and area eq {}", json!(key), json!(resource.shape.name))
}

/// The last entries of a query: numbers rise with time, and the trail is read in their order.
async fn last(visit: &Visit<'_>, op: &'static Op, query: &[(&str, &str)]) -> Result<Vec<Value>, Problem> {
    let mut input = Input::of(op, Vec::new());
    let query = query.iter().copied().chain([("sortOrder", "descending")]);
    input.query.extend(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(visit.perform(input).await?.rows())
}

async fn card(
    visit: &Visit<'_>,
    trail: &'static Resource,
    query: &[(&str, &str)],
    more: &str,
) -> Result<Option<Card>, Problem> {
    let Some(op) = visit.may(trail.list) else { return Ok(None) };
    let rows = last(visit, op, query).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let names = names(visit, trail, &rows).await?;
    let words = visit.words;
    let is_of_all = !more.contains('?');
    let lines: Vec<Line> = rows
        .iter()
        .map(|row| {
            let action = words.choice(row["action"].as_str().unwrap_or_default()).to_owned();
            let area = raised(&words.resource(row["area"].as_str().unwrap_or_default()));
            let text = if is_of_all { format!("{area}: {action}") } else { action };
            let href = format!("{}/{}", visit.address(trail), encoded(&key_of(trail, row)));
            let who = actor(visit, row, &names);
            let sub = if is_of_all { format!("{} · {who}", item(row, &names)) } else { who };
            Line { text, sub, href: Some(href), iso: plain(&row["timestamp"]), ..Line::default() }
        })
        .collect();
    Ok(Some(Card { lines, ..empty(visit, more) }))
}

/// The key of a row in the trail: a key that is no id follows that of its owner.
fn audited_key(resource: &Resource, row: &Value) -> String {
    let is_id = resource.key().is_some_and(|key| matches!(key.kind, Kind::Id));
    let owner = resource.shape.fields.iter().find(|field| field.access.column == Column::Owner);
    let owner = owner.filter(|_| !is_id).and_then(|field| row[field.wire()].as_str());
    let key = key_of(resource, row);
    owner.map_or_else(|| key.clone(), |owner| format!("{owner}|{key}"))
}

/// The ids of the actor and of the client app that acted for the actor.
fn ids(row: &Value) -> impl Iterator<Item = &str> {
    row["user"].as_str().into_iter().flat_map(|user| user.split('|'))
}

/// The names of actors, and of items whose entries contain no name, as far as the user may list them.
pub async fn names(visit: &Visit<'_>, trail: &Resource, rows: &[Value]) -> Result<Names, Problem> {
    let mut unknown: BTreeSet<String> = rows.iter().flat_map(ids).map(str::to_owned).collect();
    let mut names = Names::new();
    let shapes: [&Shape; 3] = [&APPLICATION_USER, &CLIENT_APP, &USER];
    for resource in shapes.into_iter().filter_map(directory::of_shape) {
        reference::find(visit, resource, &unknown, &mut names).await?;
        unknown.retain(|id| !names.contains_key(id));
    }
    let mut items: Vec<(&'static Resource, BTreeSet<String>)> = Vec::new();
    for row in rows.iter().filter(|row| recorded_title(row).is_none()) {
        let resource = area(row["area"].as_str().unwrap_or_default(), trail.is_of_store);
        let resource = resource.filter(|one| one.key().is_some_and(|key| matches!(key.kind, Kind::Id)));
        let (Some(resource), Some(key)) = (resource, row["primaryKey"].as_str()) else { continue };
        match items.iter_mut().find(|(known, _)| std::ptr::eq(*known, resource)) {
            Some((_, keys)) => drop(keys.insert(key.to_owned())),
            None => items.push((resource, BTreeSet::from([key.to_owned()]))),
        }
    }
    for (resource, keys) in items {
        reference::find(visit, resource, &keys, &mut names).await?;
    }
    Ok(names)
}

/// The name of the changed item: from the contents of the entry, else the present name, else the key.
pub fn item(row: &Value, names: &Names) -> String {
    let key = plain(&row["primaryKey"]);
    let title = recorded_title(row).or_else(|| names.get(&key).map(|(name, _)| name.clone()));
    title.filter(|title| !title.is_empty()).unwrap_or(key)
}

/// The item's name in the contents of an entry.
fn recorded_title(row: &Value) -> Option<String> {
    let area = row["area"].as_str()?;
    let resource = directory::resources().iter().find(|one| one.shape.name == area)?;
    let contents = ["currentContent", "originalContent"].into_iter().filter_map(|side| row[side].as_str());
    let contents = contents.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    contents.map(|content| title_of(resource, &content)).find(|name| !name.is_empty())
}

/// The name of the actor, if it is known.
pub fn actor(visit: &Visit<'_>, row: &Value, names: &Names) -> String {
    actor_name(row, names).unwrap_or_else(|| visit.words.page("the_server").to_owned())
}

/// The same; `None` for changes by the server itself.
pub fn actor_name(row: &Value, names: &Names) -> Option<String> {
    let names_of_ids = ids(row).map(|id| names.get(id).map_or(id, |(name, _)| name.as_str()));
    Some(names_of_ids.collect::<Vec<_>>().join(" · ")).filter(|names_of_ids| !names_of_ids.is_empty())
}
