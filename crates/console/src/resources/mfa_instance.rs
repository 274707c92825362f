//! Second factors.

use crate::shell::presentation::{OwnerOf, Presentation, Settings};

/// How second factors are presented.
pub static PRESENTATION: Presentation = Presentation {
    icon: "shield-check",
    settings: Some(Settings { field: "applyToMfaInstanceId", owner: OwnerOf::Type("idpTypeId") }),
    ..Presentation::STANDARD
};
