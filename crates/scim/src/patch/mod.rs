//! PATCH (RFC 7644, section 3.5.2), as clients really send it.

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
    Home, Place, Refusal, ResourceType, Schema, ScimType,
    name::{Target, read_path, split_urn},
    read::Reader,
};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Add,
    Replace,
    Remove,
}

/// One change of one attribute.
struct Step {
    verb: Verb,
    target: Target,
    /// What is written, or which values are removed; `None` for no value.
    value: Option<Value>,
}

/// A patch that was read: its paths exist, its values are of their types.
pub struct Patch {
    of: &'static ResourceType,
    home: Home,
    steps: Vec<Step>,
    members: Members,
}

impl Patch {
    /// Reads the body of a PATCH.
    ///
    /// # Errors
    /// The first operation that cannot be read.
    pub fn read(of: &'static ResourceType, home: Home, body: &Json) -> Result<Self, Refusal> {
        let Some(Json::Array(operations)) = member(body, "Operations") else {
            let detail = "The body must be an object with an array Operations.";
            return Err(Refusal::wrong(ScimType::InvalidSyntax, detail));
        };
        let mut patch = Self { of, home, steps: Vec::new(), members: Members::default() };
        let mut total = Work::default();
        for (number, operation) in operations.iter().enumerate() {
            patch.read_operation(operation, &format!("/Operations/{number}"), &mut total)?;
        }
        Ok(patch)
    }

    /// What the patch does to the members of a group.
    pub const fn members(&self) -> &Members {
        &self.members
    }

    fn read_operation(&mut self, operation: &Json, at: &str, total: &mut Work) -> Result<(), Refusal> {
        let verb = match member(operation, "op") {
            Some(Json::Text(word)) if word.eq_ignore_ascii_case("add") => Verb::Add,
            Some(Json::Text(word)) if word.eq_ignore_ascii_case("replace") => Verb::Replace,
            Some(Json::Text(word)) if word.eq_ignore_ascii_case("remove") => Verb::Remove,
            _ => {
                let detail = format!("{at}/op must be add, replace or remove");
                return Err(Refusal::wrong(ScimType::InvalidSyntax, detail));
            }
        };
        let value = member(operation, "value");
        let path = match member(operation, "path") {
            Some(Json::Text(path)) if !path.trim().is_empty() => path.as_str(),
            None | Some(Json::Null | Json::Text(_)) if verb == Verb::Remove => {
                return Err(Refusal::wrong(ScimType::NoTarget, format!("{at}: remove needs a path")));
            }
            None | Some(Json::Null | Json::Text(_)) => return self.read_object(verb, None, value, at, total),
            Some(_) => {
                return Err(Refusal::wrong(ScimType::InvalidPath, format!("{at}/path must be a string")));
            }
        };
        match whole_schema(self.of, path) {
            Some(schema) if verb == Verb::Remove => {
                let (of, home) = (self.of, self.home);
                let written =
                    of.attributes(schema).filter(|one| one.is_advertised(home) && !one.is_read_only(home));
                for attribute in written {
                    let target = Target { schema, attribute, filter: None, part: None };
                    self.add_step(verb, target, None, at, total)?;
                }
                Ok(())
            }
            Some(schema) => self.read_object(verb, Some(schema), value, at, total),
            None => {
                let target = read_path(self.of, self.home, path)?;
                self.add_step(verb, target, value, at, total)
            }
        }
    }

    /// Reads an object each of whose keys is a path, within one schema where it is given.
    fn read_object(
        &mut self,
        verb: Verb,
        within: Option<&'static Schema>,
        value: Option<&Json>,
        at: &str,
        total: &mut Work,
    ) -> Result<(), Refusal> {
        let Some(Json::Object(attributes)) = value else {
            let detail = format!("{at}/value must be an object of attributes, because there is no path");
            return Err(Refusal::wrong(ScimType::InvalidValue, detail));
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
                    let target = read_path(self.of, self.home, &path)?;
                    self.add_step(verb, target, Some(value), at, total)?;
                }
            }
        }
        Ok(())
    }

    fn add_step(
        &mut self,
        verb: Verb,
        target: Target,
        sent: Option<&Json>,
        at: &str,
        total: &mut Work,
    ) -> Result<(), Refusal> {
        total.add_step(&target)?;
        let attribute = target.attribute;
        if attribute.is_ignored(self.home) || target.leaf().is_ignored(self.home) {
            return Ok(());
        }
        // whether an id is the resource's own is known when the patch is applied
        if attribute.name != "id"
            && (attribute.is_read_only(self.home) || target.leaf().is_read_only(self.home))
        {
            let detail = format!("{} is not written by clients", attribute.name);
            return Err(Refusal::wrong(ScimType::Mutability, detail));
        }
        let is_whole = target.filter.is_none() && target.part.is_none();
        let sent = match sent {
            None if verb != Verb::Remove => {
                let detail = format!("{at}: add and replace need a value");
                return Err(Refusal::wrong(ScimType::InvalidValue, detail));
            }
            // an empty array of what to remove names nothing, and so does not mean everything
            Some(Json::Array(items)) if verb == Verb::Remove && is_whole && items.is_empty() => {
                return Ok(());
            }
            sent => sent.filter(|sent| **sent != Json::Null),
        };
        if matches!(attribute.place(self.home), Place::Sets { .. }) {
            return self.members.add_step(self.home, verb, &target, sent, at);
        }
        let value = match sent {
            Some(sent) if verb != Verb::Remove => read_value(self.home, &target, sent, at)?,
            // what reads as no value names nothing
            Some(sent) if is_whole && attribute.many => {
                Some(read_value(self.home, &target, sent, at)?.unwrap_or_else(|| Value::Array(Vec::new())))
            }
            _ => None,
        };
        if attribute.many {
            total.add_elements(&target, value.as_ref())?;
        }
        self.steps.push(Step { verb, target, value });
        Ok(())
    }
}

/// Reads the value of a step by the attribute that it goes to.
fn read_value(home: Home, target: &Target, sent: &Json, at: &str) -> Result<Option<Value>, Refusal> {
    let (mut reader, at) = (Reader::new(home), format!("{at}/value"));
    let attribute = target.leaf();
    let value = if target.filter.is_some() && target.part.is_none() {
        reader.element(attribute, sent, &at)
    } else {
        reader.value(attribute, sent, &at)
    };
    reader.finish(value)
}

/// The schema that a path names as a whole.
fn whole_schema(of: &ResourceType, path: &str) -> Option<&'static Schema> {
    let (schema, rest) = split_urn(of, path.trim());
    (rest.is_empty() && !path.trim().is_empty()).then_some(schema)
}

/// The member of this name, in any case.
fn member<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    let Json::Object(members) = json else { return None };
    members.iter().find(|(member, _)| member.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
