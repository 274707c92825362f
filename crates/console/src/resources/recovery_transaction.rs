//! Recovery of users who have lost all authenticators.

pub mod recovery;

use crate::shell::presentation::Presentation;

/// Presentation of recoveries: a page of the user store replaces their list.
pub static PRESENTATION: Presentation =
    Presentation { list_page: Some("recovery"), ..Presentation::STANDARD };
