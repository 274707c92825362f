//! Client apps: registration, security profile, rotation of credentials, and preview of tokens.

mod integration;
mod register;
mod rotation;
mod security_profile;
mod tokens;

use chancery_resource::Problem;

use crate::{
    pages::new,
    shell::{
        boxed::boxed,
        components::Card,
        directory::{Resource, operation_name},
        presentation::{ANY, Acts, Item, Page, PageResult, Presentation, Rights},
        visit::Visit,
    },
};

/// Presentation of client apps.
pub static PRESENTATION: Presentation = Presentation {
    icon: "app-window",
    letter: Some('a'),
    sorted: &[("name", "name")],
    excluded: &[operation_name!("PreviewTokens")],
    acts: |visit, item| {
        let after_settings = tokens::act(visit, item.here).into_iter().collect();
        Acts { after_settings, ..Acts::default() }
    },
    cards: |visit, item| boxed(move || cards(visit, item)),
    rights: Some(Rights {
        operation: operation_name!("GetEffectivePermissionsOfClientApp"),
        are_given: false,
        in_store: None,
    }),
    pages: &[
        Page::at(&["new"])
            .get(|visit, resource, _| boxed(move || show_new(visit, resource)))
            .post(|visit, resource, _| boxed(move || create(visit, resource))),
        Page::at(&[ANY, "rotation"])
            .get(|visit, resource, [key, _]| boxed(move || rotation::show(visit, resource, key))),
        Page::at(&[ANY, "rotation", ANY])
            .get(|visit, resource, [key, id]| {
                boxed(move || rotation::show_end_form(visit, resource, key, id))
            })
            .post(|visit, resource, [key, id]| boxed(move || rotation::end(visit, resource, key, id))),
        Page::at(&[ANY, "safety"])
            .get(|visit, resource, [key, _]| boxed(move || security_profile::show(visit, resource, key)))
            .post(|visit, resource, [key, _]| boxed(move || security_profile::set(visit, resource, key))),
        Page::at(&[ANY, "tokens"])
            .get(|visit, resource, [key, _]| boxed(move || tokens::show(visit, resource, key)))
            .post(|visit, resource, [key, _]| boxed(move || tokens::run(visit, resource, key))),
    ],
    ..Presentation::STANDARD
};

async fn cards(visit: &Visit<'_>, item: Item<'_>) -> Result<Vec<Card>, Problem> {
    let Item { resource, key, row, .. } = item;
    let mut cards = vec![security_profile::card(visit, resource, key).await?];
    cards.extend(boxed(|| integration::refusals(visit, key)).await?);
    cards.extend(boxed(|| rotation::card(visit, resource, key, row)).await?);
    cards.push(integration::addresses(visit));
    Ok(cards)
}

/// The registration form of a kind of client app, or the standard form if it is requested.
async fn show_new(visit: &Visit<'_>, resource: &'static Resource) -> PageResult {
    match boxed(|| register::show(visit, resource)).await? {
        Some(page) => Ok(page),
        None => boxed(|| new::show(visit, resource)).await,
    }
}

/// Handles the registration form, or the standard form.
async fn create(visit: &Visit<'_>, resource: &'static Resource) -> PageResult {
    match boxed(|| register::run(visit, resource)).await? {
        Some(page) => Ok(page),
        None => boxed(|| new::create(visit, resource)).await,
    }
}
