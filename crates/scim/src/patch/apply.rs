//! Applies the changes of a patch to a resource, in order.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Change, Members, Patch, Verb, element};
use crate::{
    Attribute, MAX_ELEMENTS, Resource, ScimError, ScimType, Target,
    read::{is_primary, leave_out_empty, missing},
};

/// The result of a patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    /// The resource after the patch, without members of a group.
    pub resource: Resource,
    /// The attributes that changed; those of an extension as URN, colon and name.
    pub changed: BTreeSet<String>,
    /// The changes of the group's members.
    pub members: Members,
}

impl Patch {
    /// Applies the patch to the current resource.
    ///
    /// # Errors
    /// The first change that matches nothing, or a required attribute that was removed.
    pub fn apply(self, before: &Resource) -> Result<Patched, ScimError> {
        let mut resource = before.clone();
        for change in &self.changes {
            self.run(change, &mut resource)?;
        }
        leave_out_empty(self.of, self.target, &mut resource);
        if let Some(name) = missing(self.of, self.target, &resource).first() {
            return Err(ScimError::new(ScimType::InvalidValue, format!("{name} is required")));
        }
        let changed = self.changed(before, &resource);
        Ok(Patched { resource, changed, members: self.members })
    }

    fn run(&self, change: &Change, resource: &mut Resource) -> Result<(), ScimError> {
        let (schema, attribute) = (change.path.schema, change.path.attribute);
        if attribute.name == "id" {
            return if change.verb != Verb::Remove && change.value.as_ref() == resource.get("id") {
                Ok(())
            } else {
                Err(ScimError::new(ScimType::Mutability, "id is not written by clients"))
            };
        }
        if schema.urn == self.of.core.urn {
            return run_in(self.target, change, resource);
        }
        let mut own = match resource.remove(schema.urn) {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        };
        run_in(self.target, change, &mut own)?;
        put(resource, schema.urn, Some(own.into()));
        Ok(())
    }

    fn changed(&self, before: &Resource, after: &Resource) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        for schema in self.of.schemas() {
            let is_core = schema.urn == self.of.core.urn;
            let value = |resource: &Resource, name: &str| {
                let own = if is_core { Some(resource) } else { resource.get(schema.urn)?.as_object() };
                own?.get(name).cloned()
            };
            for attribute in self.of.attributes(schema) {
                let name = attribute.name;
                if value(before, name) != value(after, name) {
                    changed.insert(if is_core { name.into() } else { format!("{}:{name}", schema.urn) });
                }
            }
        }
        changed
    }
}

/// Applies a change to the attributes of its schema.
fn run_in(target: Target, change: &Change, resource: &mut Resource) -> Result<(), ScimError> {
    let attribute = change.path.attribute;
    if attribute.many {
        let mut elements = match resource.remove(attribute.name) {
            Some(Value::Array(elements)) => elements,
            _ => Vec::new(),
        };
        change_elements(target, change, &mut elements)?;
        if elements.len() > MAX_ELEMENTS {
            let detail = format!("{} has at most {MAX_ELEMENTS} values", attribute.name);
            return Err(ScimError::new(ScimType::InvalidValue, detail));
        }
        put(resource, attribute.name, Some(elements.into()));
        return Ok(());
    }
    let (before, value) = (resource.remove(attribute.name), change.value.clone());
    let after = match (change.path.part, before) {
        (None, before) => merged(change.verb, before, value),
        (Some(part), before) => {
            let mut parts = match before {
                Some(Value::Object(parts)) => parts,
                _ => Map::new(),
            };
            put(&mut parts, part.name, value);
            Some(parts.into())
        }
    };
    put(resource, attribute.name, after);
    Ok(())
}

/// The new value of a single-valued attribute: sub-attributes that are not named stay.
fn merged(verb: Verb, before: Option<Value>, value: Option<Value>) -> Option<Value> {
    match (verb, before, value) {
        (Verb::Remove, ..) | (_, _, None) => None,
        (_, Some(Value::Object(mut parts)), Some(Value::Object(new))) => {
            parts.extend(new);
            Some(parts.into())
        }
        (.., value) => value,
    }
}

