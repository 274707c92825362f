//! `attributes` and `excludedAttributes`: which attributes a response has.

use serde_json::Value;

use crate::{
    Attribute, Resource, ResourceType, Returned, Schema, ScimError, ScimType, Target,
    name::{AttributePath, find, split_urn},
};

/// The most names of a selection.
const MAX_NAMES: usize = 100;

/// The attributes that a response has.
#[derive(Clone, Debug)]
pub struct Selection {
    of: &'static ResourceType,
    target: Target,
    names: Vec<Named>,
    is_exclusion: bool,
}

/// A parsed name.
#[derive(Clone, Debug)]
enum Named {
    Schema(&'static Schema),
    Path(AttributePath),
}

impl Selection {
    /// Reads the two parameters, each a list of names with commas. Unknown names are ignored.
    ///
    /// # Errors
    /// Both parameters, or too many names.
    pub fn read(
        of: &'static ResourceType,
        target: Target,
        attributes: Option<&str>,
        excluded: Option<&str>,
    ) -> Result<Self, ScimError> {
        let wrong = |detail: String| Err(ScimError::new(ScimType::InvalidValue, detail));
        let is_given = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
        if is_given(attributes) && is_given(excluded) {
            return wrong("Either attributes or excludedAttributes can be asked for.".into());
        }
        let is_exclusion = !is_given(attributes);
        let text = if is_exclusion { excluded } else { attributes }.unwrap_or_default();
        let requested: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if requested.len() > MAX_NAMES {
            return wrong(format!("At most {MAX_NAMES} names can be asked for."));
        }
        let named = |name: &&str| match split_urn(of, name) {
            (schema, "") => Some(Named::Schema(schema)),
            _ => find(of, target, name).map(Named::Path),
        };
        Ok(Self { of, target, names: requested.iter().filter_map(named).collect(), is_exclusion })
    }

    /// Whether a response has the attribute, or parts of it: others need not be read.
    pub fn includes(&self, schema: &Schema, attribute: &Attribute) -> bool {
        match attribute.returned {
            Returned::Always => true,
            Returned::Never => false,
            Returned::Default if self.is_exclusion => !self.names_whole(schema, attribute),
            Returned::Default | Returned::Request => !self.is_exclusion && self.names_some(schema, attribute),
        }
    }

    /// Whether a response has this part of an attribute that it includes.
    fn includes_part(&self, schema: &Schema, attribute: &Attribute, part: &Attribute) -> bool {
        let is_named =
            self.paths(schema, attribute).any(|path| path.part.is_some_and(|named| named.name == part.name));
        match part.returned {
            Returned::Always => true,
            Returned::Never => false,
            Returned::Request => !self.is_exclusion && is_named,
            Returned::Default if self.is_exclusion => !is_named,
            Returned::Default => is_named || self.names_whole(schema, attribute),
        }
    }

