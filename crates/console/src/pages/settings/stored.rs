//! The stored value of an option.

use chancery_resource::{
    Problem,
    settings::{ProviderOption, Setting},
};
use chancery_web::Input;
use serde_json::{Value, json};

use super::{field_of, options};
use crate::shell::{directory::Resource, visit::Visit};

/// The stored value of one option of a row, if there is one.
pub async fn value_of<T>(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    setting: Setting<ProviderOption, T>,
) -> Result<Option<String>, Problem> {
    let field = field_of(resource).ok_or_else(|| Problem::not_found("page of settings here"))?;
    let op = visit.require(options().and_then(|options| options.list))?;
    let mut input = Input::of(op, Vec::new());
    input.query.push((
        "filter".to_owned(),
        format!("{field} eq {} and name eq {}", json!(key), json!(setting.name())),
    ));
    let rows = visit.perform(input).await?.json();
    Ok(rows.pointer("/0/value").and_then(Value::as_str).map(str::to_owned))
}
