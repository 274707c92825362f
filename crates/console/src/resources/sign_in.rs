//! Sign-in data: records, sessions, grants, second factors and consents.

use serde_json::Value;

use crate::{
    pages::{
        cells::{client_app, member, moment, named},
        user_agent,
    },
    shell::{
        fields::Cell,
        presentation::{CellContext, DeletionTexts, Presentation, View},
    },
};

/// Common presentation: each belongs to a person.
const OF_PERSON: Presentation = Presentation {
    shows_name: |_| true,
    heading: |row, CellContext { names, .. }| named(row, "platformUserId", names).map(|cell| cell.text),
    ..Presentation::STANDARD
};

/// By id, the newest first: ids rise with time.
const LAST_FIRST: &[(&str, &str)] = &[("sortBy", "id"), ("sortOrder", "descending")];

/// The view of active ones.
const LIVE: View =
    View { name: "live", label: "view_live", filter: "endedOn eq null and expiresOn gt \"{now}\"" };

/// Presentation of records of sign-ins.
pub static RECORD: Presentation = Presentation {
    icon: "history",
    columns: &[
        ("col_who", person),
        ("col_outcome", outcome),
        ("col_app", client_app),
        ("col_from", origin),
        ("col_when", |row, _| moment(row, "occurredOn")),
    ],
    badge: Some(outcome),
    views: &[View { name: "refused", label: "view_refused", filter: "outcome eq \"Refused\"" }],
    order: LAST_FIRST,
    ..OF_PERSON
};

/// Presentation of sessions.
pub static SESSION: Presentation = Presentation {
    icon: "globe",
    columns: &[
        ("col_who", person),
        ("col_where", tenant),
        ("col_began", |row, _| moment(row, "startedOn")),
        ("col_used", used),
        ("col_status", status),
    ],
    badge: Some(status),
    views: &[LIVE],
    order: LAST_FIRST,
    deleting: DeletionTexts { act: "end", text: Some("end_session_text"), note: "ended" },
    ..OF_PERSON
};

/// Presentation of grants.
pub static GRANT: Presentation = Presentation {
    icon: "key-round",
    columns: &[
        ("col_who", person),
        ("col_app", client_app),
        ("col_scope", scope),
        ("col_used", used),
        ("col_status", status),
    ],
    badge: Some(status),
    views: &[LIVE],
    order: LAST_FIRST,
    deleting: DeletionTexts { act: "end", text: Some("end_grant_text"), note: "ended" },
    ..OF_PERSON
};

/// Presentation of second factors of people.
pub static FACTOR: Presentation = Presentation {
    icon: "shield-check",
    columns: &[
        ("col_who", person),
        ("col_kind", factor),
        ("col_enrolled", |row, _| moment(row, "enrolledOn")),
        ("col_used", used),
    ],
    deleting: DeletionTexts { act: "remove", text: Some("remove_factor_text"), note: "deleted" },
    ..OF_PERSON
};

/// Presentation of consents.
pub static CONSENT: Presentation = Presentation {
    columns: &[("col_who", person), ("col_app", client_app), ("col_scope", scope)],
    deleting: DeletionTexts { act: "withdraw", text: Some("withdraw_text"), note: "deleted" },
    ..OF_PERSON
};

/// The person who signed in or attempted to.
fn person(row: &Value, CellContext { names, .. }: CellContext<'_>) -> Cell {
    named(row, "platformUserId", names).unwrap_or_else(Cell::none)
}

fn tenant(row: &Value, CellContext { names, .. }: CellContext<'_>) -> Cell {
    let instance = named(row, "idpInstanceId", names).map_or_else(String::new, |cell| cell.text);
    named(row, "tenantId", names).map_or_else(Cell::none, |cell| cell.with_sub(instance))
}

/// The result of an attempt, with the reason.
fn outcome(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let outcome = member(row, "outcome");
    let tone = match outcome.as_str() {
        "SignedIn" | "SteppedUp" => "good",
        "Refused" | "Reused" => "bad",
        _ => "off",
    };
    let reason = member(row, "reason");
    let reason = if reason.is_empty() { reason } else { words.choice(&reason).to_owned() };
    let text = words.choice(&outcome);
    let text = if reason.is_empty() { text.to_owned() } else { format!("{text}: {reason}") };
    let text = match row["attempts"].as_i64() {
        Some(attempts) if attempts > 1 => format!("{text} ({attempts})"),
        _ => text,
    };
    Cell::of("badge", text).toned(tone)
}

/// The origin of an attempt.
fn origin(row: &Value, _: CellContext<'_>) -> Cell {
    let text = user_agent::origin(row);
    if text.is_empty() { Cell::none() } else { Cell::of("text", text) }
}

fn used(row: &Value, _: CellContext<'_>) -> Cell {
    if row["usedOn"].is_null() { Cell::none() } else { moment(row, "usedOn") }
}

fn scope(row: &Value, _: CellContext<'_>) -> Cell {
    Cell::of("code", member(row, "scope"))
}

fn factor(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let codes = format!("{} {}", member(row, "recoveryCodes"), words.page("recovery_codes"));
    Cell::of("text", words.choice(&member(row, "kind"))).with_sub(codes)
}

/// Whether a session or a grant is active.
fn status(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let end = row["expiresOn"].as_str().and_then(chancery_record::parse_timestamp);
    let (key, tone) = match end {
        _ if row["endedOn"].is_string() => ("was_ended", "off"),
        Some(end) if end <= chancery_web::now() => ("cert_over", "off"),
        _ => ("is_live", "good"),
    };
    Cell::of("badge", words.page(key)).toned(tone)
}
