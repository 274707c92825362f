//! Views that customers see, and their editor.

pub mod editor;
mod unused;

use crate::shell::{
    boxed::boxed,
    directory::operation_name,
    presentation::{FormAct, Page, Presentation},
};

/// Presentation of views.
pub static PRESENTATION: Presentation = Presentation {
    icon: "panels-top-left",
    cards: |visit, item| boxed(move || unused::cards(visit, item)),
    form_act: Some(FormAct {
        operation: operation_name!("PreviewView"),
        label: "editor",
        page: "/console/CustomView/try",
    }),
    pages: &[
        Page::at(&["try"])
            .get(|visit, _, _| boxed(move || editor::show(visit)))
            .post(|visit, _, _| boxed(move || editor::show(visit))),
        Page::at(&["preview"])
            .get(|visit, _, _| boxed(move || editor::frame(visit)))
            .post(|visit, _, _| boxed(move || editor::frame(visit))),
    ],
    ..Presentation::STANDARD
};
