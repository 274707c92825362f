//! Cells and names of several resources.

use serde_json::Value;

use crate::shell::{
    fields::{Cell, plain},
    presentation::{CellContext, Names},
};

/// How long before expiry a certificate is flagged, in ms.
pub const SOON_MS: i64 = 30 * 24 * 3_600_000;

/// A member of a row as text.
pub fn member(row: &Value, name: &str) -> String {
    plain(row.get(name).unwrap_or(&Value::Null))
}

/// The full name of a person; login name, address or id if there is none.
pub fn full_name(row: &Value) -> String {
    let parts = [member(row, "firstName"), member(row, "lastName")];
    let full = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let others = ["loginName", "emailAddress", "id"].map(|name| member(row, name));
    let first = others.into_iter().find(|name| !name.is_empty());
    if full.is_empty() { first.unwrap_or_default() } else { full }
}

/// A person, with the full name and the login name.
pub fn person(row: &Value, _: CellContext<'_>) -> Cell {
    let (full, login) = (full_name(row), member(row, "loginName"));
    let sub = if full == login { String::new() } else { login };
    Cell::of("title", full).with_sub(sub)
}

/// A row, with its name.
pub fn name(row: &Value, _: CellContext<'_>) -> Cell {
    Cell::of("title", member(row, "name"))
}

/// A member with a timestamp.
pub fn moment(row: &Value, wire: &str) -> Cell {
    Cell::moment(&member(row, wire))
}

/// The row that this member refers to, with its name.
pub fn named(row: &Value, wire: &str, names: &Names) -> Option<Cell> {
    let id = row[wire].as_str()?;
    let (name, href) = names.get(id).cloned().unwrap_or_else(|| (id.to_owned(), None));
    Some(Cell { href, ..Cell::of("reference", name) })
}

/// The client app that a row refers to.
pub fn client_app(row: &Value, CellContext { names, .. }: CellContext<'_>) -> Cell {
    named(row, "clientAppId", names).unwrap_or_else(Cell::none)
}
