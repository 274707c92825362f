//! Client apps: how they are registered, how safe they are, when their credentials end, and what their tokens say.

mod connecting;
mod register;
mod rotation;
mod safety;
mod tokens;

use chancery_resource::Problem;

use crate::{
    pages::new,
    shell::{
        boxed::boxed,
        directory::{Resource, operation_name},
        parts::Card,
        presentation::{ANY, Acts, Answered, Item, Page, Presentation, Rights},
        visit::Visit,
    },
};

/// How client apps are presented.
pub static PRESENTATION: Presentation = Presentation {
    icon: "app-window",
    letter: Some('a'),
    sorted: &[("name", "name")],
    apart: &[operation_name!("PreviewTokens")],
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
            .get(|visit, resource, _| boxed(move || ask(visit, resource)))
            .post(|visit, resource, _| boxed(move || make(visit, resource))),
        Page::at(&[ANY, "rotation"])
            .get(|visit, resource, [key, _]| boxed(move || rotation::show(visit, resource, key))),
        Page::at(&[ANY, "rotation", ANY])
            .get(|visit, resource, keys| boxed(move || rotation::ask(visit, resource, keys.into())))
            .post(|visit, resource, keys| boxed(move || rotation::end(visit, resource, keys.into()))),
        Page::at(&[ANY, "safety"])
            .get(|visit, resource, [key, _]| boxed(move || safety::show(visit, resource, key)))
            .post(|visit, resource, [key, _]| boxed(move || safety::set(visit, resource, key))),
        Page::at(&[ANY, "tokens"])
            .get(|visit, resource, [key, _]| boxed(move || tokens::show(visit, resource, key)))
            .post(|visit, resource, [key, _]| boxed(move || tokens::run(visit, resource, key))),
    ],
    ..Presentation::STANDARD
};

async fn cards(visit: &Visit<'_>, item: Item<'_>) -> Result<Vec<Card>, Problem> {
    let Item { resource, key, row, .. } = item;
    let mut cards = vec![safety::card(visit, resource, key).await?];
    cards.extend(boxed(|| connecting::refusals(visit, key)).await?);
    cards.extend(boxed(|| rotation::card(visit, resource, (key, row))).await?);
    cards.push(connecting::addresses(visit));
    Ok(cards)
}

/// The questions of a kind of client app, or the plain form where that is asked for.
async fn ask(visit: &Visit<'_>, resource: &'static Resource) -> Answered {
    match boxed(|| register::show(visit, resource)).await? {
        Some(page) => Ok(page),
        None => boxed(|| new::show(visit, resource)).await,
    }
}

/// Makes what the questions ask for, or what the plain form does.
async fn make(visit: &Visit<'_>, resource: &'static Resource) -> Answered {
    match boxed(|| register::run(visit, resource)).await? {
        Some(page) => Ok(page),
        None => boxed(|| new::create(visit, resource)).await,
    }
}
