//! The fields, profile entries and extra attributes that a resource writes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    Attribute, AttributeType, Mapping, Resource, ResourceType, ScimError, ScimType, Target, read::is_primary,
};

/// The most bytes of `extra`, the attributes that are stored as they were sent.
pub const MAX_EXTRA_BYTES: usize = 16 << 10;

/// The values that a resource writes. All fields and entries of the target are listed: those without a value
/// are null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    /// Fields of the resource.
    pub fields: BTreeMap<&'static str, Value>,
    /// Profile entries by their keys.
    pub entries: BTreeMap<&'static str, Value>,
    /// Write-only attributes, such as the password.
    pub secrets: BTreeMap<&'static str, Value>,
    /// Attributes stored as they were sent, by name.
    pub extra: Resource,
}

/// The fields of a resource that was read or patched.
///
/// # Errors
/// More than [`MAX_EXTRA_BYTES`] of extra attributes.
pub fn fields_of(
    of: &'static ResourceType,
    target: Target,
    resource: &Resource,
) -> Result<Fields, ScimError> {
    let mut fields = Fields::default();
    let nothing = Map::new();
    for schema in of.schemas() {
        let is_core = schema.urn == of.core.urn;
        let extension = resource.get(schema.urn).and_then(Value::as_object);
        let own = if is_core { resource } else { extension.unwrap_or(&nothing) };
        for attribute in of.attributes(schema) {
            fields.add(target, attribute, own.get(attribute.name));
        }
    }
    if !fields.extra.is_empty() && Value::Object(fields.extra.clone()).to_string().len() > MAX_EXTRA_BYTES {
        let names: Vec<&str> = fields.extra.keys().map(String::as_str).collect();
        let detail = format!("{} have more than {MAX_EXTRA_BYTES} bytes together", names.join(", "));
        return Err(ScimError::new(ScimType::InvalidValue, detail));
    }
    Ok(fields)
}

/// The keys of the profile entries that attributes of the target are stored in.
pub fn entry_keys(of: &'static ResourceType, target: Target) -> Vec<&'static str> {
    let mut keys = Vec::new();
    each_mapping(of, target, &mut |mapping, _| {
        if let Mapping::Entry(key) = mapping {
            keys.push(key);
        }
    });
    keys
}

/// The position of a field or entry of a target in a resource: a JSON Pointer, without a slash at its
/// beginning.
pub fn pointer_of(of: &'static ResourceType, target: Target, name: &str) -> Option<String> {
    let mut pointer = None;
    each_mapping(of, target, &mut |mapping, at| {
        let matches = match mapping {
            Mapping::Field(field) | Mapping::ReadOnly(field) | Mapping::Element { field, .. } => {
                field == name
            }
            Mapping::Entry(key) => key == name,
            _ => false,
        };
        if matches && pointer.is_none() {
            pointer = Some(at.to_owned());
        }
    });
    pointer
}

fn each_mapping(of: &'static ResourceType, target: Target, visit: &mut dyn FnMut(Mapping, &str)) {
    for schema in of.schemas() {
        let prefix = if schema.urn == of.core.urn { String::new() } else { format!("{}/", schema.urn) };
        for attribute in of.attributes(schema) {
            let at = format!("{prefix}{}", attribute.name);
            visit(attribute.mapping(target), &at);
            if attribute.mapping(target) == Mapping::Within && !attribute.many {
                for part in attribute.parts() {
                    visit(part.mapping(target), &format!("{at}/{}", part.name));
                }
            }
        }
    }
}

impl Fields {
    fn add(&mut self, target: Target, attribute: &Attribute, value: Option<&Value>) {
        let or_null = |value: Option<&Value>| value.cloned().unwrap_or_default();
        match attribute.mapping(target) {
            Mapping::Field(field) => {
                self.fields.insert(field, or_null(value));
            }
            Mapping::Entry(key) => {
                self.entries.insert(key, or_null(value));
            }
            Mapping::Secret => {
                if let Some(value) = value {
                    self.secrets.insert(attribute.name, value.clone());
                }
            }
            Mapping::Extra => self.store_extra(attribute, value.cloned()),
            Mapping::Element { field, of_type, others } => {
                let elements = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let at = mapped_element(elements, of_type);
                let one = at.and_then(|at| elements.get(at)).and_then(|one| one.get("value"));
                self.fields.insert(field, or_null(one));
                if others {
                    self.store_extra(attribute, Some(extra_elements(elements, at, of_type).into()));
                }
            }
            Mapping::Within => {
                if let AttributeType::Complex(parts) = attribute.kind {
                    for part in parts {
                        self.add(target, part, value.and_then(|value| value.get(part.name)));
                    }
                }
            }
            Mapping::Unmapped
            | Mapping::Ignored
            | Mapping::ReadOnly(_)
            | Mapping::Joined
            | Mapping::Sets { .. } => {}
        }
    }

    fn store_extra(&mut self, attribute: &Attribute, value: Option<Value>) {
        if let Some(value) = value.filter(|value| value.as_array().is_some_and(|items| !items.is_empty())) {
            self.extra.insert(attribute.name.into(), value);
        }
    }
}

/// The elements stored in `extra`: the mapped element without its value, unless it is alone and has the parts that it is
/// shown with anyway.
fn extra_elements(elements: &[Value], at: Option<usize>, of_type: &str) -> Vec<Value> {
    let own = |index: usize, element: &Value| {
        let mut element = element.clone();
        if let Some(parts) = element.as_object_mut().filter(|_| Some(index) == at) {
            parts.remove("value");
        }
        element
    };
    let stored: Vec<Value> =
        elements.iter().enumerate().map(|(index, element)| own(index, element)).collect();
    if stored == [json!({ "type": of_type, "primary": true })] { Vec::new() } else { stored }
}

/// The index of the mapped element among those with a value: the primary one, else that of the type, else the
/// first.
fn mapped_element(elements: &[Value], of_type: &str) -> Option<usize> {
    let is_of_type = |one: &Value| {
        one.get("type").and_then(Value::as_str).is_some_and(|text| text.eq_ignore_ascii_case(of_type))
    };
    let find = |fits: &dyn Fn(&Value) -> bool| {
        elements.iter().position(|one| one.get("value").is_some() && fits(one))
    };
    find(&is_primary).or_else(|| find(&is_of_type)).or_else(|| find(&|_| true))
}
