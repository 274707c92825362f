//! Options: the settings of identity providers, second factors and tenants, one by one.

use crate::{
    pages::{all_settings, settings},
    shell::{boxed::boxed, presentation::Presentation},
};

/// How options are presented. They are looked for by whose they are.
pub static PRESENTATION: Presentation = Presentation {
    icon: "sliders-horizontal",
    place: Some((all_settings::HERE, "settings")),
    cards: |visit, item| {
        let cards = settings::card_of(visit, item.row).into_iter().collect();
        boxed(move || std::future::ready(Ok(cards)))
    },
    ..Presentation::STANDARD
};
