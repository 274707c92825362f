//! What is stored of the options of one: a value, and which of them are wrong.

use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use super::{MOST, field_of, options};
use crate::shell::{directory::Resource, fields::plain, visit::Visit};

/// What one option of a row is set to, where it is.
///
/// # Errors
/// The operation's own.
pub async fn value_of(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    name: &str,
) -> Result<Option<String>, Problem> {
    let field = field_of(resource).ok_or_else(|| Problem::not_found("page of settings here"))?;
    let op = visit.need(options().and_then(|options| options.list))?;
    let mut input = Input::of(op, Vec::new());
    input.query.push(("filter".to_owned(), format!("{field} eq {} and name eq {}", json!(key), json!(name))));
    let rows = visit.perform(input).await?.json();
    Ok(rows.pointer("/0/value").and_then(Value::as_str).map(str::to_owned))
}

/// The names of the options of an identity provider that are missing, or cannot be read, for who may see them.
///
/// # Errors
/// The operation's own.
pub async fn wrong(visit: &Visit<'_>, key: &str) -> Result<Vec<String>, Problem> {
    let Some(op) = visit.may(options().and_then(|options| options.list)) else { return Ok(Vec::new()) };
    let mut input = Input::of(op, Vec::new());
    let filter = format!("applyToIdpInstanceId eq {} and hasConfigurationError eq true", json!(key));
    input.query = vec![("filter".to_owned(), filter), ("count".to_owned(), MOST.to_owned())];
    let rows = visit.perform(input).await?.rows();
    Ok(rows.iter().map(|row| plain(row.get("name").unwrap_or(&Value::Null))).collect())
}
