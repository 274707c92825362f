//! Refused requests of client apps, by kind.

use crate::{
    pages::cells::{client_app, member, moment},
    shell::{fields::Cell, presentation::Presentation},
};

/// Presentation of refusals.
pub static PRESENTATION: Presentation = Presentation {
    icon: "triangle-alert",
    columns: &[
        ("col_error", |row, _| Cell::of("title", member(row, "error"))),
        ("col_app", client_app),
        ("col_endpoint", |row, _| Cell::of("text", member(row, "endpoint"))),
        ("col_why", |row, _| Cell::of("text", member(row, "reason"))),
        ("col_when", |row, _| moment(row, "lastOn")),
    ],
    shows_name: |wire| wire == "clientAppId",
    title: |row| Some(member(row, "error")),
    order: &[("sortBy", "lastOn"), ("sortOrder", "descending")],
    ..Presentation::STANDARD
};
