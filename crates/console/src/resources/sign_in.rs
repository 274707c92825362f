//! What is known of sign-ins: records, sessions, grants, second factors and consents.

use serde_json::Value;

use crate::{
    pages::{
        agent,
        cells::{client_app, member, moment, named},
    },
    shell::{
        fields::Cell,
        presentation::{CellContext, Deleting, Presentation, View},
    },
};

/// What all of them have in common: they are of a person.
const OF_PERSON: Presentation = Presentation {
    shows_name: |_| true,
    heading: |row, (_, names)| named(row, "platformUserId", names).map(|cell| cell.text),
    ..Presentation::STANDARD
};

/// The order by ids, which rise with time: what happened last.
const LAST_FIRST: &[(&str, &str)] = &[("sortBy", "id"), ("sortOrder", "descending")];

/// What has not ended.
const LIVE: View =
    View { name: "live", label: "view_live", filter: "endedOn eq null and expiresOn gt \"{now}\"" };

/// How records of sign-ins are presented.
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

/// How sessions are presented.
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
    deleting: Deleting { act: "end", text: Some("end_session_text"), note: "ended" },
    ..OF_PERSON
};

/// How grants are presented.
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
    deleting: Deleting { act: "end", text: Some("end_grant_text"), note: "ended" },
    ..OF_PERSON
};

/// How second factors of people are presented.
pub static FACTOR: Presentation = Presentation {
    icon: "shield-check",
    columns: &[
        ("col_who", person),
        ("col_kind", factor),
        ("col_enrolled", |row, _| moment(row, "enrolledOn")),
        ("col_used", used),
    ],
    deleting: Deleting { act: "remove", text: Some("remove_factor_text"), note: "deleted" },
    ..OF_PERSON
};

/// How consents are presented.
pub static CONSENT: Presentation = Presentation {
    columns: &[("col_who", person), ("col_app", client_app), ("col_scope", scope)],
    deleting: Deleting { act: "withdraw", text: Some("withdraw_text"), note: "deleted" },
    ..OF_PERSON
};

/// Who signed in, or tried to.
fn person(row: &Value, (_, names): CellContext<'_>) -> Cell {
    named(row, "platformUserId", names).unwrap_or_else(Cell::none)
}

fn tenant(row: &Value, (_, names): CellContext<'_>) -> Cell {
    let instance = named(row, "idpInstanceId", names).map_or_else(String::new, |cell| cell.text);
    named(row, "tenantId", names).map_or_else(Cell::none, |cell| cell.with_sub(instance))
}

/// What came of an attempt, and why.
fn outcome(row: &Value, (words, _): CellContext<'_>) -> Cell {
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

/// From where an attempt came.
fn origin(row: &Value, _: CellContext<'_>) -> Cell {
    let text = agent::origin(row);
    if text.is_empty() { Cell::none() } else { Cell::of("text", text) }
}

fn used(row: &Value, _: CellContext<'_>) -> Cell {
    if row["usedOn"].is_null() { Cell::none() } else { moment(row, "usedOn") }
}

fn scope(row: &Value, _: CellContext<'_>) -> Cell {
    Cell::of("code", member(row, "scope"))
}

fn factor(row: &Value, (words, _): CellContext<'_>) -> Cell {
    let codes = format!("{} {}", member(row, "recoveryCodes"), words.page("recovery_codes"));
    Cell::of("text", words.choice(&member(row, "kind"))).with_sub(codes)
}

/// Whether a session or a grant lives.
fn status(row: &Value, (words, _): CellContext<'_>) -> Cell {
    let end = row["expiresOn"].as_str().and_then(chancery_record::parse_timestamp);
    let (key, tone) = match end {
        _ if row["endedOn"].is_string() => ("was_ended", "off"),
        Some(end) if end <= chancery_web::now() => ("cert_over", "off"),
        _ => ("is_live", "good"),
    };
    Cell::of("badge", words.page(key)).toned(tone)
}
