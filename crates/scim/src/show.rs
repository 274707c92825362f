//! A resource made from what the home keeps of it.

use serde_json::{Value, json};

use crate::{Attribute, Home, Kind, Place, Resource, ResourceType};

/// What a home keeps of a resource. What there is not is null.
pub struct Kept<'a> {
    /// The value of a field.
    pub field: &'a dyn Fn(&str) -> Value,
    /// The value of a profile entry.
    pub entry: &'a dyn Fn(&str) -> Value,
    /// What was kept as it came.
    pub extra: &'a Resource,
}

/// Shows a resource with all that follows from fields: groups and members are the home's to add. `base` is the
/// base address; `token` is the concurrency token.
pub fn show(of: &'static ResourceType, home: Home, base: &str, token: &str, kept: &Kept<'_>) -> Resource {
    let mut resource = Resource::new();
    let mut schemas = Vec::new();
    for schema in of.schemas() {
        let mut own = Resource::new();
        for attribute in of.attributes(schema) {
            if let Some(value) = value(attribute, home, kept) {
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

fn value(attribute: &Attribute, home: Home, kept: &Kept<'_>) -> Option<Value> {
    let value = match attribute.place(home) {
        Place::Field(field) | Place::Seen(field) => (kept.field)(field),
        Place::Entry(key) => (kept.entry)(key),
        Place::Extra => shown_elements(attribute, home, kept.extra.get(attribute.name).cloned()),
        Place::Joined => joined(home, kept),
        Place::One { field, of_type, others } => {
            let one = (kept.field)(field);
            let beside = if others { kept.extra.get(attribute.name) } else { None };
            shown_elements(attribute, home, Some(elements(one, beside, of_type).into()))
        }
        Place::Within => {
            let Kind::Complex(parts) = attribute.kind else { return None };
            let parts =
                parts.iter().filter_map(|part| Some((part.name.to_owned(), value(part, home, kept)?)));
            let parts: Resource = parts.collect();
            if parts.is_empty() { Value::Null } else { parts.into() }
        }
        Place::Nowhere | Place::Ignored | Place::Sets { .. } | Place::Secret => Value::Null,
    };
    (!value.is_null()).then_some(value)
}

/// The elements that say something.
fn shown_elements(attribute: &Attribute, home: Home, elements: Option<Value>) -> Value {
    let Some(Value::Array(mut elements)) = elements else { return Value::Null };
    elements.retain(|element| attribute.says_something(home, element));
    if elements.is_empty() { Value::Null } else { elements.into() }
}

/// The elements of an attribute of which one is a field: among those kept beside it the one without a value, else the
/// first.
fn elements(one: Value, beside: Option<&Value>, of_type: &str) -> Vec<Value> {
    let mut elements = beside.and_then(Value::as_array).cloned().unwrap_or_default();
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
fn joined(home: Home, kept: &Kept<'_>) -> Value {
    let middle = match home {
        Home::Provider => Value::Null,
        Home::Store => (kept.field)("middleName"),
    };
    let parts = [(kept.field)("firstName"), middle, (kept.field)("lastName")];
    let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
    if parts.is_empty() { Value::Null } else { parts.join(" ").into() }
}

#[cfg(test)]
mod tests {
    use chancery_record::Json;
    use proptest::prelude::{Strategy, prop_assert_eq, proptest};
    use serde_json::{Value, json};

    use super::{Kept, show};
    use crate::{Fields, Home, Resource, ScimType, USER, fields_of, read_resource};

    const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

    fn shown(home: Home, fields: &Fields) -> Resource {
        let field = |name: &str| match name {
            "id" => json!("7"),
            _ => fields.fields.get(name).cloned().unwrap_or_default(),
        };
        let entry = |key: &str| fields.entries.get(key).cloned().unwrap_or_default();
        let kept = Kept { field: &field, entry: &entry, extra: &fields.extra };
        show(&USER, home, "https://example.com/scim", "3", &kept)
    }

    fn fields(home: Home, body: Value) -> Fields {
        let resource = read_resource(&USER, home, &Json::from_serde(body)).unwrap();
        fields_of(&USER, home, &resource).unwrap()
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
    fn a_store_keeps_what_its_fields_entries_and_extra_hold() {
        let fields = fields(Home::Store, whole());
        assert_eq!(fields.fields["loginName"], "ada");
        assert_eq!(fields.fields["emailAddress"], "a@example.com");
        assert_eq!(fields.fields["nickname"], Value::Null);
        assert_eq!(fields.entries["manager"], "9");
        assert_eq!(fields.secrets["password"], "secret");
        // the field's own keeps its place and its type among the others
        let kept = json!([{ "value": "home@example.com", "type": "home" }, { "type": "work" }]);
        assert_eq!(fields.extra["emails"], kept);
        let shown = shown(Home::Store, &fields);
        assert_eq!(shown["name"]["formatted"], "Ada King Lovelace");
        assert_eq!(shown["emails"], whole()["emails"]);
        assert_eq!(shown["meta"]["location"], "https://example.com/scim/Users/7");
        assert_eq!(shown["meta"]["version"], "W/\"3\"");
        assert_eq!(shown["schemas"], json!([USER.core.urn, ENTERPRISE]));
        assert_eq!(shown.get("password"), None);
    }

    #[test]
    fn an_element_without_a_value_is_neither_kept_nor_shown() {
        let good = json!({ "value": "a@example.com", "type": "work" });
        for emails in
            [json!([{ "display": "Only" }, good]), json!([good, { "type": "home", "display": "A" }])]
        {
            let fields = fields(Home::Store, json!({ "userName": "ada", "emails": emails }));
            assert_eq!(shown(Home::Store, &fields)["emails"], json!([good]));
        }
        // what was kept before
        let mut kept = fields(Home::Store, json!({ "userName": "ada" }));
        kept.extra.insert("emails".into(), json!([{ "display": "Only", "value": null }]));
        kept.extra.insert("roles".into(), json!([{ "display": "Only" }]));
        let shown = shown(Home::Store, &kept);
        assert_eq!((shown.get("emails"), shown.get("roles")), (None, None));
    }

    #[test]
    fn a_provider_keeps_less() {
        let fields = fields(Home::Provider, whole());
        assert_eq!(fields.fields["organizationalUnit"], "Engines");
        assert_eq!(fields.fields["managerId"], "9");
        assert!(fields.entries.is_empty() && fields.extra.is_empty() && fields.secrets.is_empty());
        let shown = shown(Home::Provider, &fields);
        assert_eq!(shown["displayName"], "Ada Lovelace");
        assert_eq!(shown["emails"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn what_is_kept_as_it_came_has_a_bound() {
        let body = json!({ "userName": "ada", "roles": [{ "value": "r".repeat(17_000) }] });
        let resource = read_resource(&USER, Home::Store, &Json::from_serde(body)).unwrap();
        let refusal = fields_of(&USER, Home::Store, &resource).unwrap_err();
        assert_eq!(refusal.scim_type, Some(ScimType::InvalidValue));
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
        fn what_is_shown_round_trips(body in bodies()) {
            for home in [Home::Provider, Home::Store] {
                let kept = fields(home, body.clone());
                let again = fields(home, Value::Object(shown(home, &kept)));
                prop_assert_eq!(&again, &kept);
            }
        }
    }
}
