//! Secrets of client apps.

use crate::shell::presentation::Presentation;

/// Presentation of secrets: a new one is shown once.
pub static PRESENTATION: Presentation = Presentation { shown_once: Some("secret"), ..Presentation::STANDARD };
