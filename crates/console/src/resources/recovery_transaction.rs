//! Recoveries of who lost every authenticator.

pub mod recovery;

use crate::shell::presentation::Presentation;

/// How recoveries are presented: a page of the user store takes the place of their list.
pub static PRESENTATION: Presentation =
    Presentation { list_page: Some("recovery"), ..Presentation::STANDARD };
