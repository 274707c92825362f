//! The cells of arranged lists.

use serde_json::{Value, json};

use super::{SOON_MS, Told, full_name, member};
use crate::{
    agent,
    fields::{Cell, Tag, cell},
    pages::{history, reference::Names},
    words::raised,
};

pub(super) fn user_name(row: &Value, _: Told<'_>) -> Cell {
    let (full, login) = (full_name(row), member(row, "loginName"));
    let sub = if full == login { String::new() } else { login };
    Cell::of("title", full).with_sub(sub)
}

pub(super) fn email(row: &Value, (words, _): Told<'_>) -> Cell {
    let address = member(row, "emailAddress");
    if address.is_empty() {
        return Cell::none();
    }
    if row["emailAddressConfirmed"] == json!(true) {
        return Cell::of("text", address);
    }
    Cell::of("text", address).with_sub(words.page("not_confirmed")).toned("warn")
}

pub(super) fn address(row: &Value, _: Told<'_>) -> Cell {
    let address = member(row, "emailAddress");
    if address.is_empty() { Cell::none() } else { Cell::of("text", address) }
}

/// The most groups that a row names.
const MOST_TAGS: usize = 2;

pub(super) fn groups(row: &Value, _: Told<'_>) -> Cell {
    let all = row["memberOfGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        return Cell::none();
    }
    let items =
        all.iter().take(MOST_TAGS).map(|group| Tag { text: member(group, "name"), href: None }).collect();
    Cell { items, more: all.len().saturating_sub(MOST_TAGS), ..Cell::of("tags", "") }
}

pub(super) fn status(row: &Value, (words, _): Told<'_>) -> Cell {
    let is = |name: &str| row[name] == json!(true);
    let (key, tone) = if is("isDeleted") {
        ("status_deleted", "off")
    } else if is("isUserLocked") {
        ("status_locked", "bad")
    } else if row["lockedUntil"].as_str().and_then(chancery_record::parse_timestamp)
        > Some(chancery_web::now())
    {
        ("status_locked_for_now", "warn")
    } else if !is("isUserActive") {
        ("status_inactive", "off")
    } else if is("isPasswordChangeRequired") {
        ("status_password_due", "warn")
    } else {
        ("status_active", "good")
    };
    Cell::of("badge", words.page(key)).toned(tone)
}

pub(super) fn change(row: &Value, (words, names): Told<'_>) -> Cell {
    let (action, area) = (member(row, "action"), member(row, "area"));
    let text = format!("{}: {}", raised(&words.resource(&area)), words.choice(&action));
    Cell::of("title", text).with_sub(history::item(row, names))
}

pub(super) fn who(row: &Value, (words, names): Told<'_>) -> Cell {
    Cell::of("text", history::told(row, names).unwrap_or_else(|| words.page("the_server").to_owned()))
}

pub(super) fn when(row: &Value, (words, _): Told<'_>) -> Cell {
    let fields = chancery_userstore::audit_trail::AUDIT_TRAIL.fields;
    let field = fields.iter().find(|field| field.wire() == "timestamp");
    field.map_or_else(Cell::none, |field| cell(field, &row["timestamp"], words))
}

pub(super) fn cert_name(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("title", member(row, "name")).with_sub(member(row, "subject"))
}

/// What a certificate is for, and whose.
pub(super) fn cert_serves(row: &Value, (words, names): Told<'_>) -> Cell {
    let whose =
        ["applyToTenantId", "applyToSubscriptionId"].into_iter().find_map(|wire| named(row, wire, names));
    let whose = whose.map_or_else(|| words.page("everyones").to_owned(), |cell| cell.text);
    Cell::of("text", words.choice(&member(row, "certType"))).with_sub(whose)
}

pub(super) fn cert_ends(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "validTo")
}

pub(super) fn cert_status(row: &Value, (words, _): Told<'_>) -> Cell {
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

pub(super) fn rule_name(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("title", member(row, "name"))
}

pub(super) fn rule_priority(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("text", member(row, "priority"))
}

pub(super) fn rule_type(row: &Value, (words, _): Told<'_>) -> Cell {
    Cell::of("badge", words.choice(&member(row, "ruleType"))).toned("info")
}

/// The patterns that count: those of what the rule looks at.
pub(super) fn rule_matches(row: &Value, (words, _): Told<'_>) -> Cell {
    let target = member(row, "filterTarget");
    let pattern = |wire: &str, part: &str| Some(member(row, wire)).filter(|_| target.contains(part));
    let patterns = [pattern("typeEvaluationRule", "Type"), pattern("valueEvaluationRule", "Value")];
    let patterns: Vec<String> = patterns.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    if patterns.is_empty() {
        return Cell::of("text", words.page("matches_all"));
    }
    Cell::of("code", patterns.join(" = "))
}

pub(super) fn rule_level(row: &Value, (words, _): Told<'_>) -> Cell {
    Cell::of("text", words.choice(&member(row, "ruleLevel")))
}

pub(super) fn rule_status(row: &Value, (words, _): Told<'_>) -> Cell {
    let (key, tone) =
        if row["isActive"] == json!(true) { ("status_active", "good") } else { ("status_inactive", "off") };
    Cell::of("badge", words.page(key)).toned(tone)
}

pub(super) fn replaced(row: &Value, (_, names): Told<'_>) -> Cell {
    named(row, "platformUserId", names).unwrap_or_else(Cell::none).with_sub(member(row, "reason"))
}

pub(super) fn replacement_status(row: &Value, (words, _): Told<'_>) -> Cell {
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

pub(super) fn approvals(row: &Value, _: Told<'_>) -> Cell {
    let there = row["approvedByActorIds"].as_array().map_or(0, Vec::len);
    Cell::of("text", format!("{there} / {}", member(row, "requiredApprovals")))
}

pub(super) fn asked(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "requestedOn")
}

pub(super) fn expires(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "expiresOn")
}

