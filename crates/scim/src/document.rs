//! Discovery documents (RFC 7643, section 5 to 7): `/ServiceProviderConfig`, `/Schemas`, `/ResourceTypes`.

use serde_json::{Map, Value, json};

use crate::{Attribute, AttributeType, GROUP, Mapping, ResourceType, Returned, Schema, Target, USER};

const SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Schema";
const RESOURCE_TYPE: &str = "urn:ietf:params:scim:schemas:core:2.0:ResourceType";
const CONFIG: &str = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig";
/// Operations and bytes of a bulk request.
const MAX_BULK: (u32, u32) = (1000, 10 << 20);
/// Page size: the default and the maximum.
const PAGE: (u32, u32) = (100, 1000);

/// The `/ServiceProviderConfig` of this server.
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

/// The schemas of this target. The address of each is `base` with its URN.
pub fn schemas(target: Target, base: &str) -> Vec<Value> {
    let shown = |schema: &Schema| {
        json!({
            "schemas": [SCHEMA], "id": schema.urn, "name": schema.name, "description": schema.about,
            "attributes": attributes(target, schema.attributes, None),
            "meta": { "resourceType": "Schema", "location": format!("{base}/Schemas/{}", schema.urn) },
        })
    };
    USER.schemas().chain(GROUP.schemas()).map(shown).collect()
}

/// The attributes that the target advertises; `within` is the mutability of the parent attribute.
fn attributes(target: Target, attributes: &[Attribute], within: Option<&str>) -> Value {
    let advertised = attributes.iter().filter(|attribute| attribute.is_advertised(target));
    advertised.map(|attribute| schema_attribute(target, attribute, within)).collect()
}

fn schema_attribute(target: Target, attribute: &Attribute, within: Option<&str>) -> Value {
    let mutability = match (attribute.mapping(target), within) {
        _ if attribute.read_only_in_schema
            || attribute.is_read_only(target)
            || attribute.is_ignored(target) =>
        {
            "readOnly"
        }
        (Mapping::Secret, _) => "writeOnly",
        (Mapping::Within, Some(within)) => within,
        _ => "readWrite",
    };
    let kind = match attribute.kind {
        AttributeType::Text => "string",
        AttributeType::Bool => "boolean",
        AttributeType::Time => "dateTime",
        AttributeType::Reference(_) => "reference",
        AttributeType::Complex(_) => "complex",
    };
    let mut attribute_json = Map::new();
    let mut insert = |name: &str, value: Value| attribute_json.insert(name.into(), value);
    insert("name", attribute.name.into());
    insert("type", kind.into());
    insert("description", attribute.about.into());
    insert("multiValued", attribute.many.into());
    insert("required", attribute.required.into());
    insert("mutability", mutability.into());
    insert("returned", returned(attribute.returned).into());
    match attribute.kind {
        AttributeType::Complex(parts) => {
            // a member is added and removed, never changed
            let is_set = matches!(attribute.mapping(target), Mapping::Sets { written: true, .. });
            let within = if is_set { "immutable" } else { mutability };
            let mut parts = attributes(target, parts, Some(within));
            narrow(attribute.mapping(target), &mut parts);
            insert("subAttributes", parts);
        }
        AttributeType::Reference(types) => {
            insert("referenceTypes", types.into());
            insert("caseExact", true.into());
        }
        AttributeType::Text => {
            insert("caseExact", attribute.exact.into());
        }
        AttributeType::Bool | AttributeType::Time => {}
    }
    insert("uniqueness", if attribute.unique { "server" } else { "none" }.into());
    attribute_json.into()
}

/// Sets the canonical types of elements where the mapping knows them, and leaves out parts that a field does
/// not store.
fn narrow(mapping: Mapping, parts: &mut Value) {
    let Some(parts) = parts.as_array_mut() else { return };
    let types: Vec<&str> = match mapping {
        Mapping::Element { of_type, others: false, .. } => {
            parts.retain(|part| part["name"] != "display");
            vec![of_type]
        }
        Mapping::Sets { sets, written: true } => sets.iter().map(|(_, of_type)| *of_type).collect(),
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
    use crate::Target;

    fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
        list.as_array()?.iter().find(|one| one["name"] == name)
    }

    fn attribute(target: Target, schema: &str, path: &[&str]) -> Option<Value> {
        let all: Value = schemas(target, "https://example.com").into();
        let mut current = named(&all, schema)?;
        for (depth, name) in path.iter().enumerate() {
            current = named(&current[if depth == 0 { "attributes" } else { "subAttributes" }], name)?;
        }
        Some(current.clone())
    }

    #[test]
    fn a_target_advertises_only_attributes_that_it_stores() {
        assert!(attribute(Target::Store, "User", &["title"]).is_some());
        assert_eq!(attribute(Target::Provider, "User", &["title"]), None);
        assert_eq!(attribute(Target::Provider, "User", &["password"]), None);
        assert_eq!(attribute(Target::Provider, "EnterpriseUser", &["employeeNumber"]), None);
        for target in [Target::Provider, Target::Store] {
            assert!(attribute(target, "EnterpriseUser", &["manager", "value"]).is_some());
            assert_eq!(attribute(target, "User", &["x509Certificates"]), None);
            assert_eq!(attribute(target, "User", &["name", "honorificPrefix"]), None);
        }
    }

    #[test]
    fn attributes_say_how_they_are_written() {
        let user = |path: &[&str]| attribute(Target::Store, "User", path).unwrap();
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
        let group = |path: &[&str]| attribute(Target::Store, "Group", path).unwrap();
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
