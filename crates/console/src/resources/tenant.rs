//! Tenants: sign-in methods and branding.

mod wizard;

use chancery_resource::settings::Owner;

use super::custom_view::editor;
use crate::shell::{
    boxed::boxed,
    presentation::{ANY, OwnerOf, Page, Presentation, Settings},
};

/// Presentation of tenants.
pub static PRESENTATION: Presentation = Presentation {
    icon: "door-open",
    settings: Some(Settings { field: "applyToTenantId", owner: OwnerOf::All(Owner::Tenant), replaced: None }),
    pages: &[
        Page::at(&["new"])
            .get(|visit, resource, _| boxed(move || wizard::show(visit, resource)))
            .post(|visit, resource, _| boxed(move || wizard::run(visit, resource))),
        Page::at(&[ANY, "brand"])
            .get(|visit, _, [key, _]| boxed(move || editor::of_tenant(visit, key)))
            .post(|visit, _, [key, _]| boxed(move || editor::of_tenant(visit, key))),
    ],
    ..Presentation::STANDARD
};
