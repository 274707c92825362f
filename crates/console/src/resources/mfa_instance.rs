//! Second factors.

use crate::shell::presentation::{OwnerOf, Presentation, Settings};

/// Presentation of second factors.
pub static PRESENTATION: Presentation = Presentation {
    icon: "shield-check",
    settings: Some(Settings {
        field: "applyToMfaInstanceId",
        owner: OwnerOf::Type("idpTypeId"),
        replaced: None,
    }),
    ..Presentation::STANDARD
};
