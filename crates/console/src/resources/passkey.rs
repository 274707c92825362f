//! Passkeys.

use crate::shell::{directory::operation_name, presentation::Presentation};

/// How passkeys are presented.
pub static PRESENTATION: Presentation =
    Presentation { apart: &[operation_name!("StartPasskeyAuthentication")], ..Presentation::STANDARD };
