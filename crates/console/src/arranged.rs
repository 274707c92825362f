//! What a resource says of itself where the pattern's default is not the best.

mod cells;

use cells::{
    address, app, approvals, asked, began, cert_ends, cert_name, cert_serves, cert_status, change, email,
    enrolled, expires, factor, groups, instance, leaver, named, occurred, origin, outcome, place, principal,
    refused_at, refused_by, refused_on, refused_why, replaced, replacement_status, role, rule_level,
    rule_matches, rule_name, rule_priority, rule_status, rule_type, scope, sign_in_status, signed_in, status,
    tenant, token_reach, token_status, token_used, told_on, used, user_name, when, who,
};
use chancery_record::Field;
use chancery_resource::Op;
use serde_json::{Value, json};

use crate::{
    directory::{self, OperationName, Resource, encoded, operation_name},
    fields::{Cell, is_made_and_told, plain, written},
    pages::reference::Names,
    visit::{hue, initials},
    words::Words,
};

/// So long before its end a certificate is called to mind, in ms.
pub const SOON_MS: i64 = 30 * 24 * 3_600_000;

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
        "SignInRecord" => Some(&[
            ("col_who", signed_in),
            ("col_outcome", outcome),
            ("col_app", app),
            ("col_from", origin),
            ("col_when", occurred),
        ]),
        "SignInSession" => Some(&[
            ("col_who", signed_in),
            ("col_where", tenant),
            ("col_began", began),
            ("col_used", used),
            ("col_status", sign_in_status),
        ]),
        "SignInGrant" => Some(&[
            ("col_who", signed_in),
            ("col_app", app),
            ("col_scope", scope),
            ("col_used", used),
            ("col_status", sign_in_status),
        ]),
        "SignInConsent" => Some(&[("col_who", signed_in), ("col_app", app), ("col_scope", scope)]),
        "SignInFactor" => Some(&[
            ("col_who", signed_in),
            ("col_kind", factor),
            ("col_enrolled", enrolled),
            ("col_used", used),
        ]),
        "ClientAppRefusal" => Some(&[
            ("col_error", refused_by),
            ("col_app", app),
            ("col_endpoint", refused_at),
            ("col_why", refused_why),
            ("col_when", refused_on),
        ]),
        "DirectoryRefusal" => Some(&[("col_who", leaver), ("col_where", instance), ("col_when", told_on)]),
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
        "ClientAppRefusal" => Some(member(row, "error")),
        _ => None,
    }
}

/// What the page of one row is called where that takes words, or names of others.
pub fn heading(resource: &str, row: &Value, (words, names): Told<'_>) -> Option<String> {
    if resource.starts_with("SignIn") {
        return named(row, "platformUserId", names).map(|cell| cell.text);
    }
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
        "SignInSession" | "SignInGrant" => sign_in_status,
        "SignInRecord" => outcome,
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
pub fn has_effect(op: &Op, row: &Value) -> bool {
    !operation_name!("ResumeScimToken").is_of(op) || !row["stoppedOn"].is_null()
}

/// The filters of a list that have names: the key of the text, and the filter, with `{now}` where the time stands.
pub fn views(resource: &str) -> &'static [(&'static str, &'static str)] {
    match resource {
        "User" => &[
            ("locked", "isUserLocked eq true"),
            // apart, because one index cannot serve both in the order of a list
            ("locked_for_now", "lockedUntil gt \"{now}\""),
            ("inactive", "isUserActive eq false"),
        ],
        "SignInSession" | "SignInGrant" => &[("live", "endedOn eq null and expiresOn gt \"{now}\"")],
        "SignInRecord" => &[("refused", "outcome eq \"Refused\"")],
        "IdentityReplacement" => &[
            ("open", "(status eq \"PendingApproval\" or status eq \"Approved\")"),
            ("ending", "(status eq \"Executed\" or status eq \"RevocationFailed\")"),
        ],
        _ => &[],
    }
}

/// The filter of a view of this name, now.
pub fn view(resource: &str, name: &str) -> Option<String> {
    let known = views(resource).iter().find(|(known, _)| *known == name);
    known.map(|(_, filter)| filter.replace("{now}", &written(chancery_web::now())))
}

