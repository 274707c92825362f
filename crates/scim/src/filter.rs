//! Translates filters and sort orders from SCIM's names to the fields of a target.

#[cfg(test)]
mod tests;

use chancery_record::{parse_id, parse_timestamp};
use chancery_resource::{Expression, Literal, Operator, parse_filter};

use crate::{
    Attribute, AttributeType, Mapping, ResourceType, ScimError, ScimType, Target,
    name::{AttributePath, find},
    patch::element,
};

/// A translated filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// All resources match.
    Always,
    /// No resource matches.
    Never,
    /// The resources that match this filter.
    When(Expression),
}

/// Reads a filter in SCIM's names.
///
/// # Errors
/// Text that is no filter, or one on an attribute that the target cannot search.
pub fn condition_of(of: &'static ResourceType, target: Target, text: &str) -> Result<Condition, ScimError> {
    let filter =
        parse_filter(text).map_err(|problem| ScimError::new(ScimType::InvalidFilter, problem.detail))?;
    Translator { of, target }.translate(&filter)
}

/// The field that a list is sorted by.
///
/// # Errors
/// A name that cannot be sorted by.
pub fn sort_field(of: &'static ResourceType, target: Target, name: &str) -> Result<&'static str, ScimError> {
    let refused = || {
        let name: String = name.chars().take(100).collect();
        ScimError::new(ScimType::InvalidValue, format!("{} are not sorted by {name}", of.about))
    };
    let path = find(of, target, name).ok_or_else(refused)?;
    let is_value = path.part.is_none_or(|part| part.name == "value");
    match (path.attribute.name, path.attribute.mapping(target), path.leaf().mapping(target)) {
        ("emails", Mapping::Element { field, .. }, _) if is_value => Ok(field),
        (
            "id" | "userName" | "name" | "displayName" | "meta",
            _,
            Mapping::Field(field) | Mapping::ReadOnly(field),
        ) => Ok(field),
        _ => Err(refused()),
    }
}

struct Translator {
    of: &'static ResourceType,
    target: Target,
}

/// The source of the elements of an attribute.
enum Source {
    /// The single element stored in a field.
    Field(&'static str),
    /// The members of a relation.
    Set(&'static str),
}

/// A comparison, with the name of its attribute as the client wrote it.
#[derive(Clone, Copy)]
struct Comparison<'a> {
    name: &'a str,
    operator: Operator,
    value: &'a Literal,
    column: usize,
}

impl Comparison<'_> {
    /// Rejects a value that this type of attribute cannot be compared with, by the name that the client sent.
    fn check(&self, kind: AttributeType) -> Result<(), ScimError> {
        let is_equality = matches!(self.operator, Operator::Equal | Operator::NotEqual);
        let is_part = matches!(self.operator, Operator::Contains | Operator::StartsWith | Operator::EndsWith);
        let detail = match (kind, self.value) {
            _ if self.operator == Operator::Present => return Ok(()),
            (_, Literal::Null) if !is_equality => "compares with null by eq and ne",
            (_, Literal::Null) => return Ok(()),
            (AttributeType::Bool, Literal::Bool(_)) if is_equality => return Ok(()),
            (AttributeType::Bool, _) => "compares by eq and ne with true or false",
            (AttributeType::Time, Literal::Text(text))
                if parse_timestamp(text).is_some() && !is_equality && !is_part =>
            {
                return Ok(());
            }
            (AttributeType::Time, _) => "compares by gt, ge, lt and le with a date-time (RFC 3339)",
            (_, Literal::Text(text)) if text.is_empty() && is_part => {
                "is searched for a text that is not empty"
            }
            (_, Literal::Text(_)) => return Ok(()),
            _ => "compares with a string",
        };
        Err(self.refused(detail))
    }

    fn refused(&self, detail: &str) -> ScimError {
        let name: String = self.name.chars().take(100).collect();
        ScimError::new(ScimType::InvalidFilter, format!("Column {}: {name} {detail}.", self.column))
    }

    /// Comparison on an id field: text that is not a UUID matches no resource.
    fn of_id(&self, field: &str) -> Result<Condition, ScimError> {
        let is_id = !matches!(self.value, Literal::Text(text) if parse_id(text).is_none());
        match self.operator {
            Operator::Equal if !is_id => Ok(Condition::Never),
            Operator::NotEqual if !is_id => Ok(Condition::Always),
            Operator::Contains | Operator::StartsWith | Operator::EndsWith => {
                Err(self.refused("is an id, and not searched for a part"))
            }
            _ if !is_id => Err(self.refused("compares with a UUID")),
            _ => Ok(self.of(field, None)),
        }
    }

    fn of(&self, attribute: &str, part: Option<&str>) -> Condition {
        Condition::When(Expression::Compare {
            attribute: attribute.into(),
            part: part.map(str::to_owned),
            operator: self.operator,
            value: self.value.clone(),
            column: self.column,
        })
    }
}

impl Translator {
    fn translate(&self, filter: &Expression) -> Result<Condition, ScimError> {
        Ok(match filter {
            Expression::And(left, right) => both(self.translate(left)?, self.translate(right)?),
            Expression::Or(left, right) => either(self.translate(left)?, self.translate(right)?),
            Expression::Not(inner) => not(self.translate(inner)?),
            Expression::Compare { attribute, part, operator, value, column } => {
                let name =
                    part.as_ref().map_or_else(|| attribute.clone(), |part| format!("{attribute}.{part}"));
                let path = find(self.of, self.target, &name).ok_or_else(|| refused(&name, *column))?;
                let value = element::coerced(self.leaf(&path), value);
                let test = Comparison { name: &name, operator: *operator, value: &value, column: *column };
                test.check(self.leaf(&path).kind)?;
                self.translate_comparison(&path, &test)?
            }
            Expression::Some { attribute, inner, column } => {
                let path = find(self.of, self.target, attribute)
                    .filter(|path| path.part.is_none())
                    .ok_or_else(|| refused(attribute, *column))?;
                self.translate_complex(path.attribute, inner, *column)?
            }
        })
    }

    /// The attribute that is compared: the named part, else `value`, else the attribute itself.
    fn leaf(&self, path: &AttributePath) -> &'static Attribute {
        let value = || path.attribute.part(self.target, "value");
        path.part.or_else(value).unwrap_or(path.attribute)
    }

    fn translate_comparison(
        &self,
        path: &AttributePath,
        comparison: &Comparison<'_>,
    ) -> Result<Condition, ScimError> {
        let attribute = path.attribute;
        // null tests a multi-valued attribute for presence (RFC 7643, section 2.5)
        if attribute.many && matches!(comparison.value, Literal::Null) {
            let present = Comparison { operator: Operator::Present, ..*comparison };
            match comparison.operator {
                Operator::Equal => return Ok(not(self.translate_comparison(path, &present)?)),
                Operator::NotEqual => return self.translate_comparison(path, &present),
                _ => {}
            }
        }
        if !attribute.many {
            let leaf = self.leaf(path);
            return match leaf.mapping(self.target) {
                Mapping::ReadOnly("createdOn") => Err(refused(leaf.name, comparison.column)),
                Mapping::ReadOnly(field @ "id") | Mapping::Field(field @ "managerId") => {
                    comparison.of_id(field)
                }
                Mapping::Field(field) | Mapping::ReadOnly(field) => Ok(comparison.of(field, None)),
                Mapping::Entry(key) => {
                    in_entries(key, comparison).ok_or_else(|| refused(leaf.name, comparison.column))
                }
                _ => Err(refused(leaf.name, comparison.column)),
            };
        }
        let part = match path.part {
            Some(part) => part,
            None => attribute
                .part(self.target, "value")
                .ok_or_else(|| refused(attribute.name, comparison.column))?,
        };
        let sources = self.sources(attribute, comparison.column)?;
        let mut condition = Condition::Never;
        for (source, of_type) in sources {
            let one = match (&source, part.name) {
                (Source::Field(field), "value") => comparison.of(field, None),
                (Source::Set(set), "value") if comparison.operator == Operator::Present => {
                    comparison.of(set, None)
                }
                (Source::Set(_), "value") => within(&source, comparison.of_id("id")?, comparison.column),
                _ => within(&source, fixed(&source, part, of_type, comparison)?, comparison.column),
            };
            condition = either(condition, one);
        }
        Ok(condition)
    }

    /// Translates `attribute[inner]`.
    fn translate_complex(
        &self,
        attribute: &'static Attribute,
        inner: &Expression,
        column: usize,
    ) -> Result<Condition, ScimError> {
        if !attribute.many {
            return Err(refused(attribute.name, column));
        }
        let mut condition = Condition::Never;
        for (source, of_type) in self.sources(attribute, column)? {
            let matching = self.element(&source, attribute, of_type, inner)?;
            condition = either(condition, within(&source, matching, column));
        }
        Ok(condition)
    }

    /// The sources of the elements, each with the type of its elements.
    fn sources(
        &self,
        attribute: &Attribute,
        column: usize,
    ) -> Result<Vec<(Source, &'static str)>, ScimError> {
        match attribute.mapping(self.target) {
            Mapping::Element { field, of_type, .. } => Ok(vec![(Source::Field(field), of_type)]),
            Mapping::Sets { sets, .. } => {
                Ok(sets.iter().map(|(set, of_type)| (Source::Set(set), *of_type)).collect())
            }
            _ => Err(refused(attribute.name, column)),
        }
    }

    /// The condition on one element of a source.
    fn element(
        &self,
        source: &Source,
        attribute: &'static Attribute,
        of_type: &'static str,
        filter: &Expression,
    ) -> Result<Condition, ScimError> {
        let inner = |inner: &Expression| self.element(source, attribute, of_type, inner);
        Ok(match filter {
            Expression::And(left, right) => both(inner(left)?, inner(right)?),
            Expression::Or(left, right) => either(inner(left)?, inner(right)?),
            Expression::Not(one) => not(inner(one)?),
            Expression::Compare { attribute: name, part: None, operator, value, column } => {
                let part = attribute.part(self.target, name).ok_or_else(|| refused(name, *column))?;
                let value = element::coerced(part, value);
                let comparison = Comparison { name, operator: *operator, value: &value, column: *column };
                comparison.check(part.kind)?;
                match (source, part.name) {
                    (Source::Field(field), "value") => comparison.of(field, None),
                    (Source::Set(_), "value") => comparison.of_id("id")?,
                    _ => fixed(source, part, of_type, &comparison)?,
                }
            }
            Expression::Compare { attribute: name, column, .. }
            | Expression::Some { attribute: name, column, .. } => return Err(refused(name, *column)),
        })
    }
}

