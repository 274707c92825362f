//! What a resource says of itself where the pattern's default is not the best.

use serde_json::{Value, json};

use crate::{
    directory::{self, Resource},
    fields::{Cell, Tag, cell, plain, readable},
    pages::{history, reference::Names},
    visit::{hue, initials},
    words::{Words, raised},
};

/// A column of an arranged list: the key of its label in the texts, and the cell of a row.
type Column = (&'static str, fn(&Value, Told<'_>) -> Cell);

/// What a cell is made with: the words, and the names of rows that others name.
type Told<'a> = (&'a Words, &'a Names);

/// The columns of a resource's list, where it arranges them.
pub fn columns(resource: &str) -> Option<&'static [Column]> {
    match resource {
        "User" => Some(&[
            ("col_name", user_name),
            ("col_email", email),
            ("col_groups", groups),
            ("col_status", status),
        ]),
        "CertStore" => Some(&[
            ("col_name", cert_name),
            ("col_serves", cert_serves),
            ("col_ends", cert_ends),
            ("col_status", cert_status),
        ]),
        "ClaimRule" => Some(&[
            ("col_name", rule_name),
            ("col_priority", rule_priority),
            ("col_does", rule_type),
            ("col_matches", rule_matches),
            ("col_where", rule_level),
            ("col_status", rule_status),
        ]),
        "ApplicationUser" => Some(&[("col_name", user_name), ("col_email", address)]),
        "IdentityReplacement" => Some(&[
            ("col_who", replaced),
            ("col_status", replacement_status),
            ("col_approvals", approvals),
            ("col_asked", asked),
            ("col_expires", expires),
        ]),
        "RoleAssignment" => Some(&[("col_role", role), ("col_who", principal), ("col_where", place)]),
        "ScimToken" => Some(&[
            ("col_name", rule_name),
            ("col_reach", token_reach),
            ("col_status", token_status),
            ("col_ends", expires),
            ("col_used", token_used),
        ]),
        "CustomAuditTrail" => Some(&[("col_change", change), ("col_who", who), ("col_when", when)]),
        _ => None,
    }
}

/// What one row is called.
pub fn title(resource: &str, row: &Value) -> Option<String> {
    match resource {
        "User" | "ApplicationUser" => Some(full_name(row)),
        "CustomAuditTrail" => Some(format!("{} {}", member(row, "area"), member(row, "primaryKey"))),
        "RoleAssignment" => Some(member(row, "roleType")),
        _ => None,
    }
}

/// What the page of one row is called where that takes words, or names of others.
pub fn heading(resource: &str, row: &Value, (words, names): Told<'_>) -> Option<String> {
    if resource != "RoleAssignment" {
        return None;
    }
    let who = named(row, "principalId", names).map_or_else(String::new, |cell| cell.text);
    Some(format!("{}: {who}", words.choice(&member(row, "roleType"))))
}

/// The state of one row in a word, for its page.
pub fn badge(resource: &str, row: &Value, words: &Words) -> Value {
    let state = match resource {
        "User" => status,
        "IdentityReplacement" => replacement_status,
        "ScimToken" => token_status,
        _ => return Value::Null,
    };
    let cell = state(row, (words, &Names::new()));
    json!({ "text": cell.text, "tone": cell.tone })
}

/// What tells rows of the same name apart.
pub fn sub(resource: &str, row: &Value) -> Option<String> {
    if resource == "ApplicationUser" {
        return Some(member(row, "emailAddress"));
    }
    if resource != "User" {
        return None;
    }
    let parts = [member(row, "loginName"), member(row, "emailAddress")];
    Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · "))
}

/// Whether rows have pictures of initials.
pub fn avatar(resource: &str, row: &Value) -> Value {
    if resource != "User" {
        return Value::Null;
    }
    let name = full_name(row);
    json!({ "initials": initials(&name), "hue": hue(&name) })
}

/// The sections of a form: the key of each title, and its fields in their order. What no section names comes after them.
pub fn sections(resource: &str) -> &'static [(&'static str, &'static [&'static str])] {
    match resource {
        "User" => &[
            ("section_identity", &["loginName", "firstName", "middleName", "lastName", "nickname"]),
            (
                "section_contact",
                &["emailAddress", "emailAddressConfirmed", "phoneNumber", "phoneNumberConfirmed"],
            ),
            (
                "section_access",
                &[
                    "isUserActive",
                    "isUserLockEnabled",
                    "userValidFrom",
                    "userValidTo",
                    "passwordExpiration",
                    "passwordNeverExpires",
                    "canChangePasswordOnExpiration",
                ],
            ),
        ],
        "IdentityReplacement" => &[(
            "section_general",
            &["platformUserId", "replacementIdpInstanceId", "replacementUniqueUserId", "reason"],
        )],
        _ => &[],
    }
}

