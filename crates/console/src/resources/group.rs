//! Groups: members and nested groups.

mod members;
mod tree;

use crate::{
    pages::set_by_other,
    shell::{
        boxed::boxed,
        presentation::{ANY, Acts, Page, Presentation},
    },
};

/// Presentation of groups.
pub static PRESENTATION: Presentation = Presentation {
    icon: "users-round",
    sorted: &[("name", "name")],
    acts: |visit, item| {
        let first = tree::acts(visit, item.key, item.here, item.protecting_role);
        Acts { first, ..Acts::default() }
    },
    cards_after: |visit, item| boxed(move || set_by_other::of_group_of_store(visit, item.key)),
    cards_of_links: |visit, item| boxed(move || set_by_other::of_group_of_store(visit, item.key)),
    pages: &[
        Page::at(&[ANY, "tree"])
            .get(|visit, resource, [key, _]| boxed(move || tree::show(visit, resource, key))),
        Page::at(&[ANY, "members"])
            .get(|visit, resource, [key, _]| boxed(move || members::show_form(visit, resource, key)))
            .post(|visit, resource, [key, _]| boxed(move || members::check(visit, resource, key))),
    ],
    ..Presentation::STANDARD
};
