//! The documents by which clients learn what there is: `/ServiceProviderConfig`, `/Schemas`, `/ResourceTypes`.

use serde_json::{Map, Value, json};

use crate::{Attribute, GROUP, Home, Kind, Place, ResourceType, Returned, Schema, USER};

const SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Schema";
const RESOURCE_TYPE: &str = "urn:ietf:params:scim:schemas:core:2.0:ResourceType";
const CONFIG: &str = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig";
/// Operations and bytes of a bulk request.
const MAX_BULK: (u32, u32) = (1000, 10 << 20);
/// Resources of a page, where nothing is said and at most.
const PAGE: (u32, u32) = (100, 1000);

/// What this server can do.
pub fn service_provider_config(base: &str) -> Value {
    let supported = json!({ "supported": true });
    json!({
        "schemas": [CONFIG],
        "patch": supported,
        "bulk": { "supported": true, "maxOperations": MAX_BULK.0, "maxPayloadSize": MAX_BULK.1 },
        "filter": { "supported": true, "maxResults": PAGE.1 },
        "changePassword": supported,
        "sort": supported,
        "etag": supported,
        "pagination": {
            "cursor": true, "index": true, "defaultPaginationMethod": "index",
            "defaultPageSize": PAGE.0, "maxPageSize": PAGE.1,
        },
        "authenticationSchemes": [{
            "type": "oauthbearertoken", "name": "Bearer token",
            "description": "A token for SCIM that an administrator makes", "primary": true,
        }],
        "meta": { "resourceType": "ServiceProviderConfig", "location": format!("{base}/ServiceProviderConfig") },
    })
}

/// The types of resources.
pub fn resource_types(base: &str) -> Vec<Value> {
    let shown = |of: &ResourceType| {
        let extensions = of.extensions.iter();
        let extensions = extensions.map(|schema| json!({ "schema": schema.urn, "required": false }));
        json!({
            "schemas": [RESOURCE_TYPE], "id": of.name, "name": of.name, "endpoint": of.endpoint,
            "description": of.about, "schema": of.core.urn, "schemaExtensions": extensions.collect::<Value>(),
            "meta": { "resourceType": "ResourceType", "location": format!("{base}/ResourceTypes/{}", of.name) },
        })
    };
    vec![shown(&USER), shown(&GROUP)]
}

/// The schemas of this home: what is there goes out as it came in.
pub fn schemas(home: Home, base: &str) -> Vec<Value> {
    let shown = |schema: &Schema| {
        json!({
            "schemas": [SCHEMA], "id": schema.urn, "name": schema.name, "description": schema.about,
            "attributes": attributes(home, schema.attributes, None),
            "meta": { "resourceType": "Schema", "location": format!("{base}/Schemas/{}", schema.urn) },
        })
    };
    USER.schemas().chain(GROUP.schemas()).map(shown).collect()
}

/// The attributes that the home advertises; `within` is how the attribute that they are parts of is written.
fn attributes(home: Home, attributes: &[Attribute], within: Option<&str>) -> Value {
    let advertised = attributes.iter().filter(|attribute| attribute.is_advertised(home));
    advertised.map(|attribute| shown(home, attribute, within)).collect()
}

fn shown(home: Home, attribute: &Attribute, within: Option<&str>) -> Value {
    let mutability = match (attribute.place(home), within) {
        _ if attribute.told || attribute.is_read_only(home) || attribute.is_ignored(home) => "readOnly",
        (Place::Secret, _) => "writeOnly",
        (Place::Within, Some(within)) => within,
        _ => "readWrite",
    };
    let kind = match attribute.kind {
        Kind::Text => "string",
        Kind::Bool => "boolean",
        Kind::Time => "dateTime",
        Kind::Reference(_) => "reference",
        Kind::Complex(_) => "complex",
    };
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.into(), value);
    put("name", attribute.name.into());
    put("type", kind.into());
    put("description", attribute.about.into());
    put("multiValued", attribute.many.into());
    put("required", attribute.required.into());
    put("mutability", mutability.into());
    put("returned", returned(attribute.returned).into());
    match attribute.kind {
        Kind::Complex(parts) => {
            // a member is added and removed, never changed
            let is_set = matches!(attribute.place(home), Place::Sets { written: true, .. });
            let within = if is_set { "immutable" } else { mutability };
            let mut parts = attributes(home, parts, Some(within));
            narrow(attribute.place(home), &mut parts);
            put("subAttributes", parts);
        }
        Kind::Reference(types) => {
            put("referenceTypes", types.into());
            put("caseExact", true.into());
        }
        Kind::Text => {
            put("caseExact", attribute.exact.into());
        }
        Kind::Bool | Kind::Time => {}
    }
    put("uniqueness", if attribute.unique { "server" } else { "none" }.into());
    shown.into()
}

