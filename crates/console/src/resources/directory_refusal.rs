//! Refused attempts of directories to deactivate or delete users.

use chancery_management::application::APPLICATION_USER;
use chancery_userstore::user::USER;
use serde_json::Value;

use crate::{
    pages::cells::{member, moment, named},
    shell::{
        directory::{self, encoded},
        fields::Cell,
        presentation::{CellContext, Presentation},
    },
};

/// Presentation of these refusals.
pub static PRESENTATION: Presentation = Presentation {
    icon: "triangle-alert",
    columns: &[("col_who", leaver), ("col_where", instance), ("col_when", |row, _| moment(row, "toldOn"))],
    shows_name: |wire| wire == "idpInstanceId",
    row_href: |row| {
        let store = row["userStore"].as_str();
        let people = directory::of_shape(if store.is_some() { &USER } else { &APPLICATION_USER })?;
        Some(format!("{}/{}", people.address(store), encoded(&member(row, "userId"))))
    },
    ..Presentation::STANDARD
};

/// The user that a directory attempted to remove.
fn leaver(row: &Value, _: CellContext<'_>) -> Cell {
    Cell::of(
        "title",
        ["loginName", "userId"]
            .map(|wire| member(row, wire))
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default(),
    )
}

fn instance(row: &Value, CellContext { names, .. }: CellContext<'_>) -> Cell {
    let cell = named(row, "idpInstanceId", names).unwrap_or_else(Cell::none);
    // the store's name is visible even if the user may not list instances
    match row["userStore"].as_str() {
        Some(store) if cell.href.is_none() => Cell::of("text", store),
        _ => cell,
    }
}
