//! Subscriptions.

use crate::shell::presentation::Presentation;

/// Presentation of subscriptions.
pub static PRESENTATION: Presentation = Presentation { icon: "package", ..Presentation::STANDARD };
