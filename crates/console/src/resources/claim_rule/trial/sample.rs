//! The claims of an evaluation: an example, those of a person, or pasted ones.

use chancery_record::Field;
use chancery_resource::Problem;
use chancery_signin::person_claims;
use chancery_userstore::user::USER;
use serde_json::{Value, json};

use crate::{
    pages::item::read as read_row,
    shell::{
        directory::{self, Resource},
        fields::plain,
        visit::{Visit, not_found},
    },
};

/// Example claims.
pub const EXAMPLE: &str = "{\n  \"email\": \"ada@example.com\",\n  \"department\": \"4711\",\n  \"role\": [\"editor\", \"admin\"]\n}";
/// Maximum number of claims.
const MAX_CLAIMS: usize = 200;

/// Parses claims: an array as the API takes it, or an object as in a token. The error is the key of a text.
pub fn read(text: &str) -> Result<Vec<Value>, &'static str> {
    let claims = match serde_json::from_str(text) {
        Ok(Value::Array(claims)) => claims,
        Ok(Value::Object(members)) => {
            members.into_iter().flat_map(|(name, value)| of_member(&name, value)).collect()
        }
        _ => return Err("sample_is_no_json"),
    };
    if claims.len() > MAX_CLAIMS { Err("sample_is_too_long") } else { Ok(claims) }
}

/// The claims of a token's member: one for each element of an array.
fn of_member(name: &str, value: Value) -> Vec<Value> {
    let values = if let Value::Array(values) = value { values } else { vec![value] };
    values.iter().map(|value| json!({ "type": name, "value": plain(value) })).collect()
}

fn users(visit: &Visit<'_>) -> Option<&'static Resource> {
    directory::of_shape(&USER).filter(|users| visit.may(users.read).is_some())
}

/// Whether the user may take the claims of a person.
pub fn has_people(visit: &Visit<'_>) -> bool {
    users(visit).is_some()
}

/// The claims of a person's attributes.
///
/// # Errors
/// The user may not read the person.
pub async fn of_person(visit: &Visit<'_>, id: &str) -> Result<String, Problem> {
    let users = directory::of_shape(&USER).ok_or_else(not_found)?;
    visit.require(users.read)?;
    let user = &read_row(visit, users, id).await?;
    let mut claims = serde_json::Map::new();
    for (claim, column) in person_claims() {
        let field = USER.fields.iter().find(|field| field.column == column);
        let value = field.map(Field::wire).and_then(|wire| user.get(wire)).filter(|value| !value.is_null());
        claims.extend(value.map(|value| (claim.to_owned(), json!(plain(value)))));
    }
    let groups = user["memberOfGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !groups.is_empty() {
        let groups: Vec<String> = groups.iter().map(|group| plain(&group["name"])).collect();
        claims.insert("groups".to_owned(), json!(groups));
    }
    Ok(serde_json::to_string_pretty(&claims).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{EXAMPLE, MAX_CLAIMS, read};

    #[test]
    fn a_sample_is_read_in_both_forms() {
        let token = read(r#"{"role": ["a", "b"], "age": 7, "address": {"x": 1}}"#).unwrap();
        assert_eq!(token.len(), 4);
        assert!(token.contains(&json!({ "type": "role", "value": "b" })), "{token:?}");
        assert!(token.contains(&json!({ "type": "address", "value": "{\"x\":1}" })), "{token:?}");
        let claims = read(r#"[{"type": "role", "value": "a", "source": "IdentityProvider"}]"#).unwrap();
        assert_eq!(claims, [json!({ "type": "role", "value": "a", "source": "IdentityProvider" })]);
        assert_eq!(read(EXAMPLE).unwrap().len(), 4);
        assert_eq!(read("role=a"), Err("sample_is_no_json"));
        assert_eq!(
            read(&json!({ "role": vec!["a"; MAX_CLAIMS + 1] }).to_string()),
            Err("sample_is_too_long")
        );
    }
}