/// The set of a user's profile entries.
const ENTRIES: &str = "userProfiles";

/// The condition that a user has a profile entry whose value matches; `None` for operators that entries do not
/// support.
fn in_entries(key: &str, comparison: &Comparison<'_>) -> Option<Condition> {
    if comparison.operator == Operator::Equal && matches!(comparison.value, Literal::Null) {
        return in_entries(key, &Comparison { operator: Operator::Present, ..*comparison }).map(not);
    }
    if !matches!(comparison.operator, Operator::Equal | Operator::StartsWith | Operator::Present) {
        return None;
    }
    let key = Literal::Text(key.to_owned());
    let is_key = Comparison { operator: Operator::Equal, value: &key, ..*comparison }.of("key", None);
    match both(is_key, comparison.of("value", None)) {
        Condition::When(inner) => {
            let (attribute, inner) = (ENTRIES.into(), Box::new(inner));
            Some(Condition::When(Expression::Some { attribute, inner, column: comparison.column }))
        }
        other => Some(other),
    }
}

/// The result of a comparison on a part that is equal for all elements of a source.
fn fixed(
    source: &Source,
    part: &'static Attribute,
    of_type: &'static str,
    comparison: &Comparison<'_>,
) -> Result<Condition, ScimError> {
    let value = match (source, part.name) {
        (_, "type") => of_type.into(),
        (Source::Field(_), "primary") => true.into(),
        _ => return Err(refused(part.name, comparison.column)),
    };
    let holds = element::compare(part, comparison.operator, Some(&value), comparison.value);
    Ok(if holds { Condition::Always } else { Condition::Never })
}

