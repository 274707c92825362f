//! Which elements of an attribute a filter in a path chooses.

use std::borrow::Cow;

use chancery_resource::{Expression, Literal, Operator};
use serde_json::Value;

use crate::{Attribute, Home, Kind, Refusal, Resource, ScimType, read::truth_in};

/// Whether the element of this attribute matches.
///
/// # Errors
/// A filter about parts that the attribute does not have, or of parts of parts.
pub fn matches(
    filter: &Expression,
    attribute: &Attribute,
    home: Home,
    element: &Value,
) -> Result<bool, Refusal> {
    let test = |inner: &Expression| matches(inner, attribute, home, element);
    Ok(match filter {
        // both sides are judged: what is wrong is told whatever the element is
        Expression::And(left, right) => test(left)? & test(right)?,
        Expression::Or(left, right) => test(left)? | test(right)?,
        Expression::Not(inner) => !test(inner)?,
        Expression::Compare { attribute: name, part: None, operator, value, .. } => {
            let part = attribute.part(home, name).ok_or_else(|| unknown(attribute, name))?;
            compare(part, *operator, element.get(part.name), &meant(part, value))
        }
        Expression::Compare { attribute: name, .. } | Expression::Some { attribute: name, .. } => {
            return Err(unknown(attribute, name));
        }
    })
}

fn unknown(attribute: &Attribute, name: &str) -> Refusal {
    let name: String = name.chars().take(100).collect();
    Refusal::wrong(ScimType::InvalidFilter, format!("{} has no part {name}", attribute.name))
}

/// What a part is compared with: text may say a truth value.
pub fn meant<'a>(part: &Attribute, value: &'a Literal) -> Cow<'a, Literal> {
    match value {
        Literal::Text(text) if matches!(part.kind, Kind::Bool) => {
            truth_in(text).map_or(Cow::Borrowed(value), |truth| Cow::Owned(Literal::Bool(truth)))
        }
        _ => Cow::Borrowed(value),
    }
}

/// Whether the value of a part, if there is one, compares so.
pub fn compare(part: &Attribute, operator: Operator, found: Option<&Value>, wanted: &Literal) -> bool {
    match operator {
        Operator::Present => return found.is_some(),
        Operator::NotEqual => return !compare(part, Operator::Equal, found, wanted),
        _ => {}
    }
    match (found, wanted) {
        (Some(Value::Bool(found)), Literal::Bool(wanted)) => operator == Operator::Equal && found == wanted,
        // an element without the mark is not the primary one
        (None, Literal::Null | Literal::Bool(false)) => operator == Operator::Equal,
        (Some(Value::String(found)), Literal::Text(wanted)) => {
            let folded = |text: &str| if part.exact { text.to_owned() } else { text.to_lowercase() };
            let (found, wanted) = (folded(found), folded(wanted));
            match operator {
                Operator::Equal => found == wanted,
                Operator::Contains => found.contains(&wanted),
                Operator::StartsWith => found.starts_with(&wanted),
                Operator::EndsWith => found.ends_with(&wanted),
                Operator::Greater => found > wanted,
                Operator::GreaterOrEqual => found >= wanted,
                Operator::Less => found < wanted,
                Operator::LessOrEqual => found <= wanted,
                Operator::NotEqual | Operator::Present => false,
            }
        }
        _ => false,
    }
}

/// The element that a filter describes, where it is one of a type, or the primary one, and nothing else.
pub fn described(filter: &Expression, attribute: &Attribute, home: Home) -> Option<Resource> {
    match filter {
        Expression::And(left, right) => {
            let mut element = described(left, attribute, home)?;
            element.extend(described(right, attribute, home)?);
            Some(element)
        }
        Expression::Compare { attribute: name, part: None, operator: Operator::Equal, value, .. } => {
            let part = attribute.part(home, name)?;
            let value = match (part.name, &*meant(part, value)) {
                ("type", Literal::Text(text)) => text.as_str().into(),
                ("primary", Literal::Bool(true)) => true.into(),
                _ => return None,
            };
            Some(Resource::from_iter([(part.name.to_owned(), value)]))
        }
        _ => None,
    }
}
