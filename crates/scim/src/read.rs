//! Reads the values of a request by the table of attributes.

use chancery_record::{FieldError, Json, is_web_url};
use serde_json::{Map, Value};

use crate::{Attribute, AttributeType, Mapping, Quirk, ResourceType, Schema, ScimError, ScimType, Target};

/// The most elements of an attribute, members of a group excepted.
pub const MAX_ELEMENTS: usize = 100;

/// A resource in SCIM's form, its names spelled as in the schemas.
pub type Resource = Map<String, Value>;

/// Reads the body of a POST or PUT. Unknown attributes and those that only this server writes are left out.
///
/// # Errors
/// All invalid attributes.
pub fn read_resource(of: &'static ResourceType, target: Target, body: &Json) -> Result<Resource, ScimError> {
    let Json::Object(members) = body else {
        let detail = format!("The body must be an object, not {}.", body.word());
        return Err(ScimError::new(ScimType::InvalidSyntax, detail));
    };
    let mut reader = Reader::new(target);
    let mut resource = Resource::new();
    for (name, json) in members {
        let extension = of.extensions.iter().find(|schema| schema.urn.eq_ignore_ascii_case(name));
        match (extension, json) {
            (None, _) => reader.add(&mut resource, of, of.core, name, json, ""),
            (Some(schema), Json::Object(members)) => {
                let mut own = Resource::new();
                for (name, json) in members {
                    reader.add(&mut own, of, schema, name, json, &format!("/{}", schema.urn));
                }
                if !own.is_empty() {
                    resource.insert(schema.urn.into(), own.into());
                }
            }
            (Some(_), Json::Null) => {}
            (Some(schema), _) => reader.add_error(&format!("/{}", schema.urn), "must be an object"),
        }
    }
    leave_out_empty(of, target, &mut resource);
    for name in missing(of, target, &resource) {
        reader.add_error(&format!("/{name}"), "is required");
    }
    reader.finish(resource)
}

/// Removes elements without content.
pub fn leave_out_empty(of: &'static ResourceType, target: Target, resource: &mut Resource) {
    let is_list = |one: &&Attribute| one.many && !matches!(one.mapping(target), Mapping::Sets { .. });
    for attribute in of.attributes(of.core).filter(is_list) {
        let Some(Value::Array(elements)) = resource.get_mut(attribute.name) else { continue };
        elements.retain(|element| attribute.has_content(target, element));
        if elements.is_empty() {
            resource.remove(attribute.name);
        }
    }
}

