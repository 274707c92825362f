//! Platform groups: groups as applications see them.

use chancery_userstore::group::GROUP;

use crate::{
    pages::set_by_other,
    shell::{
        boxed::boxed,
        directory::operation_name,
        presentation::{Presentation, Rights},
    },
};

/// Presentation of platform groups.
pub static PRESENTATION: Presentation = Presentation {
    icon: "users-round",
    cards_after: |visit, item| {
        boxed(move || set_by_other::cards(visit, Some((set_by_other::GROUP, item.key))))
    },
    rights: Some(Rights {
        operation: operation_name!("GetEffectivePermissionsOfPlatformGroup"),
        are_given: true,
        in_store: Some((&GROUP, "parentGroups")),
    }),
    ..Presentation::STANDARD
};
