//! Rows as choices of a form: as options, or as switches.

use chancery_resource::{Problem, Shape};
use chancery_web::Input;

use crate::shell::{
    directory::{self, key_of, title_of},
    visit::Visit,
};

/// Maximum number of choices.
const MAX_CHOICES: &str = "20";

/// The rows of a resource that the user may list, as keys and display names.
pub async fn rows(visit: &Visit<'_>, shape: &Shape) -> Result<Vec<(String, String)>, Problem> {
    let Some(resource) = directory::of_shape(shape) else { return Ok(Vec::new()) };
    let Some(op) = visit.may(resource.list) else { return Ok(Vec::new()) };
    let mut input = Input::of(op, Vec::new());
    input.query = vec![("count".to_owned(), MAX_CHOICES.to_owned())];
    let rows = visit.perform(input).await?.json();
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(rows.iter().map(|row| (key_of(resource, row), title_of(resource, row))).collect())
}

/// Whether a switch is on: its checkbox is preceded by a hidden `false`.
pub fn is_chosen(visit: &Visit<'_>, wire: &str) -> bool {
    visit.form.iter().rev().find(|(name, _)| name == wire).is_some_and(|(_, value)| value == "true")
}
