//! Selection of elements by a filter in a path.

use std::borrow::Cow;

use chancery_resource::{Expression, Literal, Operator};
use serde_json::Value;

use crate::{Attribute, AttributeType, Resource, ScimError, ScimType, Target, read::truth_in};

/// Whether the element matches.
///
/// # Errors
/// A filter on an unknown sub-attribute, or on a sub-attribute of a sub-attribute.
pub fn matches(
    filter: &Expression,
    attribute: &Attribute,
    target: Target,
    element: &Value,
) -> Result<bool, ScimError> {
    let test = |inner: &Expression| matches(inner, attribute, target, element);
    Ok(match filter {
        // both sides are evaluated, so that errors are reported whatever the element is
        Expression::And(left, right) => test(left)? & test(right)?,
        Expression::Or(left, right) => test(left)? | test(right)?,
        Expression::Not(inner) => !test(inner)?,
        Expression::Compare { attribute: name, part: None, operator, value, .. } => {
            let part = attribute.part(target, name).ok_or_else(|| unknown(attribute, name))?;
            compare(part, *operator, element.get(part.name), &coerced(part, value))
        }
        Expression::Compare { attribute: name, .. } | Expression::Some { attribute: name, .. } => {
            return Err(unknown(attribute, name));
        }
    })
}

fn unknown(attribute: &Attribute, name: &str) -> ScimError {
    let name: String = name.chars().take(100).collect();
    ScimError::new(ScimType::InvalidFilter, format!("{} has no part {name}", attribute.name))
}

/// The value to compare with: text is accepted as a truth value.
pub fn coerced<'a>(part: &Attribute, value: &'a Literal) -> Cow<'a, Literal> {
    match value {
        Literal::Text(text) if matches!(part.kind, AttributeType::Bool) => {
            truth_in(text).map_or(Cow::Borrowed(value), |truth| Cow::Owned(Literal::Bool(truth)))
        }
        _ => Cow::Borrowed(value),
    }
}

/// Evaluates a comparison on the value of a sub-attribute.
pub fn compare(part: &Attribute, operator: Operator, actual: Option<&Value>, expected: &Literal) -> bool {
    match operator {
        Operator::Present => return actual.is_some(),
        Operator::NotEqual => return !compare(part, Operator::Equal, actual, expected),
        _ => {}
    }
    match (actual, expected) {
        (Some(Value::Bool(actual)), Literal::Bool(expected)) => {
            operator == Operator::Equal && actual == expected
        }
        // an element without `primary` is not the primary one
        (None, Literal::Null | Literal::Bool(false)) => operator == Operator::Equal,
        (Some(Value::String(actual)), Literal::Text(expected)) => {
            let folded = |text: &str| if part.exact { text.to_owned() } else { text.to_lowercase() };
            let (actual, expected) = (folded(actual), folded(expected));
            match operator {
                Operator::Equal => actual == expected,
                Operator::Contains => actual.contains(&expected),
                Operator::StartsWith => actual.starts_with(&expected),
                Operator::EndsWith => actual.ends_with(&expected),
                Operator::Greater => actual > expected,
                Operator::GreaterOrEqual => actual >= expected,
                Operator::Less => actual < expected,
                Operator::LessOrEqual => actual <= expected,
                Operator::NotEqual | Operator::Present => false,
            }
        }
        _ => false,
    }
}

/// The element that a filter describes, if it sets the type, or `primary`, and nothing else.
pub fn element_described_by(filter: &Expression, attribute: &Attribute, target: Target) -> Option<Resource> {
    match filter {
        Expression::And(left, right) => {
            let mut element = element_described_by(left, attribute, target)?;
            element.extend(element_described_by(right, attribute, target)?);
            Some(element)
        }
        Expression::Compare { attribute: name, part: None, operator: Operator::Equal, value, .. } => {
            let part = attribute.part(target, name)?;
            let value = match (part.name, &*coerced(part, value)) {
                ("type", Literal::Text(text)) => text.as_str().into(),
                ("primary", Literal::Bool(true)) => true.into(),
                _ => return None,
            };
            Some(Resource::from_iter([(part.name.to_owned(), value)]))
        }
        _ => None,
    }
}
