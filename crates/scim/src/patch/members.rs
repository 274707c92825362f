//! What a patch does to the members of a group, told without reading who they are.

use std::collections::BTreeMap;

use chancery_record::Json;
use chancery_resource::{Expression, Literal, Operator};
use serde_json::Value;

use super::Verb;
use crate::{Home, Refusal, Resource, ScimType, name::Target, read::Reader};

/// Members by their ids, each with its type where the client said it.
type Named = BTreeMap<String, Option<String>>;

/// A change of the members of a group. Nobody is both added and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Whether those that were there go first.
    pub replaced: bool,
    /// Whether a removal without value asked for that: perhaps a mistake, where there are many.
    pub emptied: bool,
    /// Who is in the group afterwards.
    pub added: Named,
    /// Who is not; nobody where all are replaced.
    pub removed: Named,
}

impl Members {
    /// Whether the patch names no members.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add_step(
        &mut self,
        home: Home,
        verb: Verb,
        target: &Target,
        sent: Option<&Json>,
        at: &str,
    ) -> Result<(), Refusal> {
        if target.part.is_some() {
            let detail = "A member is written as a whole: remove it and add another.";
            return Err(Refusal::wrong(ScimType::Mutability, detail));
        }
        match (verb, &target.filter, sent) {
            (Verb::Remove, Some(filter), _) => {
                let mut named = Named::new();
                chosen(filter, &mut named)?;
                self.remove(named);
            }
            (_, Some(_), _) => {
                let detail = "Members are added by a value, not by a filter.";
                return Err(Refusal::wrong(ScimType::NoTarget, detail));
            }
            (Verb::Remove, None, None) => {
                *self = Self { replaced: true, emptied: true, ..Self::default() };
            }
            (Verb::Remove, None, Some(sent)) => self.remove(named(home, target, sent, at)?),
            (Verb::Add, None, Some(sent)) => self.add(named(home, target, sent, at)?),
            (Verb::Replace, None, Some(sent @ Json::Array(_))) => {
                let added = named(home, target, sent, at)?;
                *self = Self { replaced: true, added, ..Self::default() };
            }
            (Verb::Add | Verb::Replace, None, _) => {
                let detail = format!("{at}/value must be an array of members");
                return Err(Refusal::wrong(ScimType::InvalidValue, detail));
            }
        }
        Ok(())
    }

    fn add(&mut self, named: Named) {
        for (id, of_type) in named {
            self.removed.remove(&id);
            self.added.insert(id, of_type);
        }
    }

    fn remove(&mut self, named: Named) {
        for (id, of_type) in named {
            self.added.remove(&id);
            if !self.replaced {
                self.removed.insert(id, of_type);
            }
        }
    }
}

/// The members of a value, each once.
fn named(home: Home, target: &Target, sent: &Json, at: &str) -> Result<Named, Refusal> {
    if matches!(sent, Json::Array(items) if items.contains(&Json::Null)) {
        return Err(Refusal::wrong(ScimType::InvalidValue, format!("{at}/value has a member that is null")));
    }
    let mut reader = Reader::new(home);
    let value = reader.value(target.attribute, sent, &format!("{at}/value"));
    Ok(named_in(&reader.finish(value)?.unwrap_or_default()))
}

/// The members that a whole group has, as a POST or a PUT tells it.
pub fn members_of(group: &Resource) -> Members {
    let added = group.get("members").map(named_in).unwrap_or_default();
    Members { replaced: true, added, ..Members::default() }
}

/// The members in a value that was read: ids without regard to case, each with its type.
pub fn named_in(value: &Value) -> Named {
    let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let named = items.iter().filter_map(|item| Some((text(item, "value")?, text(item, "type"))));
    named.map(|(id, of_type)| (id.to_ascii_lowercase(), of_type)).collect()
}

/// The members that a filter chooses by their ids.
fn chosen(filter: &Expression, named: &mut Named) -> Result<(), Refusal> {
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
            Err(Refusal::wrong(ScimType::InvalidFilter, detail))
        }
    }
}
