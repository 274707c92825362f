//! Protection of rows with higher roles: actions that the API would refuse because of a row's role are not offered.

use std::collections::HashMap;

use chancery_record::{Field, parse_id};
use chancery_resource::{Action, Authority, Custom, Op, Personal, Problem, ProblemKind, RoleType, Shape};
use serde_json::Value;
use uuid::Uuid;

use super::{directory::Resource, fields::plain, visit::Visit};

/// Whether an operation is refused if the row, or its owner, has a higher role. Forms are checked field by field: see
/// [`is_open`].
pub fn is_protected(op: &Op) -> bool {
    if !op.writes() || op.shape.carrier().is_none() {
        return false;
    }
    let Some(protection) = op.shape.writes.protection else { return true };
    match op.action {
        Action::Create
        | Action::CreateBatch
        | Action::Replace
        | Action::Patch
        | Action::ReplaceBatch
        | Action::Custom(Custom { is_by_rows: true, .. }) => false,
        Action::ReplaceMembers(fields) => fields.iter().any(|field| !is_open(op.shape, field)),
        Action::Relate(relation, _) => protection.links.protect(relation),
        _ => true,
    }
}

/// Whether a field can be changed whatever roles the row has.
pub fn is_open(shape: &Shape, field: &Field) -> bool {
    let protection = shape.writes.protection;
    protection.is_some_and(|protection| {
        protection.open.iter().chain(protection.may_be_switched_off).any(|open| open.is(field))
    })
}

/// The row whose roles are checked when this one is written: itself, or its owner.
pub fn carrier_of(resource: &Resource, key: &str, row: &Value) -> Option<(&'static Shape, Uuid)> {
    let carrier = resource.shape.carrier()?;
    let id = match resource.shape.personal {
        _ if std::ptr::eq(carrier, resource.shape) => parse_id(key),
        Personal::Of(_, field) => parse_id(&plain(row.get(field.wire())?)),
        _ => None,
    };
    Some((carrier, id?))
}

impl Visit<'_> {
    /// The highest role of each of these rows that exceeds the roles of the user. Rows without such a role are missing.
    pub async fn barred(
        &self,
        shape: &'static Shape,
        ids: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, RoleType>, Problem> {
        let mut barred = HashMap::new();
        let held = &self.visitor.caller.roles;
        // nobody is above the highest role
        if held.iter().any(|held| held.role == RoleType::SystemAdmin) {
            return Ok(barred);
        }
        let authority = Authority::Roles(held.clone());
        let carried_roles = self.app.carried_roles(&self.visitor, shape, ids, self.now).await?;
        for carried in carried_roles.into_iter().filter(|carried| authority.is_below(carried)) {
            let highest = barred.entry(carried.row).or_insert(carried.role);
            *highest = carried.role.min(*highest);
        }
        Ok(barred)
    }

    /// The highest role that prevents the user from changing protected members of a row.
    pub async fn protecting_role(
        &self,
        resource: &Resource,
        key: &str,
        row: &Value,
    ) -> Result<Option<RoleType>, Problem> {
        let Some((shape, id)) = carrier_of(resource, key, row) else { return Ok(None) };
        Ok(self.barred(shape, vec![id]).await?.remove(&id))
    }

    /// The explanation of a protection by this role.
    pub fn carries(&self, role: RoleType) -> String {
        self.words.page("carries_role").replace("{role}", self.words.choice(role.name()))
    }

    /// The problem for a protection by this role.
    pub fn barred_by(&self, role: RoleType) -> Problem {
        Problem::new(ProblemKind::Forbidden, self.carries(role))
    }
}

#[cfg(test)]
mod tests {
    use crate::shell::directory::operations;

    /// The rule for operations follows from declarations; the rule for form fields, from the fields.
    #[test]
    fn protected_operations_follow_from_declarations() {
        let protected = |name: &&str| super::is_protected(operations().find(|op| op.name == *name).unwrap());
        let all = [
            "ResetPassword",
            "SetUserState",
            "EraseUser",
            "DeleteUser",
            "UpdateUserEmailAddress",
            "IssueTemporaryAccessPass",
            "DeletePasskeyCredential",
            "CreateSecurityContact",
            "StartRecovery",
            "DeleteGroup",
            "AddGroupUserToGroup",
            "RemoveParentGroup",
            "DeleteTenant",
        ];
        assert_eq!(all.iter().filter(|name| !protected(name)).collect::<Vec<_>>(), Vec::<&&str>::new());
        let none = [
            "GetUser",
            "ExplainSignIn",
            "PatchUser",
            "CreateUser",
            "PatchGroup",
            "AddUserToGroup",
            "CreateUserProfile",
            "CreateGroupMetadata",
            "DeleteCustomer",
        ];
        assert_eq!(none.iter().filter(|name| protected(name)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }
}