pub(super) fn token_reach(row: &Value, (words, _): Told<'_>) -> Cell {
    Cell::of("text", words.choice(&member(row, "reach")))
}

pub(super) fn token_status(row: &Value, (words, _): Told<'_>) -> Cell {
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

pub(super) fn token_used(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "lastUsedOn")
}

pub(super) fn moment_of(row: &Value, wire: &str) -> Cell {
    Cell::moment(&member(row, wire))
}

pub(super) fn role(row: &Value, (words, _): Told<'_>) -> Cell {
    Cell::of("title", words.choice(&member(row, "roleType")))
}

/// A row that this member names, by its name.
pub(super) fn named(row: &Value, wire: &str, names: &Names) -> Option<Cell> {
    let id = row[wire].as_str()?;
    let (name, href) = names.get(id).cloned().unwrap_or_else(|| (id.to_owned(), None));
    Some(Cell { href, ..Cell::of("reference", name) })
}

pub(super) fn principal(row: &Value, (words, names): Told<'_>) -> Cell {
    let kind = member(row, "principalType");
    named(row, "principalId", names).map_or_else(Cell::none, |cell| cell.with_sub(words.choice(&kind)))
}

/// Where a role counts.
pub(super) fn place(row: &Value, (words, names): Told<'_>) -> Cell {
    let targets = ["applyToIdpInstanceId", "applyToTenantId", "applyToSubscriptionId", "applyToCustomerId"];
    let found = targets.into_iter().find_map(|wire| named(row, wire, names));
    found.unwrap_or_else(|| Cell::of("text", words.page("everywhere")))
}

/// Who signed in, or tried to.
pub(super) fn signed_in(row: &Value, (_, names): Told<'_>) -> Cell {
    named(row, "platformUserId", names).unwrap_or_else(Cell::none)
}

pub(super) fn app(row: &Value, (_, names): Told<'_>) -> Cell {
    named(row, "clientAppId", names).unwrap_or_else(Cell::none)
}

pub(super) fn tenant(row: &Value, (_, names): Told<'_>) -> Cell {
    let instance = named(row, "idpInstanceId", names).map_or_else(String::new, |cell| cell.text);
    named(row, "tenantId", names).map_or_else(Cell::none, |cell| cell.with_sub(instance))
}

/// What came of an attempt, and why.
pub(super) fn outcome(row: &Value, (words, _): Told<'_>) -> Cell {
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
pub(super) fn origin(row: &Value, _: Told<'_>) -> Cell {
    let text = agent::origin(row);
    if text.is_empty() { Cell::none() } else { Cell::of("text", text) }
}

pub(super) fn occurred(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "occurredOn")
}

pub(super) fn began(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "startedOn")
}

pub(super) fn used(row: &Value, _: Told<'_>) -> Cell {
    if row["usedOn"].is_null() { Cell::none() } else { moment_of(row, "usedOn") }
}

pub(super) fn enrolled(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "enrolledOn")
}

pub(super) fn scope(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("code", member(row, "scope"))
}

pub(super) fn factor(row: &Value, (words, _): Told<'_>) -> Cell {
    let codes = format!("{} {}", member(row, "recoveryCodes"), words.page("recovery_codes"));
    Cell::of("text", words.choice(&member(row, "kind"))).with_sub(codes)
}

/// Whom a directory wanted to remove.
pub(super) fn leaver(row: &Value, _: Told<'_>) -> Cell {
    Cell::of(
        "title",
        ["loginName", "userId"]
            .map(|wire| member(row, wire))
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default(),
    )
}

pub(super) fn instance(row: &Value, (_, names): Told<'_>) -> Cell {
    let cell = named(row, "idpInstanceId", names).unwrap_or_else(Cell::none);
    // who may not list instances knows the store's name all the same
    match row["userStore"].as_str() {
        Some(store) if cell.href.is_none() => Cell::of("text", store),
        _ => cell,
    }
}

pub(super) fn told_on(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "toldOn")
}

pub(super) fn refused_by(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("title", member(row, "error"))
}

pub(super) fn refused_at(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("text", member(row, "endpoint"))
}

pub(super) fn refused_why(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("text", member(row, "reason"))
}

pub(super) fn refused_on(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "lastOn")
}

/// Whether a session or a grant lives.
pub(super) fn sign_in_status(row: &Value, (words, _): Told<'_>) -> Cell {
    let end = row["expiresOn"].as_str().and_then(chancery_record::parse_timestamp);
    let (key, tone) = match end {
        _ if row["endedOn"].is_string() => ("was_ended", "off"),
        Some(end) if end <= chancery_web::now() => ("cert_over", "off"),
        _ => ("is_live", "good"),
    };
    Cell::of("badge", words.page(key)).toned(tone)
}
