//! Renders a stored resource in SCIM's form.

use serde_json::{Value, json};

use crate::{Attribute, AttributeType, Mapping, Resource, ResourceType, Target};

/// The stored values of a resource. Missing ones are null.
pub struct StoredResource<'a> {
    /// The value of a field.
    pub field: &'a dyn Fn(&str) -> Value,
    /// The value of a profile entry.
    pub entry: &'a dyn Fn(&str) -> Value,
    /// The attributes that are stored as they were sent.
    pub extra: &'a Resource,
}

/// Renders a resource from its fields: the caller adds groups and members. `base` is the base address; `token` is the
/// concurrency token.
pub fn show(
    of: &'static ResourceType,
    target: Target,
    base: &str,
    token: &str,
    stored: &StoredResource<'_>,
) -> Resource {
    let mut resource = Resource::new();
    let mut schemas = Vec::new();
    for schema in of.schemas() {
        let mut own = Resource::new();
        for attribute in of.attributes(schema) {
            if let Some(value) = value(attribute, target, stored) {
                own.insert(attribute.name.into(), value);
            }
        }
        if schema.urn == of.core.urn {
            schemas.push(schema.urn);
            resource.append(&mut own);
        } else if !own.is_empty() {
            schemas.push(schema.urn);
            resource.insert(schema.urn.into(), own.into());
        }
    }
    let id = resource.get("id").and_then(Value::as_str).unwrap_or_default();
    let location = format!("{base}{}/{id}", of.endpoint);
    let meta = resource.entry("meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("resourceType".into(), of.name.into());
        meta.insert("location".into(), location.into());
        meta.insert("version".into(), format!("W/\"{token}\"").into());
    }
    resource.insert("schemas".into(), schemas.into());
    resource
}

fn value(attribute: &Attribute, target: Target, stored: &StoredResource<'_>) -> Option<Value> {
    let value = match attribute.mapping(target) {
        Mapping::Field(field) | Mapping::ReadOnly(field) => (stored.field)(field),
        Mapping::Entry(key) => (stored.entry)(key),
        Mapping::Extra => elements_with_content(attribute, target, stored.extra.get(attribute.name).cloned()),
        Mapping::Joined => full_name(target, stored),
        Mapping::Element { field, of_type, others } => {
            let one = (stored.field)(field);
            let extra = if others { stored.extra.get(attribute.name) } else { None };
            elements_with_content(attribute, target, Some(elements(one, extra, of_type).into()))
        }
        Mapping::Within => {
            let AttributeType::Complex(parts) = attribute.kind else { return None };
            let parts =
                parts.iter().filter_map(|part| Some((part.name.to_owned(), value(part, target, stored)?)));
            let parts: Resource = parts.collect();
            if parts.is_empty() { Value::Null } else { parts.into() }
        }
        Mapping::Unmapped | Mapping::Ignored | Mapping::Sets { .. } | Mapping::Secret => Value::Null,
    };
    (!value.is_null()).then_some(value)
}

/// The elements with content.
fn elements_with_content(attribute: &Attribute, target: Target, elements: Option<Value>) -> Value {
    let Some(Value::Array(mut elements)) = elements else { return Value::Null };
    elements.retain(|element| attribute.has_content(target, element));
    if elements.is_empty() { Value::Null } else { elements.into() }
}

/// The elements of an attribute of which one is a field: among the `extra` ones that without a value, else the
/// first.
fn elements(one: Value, extra: Option<&Value>, of_type: &str) -> Vec<Value> {
    let mut elements = extra.and_then(Value::as_array).cloned().unwrap_or_default();
    let own = elements.iter().position(|element| element.get("value").is_none());
    match (own, one) {
        (Some(at), Value::Null) => {
            elements.remove(at);
        }
        (Some(at), one) => {
            if let Some(parts) = elements.get_mut(at).and_then(Value::as_object_mut) {
                parts.insert("value".into(), one);
            }
        }
        (None, Value::Null) => {}
        (None, one) => elements.insert(0, json!({ "value": one, "type": of_type, "primary": true })),
    }
    for parts in elements.iter_mut().filter_map(Value::as_object_mut) {
        parts.retain(|_, part| !part.is_null());
    }
    elements
}

/// First, middle and last name.
fn full_name(target: Target, stored: &StoredResource<'_>) -> Value {
    let middle = match target {
        Target::Provider => Value::Null,
        Target::Store => (stored.field)("middleName"),
    };
    let parts = [(stored.field)("firstName"), middle, (stored.field)("lastName")];
    let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
    if parts.is_empty() { Value::Null } else { parts.join(" ").into() }
}

#[cfg(test)]
mod tests {
    use chancery_record::Json;
    use proptest::prelude::{Strategy, prop_assert_eq, proptest};
    use serde_json::{Value, json};

    use super::{StoredResource, show};
    use crate::{Fields, Resource, ScimType, Target, USER, fields_of, read_resource};

    const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

    fn shown(target: Target, fields: &Fields) -> Resource {
        let field = |name: &str| match name {
            "id" => json!("7"),
            _ => fields.fields.get(name).cloned().unwrap_or_default(),
        };
        let entry = |key: &str| fields.entries.get(key).cloned().unwrap_or_default();
        let stored = StoredResource { field: &field, entry: &entry, extra: &fields.extra };
        show(&USER, target, "https://example.com/scim", "3", &stored)
    }

