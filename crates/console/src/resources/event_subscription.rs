//! Event subscriptions, and the results of their deliveries.

mod deliveries;

use crate::shell::{
    boxed::boxed,
    presentation::{ANY, Page, Presentation},
};

/// Presentation of event subscriptions, those of a user store and those of the configuration.
pub static PRESENTATION: Presentation = Presentation {
    icon: "globe",
    cards: |visit, item| {
        let card = deliveries::card(visit, item.resource, item.key, item.row);
        boxed(move || std::future::ready(Ok(vec![card])))
    },
    pages: &[Page::at(&[ANY, "deliveries"])
        .get(|visit, resource, [key, _]| boxed(move || deliveries::show(visit, resource, key)))
        .post(|visit, resource, [key, _]| boxed(move || deliveries::send_again(visit, resource, key)))],
    ..Presentation::STANDARD
};
