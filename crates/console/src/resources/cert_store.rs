//! Certificates: their purpose and validity.

mod certificate;

use serde_json::Value;

use crate::{
    pages::cells::{SOON_MS, member, moment, named},
    shell::{
        boxed::boxed,
        fields::Cell,
        presentation::{CellContext, Page, Presentation},
    },
};

/// Presentation of certificates.
pub static PRESENTATION: Presentation = Presentation {
    icon: "badge-check",
    columns: &[
        ("col_name", name),
        ("col_serves", serves),
        ("col_ends", |row, _| moment(row, "validTo")),
        ("col_status", status),
    ],
    shows_name: |wire| wire.starts_with("applyTo"),
    // the one that expires first
    order: &[("sortBy", "validTo"), ("sortOrder", "ascending")],
    empty: Some("cert_none"),
    cards: |visit, item| boxed(move || certificate::cards(visit, item)),
    pages: &[Page::at(&["new"])
        .get(|visit, _, _| boxed(move || std::future::ready(certificate::show_form(visit))))
        .post(|visit, _, _| boxed(move || certificate::run(visit)))],
    ..Presentation::STANDARD
};

fn name(row: &Value, _: CellContext<'_>) -> Cell {
    Cell::of("title", member(row, "name")).with_sub(member(row, "subject"))
}

/// The purpose and the owner of a certificate.
fn serves(row: &Value, CellContext { words, names }: CellContext<'_>) -> Cell {
    let owner =
        ["applyToTenantId", "applyToSubscriptionId"].into_iter().find_map(|wire| named(row, wire, names));
    let owner = owner.map_or_else(|| words.page("everyones").to_owned(), |cell| cell.text);
    Cell::of("text", words.choice(&member(row, "certType"))).with_sub(owner)
}

fn status(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let now = chancery_web::now();
    let at = |wire: &str| row[wire].as_str().and_then(chancery_record::parse_timestamp);
    let (key, tone) = match (at("validFrom"), at("validTo")) {
        (_, Some(end)) if end <= now => ("cert_over", "bad"),
        (Some(begin), _) if begin > now => ("cert_not_yet", "off"),
        (_, Some(end)) if end <= now.plus(SOON_MS) => ("cert_soon", "warn"),
        _ => ("cert_good", "good"),
    };
    Cell::of("badge", words.page(key)).toned(tone)
}