/// Says what the type of elements can be, where the place knows, and leaves out what is not kept with a field.
fn narrow(place: Place, parts: &mut Value) {
    let Some(parts) = parts.as_array_mut() else { return };
    let types: Vec<&str> = match place {
        Place::One { of_type, others: false, .. } => {
            parts.retain(|part| part["name"] != "display");
            vec![of_type]
        }
        Place::Sets { sets, written: true } => sets.iter().map(|(_, of_type)| *of_type).collect(),
        _ => return,
    };
    for part in parts.iter_mut().filter(|part| part["name"] == "type") {
        part["canonicalValues"] = types.clone().into();
    }
}

const fn returned(returned: Returned) -> &'static str {
    match returned {
        Returned::Always => "always",
        Returned::Default => "default",
        Returned::Request => "request",
        Returned::Never => "never",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{resource_types, schemas, service_provider_config};
    use crate::Home;

    fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
        list.as_array()?.iter().find(|one| one["name"] == name)
    }

    fn attribute(home: Home, schema: &str, path: &[&str]) -> Option<Value> {
        let all: Value = schemas(home, "https://example.com").into();
        let mut found = named(&all, schema)?;
        for (depth, name) in path.iter().enumerate() {
            found = named(&found[if depth == 0 { "attributes" } else { "subAttributes" }], name)?;
        }
        Some(found.clone())
    }

    #[test]
    fn a_home_advertises_what_it_keeps() {
        assert!(attribute(Home::Store, "User", &["title"]).is_some());
        assert_eq!(attribute(Home::Provider, "User", &["title"]), None);
        assert_eq!(attribute(Home::Provider, "User", &["password"]), None);
        assert_eq!(attribute(Home::Provider, "EnterpriseUser", &["employeeNumber"]), None);
        for home in [Home::Provider, Home::Store] {
            assert!(attribute(home, "EnterpriseUser", &["manager", "value"]).is_some());
            assert_eq!(attribute(home, "User", &["x509Certificates"]), None);
            assert_eq!(attribute(home, "User", &["name", "honorificPrefix"]), None);
        }
    }

    #[test]
    fn attributes_say_how_they_are_written() {
        let user = |path: &[&str]| attribute(Home::Store, "User", path).unwrap();
        assert_eq!(user(&["userName"])["uniqueness"], "server");
        assert_eq!(user(&["userName"])["required"], true);
        assert_eq!(
            (&user(&["password"])["mutability"], &user(&["password"])["returned"]),
            (&json!("writeOnly"), &json!("never"))
        );
        assert_eq!(user(&["name", "formatted"])["mutability"], "readOnly");
        assert_eq!(user(&["name"])["mutability"], "readWrite");
        assert_eq!(user(&["groups", "value"])["mutability"], "readOnly");
        assert_eq!(user(&["emails", "primary"])["type"], "boolean");
        let group = |path: &[&str]| attribute(Home::Store, "Group", path).unwrap();
        assert_eq!(group(&["members"])["mutability"], "readWrite");
        assert_eq!(group(&["members", "value"])["mutability"], "immutable");
        assert_eq!(group(&["members", "display"])["returned"], "request");
        assert_eq!(group(&["members", "$ref"])["referenceTypes"], json!(["User", "Group"]));
    }

    #[test]
    fn documents_name_their_addresses() {
        let types = resource_types("https://example.com/scim");
        assert_eq!(types[0]["meta"]["location"], "https://example.com/scim/ResourceTypes/User");
        assert_eq!(types[0]["schemaExtensions"][0]["required"], false);
        let config = service_provider_config("https://example.com/scim");
        assert_eq!(config["pagination"]["maxPageSize"], 1000);
        assert_eq!(config["bulk"]["maxPayloadSize"], 10_485_760);
    }
}