/// The order of a list, where it is not that of its keys: the field, and the direction.
pub fn order(resource: &str) -> Option<(&'static str, &'static str)> {
    match resource {
        // what ends first
        "CertStore" => Some(("validTo", "ascending")),
        // the order in which they run
        "ClaimRule" => Some(("priority", "ascending")),
        // ids rise with time: what happened last
        "SignInRecord" | "SignInSession" | "SignInGrant" => Some(("id", "descending")),
        "ClientAppRefusal" => Some(("lastOn", "descending")),
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
pub fn form_act(resource: &str) -> Option<(OperationName, &'static str, &'static str)> {
    match resource {
        "ClaimRule" => Some((operation_name!("EvaluateClaimRules"), "try_it", "/console/ClaimRule/try")),
        "CustomView" => Some((operation_name!("PreviewView"), "editor", "/console/CustomView/try")),
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
        "clientAppId" => "ClientApp",
        "tenantId" => "Tenant",
        "mfaInstanceId" => "MfaInstance",
        "sessionId" => "SignInSession",
        "idpInstanceId" | "replacementIdpInstanceId" => "IdpInstance",
        _ => return None,
    };
    directory::find(name, false)
}

/// Where a row leads that has no page of its own.
pub fn leads_to(resource: &str, row: &Value) -> Option<String> {
    if resource != "DirectoryRefusal" {
        return None;
    }
    let store = row["userStore"].as_str();
    let people = directory::find(if store.is_some() { "User" } else { "ApplicationUser" }, store.is_some())?;
    Some(format!("{}/{}", people.address(store), encoded(&member(row, "userId"))))
}

/// Whether an arranged list shows the name of the row that this field names.
pub fn shows_name(resource: &str, wire: &str) -> bool {
    let is_target = wire.starts_with("applyTo");
    match resource {
        "RoleAssignment" => wire == "principalId" || is_target,
        "CertStore" => is_target,
        "IdentityReplacement" => wire == "platformUserId",
        "DirectoryRefusal" => wire == "idpInstanceId",
        "ClientAppRefusal" => wire == "clientAppId",
        name if name.starts_with("SignIn") => true,
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

/// What deleting one is called: the keys of the texts of the act, of what it means where that is special, and of the note.
pub struct Deleting {
    /// The act.
    pub act: &'static str,
    /// What it means, of what ends and of which nothing is lost.
    pub text: Option<&'static str>,
    /// What was done.
    pub note: &'static str,
}

/// What deleting one of a resource is called.
pub fn deleting(resource: &str) -> Deleting {
    let (act, text, note) = match resource {
        "SignInSession" => ("end", Some("end_session_text"), "ended"),
        "SignInGrant" => ("end", Some("end_grant_text"), "ended"),
        "SignInFactor" => ("remove", Some("remove_factor_text"), "deleted"),
        "SignInConsent" => ("withdraw", Some("withdraw_text"), "deleted"),
        _ => ("delete", None, "deleted"),
    };
    Deleting { act, text, note }
}

/// Whether an operation cannot be taken back by anybody: its page asks for the name.
pub fn is_for_good(operation: &str) -> bool {
    operation == "EraseUser"
}

/// Whether an act on one is taken back by doing it again with what was there before.
pub fn is_taken_back(operation: &str) -> bool {
    operation == "SetUserState"
}

/// The member that the answer to a creation, or to an act on one, tells this once.
pub fn told_once(resource: &Resource) -> Option<&'static str> {
    match resource.name {
        "ClientAppSecret" => Some("secret"),
        "TemporaryAccessPass" => Some("value"),
        _ => resource.shape.fields.iter().find(|field| is_made_and_told(field)).map(Field::wire),
    }
}

/// The option in which an act on one leaves a secret that it made.
pub fn leaves_secret(operation: &str) -> Option<&'static str> {
    (operation == "CreateIdpInstanceScimToken").then_some("ScimToken")
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
    matches!(operation, "StartIdpInstanceTrial" | "CompleteIdpInstanceTrial" | "PreviewTokens")
}

/// Whether an operation is for who signs in, and for nobody who administers.
pub fn is_for_sign_in(operation: &str) -> bool {
    matches!(operation, "RedeemTemporaryAccessPass" | "StartPasskeyAuthentication")
}
