//! Users: their state and their sign-in.

pub mod import;
mod passkeys;
mod sign_in;

use chancery_resource::{Op, Problem};
use chancery_userstore::passkey::ACCESS_PASS;
use serde_json::{Value, json};

use super::recovery_transaction::recovery;
use crate::{
    pages::{
        cells::{full_name, member, person},
        set_by_other, steps,
    },
    shell::{
        boxed::boxed,
        components::Card,
        directory::operation_name,
        fields::{Cell, Tag},
        presentation::{CellContext, CreationLink, Item, Page, Presentation, View},
        settings_access::store_settings,
        visit::Visit,
    },
};

/// Presentation of users.
pub static PRESENTATION: Presentation = Presentation {
    icon: "user-round",
    letter: Some('u'),
    columns: &[("col_name", person), ("col_email", email), ("col_groups", groups), ("col_status", status)],
    shows_sets: true,
    title: |row| Some(full_name(row)),
    badge: Some(status),
    sub: |row| {
        let parts = [member(row, "loginName"), member(row, "emailAddress")];
        Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · "))
    },
    has_picture: true,
    sections: &[
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
    views: &[
        View { name: "locked", label: "view_locked", filter: "isUserLocked eq true" },
        // separate views, because no single index supports both in the order of a list
        View { name: "locked_for_now", label: "view_locked_for_now", filter: "lockedUntil gt \"{now}\"" },
        View { name: "inactive", label: "view_inactive", filter: "isUserActive eq false" },
    ],
    sorted: &[("col_name", "lastName"), ("col_email", "emailAddress")],
    searched: &["loginName", "emailAddress", "lastName", "firstName"],
    is_imported: import::is_offered,
    first_acts: &[
        operation_name!("SendPasswordResetEmail"),
        operation_name!("ResetAccessFailedCount"),
        operation_name!("SetUserState"),
        operation_name!("SetInitialPassword"),
        operation_name!("ResetPassword"),
    ],
    irreversible: &[operation_name!("EraseUser")],
    restores: Some(operation_name!("RestoreUserDeletionQuarantine")),
    undoable: &[operation_name!("SetUserState")],
    missing_prerequisite,
    creations: &[CreationLink { label: "issue_pass", shape: &ACCESS_PASS, field: "userId" }],
    cards_of_links: |visit, item| boxed(move || set_by_other::of_user_of_store(visit, item.key)),
    cards: |visit, item| boxed(move || cards(visit, item)),
    cards_deleted: |visit, item| boxed(move || cards_deleted(visit, item)),
    pages: &[Page::at(&["import"])
        .get(|visit, resource, _| boxed(move || std::future::ready(import::show(visit, resource))))
        .post(|visit, resource, _| boxed(move || import::run(visit, resource)))],
    ..Presentation::STANDARD
};

async fn cards(visit: &Visit<'_>, item: Item<'_>) -> Result<Vec<Card>, Problem> {
    let Item { resource, key, here, protecting_role, .. } = item;
    let sign_in = sign_in::sign_in(visit, resource, key, here, protecting_role).await?;
    let passkeys = passkeys::card(visit, key, here).await?;
    let recovery = recovery::card(visit, key, protecting_role).await?;
    let in_applications = sign_in::in_applications(visit, key).await?;
    Ok(sign_in.into_iter().chain(passkeys).chain(recovery).chain(in_applications).collect())
}

async fn cards_deleted(visit: &Visit<'_>, item: Item<'_>) -> Result<Vec<Card>, Problem> {
    let card = sign_in::sign_in(visit, item.resource, item.key, item.here, item.protecting_role).await?;
    Ok(card.into_iter().collect())
}

/// The missing prerequisite of a password reset mail: an address, or a mail server.
fn missing_prerequisite(
    visit: &Visit<'_>,
    op: &Op,
    row: &Value,
    here: &str,
) -> Option<(&'static str, String)> {
    if !operation_name!("SendPasswordResetEmail").is_of(op) {
        return None;
    }
    if row["emailAddress"].as_str().is_none_or(str::is_empty) {
        return Some(("lacks_address", format!("{here}#f-emailAddress")));
    }
    if steps::sends_mail(visit) {
        return None;
    }
    Some(("lacks_mail", format!("{}#f-EMailSenderAddress", store_settings(visit)?)))
}

fn email(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
    let address = member(row, "emailAddress");
    if address.is_empty() {
        return Cell::none();
    }
    if row["emailAddressConfirmed"] == json!(true) {
        return Cell::of("text", address);
    }
    Cell::of("text", address).with_sub(words.page("not_confirmed")).toned("warn")
}

/// Maximum number of groups in a cell.
const MAX_TAGS: usize = 2;

fn groups(row: &Value, _: CellContext<'_>) -> Cell {
    let all = row["memberOfGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        return Cell::none();
    }
    let items =
        all.iter().take(MAX_TAGS).map(|group| Tag { text: member(group, "name"), href: None }).collect();
    Cell { items, more: all.len().saturating_sub(MAX_TAGS), ..Cell::of("tags", "") }
}

fn status(row: &Value, CellContext { words, .. }: CellContext<'_>) -> Cell {
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
