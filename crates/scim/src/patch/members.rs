//! The changes of a group's members, without reading the current members.

use std::collections::BTreeMap;

use chancery_record::Json;
use chancery_resource::{Expression, Literal, Operator};
use serde_json::Value;

use super::Verb;
use crate::{Resource, ScimError, ScimType, Target, name::AttributePath, read::Reader};

/// Types of members by id; `None` where the client gave none.
type MemberTypes = BTreeMap<String, Option<String>>;

/// Changes of the members of a group. No id is both added and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Whether all current members are removed first.
    pub replaced: bool,
    /// Whether a removal without value did that: perhaps a mistake, where there are many.
    pub emptied: bool,
    /// The members to add.
    pub added: MemberTypes,
    /// The members to remove; empty if all are replaced.
    pub removed: MemberTypes,
}

impl Members {
    /// Whether the patch changes no members.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add_change(
        &mut self,
        target: Target,
        verb: Verb,
        path: &AttributePath,
        sent: Option<&Json>,
        at: &str,
    ) -> Result<(), ScimError> {
        if path.part.is_some() {
            let detail = "A member is written as a whole: remove it and add another.";
            return Err(ScimError::new(ScimType::Mutability, detail));
        }
        match (verb, &path.filter, sent) {
            (Verb::Remove, Some(filter), _) => {
                let mut named = MemberTypes::new();
                chosen(filter, &mut named)?;
                self.remove(named);
            }
            (_, Some(_), _) => {
                let detail = "Members are added by a value, not by a filter.";
                return Err(ScimError::new(ScimType::NoTarget, detail));
            }
            (Verb::Remove, None, None) => {
                *self = Self { replaced: true, emptied: true, ..Self::default() };
            }
            (Verb::Remove, None, Some(sent)) => self.remove(named(target, path, sent, at)?),
            (Verb::Add, None, Some(sent)) => self.add(named(target, path, sent, at)?),
            (Verb::Replace, None, Some(sent @ Json::Array(_))) => {
                let added = named(target, path, sent, at)?;
                *self = Self { replaced: true, added, ..Self::default() };
            }
            (Verb::Add | Verb::Replace, None, _) => {
                let detail = format!("{at}/value must be an array of members");
                return Err(ScimError::new(ScimType::InvalidValue, detail));
            }
        }
        Ok(())
    }

    fn add(&mut self, named: MemberTypes) {
        for (id, of_type) in named {
            self.removed.remove(&id);
            self.added.insert(id, of_type);
        }
    }

    fn remove(&mut self, named: MemberTypes) {
        for (id, of_type) in named {
            self.added.remove(&id);
            if !self.replaced {
                self.removed.insert(id, of_type);
            }
        }
    }
}

/// The members in a value, each once.
fn named(target: Target, path: &AttributePath, sent: &Json, at: &str) -> Result<MemberTypes, ScimError> {
    if matches!(sent, Json::Array(items) if items.contains(&Json::Null)) {
        return Err(ScimError::new(ScimType::InvalidValue, format!("{at}/value has a member that is null")));
    }
    let mut reader = Reader::new(target);
    let value = reader.value(path.attribute, sent, &format!("{at}/value"));
    Ok(named_in(&reader.finish(value)?.unwrap_or_default()))
}

/// The members of a whole group, from a POST or a PUT.
pub fn members_of(group: &Resource) -> Members {
    let added = group.get("members").map(named_in).unwrap_or_default();
    Members { replaced: true, added, ..Members::default() }
}

/// The members in a parsed value: ids in lower case, each with its type.
pub fn named_in(value: &Value) -> MemberTypes {
    let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let named = items.iter().filter_map(|item| Some((text(item, "value")?, text(item, "type"))));
    named.map(|(id, of_type)| (id.to_ascii_lowercase(), of_type)).collect()
}

/// Adds the members that a filter selects by their ids.
fn chosen(filter: &Expression, named: &mut MemberTypes) -> Result<(), ScimError> {
    match filter {
        Expression::Or(left, right) => {
            chosen(left, named)?;
            chosen(right, named)
        }
        Expression::Compare {
            attribute,
            part: None,
            operator: Operator::Equal,
            value: Literal::Text(id),
            ..
        } if attribute.eq_ignore_ascii_case("value") => {
            named.insert(id.to_ascii_lowercase(), None);
            Ok(())
        }
        _ => {
            let detail = "Members are chosen by their ids: members[value eq \"..\"].";
            Err(ScimError::new(ScimType::InvalidFilter, detail))
        }
    }
}
