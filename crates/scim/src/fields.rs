//! What a resource says about the fields of the home.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{Attribute, Home, Kind, Place, Refusal, Resource, ResourceType, ScimType, read::is_primary};

/// The most bytes of what is kept as it came.
pub const MAX_EXTRA_BYTES: usize = 16 << 10;

/// What a resource writes. All that the home knows is named: what has no value is null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    /// Fields of the resource.
    pub fields: BTreeMap<&'static str, Value>,
    /// Profile entries by their keys.
    pub entries: BTreeMap<&'static str, Value>,
    /// What is written and never shown.
    pub secrets: BTreeMap<&'static str, Value>,
    /// What is kept as it came, by the attribute's name.
    pub extra: Resource,
}

/// The fields of a resource that was read or patched.
///
/// # Errors
/// More than [`MAX_EXTRA_BYTES`] that are kept as they came.
pub fn fields_of(of: &'static ResourceType, home: Home, resource: &Resource) -> Result<Fields, Refusal> {
    let mut fields = Fields::default();
    let nothing = Map::new();
    for schema in of.schemas() {
        let is_core = schema.urn == of.core.urn;
        let extension = resource.get(schema.urn).and_then(Value::as_object);
        let own = if is_core { resource } else { extension.unwrap_or(&nothing) };
        for attribute in of.attributes(schema) {
            fields.add(home, attribute, own.get(attribute.name));
        }
    }
    if !fields.extra.is_empty() && Value::Object(fields.extra.clone()).to_string().len() > MAX_EXTRA_BYTES {
        let names: Vec<&str> = fields.extra.keys().map(String::as_str).collect();
        let detail = format!("{} have more than {MAX_EXTRA_BYTES} bytes together", names.join(", "));
        return Err(Refusal::wrong(ScimType::InvalidValue, detail));
    }
    Ok(fields)
}

/// The keys of the profile entries that a home keeps attributes in.
pub fn entry_keys(of: &'static ResourceType, home: Home) -> Vec<&'static str> {
    let mut keys = Vec::new();
    each_place(of, home, &mut |place, _| {
        if let Place::Entry(key) = place {
            keys.push(key);
        }
    });
    keys
}

/// Where a field, or an entry, of a home is in a resource: a JSON Pointer, without a slash at its beginning.
pub fn pointer_of(of: &'static ResourceType, home: Home, name: &str) -> Option<String> {
    let mut found = None;
    each_place(of, home, &mut |place, at| {
        let is_it = match place {
            Place::Field(field) | Place::Seen(field) | Place::One { field, .. } => field == name,
            Place::Entry(key) => key == name,
            _ => false,
        };
        if is_it && found.is_none() {
            found = Some(at.to_owned());
        }
    });
    found
}

fn each_place(of: &'static ResourceType, home: Home, see: &mut dyn FnMut(Place, &str)) {
    for schema in of.schemas() {
        let before = if schema.urn == of.core.urn { String::new() } else { format!("{}/", schema.urn) };
        for attribute in of.attributes(schema) {
            let at = format!("{before}{}", attribute.name);
            see(attribute.place(home), &at);
            if attribute.place(home) == Place::Within && !attribute.many {
                for part in attribute.parts() {
                    see(part.place(home), &format!("{at}/{}", part.name));
                }
            }
        }
    }
}

impl Fields {
    fn add(&mut self, home: Home, attribute: &Attribute, value: Option<&Value>) {
        let or_null = |value: Option<&Value>| value.cloned().unwrap_or_default();
        match attribute.place(home) {
            Place::Field(field) => {
                self.fields.insert(field, or_null(value));
            }
            Place::Entry(key) => {
                self.entries.insert(key, or_null(value));
            }
            Place::Secret => {
                if let Some(value) = value {
                    self.secrets.insert(attribute.name, value.clone());
                }
            }
            Place::Extra => self.keep(attribute, value.cloned()),
            Place::One { field, of_type, others } => {
                let elements = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let at = the_one(elements, of_type);
                let one = at.and_then(|at| elements.get(at)).and_then(|one| one.get("value"));
                self.fields.insert(field, or_null(one));
                if others {
                    self.keep(attribute, Some(beside(elements, at, of_type).into()));
                }
            }
            Place::Within => {
                if let Kind::Complex(parts) = attribute.kind {
                    for part in parts {
                        self.add(home, part, value.and_then(|value| value.get(part.name)));
                    }
                }
            }
            Place::Nowhere | Place::Ignored | Place::Seen(_) | Place::Joined | Place::Sets { .. } => {}
        }
    }

    fn keep(&mut self, attribute: &Attribute, value: Option<Value>) {
        if let Some(value) = value.filter(|value| value.as_array().is_some_and(|items| !items.is_empty())) {
            self.extra.insert(attribute.name.into(), value);
        }
    }
}

/// The elements that are kept beside the field: the field's own without its value, unless it is alone and as it is shown
/// anyway.
fn beside(elements: &[Value], at: Option<usize>, of_type: &str) -> Vec<Value> {
    let own = |index: usize, element: &Value| {
        let mut element = element.clone();
        if let Some(parts) = element.as_object_mut().filter(|_| Some(index) == at) {
            parts.remove("value");
        }
        element
    };
    let kept: Vec<Value> = elements.iter().enumerate().map(|(index, element)| own(index, element)).collect();
    if kept == [json!({ "type": of_type, "primary": true })] { Vec::new() } else { kept }
}

/// Which of the elements with a value is the home's field: the primary one, else that of the type, else the
/// first.
fn the_one(elements: &[Value], of_type: &str) -> Option<usize> {
    let is_of_type = |one: &Value| {
        one.get("type").and_then(Value::as_str).is_some_and(|text| text.eq_ignore_ascii_case(of_type))
    };
    let find = |fits: &dyn Fn(&Value) -> bool| {
        elements.iter().position(|one| one.get("value").is_some() && fits(one))
    };
    find(&is_primary).or_else(|| find(&is_of_type)).or_else(|| find(&|_| true))
}