/// The required attributes that a resource does not have.
pub fn missing(of: &'static ResourceType, target: Target, resource: &Resource) -> Vec<&'static str> {
    of.attributes(of.core)
        .filter(|one| one.required && one.is_advertised(target) && !resource.contains_key(one.name))
        .map(|one| one.name)
        .collect()
}

/// Reads values and collects errors.
pub struct Reader {
    target: Target,
    errors: Vec<FieldError>,
}

impl Reader {
    /// A reader for this target.
    pub const fn new(target: Target) -> Self {
        Self { target, errors: Vec::new() }
    }

    /// The value, if there was no error.
    pub fn finish<T>(self, read: T) -> Result<T, ScimError> {
        if self.errors.is_empty() { Ok(read) } else { Err(ScimError::of_fields(self.errors)) }
    }

    fn add_error(&mut self, at: &str, detail: impl Into<String>) {
        self.errors.push(FieldError::new(at, detail.into()));
    }

    /// Adds one attribute of a body.
    fn add(
        &mut self,
        to: &mut Resource,
        of: &ResourceType,
        schema: &Schema,
        name: &str,
        json: &Json,
        at: &str,
    ) {
        let Some(attribute) = of.find(schema, self.target, name) else { return };
        if attribute.is_read_only(self.target) || attribute.is_ignored(self.target) {
            return;
        }
        let at = format!("{at}/{}", attribute.name);
        self.insert(to, attribute, json, &at);
    }

    fn insert(&mut self, to: &mut Resource, attribute: &Attribute, json: &Json, at: &str) {
        if to.contains_key(attribute.name) {
            self.add_error(at, "is there twice, in different case");
        } else if let Some(value) = self.value(attribute, json, at) {
            to.insert(attribute.name.into(), value);
        }
    }

    /// The value of an attribute; `None` for none.
    pub fn value(&mut self, attribute: &Attribute, json: &Json, at: &str) -> Option<Value> {
        if !attribute.many {
            return self.element(attribute, json, at);
        }
        let items = match json {
            Json::Null => return None,
            Json::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let is_set = matches!(attribute.mapping(self.target), Mapping::Sets { .. });
        if items.len() > MAX_ELEMENTS && !is_set {
            self.add_error(at, format!("has at most {MAX_ELEMENTS} values"));
            return None;
        }
        let mut values = Vec::with_capacity(items.len());
        for (number, item) in items.iter().enumerate() {
            let Some(value) = self.element(attribute, item, &format!("{at}/{number}")) else { continue };
            // members of a relation are deduplicated later, by their ids
            if is_set || !values.contains(&value) {
                values.push(value);
            }
        }
        if values.iter().filter(|value| is_primary(value)).count() > 1 {
            self.add_error(at, "has more than one primary value");
        }
        (!values.is_empty()).then_some(Value::Array(values))
    }

    /// One value of an attribute, of many or the only one.
    pub fn element(&mut self, attribute: &Attribute, json: &Json, at: &str) -> Option<Value> {
        let json = unwrapped(attribute, json);
        match (attribute.kind, json) {
            (_, Json::Null) => None,
            (AttributeType::Complex(_), Json::Text(text)) if attribute.quirk == Some(Quirk::TextIsValue) => {
                let members = [("value".to_owned(), Json::Text(text.clone()))];
                self.complex(attribute, &members, at)
            }
            (AttributeType::Complex(_), Json::Object(members)) => self.complex(attribute, members, at),
            (AttributeType::Bool, Json::Bool(value)) => Some((*value).into()),
            (AttributeType::Bool, Json::Text(text)) => {
                let value = truth_in(text);
                if value.is_none() {
                    self.add_error(at, "must be true or false");
                }
                value.map(Value::from)
            }
            (AttributeType::Text | AttributeType::Time | AttributeType::Reference(_), Json::Text(text)) => {
                if text.contains('\0') {
                    self.add_error(at, "must not contain a NUL character");
                }
                if attribute.required && text.trim().is_empty() {
                    self.add_error(at, "must not be empty");
                }
                if attribute.is_web_address() && !text.trim().is_empty() && !is_web_url(text.trim()) {
                    self.add_error(at, "must be an address that begins with https:// or http://");
                }
                let is_none = text.is_empty() && attribute.quirk == Some(Quirk::TextIsValue);
                let is_tag = attribute.quirk == Some(Quirk::Language);
                (!is_none).then(|| if is_tag { text.replace('_', "-").into() } else { text.as_str().into() })
            }
            (kind, other) => {
                self.add_error(at, format!("must be {}, not {}", type_name(kind), other.word()));
                None
            }
        }
    }

    fn complex(&mut self, attribute: &Attribute, members: &[(String, Json)], at: &str) -> Option<Value> {
        let (mut parts, before) = (Resource::new(), self.errors.len());
        for (name, json) in members {
            let Some(part) = attribute.part(self.target, name) else { continue };
            if !part.is_read_only(self.target) && !part.is_ignored(self.target) {
                self.insert(&mut parts, part, json, &format!("{at}/{}", part.name));
            }
        }
        let required = attribute.parts().iter().filter(|part| part.required);
        for part in required.filter(|part| !parts.contains_key(part.name)) {
            if self.errors.len() == before {
                self.add_error(&format!("{at}/{}", part.name), "is required");
            }
        }
        (!parts.is_empty()).then_some(Value::Object(parts))
    }
}

/// Parses a truth value.
pub fn truth_in(text: &str) -> Option<bool> {
    let words = [("true", true), ("false", false)];
    words.into_iter().find_map(|(word, value)| text.eq_ignore_ascii_case(word).then_some(value))
}

/// Unwraps a truth value that clients send as `[{"value": ..}]`.
fn unwrapped<'a>(attribute: &Attribute, json: &'a Json) -> &'a Json {
    match json {
        Json::Array(items) if attribute.quirk == Some(Quirk::Truth) => match items.as_slice() {
            [one] => one.get("value").unwrap_or(json),
            _ => json,
        },
        _ => json,
    }
}

const fn type_name(kind: AttributeType) -> &'static str {
    match kind {
        AttributeType::Text | AttributeType::Time | AttributeType::Reference(_) => "a string",
        AttributeType::Bool => "true or false",
        AttributeType::Complex(_) => "an object",
    }
}