    fn fields(target: Target, body: Value) -> Fields {
        let resource = read_resource(&USER, target, &Json::from_serde(body)).unwrap();
        fields_of(&USER, target, &resource).unwrap()
    }

    fn whole() -> Value {
        let mut body = json!({
            "userName": "ada", "externalId": "x-1", "active": true,
            "name": { "givenName": "Ada", "middleName": "King", "familyName": "Lovelace" },
            "title": "Countess", "password": "secret",
            "emails": [
                { "value": "home@example.com", "type": "home" }, { "value": "a@example.com", "type": "work" },
            ],
            "roles": [{ "value": "author" }],
        });
        body[ENTERPRISE] = json!({ "department": "Engines", "manager": "9" });
        body
    }

    #[test]
    fn a_store_stores_fields_entries_and_extra() {
        let fields = fields(Target::Store, whole());
        assert_eq!(fields.fields["loginName"], "ada");
        assert_eq!(fields.fields["emailAddress"], "a@example.com");
        assert_eq!(fields.fields["nickname"], Value::Null);
        assert_eq!(fields.entries["manager"], "9");
        assert_eq!(fields.secrets["password"], "secret");
        // the mapped element keeps its position and its type among the others
        let stored = json!([{ "value": "home@example.com", "type": "home" }, { "type": "work" }]);
        assert_eq!(fields.extra["emails"], stored);
        let shown = shown(Target::Store, &fields);
        assert_eq!(shown["name"]["formatted"], "Ada King Lovelace");
        assert_eq!(shown["emails"], whole()["emails"]);
        assert_eq!(shown["meta"]["location"], "https://example.com/scim/Users/7");
        assert_eq!(shown["meta"]["version"], "W/\"3\"");
        assert_eq!(shown["schemas"], json!([USER.core.urn, ENTERPRISE]));
        assert_eq!(shown.get("password"), None);
    }

    #[test]
    fn an_element_without_a_value_is_neither_stored_nor_rendered() {
        let good = json!({ "value": "a@example.com", "type": "work" });
        for emails in
            [json!([{ "display": "Only" }, good]), json!([good, { "type": "home", "display": "A" }])]
        {
            let fields = fields(Target::Store, json!({ "userName": "ada", "emails": emails }));
            assert_eq!(shown(Target::Store, &fields)["emails"], json!([good]));
        }
        // stored by an earlier version
        let mut stored = fields(Target::Store, json!({ "userName": "ada" }));
        stored.extra.insert("emails".into(), json!([{ "display": "Only", "value": null }]));
        stored.extra.insert("roles".into(), json!([{ "display": "Only" }]));
        let shown = shown(Target::Store, &stored);
        assert_eq!((shown.get("emails"), shown.get("roles")), (None, None));
    }

    #[test]
    fn a_provider_stores_fewer_attributes() {
        let fields = fields(Target::Provider, whole());
        assert_eq!(fields.fields["organizationalUnit"], "Engines");
        assert_eq!(fields.fields["managerId"], "9");
        assert!(fields.entries.is_empty() && fields.extra.is_empty() && fields.secrets.is_empty());
        let shown = shown(Target::Provider, &fields);
        assert_eq!(shown["displayName"], "Ada Lovelace");
        assert_eq!(shown["emails"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn extra_attributes_are_limited_in_size() {
        let body = json!({ "userName": "ada", "roles": [{ "value": "r".repeat(17_000) }] });
        let resource = read_resource(&USER, Target::Store, &Json::from_serde(body)).unwrap();
        let error = fields_of(&USER, Target::Store, &resource).unwrap_err();
        assert_eq!(error.scim_type, Some(ScimType::InvalidValue));
    }

    fn bodies() -> impl Strategy<Value = Value> {
        let texts = proptest::collection::vec(proptest::option::of("[a-z]{1,5}"), 6);
        let types = proptest::sample::select(vec!["work", "home", "other"]);
        let element = ("[a-c]", types, proptest::bool::ANY);
        (texts, proptest::collection::vec(element, 0..4)).prop_map(|(texts, elements)| {
            let mut marked = false;
            let emails = elements.into_iter().map(|(value, of_type, mark)| {
                let primary = mark && !std::mem::replace(&mut marked, true);
                json!({ "value": value, "type": of_type, "primary": primary })
            });
            let emails: Vec<Value> = emails.collect();
            let mut body = json!({
                "userName": "ada", "nickName": texts[0], "title": texts[1], "emails": emails,
                "name": { "givenName": texts[2], "familyName": texts[3] },
            });
            body[ENTERPRISE] = json!({ "department": texts[4], "manager": texts[5] });
            body
        })
    }

    proptest! {
        /// What is shown is read again as the same fields, at both homes.
        #[test]
        fn rendered_resources_round_trip(body in bodies()) {
            for target in [Target::Provider, Target::Store] {
                let stored = fields(target, body.clone());
                let again = fields(target, Value::Object(shown(target, &stored)));
                prop_assert_eq!(&again, &stored);
            }
        }
    }
}
