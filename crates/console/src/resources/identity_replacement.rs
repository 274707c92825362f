//! Identity replacements: their states and approvals.

pub mod replacement;

use serde_json::Value;

use crate::{
    pages::cells::{member, moment, named},
    shell::{
        boxed::boxed,
        fields::Cell,
        presentation::{ANY, CellContext, Page, Presentation, View},
    },
};

/// Presentation of replacements.
pub static PRESENTATION: Presentation = Presentation {
    icon: "repeat-2",
    columns: &[
        ("col_who", replaced),
        ("col_status", status),
        ("col_approvals", approvals),
        ("col_asked", |row, _| moment(row, "requestedOn")),
        ("col_expires", |row, _| moment(row, "expiresOn")),
    ],
    shows_name: |wire| wire == "platformUserId",
    badge: Some(status),
    sections: &[(
        "section_general",
        &["platformUserId", "replacementIdpInstanceId", "replacementUniqueUserId", "reason"],
    )],
    views: &[
        View {
            name: "open",
            label: "view_open",
            filter: "(status eq \"PendingApproval\" or status eq \"Approved\")",
        },
        View {
            name: "ending",
            label: "view_ending",
            filter: "(status eq \"Executed\" or status eq \"RevocationFailed\")",
        },
    ],
    pages: &[Page::at(&[ANY])
        .get(|visit, resource, [key, _]| boxed(move || replacement::show(visit, resource, key)))],
    ..Presentation::STANDARD
};

fn replaced(row: &Value, CellContext { names, .. }: CellContext<'_>) -> Cell {
    named(row, "platformUserId", names).unwrap_or_else(Cell::none).with_sub(member(row, "reason"))
}

fn status(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let status = member(row, "status");
    let tone = match status.as_str() {
        "PendingApproval" | "Executed" => "warn",
        "RevocationFailed" => "bad",
        "Cancelled" | "Expired" => "off",
        "Completed" => "good",
        _ => "info",
    };
    Cell::of("badge", words.choice(&status)).toned(tone)
}

fn approvals(row: &Value, _: CellContext<'_>) -> Cell {
    let given = row["approvedByActorIds"].as_array().map_or(0, Vec::len);
    Cell::of("text", format!("{given} / {}", member(row, "requiredApprovals")))
}