/// The acts that come first, the most needed one before the others.
pub fn first_acts(resource: &str) -> &'static [&'static str] {
    match resource {
        "User" => &[
            "SendPasswordResetEmail",
            "ResetAccessFailedCount",
            "SetUserState",
            "SetInitialPassword",
            "ResetPassword",
        ],
        _ => &[],
    }
}

/// Whether an act changes anything of a row as it is: what does not is not offered.
pub fn has_effect(operation: &str, row: &Value) -> bool {
    match operation {
        "ResumeScimToken" => !row["stoppedOn"].is_null(),
        _ => true,
    }
}

/// The filters of a list that have names: the key of the text, and the filter.
pub fn views(resource: &str) -> &'static [(&'static str, &'static str)] {
    match resource {
        "User" => &[("locked", "isUserLocked eq true"), ("inactive", "isUserActive eq false")],
        "IdentityReplacement" => &[
            ("open", "(status eq \"PendingApproval\" or status eq \"Approved\")"),
            ("ending", "(status eq \"Executed\" or status eq \"RevocationFailed\")"),
        ],
        _ => &[],
    }
}

/// The order of a list, where it is not that of its keys: the field, and the direction.
pub fn order(resource: &str) -> Option<(&'static str, &'static str)> {
    match resource {
        // what ends first
        "CertStore" => Some(("validTo", "ascending")),
        // the order in which they run
        "ClaimRule" => Some(("priority", "ascending")),
        _ => None,
    }
}

/// The fields by which a list can be sorted, each below the column of this label: an index serves them, however many rows
/// there are.
pub fn sorted(resource: &str) -> &'static [(&'static str, &'static str)] {
    match resource {
        "User" | "ApplicationUser" => &[("col_name", "lastName"), ("col_email", "emailAddress")],
        "Group" | "Customer" | "ClientApp" => &[("name", "name")],
        _ => &[],
    }
}

/// What a list says where it is empty: the key of the text.
pub fn empty(resource: &str) -> Option<&'static str> {
    (resource == "CertStore").then_some("cert_none")
}

/// What a form can do besides saving: the operation, the key of the text, and the page that takes what was typed.
pub fn form_act(resource: &str) -> Option<(&'static str, &'static str, &'static str)> {
    match resource {
        "ClaimRule" => Some(("EvaluateClaimRules", "try_it", "/console/ClaimRule/try")),
        "CustomView" => Some(("PreviewView", "editor", "/console/CustomView/try")),
        _ => None,
    }
}

/// The fields by whose beginning a list is searched.
pub fn searched(resource: &str) -> &'static [&'static str] {
    match resource {
        "User" => &["loginName", "emailAddress", "lastName", "firstName"],
        "ApplicationUser" => &["emailAddress", "lastName", "firstName"],
        _ => &[],
    }
}

/// The resource that an id names by what else its row says.
pub fn named_by(resource: &str, wire: &str, row: &Value) -> Option<&'static Resource> {
    let name = match (resource, wire, row["principalType"].as_str()?) {
        ("RoleAssignment", "principalId", "PlatformUser") => "ApplicationUser",
        ("RoleAssignment", "principalId", "PlatformGroup") => "ApplicationGroup",
        ("RoleAssignment", "principalId", _) => "ClientApp",
        _ => return None,
    };
    directory::find(name, false)
}

/// Whether a list shows what its rows are linked with.
pub fn shows_sets(resource: &str) -> bool {
    resource == "User"
}

/// The resource that ids name in fields of this name, wherever they are.
pub fn referenced(wire: &str) -> Option<&'static Resource> {
    let name = match wire {
        "platformUserId" => "ApplicationUser",
        "replacementIdpInstanceId" => "IdpInstance",
        _ => return None,
    };
    directory::find(name, false)
}

/// Whether an arranged list shows the name of the row that this field names.
pub fn shows_name(resource: &str, wire: &str) -> bool {
    let is_target = wire.starts_with("applyTo");
    match resource {
        "RoleAssignment" => wire == "principalId" || is_target,
        "CertStore" => is_target,
        "IdentityReplacement" => wire == "platformUserId",
        _ => false,
    }
}

