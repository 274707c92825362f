//! Files that customers' pages refer to.

use crate::shell::presentation::Presentation;

/// Presentation of files.
pub static PRESENTATION: Presentation = Presentation { icon: "image", ..Presentation::STANDARD };
