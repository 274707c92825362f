//! PATCH (RFC 7644, section 3.5.2), including the deviations of common clients.

mod apply;
pub(crate) mod element;
mod members;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
mod work;

use chancery_record::Json;
use serde_json::Value;

use self::work::Work;
pub use self::{
    apply::Patched,
    members::{Members, members_of},
    work::MAX_OPERATIONS,
};
use crate::{
    Mapping, ResourceType, Schema, ScimError, ScimType, Target,
    name::{AttributePath, read_path, split_urn},
    read::Reader,
};

/// The `op` of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Add,
    Replace,
    Remove,
}

/// One change of one attribute.
struct Change {
    verb: Verb,
    path: AttributePath,
    /// The value to write, or the values to remove; `None` for no value.
    value: Option<Value>,
}

/// A parsed patch: its paths exist, its values have their types.
pub struct Patch {
    of: &'static ResourceType,
    target: Target,
    changes: Vec<Change>,
    members: Members,
}

impl Patch {
    /// Reads the body of a PATCH.
    ///
    /// # Errors
    /// The first operation that is invalid.
    pub fn read(of: &'static ResourceType, target: Target, body: &Json) -> Result<Self, ScimError> {
        let Some(Json::Array(operations)) = member(body, "Operations") else {
            let detail = "The body must be an object with an array Operations.";
            return Err(ScimError::new(ScimType::InvalidSyntax, detail));
        };
        let mut patch = Self { of, target, changes: Vec::new(), members: Members::default() };
        let mut total = Work::default();
        for (number, operation) in operations.iter().enumerate() {
            patch.read_operation(operation, &format!("/Operations/{number}"), &mut total)?;
        }
        Ok(patch)
    }

    /// The changes of the group's members.
    pub const fn members(&self) -> &Members {
        &self.members
    }

    fn read_operation(&mut self, operation: &Json, at: &str, total: &mut Work) -> Result<(), ScimError> {
        let verb = match member(operation, "op") {
            Some(Json::Text(word)) if word.eq_ignore_ascii_case("add") => Verb::Add,
            Some(Json::Text(word)) if word.eq_ignore_ascii_case("replace") => Verb::Replace,
            Some(Json::Text(word)) if word.eq_ignore_ascii_case("remove") => Verb::Remove,
            _ => {
                let detail = format!("{at}/op must be add, replace or remove");
                return Err(ScimError::new(ScimType::InvalidSyntax, detail));
            }
        };
        let value = member(operation, "value");
        let path = match member(operation, "path") {
            Some(Json::Text(path)) if !path.trim().is_empty() => path.as_str(),
            None | Some(Json::Null | Json::Text(_)) if verb == Verb::Remove => {
                return Err(ScimError::new(ScimType::NoTarget, format!("{at}: remove needs a path")));
            }
            None | Some(Json::Null | Json::Text(_)) => return self.read_object(verb, None, value, at, total),
            Some(_) => {
                return Err(ScimError::new(ScimType::InvalidPath, format!("{at}/path must be a string")));
            }
        };
        match whole_schema(self.of, path) {
            Some(schema) if verb == Verb::Remove => {
                let (of, target) = (self.of, self.target);
                let writable = of
                    .attributes(schema)
                    .filter(|one| one.is_advertised(target) && !one.is_read_only(target));
                for attribute in writable {
                    let path = AttributePath { schema, attribute, filter: None, part: None };
                    self.add_change(verb, path, None, at, total)?;
                }
                Ok(())
            }
            Some(schema) => self.read_object(verb, Some(schema), value, at, total),
            None => {
                let path = read_path(self.of, self.target, path)?;
                self.add_change(verb, path, value, at, total)
            }
        }
    }

    /// Reads an object whose keys are paths, within one schema if it is given.
    fn read_object(
        &mut self,
        verb: Verb,
        within: Option<&'static Schema>,
        value: Option<&Json>,
        at: &str,
        total: &mut Work,
    ) -> Result<(), ScimError> {
        let Some(Json::Object(attributes)) = value else {
            let detail = format!("{at}/value must be an object of attributes, because there is no path");
            return Err(ScimError::new(ScimType::InvalidValue, detail));
        };
        for (key, value) in attributes {
            if key.eq_ignore_ascii_case("schemas") {
                continue;
            }
            match whole_schema(self.of, key) {
                Some(schema) if within.is_none() => {
                    self.read_object(verb, Some(schema), Some(value), at, total)?;
                }
                _ => {
                    let path = within.map_or_else(|| key.clone(), |schema| format!("{}:{key}", schema.urn));
                    let path = read_path(self.of, self.target, &path)?;
                    self.add_change(verb, path, Some(value), at, total)?;
                }
            }
        }
        Ok(())
    }

    fn add_change(
        &mut self,
        verb: Verb,
        path: AttributePath,
        sent: Option<&Json>,
        at: &str,
        total: &mut Work,
    ) -> Result<(), ScimError> {
        total.add_change(&path)?;
        let attribute = path.attribute;
        if attribute.is_ignored(self.target) || path.leaf().is_ignored(self.target) {
            return Ok(());
        }
        // whether an id is the resource's own is known when the patch is applied
        if attribute.name != "id"
            && (attribute.is_read_only(self.target) || path.leaf().is_read_only(self.target))
        {
            let detail = format!("{} is not written by clients", attribute.name);
            return Err(ScimError::new(ScimType::Mutability, detail));
        }
        let is_whole = path.filter.is_none() && path.part.is_none();
        let sent = match sent {
            None if verb != Verb::Remove => {
                let detail = format!("{at}: add and replace need a value");
                return Err(ScimError::new(ScimType::InvalidValue, detail));
            }
            // an empty array of values to remove names nothing, and so does not mean everything
            Some(Json::Array(items)) if verb == Verb::Remove && is_whole && items.is_empty() => {
                return Ok(());
            }
            sent => sent.filter(|sent| **sent != Json::Null),
        };
        if matches!(attribute.mapping(self.target), Mapping::Sets { .. }) {
            return self.members.add_change(self.target, verb, &path, sent, at);
        }
        let value = match sent {
            Some(sent) if verb != Verb::Remove => read_value(self.target, &path, sent, at)?,
            // a value that is read as none names nothing
            Some(sent) if is_whole && attribute.many => {
                Some(read_value(self.target, &path, sent, at)?.unwrap_or_else(|| Value::Array(Vec::new())))
            }
            _ => None,
        };
        if attribute.many {
            total.add_elements(&path, value.as_ref())?;
        }
        self.changes.push(Change { verb, path, value });
        Ok(())
    }
}

/// Reads the value of a change by the type of its attribute.
fn read_value(
    target: Target,
    path: &AttributePath,
    sent: &Json,
    at: &str,
) -> Result<Option<Value>, ScimError> {
    let (mut reader, at) = (Reader::new(target), format!("{at}/value"));
    let attribute = path.leaf();
    let value = if path.filter.is_some() && path.part.is_none() {
        reader.element(attribute, sent, &at)
    } else {
        reader.value(attribute, sent, &at)
    };
    reader.finish(value)
}

/// The schema, if a path names a whole one.
fn whole_schema(of: &ResourceType, path: &str) -> Option<&'static Schema> {
    let (schema, rest) = split_urn(of, path.trim());
    (rest.is_empty() && !path.trim().is_empty()).then_some(schema)
}

/// The member of this name, in any case.
fn member<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    let Json::Object(members) = json else { return None };
    members.iter().find(|(member, _)| member.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
