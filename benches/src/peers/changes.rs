//! The rows of one change, read back from what the server wrote, for the engine alone to write again.

use std::collections::HashMap;

use uuid::Uuid;

use super::rows::{Cell, Template};
use crate::people;

/// The tables that changes write to, referenced tables first, with the column that numbers their rows.
pub const NUMBERED_TABLES: [(&str, &str); 8] = [
    ("client_app", "rid"),
    ("idp_instance", "rid"),
    ("client_app_secret", "rid"),
    ("client_app_scope", "rid"),
    ("option_value", "rid"),
    ("user_account", "rid"),
    ("audit_entry", "rid"),
    ("outbox_event", "id"),
];

/// Groups and users whose memberships change: the first that are seeded.
const GROUPS: u64 = 10;
const MEMBERS: u64 = 32;

/// New ids by old ones.
pub type Ids = HashMap<Uuid, Uuid>;

/// The rows that the server wrote for one change.
#[derive(Clone, Debug)]
pub struct Change {
    /// The rows.
    pub rows: Vec<Template>,
}

impl Change {
    /// A change of these rows.
    pub fn new(mut rows: Vec<Template>) -> Self {
        let app = rows.first().filter(|row| row.table == "client_app").and_then(|row| row.get("id")).cloned();
        if let Some(app) = app {
            // the creator of a client app controls it
            let cells = vec![("client_app_id".to_owned(), app.clone()), ("actor_id".to_owned(), app)];
            rows.insert(1, Template::new("client_app_controller", cells));
        }
        Self { rows }
    }

    /// A change that adds a user to a group or removes one, with the audit entry and event of another change.
    pub fn membership(other: &Self, removes: bool) -> Self {
        let cells = ["group_rid", "user_rid"].map(|column| (column.to_owned(), Cell::Int(0)));
        let mut member = Template::new("group_member", cells.to_vec());
        member.removes = removes;
        let records = other.rows.iter().filter(|row| ["audit_entry", "outbox_event"].contains(&row.table));
        Self { rows: std::iter::once(member).chain(records.cloned()).collect() }
    }

    /// The values of the change's rows with new ids, names and numbers. The new ids are added to those that were assigned
    /// before.
    pub fn renewed_rows(&self, next: &mut u64, ids: &mut Ids) -> Vec<Vec<Cell>> {
        for id in self.rows.iter().filter_map(|row| row.get("id")).filter_map(as_id) {
            *next += 1;
            ids.insert(id, people::new_person(*next).id);
        }
        let rows = self.rows.iter().enumerate();
        rows.map(|(index, row)| {
            *next += 1;
            row.cells
                .iter()
                .map(|(column, cell)| renewed(row.table, column, cell, index, *next, ids))
                .collect()
        })
        .collect()
    }
}

fn renewed(table: &str, column: &str, cell: &Cell, index: usize, number: u64, ids: &Ids) -> Cell {
    let integer = |number: u64| Cell::Int(i64::try_from(number).unwrap_or(0));
    match (table, column, cell) {
        ("audit_entry", "rid", _) | ("outbox_event", "id", _) => integer(number),
        ("group_member", "group_rid", _) => integer(2 + number % GROUPS),
        ("group_member", "user_rid", _) => integer(1 + number / GROUPS % MEMBERS),
        ("client_app_secret", "digest", _) => Cell::Bytes(number.to_be_bytes().repeat(4)),
        // a change's own row gets a new name; the rows that came with it differ by their owner
        (_, "key", Cell::Text(_)) if index == 0 => Cell::Text(format!("peer-{number:x}")),
        (_, "name" | "name_key" | "store_name_key" | "login_name" | "login_name_key", Cell::Text(_))
            if index == 0 =>
        {
            Cell::Text(format!("peer-{number:x}"))
        }
        (_, _, Cell::Text(text)) => {
            let id = text.parse().ok().and_then(|id: Uuid| ids.get(&id));
            id.map_or_else(|| cell.clone(), |id| Cell::Text(id.to_string()))
        }
        _ => as_id(cell).and_then(|id| ids.get(&id)).map_or_else(|| cell.clone(), |id| Cell::Id(*id)),
    }
}

/// An id, as either engine stores it.
fn as_id(cell: &Cell) -> Option<Uuid> {
    match cell {
        Cell::Id(id) => Some(*id),
        Cell::Bytes(bytes) => Uuid::from_slice(bytes).ok(),
        _ => None,
    }
}
