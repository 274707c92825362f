//! SCIM tokens of directories.

use serde_json::{Value, json};

use crate::{
    pages::cells::{SOON_MS, member, moment, name},
    shell::{
        directory::operation_name,
        fields::Cell,
        presentation::{CellContext, Presentation},
    },
};

/// Presentation of SCIM tokens.
pub static PRESENTATION: Presentation = Presentation {
    icon: "key-round",
    columns: &[
        ("col_name", name),
        ("col_reach", |row, CellContext { words, .. }| Cell::of("text", words.choice(&member(row, "reach")))),
        ("col_status", status),
        ("col_ends", |row, _| moment(row, "expiresOn")),
        ("col_used", |row, _| moment(row, "lastUsedOn")),
    ],
    badge: Some(status),
    // only stopped tokens can be resumed
    has_effect: |op, row| !operation_name!("ResumeScimToken").is_of(op) || !row["stoppedOn"].is_null(),
    ..Presentation::STANDARD
};

fn status(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let end = row["expiresOn"].as_str().and_then(chancery_record::parse_timestamp);
    let (key, tone) = match end {
        _ if row["isActive"] != json!(true) => ("status_inactive", "off"),
        Some(end) if end <= chancery_web::now() => ("cert_over", "bad"),
        _ if row["stoppedOn"].is_string() => ("token_stopped", "bad"),
        Some(end) if end <= chancery_web::now().plus(SOON_MS) => ("cert_soon", "warn"),
        _ => ("status_active", "good"),
    };
    Cell::of("badge", words.page(key)).toned(tone)
}
