//! Files that pages of customers show.

use crate::presentation::Presentation;

/// How files are presented.
pub static PRESENTATION: Presentation = Presentation { icon: "image", ..Presentation::STANDARD };
