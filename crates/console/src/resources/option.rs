//! Options: the settings of identity providers, second factors and tenants, one by one.

use crate::{
    pages::{all_settings, settings},
    shell::{boxed::boxed, presentation::Presentation},
};

/// Presentation of options. The navigation leads to them by owner.
pub static PRESENTATION: Presentation = Presentation {
    icon: "sliders-horizontal",
    navigation_target: Some((all_settings::PATH, "settings")),
    cards: |visit, item| {
        let cards = settings::card_of(visit, item.row).into_iter().collect();
        boxed(move || std::future::ready(Ok(cards)))
    },
    ..Presentation::STANDARD
};
