//! Platform users: users as applications see them.

use chancery_userstore::user::USER;
use serde_json::Value;

use super::identity_replacement::replacement;
use crate::{
    pages::{
        cells::{full_name, member, person},
        set_by_other,
    },
    shell::{
        boxed::boxed,
        directory::operation_name,
        fields::Cell,
        presentation::{Acts, CellContext, Presentation, Rights},
    },
};

/// Presentation of platform users.
pub static PRESENTATION: Presentation = Presentation {
    icon: "user-round",
    columns: &[("col_name", person), ("col_email", address)],
    title: |row| Some(full_name(row)),
    sub: |row| Some(member(row, "emailAddress")),
    sorted: &[("col_name", "lastName"), ("col_email", "emailAddress")],
    searched: &["emailAddress", "lastName", "firstName"],
    acts: |visit, item| {
        let last = replacement::request(visit, item.key).into_iter().collect();
        Acts { last, ..Acts::default() }
    },
    cards_after: |visit, item| {
        boxed(move || set_by_other::cards(visit, Some((set_by_other::PERSON, item.key))))
    },
    rights: Some(Rights {
        operation: operation_name!("GetEffectivePermissionsOfPlatformUser"),
        are_given: true,
        in_store: Some((&USER, "memberOfGroups")),
    }),
    ..Presentation::STANDARD
};

fn address(row: &Value, _: CellContext<'_>) -> Cell {
    let address = member(row, "emailAddress");
    if address.is_empty() { Cell::none() } else { Cell::of("text", address) }
}
