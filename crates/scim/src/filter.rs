//! Filters and orders in SCIM's names, as filters and orders on the fields of a home.

#[cfg(test)]
mod tests;

use chancery_record::{parse_id, parse_timestamp};
use chancery_resource::{Expression, Literal, Operator, parse_filter};

use crate::{
    Attribute, Home, Kind, Place, Refusal, ResourceType, ScimType,
    name::{Target, find},
    patch::element,
};

/// What a filter asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Every resource matches.
    Always,
    /// None does.
    Never,
    /// Those whose fields match this filter.
    When(Expression),
}

/// Reads a filter in SCIM's names.
///
/// # Errors
/// Text that is no filter, or one about what the home cannot look for.
pub fn condition_of(of: &'static ResourceType, home: Home, text: &str) -> Result<Condition, Refusal> {
    let filter =
        parse_filter(text).map_err(|problem| Refusal::wrong(ScimType::InvalidFilter, problem.detail))?;
    Asked { of, home }.translated(&filter)
}

/// The field that a list is sorted by.
///
/// # Errors
/// A name that gives no order here.
pub fn sort_field(of: &'static ResourceType, home: Home, name: &str) -> Result<&'static str, Refusal> {
    let refused = || {
        let name: String = name.chars().take(100).collect();
        Refusal::wrong(ScimType::InvalidValue, format!("{} are not sorted by {name}", of.about))
    };
    let target = find(of, home, name).ok_or_else(refused)?;
    let is_value = target.part.is_none_or(|part| part.name == "value");
    match (target.attribute.name, target.attribute.place(home), target.leaf().place(home)) {
        ("emails", Place::One { field, .. }, _) if is_value => Ok(field),
        (
            "id" | "userName" | "name" | "displayName" | "meta",
            _,
            Place::Field(field) | Place::Seen(field),
        ) => Ok(field),
        _ => Err(refused()),
    }
}

struct Asked {
    of: &'static ResourceType,
    home: Home,
}

/// Where elements of an attribute come from.
enum Source {
    /// The one element that a field is.
    Field(&'static str),
    /// The members of a set.
    Set(&'static str),
}

/// A comparison, with the name of its attribute as the client wrote it.
#[derive(Clone, Copy)]
struct Test<'a> {
    name: &'a str,
    operator: Operator,
    value: &'a Literal,
    column: usize,
}

impl Test<'_> {
    /// Refuses what an attribute of this kind does not compare with, by the name that the client knows.
    fn check(&self, kind: Kind) -> Result<(), Refusal> {
        let is_equality = matches!(self.operator, Operator::Equal | Operator::NotEqual);
        let is_part = matches!(self.operator, Operator::Contains | Operator::StartsWith | Operator::EndsWith);
        let mistake = match (kind, self.value) {
            _ if self.operator == Operator::Present => return Ok(()),
            (_, Literal::Null) if !is_equality => "compares with null by eq and ne",
            (_, Literal::Null) => return Ok(()),
            (Kind::Bool, Literal::Bool(_)) if is_equality => return Ok(()),
            (Kind::Bool, _) => "compares by eq and ne with true or false",
            (Kind::Time, Literal::Text(text))
                if parse_timestamp(text).is_some() && !is_equality && !is_part =>
            {
                return Ok(());
            }
            (Kind::Time, _) => "compares by gt, ge, lt and le with a date-time (RFC 3339)",
            (_, Literal::Text(text)) if text.is_empty() && is_part => {
                "is searched for a text that is not empty"
            }
            (_, Literal::Text(_)) => return Ok(()),
            _ => "compares with a string",
        };
        Err(self.refused(mistake))
    }

    fn refused(&self, mistake: &str) -> Refusal {
        let name: String = self.name.chars().take(100).collect();
        Refusal::wrong(ScimType::InvalidFilter, format!("Column {}: {name} {mistake}.", self.column))
    }

    /// The test on a field with an id: no text but a UUID is one, and who asks for another asks for nobody.
    fn of_id(&self, field: &str) -> Result<Condition, Refusal> {
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

impl Asked {
    fn translated(&self, filter: &Expression) -> Result<Condition, Refusal> {
        Ok(match filter {
            Expression::And(left, right) => both(self.translated(left)?, self.translated(right)?),
            Expression::Or(left, right) => either(self.translated(left)?, self.translated(right)?),
            Expression::Not(inner) => not(self.translated(inner)?),
            Expression::Compare { attribute, part, operator, value, column } => {
                let name =
                    part.as_ref().map_or_else(|| attribute.clone(), |part| format!("{attribute}.{part}"));
                let target = find(self.of, self.home, &name).ok_or_else(|| refused(&name, *column))?;
                let value = element::meant(self.leaf(&target), value);
                let test = Test { name: &name, operator: *operator, value: &value, column: *column };
                test.check(self.leaf(&target).kind)?;
                self.compared(&target, &test)?
            }
            Expression::Some { attribute, inner, column } => {
                let target = find(self.of, self.home, attribute)
                    .filter(|target| target.part.is_none())
                    .ok_or_else(|| refused(attribute, *column))?;
                self.some(target.attribute, inner, *column)?
            }
        })
    }

    /// What is compared: where there are parts and none is named, the value.
    fn leaf(&self, target: &Target) -> &'static Attribute {
        let value = || target.attribute.part(self.home, "value");
        target.part.or_else(value).unwrap_or(target.attribute)
    }

    fn compared(&self, target: &Target, test: &Test<'_>) -> Result<Condition, Refusal> {
        let attribute = target.attribute;
        // of several values none is null: it is asked whether there is one (RFC 7643, section 2.5)
        if attribute.many && matches!(test.value, Literal::Null) {
            let present = Test { operator: Operator::Present, ..*test };
            match test.operator {
                Operator::Equal => return Ok(not(self.compared(target, &present)?)),
                Operator::NotEqual => return self.compared(target, &present),
                _ => {}
            }
        }
        if !attribute.many {
            let leaf = self.leaf(target);
            return match leaf.place(self.home) {
                Place::Seen("createdOn") => Err(refused(leaf.name, test.column)),
                Place::Seen(field @ "id") | Place::Field(field @ "managerId") => test.of_id(field),
                Place::Field(field) | Place::Seen(field) => Ok(test.of(field, None)),
                Place::Entry(key) => in_entries(key, test).ok_or_else(|| refused(leaf.name, test.column)),
                _ => Err(refused(leaf.name, test.column)),
            };
        }
        let part = match target.part {
            Some(part) => part,
            None => attribute.part(self.home, "value").ok_or_else(|| refused(attribute.name, test.column))?,
        };
        let sources = self.sources(attribute, test.column)?;
        let mut found = Condition::Never;
        for (source, of_type) in sources {
            let one = match (&source, part.name) {
                (Source::Field(field), "value") => test.of(field, None),
                (Source::Set(set), "value") if test.operator == Operator::Present => test.of(set, None),
                (Source::Set(_), "value") => within(&source, test.of_id("id")?, test.column),
                _ => within(&source, fixed(&source, part, of_type, test)?, test.column),
            };
            found = either(found, one);
        }
        Ok(found)
    }

    /// `attribute[inner]`.
    fn some(
        &self,
        attribute: &'static Attribute,
        inner: &Expression,
        column: usize,
    ) -> Result<Condition, Refusal> {
        if !attribute.many {
            return Err(refused(attribute.name, column));
        }
        let mut found = Condition::Never;
        for (source, of_type) in self.sources(attribute, column)? {
            let matching = self.element(&source, attribute, of_type, inner)?;
            found = either(found, within(&source, matching, column));
        }
        Ok(found)
    }

    /// Where the elements come from, each source with the type of its elements.
    fn sources(&self, attribute: &Attribute, column: usize) -> Result<Vec<(Source, &'static str)>, Refusal> {
        match attribute.place(self.home) {
            Place::One { field, of_type, .. } => Ok(vec![(Source::Field(field), of_type)]),
            Place::Sets { sets, .. } => {
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
    ) -> Result<Condition, Refusal> {
        let inner = |inner: &Expression| self.element(source, attribute, of_type, inner);
        Ok(match filter {
            Expression::And(left, right) => both(inner(left)?, inner(right)?),
            Expression::Or(left, right) => either(inner(left)?, inner(right)?),
            Expression::Not(one) => not(inner(one)?),
            Expression::Compare { attribute: name, part: None, operator, value, column } => {
                let part = attribute.part(self.home, name).ok_or_else(|| refused(name, *column))?;
                let value = element::meant(part, value);
                let test = Test { name, operator: *operator, value: &value, column: *column };
                test.check(part.kind)?;
                match (source, part.name) {
                    (Source::Field(field), "value") => test.of(field, None),
                    (Source::Set(_), "value") => test.of_id("id")?,
                    _ => fixed(source, part, of_type, &test)?,
                }
            }
            Expression::Compare { attribute: name, column, .. }
            | Expression::Some { attribute: name, column, .. } => return Err(refused(name, *column)),
        })
    }
}

/// The set of a user's profile entries.
const ENTRIES: &str = "userProfiles";

/// The condition that a user has a profile entry whose value passes; `None` for tests that entries do not take.
fn in_entries(key: &str, test: &Test<'_>) -> Option<Condition> {
    if test.operator == Operator::Equal && matches!(test.value, Literal::Null) {
        return in_entries(key, &Test { operator: Operator::Present, ..*test }).map(not);
    }
    if !matches!(test.operator, Operator::Equal | Operator::StartsWith | Operator::Present) {
        return None;
    }
    let key = Literal::Text(key.to_owned());
    let is_it = Test { operator: Operator::Equal, value: &key, ..*test }.of("key", None);
    match both(is_it, test.of("value", None)) {
        Condition::When(inner) => {
            let (attribute, inner) = (ENTRIES.into(), Box::new(inner));
            Some(Condition::When(Expression::Some { attribute, inner, column: test.column }))
        }
        other => Some(other),
    }
}

/// The outcome of a test on a part that is the same for all elements of a source.
fn fixed(
    source: &Source,
    part: &'static Attribute,
    of_type: &'static str,
    test: &Test<'_>,
) -> Result<Condition, Refusal> {
    let value = match (source, part.name) {
        (_, "type") => of_type.into(),
        (Source::Field(_), "primary") => true.into(),
        _ => return Err(refused(part.name, test.column)),
    };
    let holds = element::compare(part, test.operator, Some(&value), test.value);
    Ok(if holds { Condition::Always } else { Condition::Never })
}

/// The condition that a source has an element that matches.
fn within(source: &Source, matching: Condition, column: usize) -> Condition {
    let present =
        |name: &str| Test { name, operator: Operator::Present, value: &Literal::Null, column }.of(name, None);
    match (source, matching) {
        (_, Condition::Never) => Condition::Never,
        (Source::Field(field), matching) => both(present(field), matching),
        (Source::Set(set), Condition::Always) => present(set),
        // lists find the members of one item by this form at once
        (
            Source::Set(set),
            Condition::When(Expression::Compare { attribute, part: None, operator, value, column }),
        ) => Test { name: set, operator, value: &value, column }.of(set, Some(&attribute)),
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

fn refused(name: &str, column: usize) -> Refusal {
    let name: String = name.chars().take(100).collect();
    Refusal::wrong(ScimType::InvalidFilter, format!("Column {column}: nothing is found by {name} here."))
}
