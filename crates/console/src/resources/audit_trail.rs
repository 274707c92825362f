//! The audit trails: that of a user store, and that of the configuration.

mod entry;
mod trail;

use serde_json::Value;

use crate::{
    pages::{cells::member, history},
    shell::{
        boxed::boxed,
        fields::{Cell, cell},
        presentation::{ANY, CellContext, Filters, Page, Presentation},
        words::raised,
    },
};

/// Presentation of the trail of a user store.
pub static OF_STORE: Presentation = OF_BOTH;

/// Presentation of the trail of the configuration.
pub static OF_CONFIGURATION: Presentation =
    Presentation { list_label: Some("configuration_trail"), ..OF_BOTH };

static FILTERS: Filters =
    Filters { conditions: trail::conditions, is_filtered: trail::is_filtered, form: trail::form };

const OF_BOTH: Presentation = Presentation {
    icon: "scroll-text",
    label: Some("audit_trail"),
    letter: Some('t'),
    columns: &[("col_change", change), ("col_who", who), ("col_when", when)],
    title: |row| Some(format!("{} {}", member(row, "area"), member(row, "primaryKey"))),
    // numbers rise with time, and the trail is read in their order
    order: &[("sortOrder", "descending")],
    filters: Some(&FILTERS),
    more_names: Some(|visit, trail, rows| boxed(move || history::names(visit, trail, rows))),
    pages: &[
        Page::at(&[ANY]).get(|visit, trail, [id, _]| boxed(move || entry::show(visit, trail, id))),
        Page::at(&[ANY, "proof"]).get(|visit, trail, [id, _]| boxed(move || entry::proof(visit, trail, id))),
    ],
    ..Presentation::STANDARD
};

fn change(row: &Value, CellContext { words, names }: CellContext<'_>) -> Cell {
    let (action, area) = (member(row, "action"), member(row, "area"));
    let text = format!("{}: {}", raised(&words.resource(&area)), words.choice(&action));
    Cell::of("title", text).with_sub(history::item(row, names))
}

fn who(row: &Value, CellContext { words, names }: CellContext<'_>) -> Cell {
    Cell::of("text", history::actor_name(row, names).unwrap_or_else(|| words.page("the_server").to_owned()))
}

fn when(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let fields = chancery_userstore::audit_trail::AUDIT_TRAIL.fields;
    let field = fields.iter().find(|field| field.wire() == "timestamp");
    field.map_or_else(Cell::none, |field| cell(field, &row["timestamp"], words))
}
