//! What a resource says about the fields of the home.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

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
                    let rest = elements.iter().enumerate().filter(|(index, _)| Some(*index) != at);
                    self.keep(attribute, Some(rest.map(|(_, one)| one.clone()).collect()));
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