/// The condition that a source has an element that matches.
fn within(source: &Source, matching: Condition, column: usize) -> Condition {
    let present = |name: &str| {
        Comparison { name, operator: Operator::Present, value: &Literal::Null, column }.of(name, None)
    };
    match (source, matching) {
        (_, Condition::Never) => Condition::Never,
        (Source::Field(field), matching) => both(present(field), matching),
        (Source::Set(set), Condition::Always) => present(set),
        // lists find the members of one item by this form at once
        (
            Source::Set(set),
            Condition::When(Expression::Compare { attribute, part: None, operator, value, column }),
        ) => Comparison { name: set, operator, value: &value, column }.of(set, Some(&attribute)),
        (Source::Set(set), Condition::When(inner)) => {
            Condition::When(Expression::Some { attribute: (*set).into(), inner: Box::new(inner), column })
        }
    }
}

fn both(left: Condition, right: Condition) -> Condition {
    match (left, right) {
        (Condition::Never, _) | (_, Condition::Never) => Condition::Never,
        (Condition::Always, other) | (other, Condition::Always) => other,
        (Condition::When(left), Condition::When(right)) => {
            Condition::When(Expression::And(Box::new(left), Box::new(right)))
        }
    }
}

fn either(left: Condition, right: Condition) -> Condition {
    match (left, right) {
        (Condition::Always, _) | (_, Condition::Always) => Condition::Always,
        (Condition::Never, other) | (other, Condition::Never) => other,
        (Condition::When(left), Condition::When(right)) => {
            Condition::When(Expression::Or(Box::new(left), Box::new(right)))
        }
    }
}

fn not(condition: Condition) -> Condition {
    match condition {
        Condition::Always => Condition::Never,
        Condition::Never => Condition::Always,
        Condition::When(inner) => Condition::When(Expression::Not(Box::new(inner))),
    }
}

fn refused(name: &str, column: usize) -> ScimError {
    let name: String = name.chars().take(100).collect();
    ScimError::new(ScimType::InvalidFilter, format!("Column {column}: nothing is found by {name} here."))
}