/// Sets or removes a member; an empty one is removed.
fn put(to: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    let is_empty = match &value {
        None => true,
        Some(Value::Object(parts)) => parts.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    if is_empty {
        to.remove(name);
    } else {
        to.insert(name.into(), value.unwrap_or_default());
    }
}

fn change_elements(target: Target, change: &Change, elements: &mut Vec<Value>) -> Result<(), ScimError> {
    let attribute = change.path.attribute;
    let mut chosen = Vec::with_capacity(elements.len());
    for element in elements.iter() {
        chosen.push(match &change.path.filter {
            Some(filter) => element::matches(filter, attribute, target, element)?,
            None => true,
        });
    }
    match (change.verb, &change.path.filter, change.path.part) {
        (Verb::Remove, None, None) => remove_values(elements, change.value.as_ref()),
        (Verb::Remove, _, None) => retain(elements, &chosen),
        (Verb::Remove, _, Some(part)) => write_part(elements, &chosen, part, None),
        (Verb::Add, None, None) => add_values(elements, change.value.as_ref()),
        (Verb::Replace, None, None) => *elements = values(change.value.as_ref()).to_vec(),
        _ => {
            if !chosen.contains(&true) {
                if change.value.is_none() {
                    return Ok(());
                }
                elements.push(new_element(target, change, elements.is_empty())?);
                chosen.push(true);
            }
            match change.path.part {
                Some(part) => write_part(elements, &chosen, part, change.value.as_ref()),
                None => write_elements(elements, &chosen, change),
            }
        }
    }
    Ok(())
}

/// Creates the element that a path describes and that does not exist yet; the first one of an attribute is
/// primary.
fn new_element(target: Target, change: &Change, is_first: bool) -> Result<Value, ScimError> {
    let attribute = change.path.attribute;
    let element = match &change.path.filter {
        Some(filter) => element::element_described_by(filter, attribute, target),
        None => Some(Resource::new()),
    };
    let Some(mut element) = element else {
        let detail = format!("The path fits none of the {}.", attribute.name);
        return Err(ScimError::new(ScimType::NoTarget, detail));
    };
    if is_first && attribute.part(target, "primary").is_some() {
        element.insert("primary".into(), true.into());
    }
    Ok(element.into())
}

fn values(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Removes the elements with the given values; all if none is given.
fn remove_values(elements: &mut Vec<Value>, value: Option<&Value>) {
    let Some(value) = value else { return elements.clear() };
    let is_same_value = |element: &Value, given: &Value| match (element.get("value"), given.get("value")) {
        (Some(value), Some(given_value)) => value == given_value,
        _ => element == given,
    };
    elements.retain(|element| !values(Some(value)).iter().any(|given| is_same_value(element, given)));
}

/// Removes the chosen elements.
fn retain(elements: &mut Vec<Value>, chosen: &[bool]) {
    let mut chosen = chosen.iter();
    elements.retain(|_| chosen.next() != Some(&true));
}

/// Adds elements. One that exists, apart from its `primary`, is not added again.
fn add_values(elements: &mut Vec<Value>, value: Option<&Value>) {
    for new in values(value) {
        let same = elements.iter().position(|old| is_same(old, new));
        let at = same.unwrap_or(elements.len());
        match elements.get_mut(at) {
            Some(old) if is_primary(new) => *old = new.clone(),
            Some(_) => {}
            None => elements.push(new.clone()),
        }
        if is_primary(new) {
            only_primary(elements, at);
        }
    }
}

/// Whether two elements are equal, apart from `primary`.
fn is_same(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return one == other };
    let count = |parts: &Map<String, Value>| parts.len() - usize::from(parts.contains_key("primary"));
    count(one) == count(other)
        && one.iter().all(|(name, value)| name == "primary" || other.get(name) == Some(value))
}

/// Removes `primary` from all elements but one.
fn only_primary(elements: &mut [Value], at: usize) {
    for (_, other) in elements.iter_mut().enumerate().filter(|(index, _)| *index != at) {
        if let Some(parts) = other.as_object_mut().filter(|parts| parts.contains_key("primary")) {
            parts.remove("primary");
        }
    }
}

/// Writes a sub-attribute of the chosen elements, and removes elements that are left with nothing but a type.
fn write_part(elements: &mut Vec<Value>, chosen: &[bool], part: &Attribute, value: Option<&Value>) {
    for (element, _) in elements.iter_mut().zip(chosen).filter(|(_, chosen)| **chosen) {
        if let Some(parts) = element.as_object_mut() {
            put(parts, part.name, value.cloned());
        }
    }
    normalize(elements, chosen, part.name == "primary");
}

/// Writes the chosen elements: sub-attributes that are not named stay. Replacing with no value removes the
/// elements.
fn write_elements(elements: &mut Vec<Value>, chosen: &[bool], change: &Change) {
    for (element, _) in elements.iter_mut().zip(chosen).filter(|(_, chosen)| **chosen) {
        match (&mut *element, change.value.clone()) {
            (Value::Object(parts), Some(Value::Object(new))) => parts.extend(new),
            (element, None) if change.verb == Verb::Replace => *element = Value::Null,
            _ => {}
        }
    }
    normalize(elements, chosen, true);
}

/// Removes empty and duplicate elements, and leaves one primary element: the last that was written as such.
fn normalize(elements: &mut Vec<Value>, chosen: &[bool], has_primary: bool) {
    let mut normalized: Vec<Value> = Vec::with_capacity(elements.len());
    let mut primary = None;
    for (element, was_written) in elements.drain(..).zip(chosen) {
        let mut names = element.as_object().into_iter().flat_map(Map::keys);
        if !names.any(|name| !matches!(name.as_str(), "type" | "primary")) {
            continue;
        }
        let is_primary_element = is_primary(&element);
        let same = normalized.iter().position(|other| is_same(other, &element));
        let at = same.unwrap_or(normalized.len());
        match normalized.get_mut(at) {
            Some(other) if is_primary_element => *other = element,
            Some(_) => {}
            None => normalized.push(element),
        }
        if *was_written && is_primary_element {
            primary = Some(at);
        }
    }
    *elements = normalized;
    if let Some(at) = primary.filter(|_| has_primary) {
        only_primary(elements, at);
    }
}
