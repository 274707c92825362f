//! The steps of a patch, done one after another on a resource.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Members, Patch, Step, Verb, element};
use crate::{
    Attribute, Home, MAX_ELEMENTS, Refusal, Resource, ScimType,
    read::{is_primary, leave_out_empty, missing},
};

/// The outcome of a patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    /// The resource as it should be, without members of a group.
    pub resource: Resource,
    /// The attributes that differ from before; those of an extension behind its URN and a colon.
    pub changed: BTreeSet<String>,
    /// What happens to the members of a group.
    pub members: Members,
}

impl Patch {
    /// Applies the patch to the resource as it is now.
    ///
    /// # Errors
    /// The first step that fits nothing, or a required attribute that is gone.
    pub fn apply(self, before: &Resource) -> Result<Patched, Refusal> {
        let mut resource = before.clone();
        for step in &self.steps {
            self.run(step, &mut resource)?;
        }
        leave_out_empty(self.of, self.home, &mut resource);
        if let Some(name) = missing(self.of, self.home, &resource).first() {
            return Err(Refusal::wrong(ScimType::InvalidValue, format!("{name} is required")));
        }
        let changed = self.changed(before, &resource);
        Ok(Patched { resource, changed, members: self.members })
    }

    fn run(&self, step: &Step, resource: &mut Resource) -> Result<(), Refusal> {
        let (schema, attribute) = (step.target.schema, step.target.attribute);
        if attribute.name == "id" {
            return if step.verb != Verb::Remove && step.value.as_ref() == resource.get("id") {
                Ok(())
            } else {
                Err(Refusal::wrong(ScimType::Mutability, "id is not written by clients"))
            };
        }
        if schema.urn == self.of.core.urn {
            return run_in(self.home, step, resource);
        }
        let mut own = match resource.remove(schema.urn) {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        };
        run_in(self.home, step, &mut own)?;
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

/// Runs a step among the attributes of its schema.
fn run_in(home: Home, step: &Step, resource: &mut Resource) -> Result<(), Refusal> {
    let attribute = step.target.attribute;
    if attribute.many {
        let mut elements = match resource.remove(attribute.name) {
            Some(Value::Array(elements)) => elements,
            _ => Vec::new(),
        };
        change_elements(home, step, &mut elements)?;
        if elements.len() > MAX_ELEMENTS {
            let detail = format!("{} has at most {MAX_ELEMENTS} values", attribute.name);
            return Err(Refusal::wrong(ScimType::InvalidValue, detail));
        }
        put(resource, attribute.name, Some(elements.into()));
        return Ok(());
    }
    let (before, value) = (resource.remove(attribute.name), step.value.clone());
    let after = match (step.target.part, before) {
        (None, before) => merged(step.verb, before, value),
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

/// What an attribute with one value is afterwards: parts that are not named stay as they are.
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

/// Sets or removes a member; one without contents is removed.
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

fn change_elements(home: Home, step: &Step, elements: &mut Vec<Value>) -> Result<(), Refusal> {
    let attribute = step.target.attribute;
    let mut chosen = Vec::with_capacity(elements.len());
    for element in elements.iter() {
        chosen.push(match &step.target.filter {
            Some(filter) => element::matches(filter, attribute, home, element)?,
            None => true,
        });
    }
    match (step.verb, &step.target.filter, step.target.part) {
        (Verb::Remove, None, None) => remove_values(elements, step.value.as_ref()),
        (Verb::Remove, _, None) => retain(elements, &chosen),
        (Verb::Remove, _, Some(part)) => write_part(elements, &chosen, part, None),
        (Verb::Add, None, None) => add_values(elements, step.value.as_ref()),
        (Verb::Replace, None, None) => *elements = values(step.value.as_ref()).to_vec(),
        _ => {
            if !chosen.contains(&true) {
                if step.value.is_none() {
                    return Ok(());
                }
                elements.push(made(home, step, elements.is_empty())?);
                chosen.push(true);
            }
            match step.target.part {
                Some(part) => write_part(elements, &chosen, part, step.value.as_ref()),
                None => write_elements(elements, &chosen, step),
            }
        }
    }
    Ok(())
}

/// An element that a path describes and that is not there yet; the first of all is the primary one.
fn made(home: Home, step: &Step, is_first: bool) -> Result<Value, Refusal> {
    let attribute = step.target.attribute;
    let described = match &step.target.filter {
        Some(filter) => element::described(filter, attribute, home),
        None => Some(Resource::new()),
    };
    let Some(mut element) = described else {
        let detail = format!("The path fits none of the {}.", attribute.name);
        return Err(Refusal::wrong(ScimType::NoTarget, detail));
    };
    if is_first && attribute.part(home, "primary").is_some() {
        element.insert("primary".into(), true.into());
    }
    Ok(element.into())
}

fn values(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Removes the elements with the values that are given; all where none is.
fn remove_values(elements: &mut Vec<Value>, value: Option<&Value>) {
    let Some(value) = value else { return elements.clear() };
    let named = |element: &Value, given: &Value| match (element.get("value"), given.get("value")) {
        (Some(found), Some(wanted)) => found == wanted,
        _ => element == given,
    };
    elements.retain(|element| !values(Some(value)).iter().any(|given| named(element, given)));
}

/// Removes the chosen elements.
fn retain(elements: &mut Vec<Value>, chosen: &[bool]) {
    let mut chosen = chosen.iter();
    elements.retain(|_| chosen.next() != Some(&true));
}

/// Adds elements. One that is there already, apart from its mark as the primary one, is not added again.
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

/// Whether two elements are the same, apart from their marks.
fn is_same(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return one == other };
    let count = |parts: &Map<String, Value>| parts.len() - usize::from(parts.contains_key("primary"));
    count(one) == count(other)
        && one.iter().all(|(name, value)| name == "primary" || other.get(name) == Some(value))
}

/// Takes the mark from all elements but one.
fn only_primary(elements: &mut [Value], at: usize) {
    for (_, other) in elements.iter_mut().enumerate().filter(|(index, _)| *index != at) {
        if let Some(parts) = other.as_object_mut().filter(|parts| parts.contains_key("primary")) {
            parts.remove("primary");
        }
    }
}

/// Writes one part of the chosen elements; what then has nothing but a type goes.
fn write_part(elements: &mut Vec<Value>, chosen: &[bool], part: &Attribute, value: Option<&Value>) {
    for (element, _) in elements.iter_mut().zip(chosen).filter(|(_, chosen)| **chosen) {
        if let Some(parts) = element.as_object_mut() {
            put(parts, part.name, value.cloned());
        }
    }
    settle(elements, chosen, part.name == "primary");
}

/// Writes the chosen elements; parts that are not named stay as they are. Without a value the elements go.
fn write_elements(elements: &mut Vec<Value>, chosen: &[bool], step: &Step) {
    for (element, _) in elements.iter_mut().zip(chosen).filter(|(_, chosen)| **chosen) {
        match (&mut *element, step.value.clone()) {
            (Value::Object(parts), Some(Value::Object(new))) => parts.extend(new),
            (element, None) if step.verb == Verb::Replace => *element = Value::Null,
            _ => {}
        }
    }
    settle(elements, chosen, true);
}

/// Leaves no element without contents, none twice, and one primary element: the last that was written as such.
fn settle(elements: &mut Vec<Value>, chosen: &[bool], marks: bool) {
    let mut kept: Vec<Value> = Vec::with_capacity(elements.len());
    let mut primary = None;
    for (element, was_written) in elements.drain(..).zip(chosen) {
        let mut names = element.as_object().into_iter().flat_map(Map::keys);
        if !names.any(|name| !matches!(name.as_str(), "type" | "primary")) {
            continue;
        }
        let is_marked = is_primary(&element);
        let same = kept.iter().position(|other| is_same(other, &element));
        let at = same.unwrap_or(kept.len());
        match kept.get_mut(at) {
            Some(other) if is_marked => *other = element,
            Some(_) => {}
            None => kept.push(element),
        }
        if *was_written && is_marked {
            primary = Some(at);
        }
    }
    *elements = kept;
    if let Some(at) = primary.filter(|_| marks) {
        only_primary(elements, at);
    }
}
