//! Temporary access passes.

use crate::shell::{directory::operation_name, presentation::Presentation};

/// Presentation of access passes: a new one is shown once.
pub static PRESENTATION: Presentation = Presentation {
    shown_once: Some("value"),
    excluded: &[operation_name!("RedeemTemporaryAccessPass")],
    ..Presentation::STANDARD
};