fn member(row: &Value, name: &str) -> String {
    plain(row.get(name).unwrap_or(&Value::Null))
}

/// The full name of a person, or what else the person is known by.
pub fn full_name(row: &Value) -> String {
    let parts = [member(row, "firstName"), member(row, "lastName")];
    let full = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let others = ["loginName", "emailAddress", "id"].map(|name| member(row, name));
    let first = others.into_iter().find(|name| !name.is_empty());
    if full.is_empty() { first.unwrap_or_default() } else { full }
}

fn user_name(row: &Value, _: Told<'_>) -> Cell {
    let (full, login) = (full_name(row), member(row, "loginName"));
    let sub = if full == login { String::new() } else { login };
    Cell::of("title", full).with_sub(sub)
}

fn email(row: &Value, (words, _): Told<'_>) -> Cell {
    let address = member(row, "emailAddress");
    if address.is_empty() {
        return Cell::none();
    }
    if row["emailAddressConfirmed"] == json!(true) {
        return Cell::of("text", address);
    }
    Cell::of("text", address).with_sub(words.page("not_confirmed")).toned("warn")
}

fn address(row: &Value, _: Told<'_>) -> Cell {
    let address = member(row, "emailAddress");
    if address.is_empty() { Cell::none() } else { Cell::of("text", address) }
}

/// The most groups that a row names.
const MOST_TAGS: usize = 2;

fn groups(row: &Value, _: Told<'_>) -> Cell {
    let all = row["memberOfGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        return Cell::none();
    }
    let items =
        all.iter().take(MOST_TAGS).map(|group| Tag { text: member(group, "name"), href: None }).collect();
    Cell { items, more: all.len().saturating_sub(MOST_TAGS), ..Cell::of("tags", "") }
}

