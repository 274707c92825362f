//! Secrets of client apps.

use crate::shell::presentation::Presentation;

/// How secrets are presented: what was made is shown once.
pub static PRESENTATION: Presentation = Presentation { shown_once: Some("secret"), ..Presentation::STANDARD };
