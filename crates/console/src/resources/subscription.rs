//! Subscriptions.

use crate::shell::presentation::Presentation;

/// How subscriptions are presented.
pub static PRESENTATION: Presentation = Presentation { icon: "package", ..Presentation::STANDARD };