fn status(row: &Value, (words, _): Told<'_>) -> Cell {
    let is = |name: &str| row[name] == json!(true);
    let (key, tone) = if is("isDeleted") {
        ("status_deleted", "off")
    } else if is("isUserLocked") {
        ("status_locked", "bad")
    } else if !row["lockedUntil"].is_null() {
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

fn change(row: &Value, (words, names): Told<'_>) -> Cell {
    let (action, area) = (member(row, "action"), member(row, "area"));
    let text = format!("{}: {}", raised(&words.resource(&area)), words.choice(&action));
    Cell::of("title", text).with_sub(history::item(row, names))
}

fn who(row: &Value, (words, names): Told<'_>) -> Cell {
    Cell::of("text", history::told(row, names).unwrap_or_else(|| words.page("the_server").to_owned()))
}

fn when(row: &Value, (words, _): Told<'_>) -> Cell {
    let fields = chancery_userstore::audit_trail::AUDIT_TRAIL.fields;
    let field = fields.iter().find(|field| field.wire() == "timestamp");
    field.map_or_else(Cell::none, |field| cell(field, &row["timestamp"], words))
}

fn cert_name(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("title", member(row, "name")).with_sub(member(row, "subject"))
}

/// What a certificate is for, and whose.
fn cert_serves(row: &Value, (words, names): Told<'_>) -> Cell {
    let whose =
        ["applyToTenantId", "applyToSubscriptionId"].into_iter().find_map(|wire| named(row, wire, names));
    let whose = whose.map_or_else(|| words.page("everyones").to_owned(), |cell| cell.text);
    Cell::of("text", words.choice(&member(row, "certType"))).with_sub(whose)
}

fn cert_ends(row: &Value, _: Told<'_>) -> Cell {
    let end = member(row, "validTo");
    Cell { iso: end.clone(), ..Cell::of("moment", readable(&end)) }
}

/// So long before its end a certificate is called to mind, in ms.
pub const SOON_MS: i64 = 30 * 24 * 3_600_000;

fn cert_status(row: &Value, (words, _): Told<'_>) -> Cell {
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

fn rule_name(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("title", member(row, "name"))
}

fn rule_priority(row: &Value, _: Told<'_>) -> Cell {
    Cell::of("text", member(row, "priority"))
}

fn rule_type(row: &Value, (words, _): Told<'_>) -> Cell {
    Cell::of("badge", words.choice(&member(row, "ruleType"))).toned("info")
}

/// The patterns that count: those of what the rule looks at.
fn rule_matches(row: &Value, (words, _): Told<'_>) -> Cell {
    let target = member(row, "filterTarget");
    let pattern = |wire: &str, part: &str| Some(member(row, wire)).filter(|_| target.contains(part));
    let patterns = [pattern("typeEvaluationRule", "Type"), pattern("valueEvaluationRule", "Value")];
    let patterns: Vec<String> = patterns.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    if patterns.is_empty() {
        return Cell::of("text", words.page("matches_all"));
    }
    Cell::of("code", patterns.join(" = "))
}

fn rule_level(row: &Value, (words, _): Told<'_>) -> Cell {
    Cell::of("text", words.choice(&member(row, "ruleLevel")))
}

fn rule_status(row: &Value, (words, _): Told<'_>) -> Cell {
    let (key, tone) =
        if row["isActive"] == json!(true) { ("status_active", "good") } else { ("status_inactive", "off") };
    Cell::of("badge", words.page(key)).toned(tone)
}

fn replaced(row: &Value, (_, names): Told<'_>) -> Cell {
    named(row, "platformUserId", names).unwrap_or_else(Cell::none).with_sub(member(row, "reason"))
}

fn replacement_status(row: &Value, (words, _): Told<'_>) -> Cell {
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

fn approvals(row: &Value, _: Told<'_>) -> Cell {
    let there = row["approvedByActorIds"].as_array().map_or(0, Vec::len);
    Cell::of("text", format!("{there} / {}", member(row, "requiredApprovals")))
}

fn asked(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "requestedOn")
}

fn expires(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "expiresOn")
}

fn token_reach(row: &Value, (words, _): Told<'_>) -> Cell {
    Cell::of("text", words.choice(&member(row, "reach")))
}

fn token_status(row: &Value, (words, _): Told<'_>) -> Cell {
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

fn token_used(row: &Value, _: Told<'_>) -> Cell {
    moment_of(row, "lastUsedOn")
}

fn moment_of(row: &Value, wire: &str) -> Cell {
    let moment = member(row, wire);
    Cell { iso: moment.clone(), ..Cell::of("moment", readable(&moment)) }
}

fn role(row: &Value, (words, _): Told<'_>) -> Cell {
    Cell::of("title", words.choice(&member(row, "roleType")))
}

/// A row that this member names, by its name.
fn named(row: &Value, wire: &str, names: &Names) -> Option<Cell> {
    let id = row[wire].as_str()?;
    let (name, href) = names.get(id).cloned().unwrap_or_else(|| (id.to_owned(), None));
    Some(Cell { href, ..Cell::of("reference", name) })
}

fn principal(row: &Value, (words, names): Told<'_>) -> Cell {
    let kind = member(row, "principalType");
    named(row, "principalId", names).map_or_else(Cell::none, |cell| cell.with_sub(words.choice(&kind)))
}

/// Where a role counts.
fn place(row: &Value, (words, names): Told<'_>) -> Cell {
    let targets = ["applyToIdpInstanceId", "applyToTenantId", "applyToSubscriptionId", "applyToCustomerId"];
    let found = targets.into_iter().find_map(|wire| named(row, wire, names));
    found.unwrap_or_else(|| Cell::of("text", words.page("everywhere")))
}

/// Whether an operation cannot be taken back by anybody: its page asks for the name.
pub fn is_for_good(operation: &str) -> bool {
    operation == "EraseUser"
}

/// The member that the answer to a creation tells this once.
pub fn told_once(resource: &str) -> Option<&'static str> {
    match resource {
        "ClientAppSecret" => Some("secret"),
        "TemporaryAccessPass" => Some("value"),
        _ => None,
    }
}

/// What can be made for a row: the key of the text, the resource in the same user store, and the field that names the row.
pub fn makes(resource: &str) -> &'static [(&'static str, &'static str, &'static str)] {
    match resource {
        "User" => &[("issue_pass", "TemporaryAccessPass", "userId")],
        _ => &[],
    }
}

/// Whether an operation about one row has a page of its own, and is no act beside the others.
pub fn has_own_page(operation: &str) -> bool {
    matches!(operation, "StartIdpInstanceTrial" | "CompleteIdpInstanceTrial")
}

/// Whether an operation is for who signs in, and for nobody who administers.
pub fn is_for_sign_in(operation: &str) -> bool {
    matches!(operation, "RedeemTemporaryAccessPass" | "StartPasskeyAuthentication")
}
