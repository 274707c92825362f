//! Temporary access passes.

use crate::shell::{directory::operation_name, presentation::Presentation};

/// How access passes are presented: what was made is shown once.
pub static PRESENTATION: Presentation = Presentation {
    shown_once: Some("value"),
    apart: &[operation_name!("RedeemTemporaryAccessPass")],
    ..Presentation::STANDARD
};
