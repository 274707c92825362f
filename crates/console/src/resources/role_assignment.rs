//! Role assignments: principal, role and scope.

mod grant;

use chancery_management::{
    application::{APPLICATION_GROUP, APPLICATION_USER},
    client_app::CLIENT_APP,
};
use chancery_resource::{Problem, Shape};
use serde_json::Value;

use crate::{
    pages::{
        cells::{member, named},
        set_by_other,
    },
    shell::{
        boxed::boxed,
        components::Card,
        fields::Cell,
        presentation::{CellContext, Item, Page, Presentation},
        visit::Visit,
    },
};

/// Presentation of role assignments.
pub static PRESENTATION: Presentation = Presentation {
    icon: "user-round-cog",
    label: Some("administrators"),
    columns: &[
        ("col_role", |row, CellContext { words, .. }| {
            Cell::of("title", words.choice(&member(row, "roleType")))
        }),
        ("col_who", principal),
        ("col_where", scope),
    ],
    shows_name: |wire| wire == "principalId" || wire.starts_with("applyTo"),
    title: |row| Some(member(row, "roleType")),
    heading: |row, CellContext { words, names }| {
        let who = named(row, "principalId", names).map_or_else(String::new, |cell| cell.text);
        Some(format!("{}: {who}", words.choice(&member(row, "roleType"))))
    },
    referenced_shape,
    cards_after: |visit, item| boxed(move || cards(visit, item)),
    pages: &[Page::at(&["new"])
        .get(|visit, resource, _| boxed(move || grant::show(visit, resource)))
        .post(|visit, resource, _| boxed(move || grant::run(visit, resource)))],
    ..Presentation::STANDARD
};

async fn cards(visit: &Visit<'_>, item: Item<'_>) -> Result<Vec<Card>, Problem> {
    let mut cards = vec![boxed(|| grant::card(visit, item.row)).await?];
    cards.extend(boxed(|| set_by_other::cards(visit, set_by_other::principal(item.row))).await?);
    Ok(cards)
}

/// The shape of the principal, by its type.
fn referenced_shape(wire: &str, row: &Value) -> Option<&'static Shape> {
    match (wire, row["principalType"].as_str()?) {
        ("principalId", "PlatformUser") => Some(&APPLICATION_USER),
        ("principalId", "PlatformGroup") => Some(&APPLICATION_GROUP),
        ("principalId", _) => Some(&CLIENT_APP),
        _ => None,
    }
}

fn principal(row: &Value, CellContext { words, names }: CellContext<'_>) -> Cell {
    let kind = member(row, "principalType");
    named(row, "principalId", names).map_or_else(Cell::none, |cell| cell.with_sub(words.choice(&kind)))
}

/// The scope of a role.
fn scope(row: &Value, CellContext { words, names }: CellContext<'_>) -> Cell {
    let targets = ["applyToIdpInstanceId", "applyToTenantId", "applyToSubscriptionId", "applyToCustomerId"];
    let target = targets.into_iter().find_map(|wire| named(row, wire, names));
    target.unwrap_or_else(|| Cell::of("text", words.page("everywhere")))
}
