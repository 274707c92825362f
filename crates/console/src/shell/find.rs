//! One box for all: people, groups, apps and what else has a name, by how it begins; and rows that a field may name.

use chancery_management::{
    client_app::CLIENT_APP, idp_instance::IDP_INSTANCE, subscription::SUBSCRIPTION, tenant::TENANT,
};
use chancery_resource::{Problem, Shape, settings::Owner};
use chancery_userstore::{group::GROUP, user::USER};
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{
    directory::{self, Resource, encoded, key_of, title_of},
    navigation::{places, position},
    render::{data, page},
    settings_access::store_settings,
    visit::Visit,
};

/// The resources that are looked through.
static LOOKED_THROUGH: [&Shape; 6] = [&USER, &GROUP, &CLIENT_APP, &TENANT, &IDP_INSTANCE, &SUBSCRIPTION];
/// Rows of each.
const COUNT: &str = "6";
/// Places that are told.
const MOST_PLACES: usize = 8;
/// The longest text that is looked for, in characters.
const LONGEST: usize = 200;

/// Shows what is found: as a page, as its part for the palette, or as JSON for a field that names a row.
///
/// # Errors
/// The operations' own.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let text: String = visit.parameter("q").unwrap_or_default().trim().chars().take(LONGEST).collect();
    if let Some(name) = visit.parameter("in") {
        return named(visit, name, &text).await;
    }
    let mut results = Vec::new();
    if !text.is_empty() {
        for resource in LOOKED_THROUGH.iter().filter_map(|shape| directory::of_shape(shape)) {
            if visit.may(resource.list).is_none() {
                continue;
            }
            let rows = look(visit, resource, &text).await?;
            add(
                &mut results,
                &visit.words.resources(resource.name),
                rows.iter().map(|row| found(visit, resource, row)),
            );
        }
    }
    let folded = text.to_lowercase();
    let items = places(visit).into_iter().flat_map(|(_, items)| items);
    let fitting = items.filter(|place| place.label.to_lowercase().contains(&folded)).take(MOST_PLACES);
    let fitting = fitting
        .map(|place| json!({ "label": place.label, "sub": "", "href": place.href, "icon": place.icon }));
    add(&mut results, visit.words.page("places"), fitting);
    add(&mut results, visit.words.page("acts"), acts(visit, &folded));
    add(&mut results, visit.words.page("settings"), set(visit, &folded));
    let empty = if results.is_empty() { visit.words.page("nothing_found") } else { "" };
    let found = json!({ "value": text, "results": results, "empty": empty });
    if visit.parameter("part") == Some("1") {
        return page(200, "find-results.html", &visit.plain("", &found));
    }
    visit.page(200, "find.html", visit.words.page("find"), &found)
}

/// What can be begun from anywhere: a new one of what the navigation leads to, and an import.
fn acts<'a>(visit: &'a Visit<'_>, folded: &'a str) -> impl Iterator<Item = Value> + 'a {
    let mut all =
        directory::resources().iter().filter(|one| position(one.name) != usize::MAX).collect::<Vec<_>>();
    all.sort_by_key(|one| position(one.name));
    let told = all.into_iter().filter(|one| visit.may(one.create).is_some()).flat_map(|one| {
        let new = format!("{} {}", visit.words.page("new"), visit.words.resource(one.name));
        let import = (one.presentation.is_imported)(visit, one).then(|| {
            (
                format!("{}: {}", visit.words.resources(one.name), visit.words.page("import")),
                "import",
                "upload",
            )
        });
        let both = std::iter::once((new, "new", "plus")).chain(import);
        both.map(|(label, end, icon)| (label, format!("{}/{end}", visit.address(one)), icon))
            .collect::<Vec<_>>()
    });
    let fitting = told.filter(move |(label, ..)| label.to_lowercase().contains(folded)).take(MOST_PLACES);
    fitting.map(|(label, href, icon)| json!({ "label": label, "sub": "", "href": href, "icon": icon }))
}

/// The settings of the user store, by what they are called; none where nothing is asked for, because they are many.
fn set<'a>(visit: &'a Visit<'_>, folded: &'a str) -> impl Iterator<Item = Value> + 'a {
    let address = store_settings(visit).filter(|_| !folded.is_empty());
    let entries = address.into_iter().flat_map(|address| {
        Owner::UserStore.entries().map(move |entry| (entry, format!("{address}#f-{}", entry.name)))
    });
    let told = entries.map(|(entry, href)| (visit.words.option(entry.name), entry.name, href));
    let fits = move |label: &str, name: &str| {
        label.to_lowercase().contains(folded) || name.to_lowercase().contains(folded)
    };
    let fitting = told.filter(move |(label, name, _)| fits(label, name)).take(MOST_PLACES);
    fitting.map(|(label, name, href)| json!({ "label": label, "sub": name, "href": href, "icon": "sliders-horizontal" }))
}

/// The rows that a field may name, of each of these resources.
async fn named(visit: &Visit<'_>, names: &str, text: &str) -> Result<Response<AnswerBody>, Problem> {
    let mut found = Vec::new();
    for name in names.split(',').take(LOOKED_THROUGH.len()) {
        let resource = directory::resources().iter().find(|one| one.name == name);
        let resource = resource.ok_or_else(|| Problem::not_found("resource of this name"))?;
        let rows = look(visit, resource, text).await?;
        found.extend(rows.iter().map(|row| {
            let sub = (resource.presentation.sub)(row).unwrap_or_default();
            json!({ "id": key_of(resource, row), "label": title_of(resource, row), "sub": sub })
        }));
    }
    Ok(data(&json!(found)))
}

fn add(results: &mut Vec<Value>, group: &str, items: impl Iterator<Item = Value>) {
    let items: Vec<Value> = items.collect();
    if !items.is_empty() {
        results.push(json!({ "group": group, "items": items }));
    }
}

fn found(visit: &Visit<'_>, resource: &Resource, row: &Value) -> Value {
    let href = format!("{}/{}", visit.address(resource), encoded(&key_of(resource, row)));
    let sub = (resource.presentation.sub)(row).unwrap_or_default();
    json!({ "label": title_of(resource, row), "sub": sub, "href": href, "icon": resource.presentation.icon })
}

/// The rows of a resource whose names begin like this.
async fn look(visit: &Visit<'_>, resource: &'static Resource, text: &str) -> Result<Vec<Value>, Problem> {
    let searching = visit.may(resource.search).filter(|_| !text.is_empty());
    let Some(op) = searching.or_else(|| visit.may(resource.list)) else { return Ok(Vec::new()) };
    let mut input = Input::of(op, Vec::new());
    input.is_brief = true;
    input.query.push(("count".to_owned(), COUNT.to_owned()));
    if searching.is_some() {
        input.query.push(("q".to_owned(), text.to_owned()));
    } else if !text.is_empty() {
        let own = resource.presentation.searched;
        let title = resource.title().map(chancery_record::Field::wire);
        let fields: Vec<&str> = if own.is_empty() { title.into_iter().collect() } else { own.to_vec() };
        let begins: Vec<String> = fields.iter().map(|field| format!("{field} sw {}", json!(text))).collect();
        input.query.push(("filter".to_owned(), begins.join(" or ")));
    }
    let rows = visit.perform(input).await?.json();
    Ok(rows.as_array().cloned().unwrap_or_default())
}
