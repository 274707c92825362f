//! Files that pages of customers show.

use crate::shell::presentation::Presentation;

/// How files are presented.
pub static PRESENTATION: Presentation = Presentation { icon: "image", ..Presentation::STANDARD };
