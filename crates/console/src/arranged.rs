//! What a resource says of itself where the pattern's default is not the best.

use serde_json::{Value, json};

use crate::{
    directory::{self, Resource},
    fields::{Cell, Tag, cell, plain},
    pages::reference::Names,
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
        "RoleAssignment" => Some(&[("col_role", role), ("col_who", principal), ("col_where", place)]),
        "CustomAuditTrail" => Some(&[("col_change", change), ("col_who", who), ("col_when", when)]),
        _ => None,
    }
}

/// What one row is called.
pub fn title(resource: &str, row: &Value) -> Option<String> {
    match resource {
        "User" | "ApplicationUser" => Some(full_name(row)),
        "CustomAuditTrail" => Some(format!("{} {}", member(row, "area"), member(row, "primaryKey"))),
        _ => None,
    }
}

/// The state of one row in a word, for its page.
pub fn badge(resource: &str, row: &Value, words: &Words) -> Value {
    if resource == "User" {
        let cell = status(row, (words, &Names::new()));
        return json!({ "text": cell.text, "tone": cell.tone });
    }
    Value::Null
}

/// What tells rows of the same name apart.
pub fn sub(resource: &str, row: &Value) -> Option<String> {
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

/// The filters of a list that have names: the key of the text, and the filter.
pub fn views(resource: &str) -> &'static [(&'static str, &'static str)] {
    match resource {
        "User" => &[("locked", "isUserLocked eq true"), ("inactive", "isUserActive eq false")],
        _ => &[],
    }
}

/// The fields by whose beginning a list is searched.
pub fn searched(resource: &str) -> &'static [&'static str] {
    match resource {
        "User" => &["loginName", "emailAddress", "lastName", "firstName"],
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

/// Whether an arranged list shows the name of the row that this field names.
pub fn shows_name(resource: &str, wire: &str) -> bool {
    resource == "RoleAssignment" && (wire == "principalId" || wire.starts_with("applyTo"))
}

fn member(row: &Value, name: &str) -> String {
    plain(row.get(name).unwrap_or(&Value::Null))
}

fn full_name(row: &Value) -> String {
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
    let (key, tone) = if is("isUserLocked") {
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

fn change(row: &Value, (words, _): Told<'_>) -> Cell {
    let (action, area) = (member(row, "action"), member(row, "area"));
    let text = format!("{}: {}", raised(&words.resource(&area)), words.choice(&action));
    Cell::of("title", text).with_sub(member(row, "primaryKey"))
}

fn who(row: &Value, (words, _): Told<'_>) -> Cell {
    let user = member(row, "user");
    if user.is_empty() { Cell::of("text", words.page("the_server")) } else { Cell::of("code", user) }
}

fn when(row: &Value, (words, _): Told<'_>) -> Cell {
    let fields = chancery_userstore::audit_trail::AUDIT_TRAIL.fields;
    let field = fields.iter().find(|field| field.wire() == "timestamp");
    field.map_or_else(Cell::none, |field| cell(field, &row["timestamp"], words))
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
