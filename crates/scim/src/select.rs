//! `attributes` and `excludedAttributes`: which parts of a resource an answer has.

use serde_json::Value;

use crate::{
    Attribute, Home, Refusal, Resource, ResourceType, Returned, Schema, ScimType,
    name::{Target, find, split_urn},
};

/// The most names of a selection.
const MAX_NAMES: usize = 100;

/// Which parts of a resource an answer has.
#[derive(Clone, Debug)]
pub struct Selection {
    of: &'static ResourceType,
    home: Home,
    names: Vec<Named>,
    leaves_out: bool,
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Named {
    Schema(&'static Schema),
    Target(Target),
}

impl Selection {
    /// Reads the two parameters, each a list of names with commas. Names of nothing are ignored.
    ///
    /// # Errors
    /// Both parameters, or too many names.
    pub fn read(
        of: &'static ResourceType,
        home: Home,
        attributes: Option<&str>,
        excluded: Option<&str>,
    ) -> Result<Self, Refusal> {
        let wrong = |detail: String| Err(Refusal::wrong(ScimType::InvalidValue, detail));
        let given = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
        if given(attributes) && given(excluded) {
            return wrong("Either attributes or excludedAttributes can be asked for.".into());
        }
        let leaves_out = !given(attributes);
        let text = if leaves_out { excluded } else { attributes }.unwrap_or_default();
        let asked: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if asked.len() > MAX_NAMES {
            return wrong(format!("At most {MAX_NAMES} names can be asked for."));
        }
        let named = |name: &&str| match split_urn(of, name) {
            (schema, "") => Some(Named::Schema(schema)),
            _ => find(of, home, name).map(Named::Target),
        };
        Ok(Self { of, home, names: asked.iter().filter_map(named).collect(), leaves_out })
    }

    /// Whether an answer has the attribute, or parts of it: what it has not need not be read.
    pub fn wants(&self, schema: &Schema, attribute: &Attribute) -> bool {
        match attribute.returned {
            Returned::Always => true,
            Returned::Never => false,
            Returned::Default if self.leaves_out => !self.names_whole(schema, attribute),
            Returned::Default | Returned::Request => !self.leaves_out && self.names_some(schema, attribute),
        }
    }

    /// Whether an answer has this part of an attribute that it wants.
    fn wants_part(&self, schema: &Schema, attribute: &Attribute, part: &Attribute) -> bool {
        let is_named = self
            .targets(schema, attribute)
            .any(|target| target.part.is_some_and(|named| named.name == part.name));
        match part.returned {
            Returned::Always => true,
            Returned::Never => false,
            Returned::Request => !self.leaves_out && is_named,
            Returned::Default if self.leaves_out => !is_named,
            Returned::Default => is_named || self.names_whole(schema, attribute),
        }
    }

    fn targets<'a>(
        &'a self,
        schema: &'a Schema,
        attribute: &'a Attribute,
    ) -> impl Iterator<Item = &'a Target> {
        self.names.iter().filter_map(move |named| match named {
            Named::Target(target)
                if target.schema.urn == schema.urn && target.attribute.name == attribute.name =>
            {
                Some(target)
            }
            _ => None,
        })
    }

    fn names_whole(&self, schema: &Schema, attribute: &Attribute) -> bool {
        let has_schema =
            self.names.iter().any(|named| matches!(named, Named::Schema(one) if one.urn == schema.urn));
        has_schema || self.targets(schema, attribute).any(|target| target.part.is_none())
    }

    fn names_some(&self, schema: &Schema, attribute: &Attribute) -> bool {
        self.names_whole(schema, attribute) || self.targets(schema, attribute).next().is_some()
    }

    /// Leaves in a resource what is wanted.
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
            if !self.wants(schema, attribute) {
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
            Value::Object(parts) => parts.retain(|name, _| match attribute.part(self.home, name) {
                Some(part) => self.wants_part(schema, attribute, part),
                // what the server adds without a line in the table goes with the whole
                None => self.leaves_out || self.names_whole(schema, attribute),
            }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Selection;
    use crate::{GROUP, Home, ResourceType, USER};

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
        let selection = Selection::read(of, Home::Store, only, without).unwrap();
        selection.apply(from.as_object_mut().unwrap());
        from
    }

    #[test]
    fn without_names_all_is_there() {
        assert_eq!(selected(&USER, user(), None, None), user());
    }

    #[test]
    fn what_is_asked_for_comes_with_the_id() {
        let names = format!("USERNAME, name.familyName,{ENTERPRISE}:department,nobody");
        let mut expected =
            json!({ "schemas": [], "id": "1", "userName": "ada", "name": { "familyName": "Lovelace" } });
        expected[ENTERPRISE] = json!({ "department": "Engines" });
        assert_eq!(selected(&USER, user(), Some(&names), None), expected);
        let expected = json!({ "schemas": [], "id": "1", "emails": [{ "value": "a@example.com" }] });
        assert_eq!(selected(&USER, user(), Some("emails.value"), None), expected);
    }

    #[test]
    fn what_is_excluded_goes_and_the_id_stays() {
        let left =
            selected(&USER, user(), None, Some(&format!("id,name.givenName,emails,meta,{ENTERPRISE}")));
        let expected =
            json!({ "schemas": [], "id": "1", "userName": "ada", "name": { "familyName": "Lovelace" } });
        assert_eq!(left, expected);
    }

    #[test]
    fn names_of_members_are_there_when_asked_for() {
        let group = json!({ "id": "1", "members": [{ "value": "2", "display": "Ada", "type": "User" }] });
        let left = selected(&GROUP, group.clone(), None, None);
        assert_eq!(left["members"][0], json!({ "value": "2", "type": "User" }));
        let left = selected(&GROUP, group.clone(), Some("members,members.display"), None);
        assert_eq!(left["members"][0]["display"], "Ada");
        assert!(selected(&GROUP, group, None, Some("members")).get("members").is_none());
        let without = Selection::read(&GROUP, Home::Store, None, Some("members")).unwrap();
        let members = GROUP.find(GROUP.core, Home::Store, "members").unwrap();
        assert!(!without.wants(GROUP.core, members));
    }

    #[test]
    fn both_parameters_are_one_too_many() {
        assert!(Selection::read(&USER, Home::Store, Some("id"), Some("name")).is_err());
        assert!(Selection::read(&USER, Home::Store, Some(&"id,".repeat(101)), None).is_err());
    }
}
