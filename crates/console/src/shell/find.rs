//! Global search: users, groups, client apps and other named rows by prefix; and look-up of rows for reference fields.

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
    navigation::{entries, position},
    render::{data, page},
    settings_access::store_settings,
    visit::Visit,
};

/// The searched resources.
static SEARCHED: [&Shape; 6] = [&USER, &GROUP, &CLIENT_APP, &TENANT, &IDP_INSTANCE, &SUBSCRIPTION];
/// Maximum number of rows of each resource.
const COUNT: &str = "6";
/// Maximum number of navigation entries, actions and settings.
const MAX_ENTRIES: usize = 8;
/// The maximum length of a search text, in characters.
const LONGEST: usize = 200;

/// Renders the results: as a page, as a fragment for the command palette, or as JSON for a reference field.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let text: String = visit.parameter("q").unwrap_or_default().trim().chars().take(LONGEST).collect();
    if let Some(name) = visit.parameter("in") {
        return references(visit, name, &text).await;
    }
    let mut results = Vec::new();
    if !text.is_empty() {
        for resource in SEARCHED.iter().filter_map(|shape| directory::of_shape(shape)) {
            if visit.may(resource.list).is_none() {
                continue;
            }
            let rows = matching_rows(visit, resource, &text).await?;
            add(
                &mut results,
                &visit.words.resources(resource.name),
                rows.iter().map(|row| result_of(visit, resource, row)),
            );
        }
    }
    let folded = text.to_lowercase();
    let items = entries(visit).into_iter().flat_map(|(_, items)| items);
    let fitting = items.filter(|entry| entry.label.to_lowercase().contains(&folded)).take(MAX_ENTRIES);
    let fitting = fitting
        .map(|entry| json!({ "label": entry.label, "sub": "", "href": entry.href, "icon": entry.icon }));
    add(&mut results, visit.words.page("places"), fitting);
    add(&mut results, visit.words.page("acts"), acts(visit, &folded));
    add(&mut results, visit.words.page("settings"), settings(visit, &folded));
    let empty = if results.is_empty() { visit.words.page("nothing_found") } else { "" };
    let content = json!({ "value": text, "results": results, "empty": empty });
    if visit.parameter("part") == Some("1") {
        return page(200, "find-results.html", &visit.plain("", &content));
    }
    visit.page(200, "find.html", visit.words.page("find"), &content)
}

/// Actions that are available on every page: creating a row of a resource of the navigation, and imports.
fn acts<'a>(visit: &'a Visit<'_>, folded: &'a str) -> impl Iterator<Item = Value> + 'a {
    let mut all =
        directory::resources().iter().filter(|one| position(one.name) != usize::MAX).collect::<Vec<_>>();
    all.sort_by_key(|one| position(one.name));
    let actions = all.into_iter().filter(|one| visit.may(one.create).is_some()).flat_map(|one| {
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
    let fitting = actions.filter(move |(label, ..)| label.to_lowercase().contains(folded)).take(MAX_ENTRIES);
    fitting.map(|(label, href, icon)| json!({ "label": label, "sub": "", "href": href, "icon": icon }))
}

/// The settings of the user store by name; none for an empty search text, because there are many.
fn settings<'a>(visit: &'a Visit<'_>, folded: &'a str) -> impl Iterator<Item = Value> + 'a {
    let address = store_settings(visit).filter(|_| !folded.is_empty());
    let entries = address.into_iter().flat_map(|address| {
        Owner::UserStore.entries().map(move |entry| (entry, format!("{address}#f-{}", entry.name)))
    });
    let labelled = entries.map(|(entry, href)| (visit.words.option(entry.name), entry.name, href));
    let fits = move |label: &str, name: &str| {
        label.to_lowercase().contains(folded) || name.to_lowercase().contains(folded)
    };
    let fitting = labelled.filter(move |(label, name, _)| fits(label, name)).take(MAX_ENTRIES);
    fitting.map(|(label, name, href)| json!({ "label": label, "sub": name, "href": href, "icon": "sliders-horizontal" }))
}

/// The rows that a reference field may refer to, of each of these resources.
async fn references(visit: &Visit<'_>, names: &str, text: &str) -> Result<Response<AnswerBody>, Problem> {
    let mut items = Vec::new();
    for name in names.split(',').take(SEARCHED.len()) {
        let resource = directory::resources().iter().find(|one| one.name == name);
        let resource = resource.ok_or_else(|| Problem::not_found("resource of this name"))?;
        let rows = matching_rows(visit, resource, text).await?;
        items.extend(rows.iter().map(|row| {
            let sub = (resource.presentation.sub)(row).unwrap_or_default();
            json!({ "id": key_of(resource, row), "label": title_of(resource, row), "sub": sub })
        }));
    }
    Ok(data(&json!(items)))
}

fn add(results: &mut Vec<Value>, group: &str, items: impl Iterator<Item = Value>) {
    let items: Vec<Value> = items.collect();
    if !items.is_empty() {
        results.push(json!({ "group": group, "items": items }));
    }
}

fn result_of(visit: &Visit<'_>, resource: &Resource, row: &Value) -> Value {
    let href = format!("{}/{}", visit.address(resource), encoded(&key_of(resource, row)));
    let sub = (resource.presentation.sub)(row).unwrap_or_default();
    json!({ "label": title_of(resource, row), "sub": sub, "href": href, "icon": resource.presentation.icon })
}

/// The rows of a resource whose names start with the text.
async fn matching_rows(
    visit: &Visit<'_>,
    resource: &'static Resource,
    text: &str,
) -> Result<Vec<Value>, Problem> {
    let searching = visit.may(resource.search).filter(|_| !text.is_empty());
    let Some(op) = searching.or_else(|| visit.may(resource.list)) else { return Ok(Vec::new()) };
    let mut input = Input::of(op, Vec::new());
    input.is_minimal = true;
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