    fn paths<'a>(
        &'a self,
        schema: &'a Schema,
        attribute: &'a Attribute,
    ) -> impl Iterator<Item = &'a AttributePath> {
        self.names.iter().filter_map(move |named| match named {
            Named::Path(path) if path.schema.urn == schema.urn && path.attribute.name == attribute.name => {
                Some(path)
            }
            _ => None,
        })
    }

    fn names_whole(&self, schema: &Schema, attribute: &Attribute) -> bool {
        let has_schema =
            self.names.iter().any(|named| matches!(named, Named::Schema(one) if one.urn == schema.urn));
        has_schema || self.paths(schema, attribute).any(|path| path.part.is_none())
    }

    fn names_some(&self, schema: &Schema, attribute: &Attribute) -> bool {
        self.names_whole(schema, attribute) || self.paths(schema, attribute).next().is_some()
    }

    /// Removes from a resource what is not selected.
    pub fn apply(&self, resource: &mut Resource) {
        for schema in self.of.schemas() {
            if schema.urn == self.of.core.urn {
                self.apply_to(schema, resource);
            } else if let Some(own) = resource.get_mut(schema.urn).and_then(Value::as_object_mut) {
                self.apply_to(schema, own);
                if own.is_empty() {
                    resource.remove(schema.urn);
                }
            }
        }
    }

    fn apply_to(&self, schema: &'static Schema, own: &mut Resource) {
        for attribute in self.of.attributes(schema) {
            if !self.includes(schema, attribute) {
                own.remove(attribute.name);
            } else if let Some(value) = own.get_mut(attribute.name) {
                self.apply_to_parts(schema, attribute, value);
            }
        }
    }

    fn apply_to_parts(&self, schema: &Schema, attribute: &Attribute, value: &mut Value) {
        match value {
            Value::Array(items) => {
                for item in items {
                    self.apply_to_parts(schema, attribute, item);
                }
            }
            Value::Object(parts) => parts.retain(|name, _| match attribute.part(self.target, name) {
                Some(part) => self.includes_part(schema, attribute, part),
                // members that the server adds without an entry in the table are included with the whole
                // attribute
                None => self.is_exclusion || self.names_whole(schema, attribute),
            }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Selection;
    use crate::{GROUP, ResourceType, Target, USER};

    const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

    fn user() -> Value {
        let mut user = json!({
            "schemas": [], "id": "1", "userName": "ada", "meta": { "version": "W/\"1\"" },
            "name": { "givenName": "Ada", "familyName": "Lovelace" },
            "emails": [{ "value": "a@example.com", "type": "work" }],
        });
        user[ENTERPRISE] = json!({ "department": "Engines", "division": "First" });
        user
    }

    fn selected(
        of: &'static ResourceType,
        mut from: Value,
        only: Option<&str>,
        without: Option<&str>,
    ) -> Value {
        let selection = Selection::read(of, Target::Store, only, without).unwrap();
        selection.apply(from.as_object_mut().unwrap());
        from
    }

    #[test]
    fn without_parameters_all_attributes_are_returned() {
        assert_eq!(selected(&USER, user(), None, None), user());
    }

    #[test]
    fn requested_attributes_are_returned_with_the_id() {
        let names = format!("USERNAME, name.familyName,{ENTERPRISE}:department,nobody");
        let mut expected =
            json!({ "schemas": [], "id": "1", "userName": "ada", "name": { "familyName": "Lovelace" } });
        expected[ENTERPRISE] = json!({ "department": "Engines" });
        assert_eq!(selected(&USER, user(), Some(&names), None), expected);
        let expected = json!({ "schemas": [], "id": "1", "emails": [{ "value": "a@example.com" }] });
        assert_eq!(selected(&USER, user(), Some("emails.value"), None), expected);
    }

    #[test]
    fn excluded_attributes_are_removed_except_the_id() {
        let selected_user =
            selected(&USER, user(), None, Some(&format!("id,name.givenName,emails,meta,{ENTERPRISE}")));
        let expected =
            json!({ "schemas": [], "id": "1", "userName": "ada", "name": { "familyName": "Lovelace" } });
        assert_eq!(selected_user, expected);
    }

    #[test]
    fn display_names_of_members_are_returned_on_request() {
        let group = json!({ "id": "1", "members": [{ "value": "2", "display": "Ada", "type": "User" }] });
        let left = selected(&GROUP, group.clone(), None, None);
        assert_eq!(left["members"][0], json!({ "value": "2", "type": "User" }));
        let left = selected(&GROUP, group.clone(), Some("members,members.display"), None);
        assert_eq!(left["members"][0]["display"], "Ada");
        assert!(selected(&GROUP, group, None, Some("members")).get("members").is_none());
        let without = Selection::read(&GROUP, Target::Store, None, Some("members")).unwrap();
        let members = GROUP.find(GROUP.core, Target::Store, "members").unwrap();
        assert!(!without.includes(GROUP.core, members));
    }

    #[test]
    fn both_parameters_together_are_rejected() {
        assert!(Selection::read(&USER, Target::Store, Some("id"), Some("name")).is_err());
        assert!(Selection::read(&USER, Target::Store, Some(&"id,".repeat(101)), None).is_err());
    }
}