/// Whether an element has `primary` set.
pub fn is_primary(element: &Value) -> bool {
    element.get("primary") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use chancery_record::Json;
    use serde_json::{Value, json};

    use super::read_resource;
    use crate::{ScimError, ScimType, Target, USER};

    fn read(target: Target, body: Value) -> Result<Value, ScimError> {
        read_resource(&USER, target, &Json::from_serde(body)).map(Value::Object)
    }

    #[test]
    fn names_are_written_as_in_the_schema() {
        let body = json!({
            "SCHEMAS": ["x"], "username": "ada", "NAME": { "GivenName": "Ada" }, "id": "1", "meta": {},
            "urn:IETF:params:scim:schemas:extension:enterprise:2.0:user": { "Department": "Engines" },
            "nobody": 1, "groups": [{ "value": "g" }],
        });
        let expected = json!({
            "userName": "ada", "name": { "givenName": "Ada" },
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { "department": "Engines" },
        });
        assert_eq!(read(Target::Store, body).unwrap(), expected);
    }

    #[test]
    fn no_value_is_null_or_empty() {
        let body = json!({ "userName": "ada", "title": null, "emails": [], "name": { "givenName": null } });
        assert_eq!(read(Target::Store, body).unwrap(), json!({ "userName": "ada" }));
    }

    #[test]
    fn truth_values_are_read_from_text() {
        for (sent, expected) in [
            (json!("False"), false),
            (json!("TRUE"), true),
            (json!([{ "value": "False" }]), false),
            (json!([{ "value": true }]), true),
            (json!(false), false),
        ] {
            let read = read(Target::Provider, json!({ "userName": "ada", "active": sent })).unwrap();
            assert_eq!(read["active"], expected, "{sent}");
        }
        for name in ["emails", "roles"] {
            let body = json!({ "userName": "ada", name: [{ "value": "a@example.com", "primary": "True" }] });
            assert_eq!(read(Target::Store, body).unwrap()[name][0]["primary"], true, "{name}");
        }
        for body in [
            json!({ "userName": "ada", "active": "no" }),
            json!({ "userName": "ada", "emails": [{ "value": "a@example.com", "primary": "1" }] }),
        ] {
            assert_eq!(read(Target::Store, body).unwrap_err().scim_type, Some(ScimType::InvalidValue));
        }
    }

    #[test]
    fn elements_without_a_value_are_left_out() {
        let body = json!({
            "userName": "ada",
            "emails": [{ "type": "work", "primary": true }, { "value": null, "display": "x" }, { "value": " " }],
            "roles": [{ "value": "author" }, { "display": "Reader" }],
            "addresses": [{ "type": "home" }, { "type": "work", "locality": "Berlin" }],
        });
        let expected = json!({
            "userName": "ada", "roles": [{ "value": "author" }],
            "addresses": [{ "type": "work", "locality": "Berlin" }],
        });
        assert_eq!(read(Target::Store, body).unwrap(), expected);
    }

    #[test]
    fn a_required_name_is_not_empty() {
        for target in [Target::Store, Target::Provider] {
            for name in ["", "  "] {
                let error = read(target, json!({ "userName": name })).unwrap_err();
                assert_eq!(error.errors[0].pointer, "/userName");
            }
        }
    }

    #[test]
    fn addresses_of_pages_and_pictures_are_web_addresses() {
        let bodies = |address: &str| {
            [
                json!({ "userName": "ada", "profileUrl": address }),
                json!({ "userName": "ada", "photos": [{ "value": address, "type": "photo" }] }),
            ]
        };
        for address in
            ["javascript:alert(1)", "JavaScript://x%0aalert(1)", "data:text/html,x", "//x", "https://", "x"]
        {
            for body in bodies(address) {
                let error = read(Target::Store, body).unwrap_err();
                assert_eq!(error.scim_type, Some(ScimType::InvalidValue), "{address}");
            }
        }
        for address in ["https://example.com/ada", "HTTP://example.com", ""] {
            for body in bodies(address) {
                assert!(read(Target::Store, body).is_ok(), "{address}");
            }
        }
    }

    #[test]
    fn a_manager_is_text_or_an_object_and_empty_text_is_none() {
        let urn = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
        for (sent, expected) in [
            (json!("7"), json!({ "manager": { "value": "7" } })),
            (json!({ "value": "7", "displayName": "Bo" }), json!({ "manager": { "value": "7" } })),
            (json!({ "value": "" }), Value::Null),
            (json!(""), Value::Null),
            (Value::Null, Value::Null),
        ] {
            let mut body = json!({ "userName": "ada" });
            body[urn] = json!({ "manager": sent });
            let read = read(Target::Provider, body).unwrap();
            assert_eq!(read.get(urn).cloned().unwrap_or_default(), expected, "{sent}");
        }
    }

    #[test]
    fn all_errors_are_reported() {
        let emails = json!([{ "value": "a", "primary": true }, { "value": "b", "primary": true }]);
        let body = json!({ "title": 7, "emails": emails, "TITLE": "x", "nickName": "a\u{0}b" });
        let error = read(Target::Store, body).unwrap_err();
        let mut pointers: Vec<&str> = error.errors.iter().map(|error| error.pointer.as_str()).collect();
        pointers.sort_unstable();
        assert_eq!(pointers, ["/emails", "/nickName", "/title", "/userName"]);
        let error = read(Target::Store, json!([])).unwrap_err();
        assert_eq!(error.scim_type, Some(ScimType::InvalidSyntax));
    }

    #[test]
    fn attributes_have_bounds() {
        let many: Vec<_> = (0..101).map(|n| json!({ "value": n.to_string() })).collect();
        assert!(read(Target::Store, json!({ "userName": "ada", "emails": many })).is_err());
    }
}
