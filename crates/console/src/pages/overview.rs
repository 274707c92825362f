//! The overview: recent changes, open tasks, and links.

use chancery_management::{
    cert_store::CERT_STORE, directory_refusal::DIRECTORY_REFUSAL, identity_replacement::IDENTITY_REPLACEMENT,
    idp_instance::IDP_INSTANCE,
};
use chancery_resource::{Permit, Problem, Shape};
use chancery_userstore::{passkey::RECOVERY, user::USER};
use chancery_web::{AnswerBody, Input};
use futures_util::future::{try_join, try_join_all, try_join3};
use http::Response;
use serde_json::{Value, json};

use super::{cells::SOON_MS, history, set_by_other, steps::steps, welcome::PATH as WIZARD};
use crate::shell::{directory, fields::rfc3339, navigation::entries, visit::Visit};

/// Maximum number of counted rows.
const MAX_COUNTED: usize = 100;

/// Shows the overview.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let name = visit.visitor.name.split_whitespace().next().unwrap_or_default();
    let greeting = if name.is_empty() {
        words.page("overview").to_owned()
    } else {
        format!("{} {name}", words.page("hello"))
    };
    let doors: Vec<Value> = entries(visit)
        .into_iter()
        .flat_map(|(_, items)| items)
        .take(6)
        .map(|entry| json!({ "label": entry.label, "text": "", "href": entry.href, "icon": entry.icon }))
        .collect();
    // together, because each part waits for the database
    let parts =
        try_join3(Box::pin(tiles(visit)), Box::pin(history::of_all(visit)), Box::pin(next_steps(visit)));
    let (tiles, changes, steps) = parts.await?;
    let content = json!({
        "greeting": greeting, "tiles": tiles, "changes": changes, "steps": steps, "places": doors,
    });
    visit.page(200, "overview.html", words.page("overview"), &content)
}

/// What needs attention: the number of rows that match a filter, with a tone and a link.
async fn tiles(visit: &Visit<'_>) -> Result<Vec<Value>, Problem> {
    let soon = json!(rfc3339(visit.now.plus(SOON_MS)));
    let users = directory::of_shape(&USER);
    let of_users = |name: &str| users.and_then(|users| users.presentation.view(name)).unwrap_or_default();
    let all: [(&str, &Shape, String, &str); 7] = [
        ("locked", &USER, of_users("locked"), "warn"),
        ("locked_for_now", &USER, of_users("locked_for_now"), "warn"),
        ("recovery", &RECOVERY, "status eq \"Requested\"".to_owned(), "warn"),
        ("replacement", &IDENTITY_REPLACEMENT, "status eq \"PendingApproval\"".to_owned(), "warn"),
        ("ending", &CERT_STORE, format!("validTo lt {soon}"), "warn"),
        ("broken", &IDP_INSTANCE, "hasConfigurationError eq true".to_owned(), "bad"),
        ("refused_removal", &DIRECTORY_REFUSAL, String::new(), "warn"),
    ];
    let counted = all.into_iter().map(|(key, shape, filter, tone)| {
        Box::pin(async move { Ok(count(visit, shape, filter).await?.map(|count| (key, tone, shape, count))) })
    });
    let set_by_others = Box::pin(set_by_other::count(visit));
    let (counted, set_by_others) = try_join(try_join_all(counted), set_by_others).await?;
    let mut tiles = Vec::new();
    for (key, tone, shape, count) in counted.into_iter().flatten() {
        let Some(resource) = directory::of_shape(shape) else { continue };
        let href = tile_href(visit, resource, key);
        tiles.push(Tile { key, tone, count, is_exact: count < MAX_COUNTED, href: &href }.render(visit));
    }
    if let Some((count, is_exact)) = set_by_others {
        let tile = Tile { key: "set_by_others", tone: "warn", count, is_exact, href: set_by_other::PATH };
        tiles.push(tile.render(visit));
    }
    Ok(tiles)
}

/// The number of rows that match a filter, at most [`MAX_COUNTED`]; `None` if the user may not list them.
async fn count(visit: &Visit<'_>, shape: &Shape, filter: String) -> Result<Option<usize>, Problem> {
    let Some(op) = visit.may(directory::of_shape(shape).and_then(|resource| resource.list)) else {
        return Ok(None);
    };
    let mut input = Input::of(op, Vec::new());
    input.is_minimal = true;
    input.query = vec![("count".to_owned(), MAX_COUNTED.to_string())];
    if !filter.is_empty() {
        input.query.push(("filter".to_owned(), filter));
    }
    Ok(Some(visit.perform(input).await?.rows().len()))
}

/// A tile with a number.
struct Tile<'a> {
    /// The key of its label; in the texts it follows `tile_`.
    key: &'a str,
    /// Its tone unless the number is zero.
    tone: &'a str,
    count: usize,
    /// Whether there are no more than were counted.
    is_exact: bool,
    href: &'a str,
}

impl Tile<'_> {
    fn render(&self, visit: &Visit<'_>) -> Value {
        let Self { key, tone, count, is_exact, href } = self;
        let number = if *is_exact { count.to_string() } else { format!("{count}+") };
        let label = visit.words.page(&format!("tile_{key}")).to_owned();
        json!({ "number": number, "label": label, "tone": if *count == 0 { "" } else { tone }, "href": href })
    }
}

/// The link of a tile.
fn tile_href(visit: &Visit<'_>, resource: &directory::Resource, key: &str) -> String {
    let address = visit.address(resource);
    if let Some(page) = resource.presentation.list_page {
        return address.replace(resource.name, page);
    }
    // a view of the same name is the link's target
    let is_view = resource.presentation.views.iter().any(|view| view.name == key);
    if is_view { format!("{address}?view={key}") } else { address }
}

/// The open steps of a new installation; empty if all are done.
async fn next_steps(visit: &Visit<'_>) -> Result<Vec<Value>, Problem> {
    let all = steps(visit).await?;
    if all.iter().all(|step| step.is_done) {
        return Ok(Vec::new());
    }
    let words = visit.words;
    // the wizard explains more than the pages it links to
    let is_guided = visit.visitor.has(Permit::SystemAdmin);
    let rendered = all.into_iter().map(|step| {
        let label = words.page(&format!("step_{}", step.name)).to_owned();
        let about = words.page(&format!("step_{}_about", step.name)).to_owned();
        let href = if is_guided { format!("{WIZARD}?step={}", step.name) } else { step.href };
        json!({ "label": label, "about": about, "href": href, "is_done": step.is_done })
    });
    Ok(rendered.collect())
}
