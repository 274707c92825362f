//! Batch actions: their operations, and whether a row already has the requested state.

use chancery_resource::{Action, Op, RelationChange};
use chancery_userstore::user::USER;
use chancery_web::Input;
use serde_json::{Value, json};

use super::groups;
use crate::{
    pages::relate,
    shell::{
        directory::{OperationName, Resource, operation_name},
        words::Words,
    },
};

/// A batch action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Unlock,
    Deactivate,
    Activate,
    AddTo,
    TakeOut,
    RemovePasswords,
    GiveBackPasswords,
    Delete,
    Restore,
}

/// The actions of lists, in order. Restore is offered in the view of deleted rows only.
pub const LISTED: [Act; 8] = [
    Act::Unlock,
    Act::Deactivate,
    Act::Activate,
    Act::AddTo,
    Act::TakeOut,
    Act::RemovePasswords,
    Act::GiveBackPasswords,
    Act::Delete,
];

impl Act {
    /// The action of this name.
    pub fn named(name: &str) -> Option<Self> {
        LISTED.into_iter().chain([Self::Restore]).find(|act| act.name() == name)
    }

    /// Its name in forms.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unlock => "unlock",
            Self::Deactivate => "deactivate",
            Self::Activate => "activate",
            Self::AddTo => "add",
            Self::TakeOut => "take-out",
            Self::RemovePasswords => "remove-passwords",
            Self::GiveBackPasswords => "give-back-passwords",
            Self::Delete => "delete",
            Self::Restore => "restore",
        }
    }

    /// Its label.
    pub fn label<'a>(self, words: &'a Words, resource: &Resource) -> &'a str {
        words.page(match self {
            Self::Unlock => "unlock",
            Self::Deactivate => "many_deactivate",
            Self::Activate => "many_activate",
            Self::AddTo => "many_add",
            Self::TakeOut => "many_take_out",
            Self::RemovePasswords => "many_remove_passwords",
            Self::GiveBackPasswords => "many_give_back_passwords",
            Self::Delete => resource.presentation.deleting.act,
            Self::Restore => "many_restore",
        })
    }

    /// Whether it needs a group.
    pub const fn wants_group(self) -> bool {
        matches!(self, Self::AddTo | Self::TakeOut)
    }

    /// Its operation, if the resource has one; a batch operation is preferred.
    pub fn op(self, resource: &Resource) -> Option<&'static Op> {
        let named = |name: OperationName| resource.batches.iter().copied().find(|op| name.is_of(op));
        match self {
            Self::Delete => {
                let many = |op: &&&'static Op| matches!(op.action, Action::DeleteBatch);
                resource.batches.iter().find(many).copied().or(resource.delete)
            }
            Self::Restore => {
                resource.others.iter().copied().find(|op| resource.presentation.is_restoring(op))
            }
            Self::Unlock | Self::Activate | Self::Deactivate => named(operation_name!("SetUserStateBatch")),
            Self::RemovePasswords => named(operation_name!("RemovePasswordBatch")),
            Self::GiveBackPasswords => named(operation_name!("RestorePasswordBatch")),
            Self::AddTo | Self::TakeOut => {
                let change = if self == Self::AddTo { RelationChange::Add } else { RelationChange::Remove };
                // the relation of the group, not that of each user: one operation changes it
                let relation =
                    groups()?.shape.relations.iter().find(|one| std::ptr::eq(one.target, resource.shape))?;
                relate::operation(groups()?, relation.name, change).filter(|_| resource.is_of(&USER))
            }
        }
    }

    /// Whether its operation is on a single row, so that it runs once for each.
    pub const fn is_each(self, op: &Op) -> bool {
        matches!(self, Self::Delete | Self::Restore) && !op.is_batch()
    }

    /// Whether a row already has the requested state.
    pub fn is_done(self, row: &Value, group: &str) -> bool {
        let is = |member: &str| row[member] == json!(true);
        match self {
            // a user who is only delayed after failed attempts is not locked, but unlocking helps
            Self::Unlock => {
                let failed = |member: &str| row[member].as_i64().unwrap_or_default() > 0;
                !is("isUserLocked")
                    && row["lockedUntil"].is_null()
                    && !failed("failedUserLoginAttempts")
                    && !failed("failedTemporaryLockAttempts")
            }
            Self::Activate => is("isUserActive"),
            Self::Deactivate => !is("isUserActive"),
            Self::AddTo => is_member(row, group),
            Self::TakeOut => !is_member(row, group),
            // the list does not contain who has a password: the operation refuses
            Self::RemovePasswords | Self::GiveBackPasswords | Self::Delete | Self::Restore => false,
        }
    }

    /// The operation's input for these rows: for all of them, or for the first one if it runs for each.
    pub fn input(self, op: &'static Op, keys: &[&str], group: &str) -> Input {
        let states = |member: &str, value: bool| {
            json!(keys.iter().map(|key| json!({ "id": key, member: value })).collect::<Vec<_>>())
        };
        let (path, body) = match self {
            Self::Unlock => (None, Some(states("isUserLocked", false))),
            Self::Activate => (None, Some(states("isUserActive", true))),
            Self::Deactivate => (None, Some(states("isUserActive", false))),
            Self::AddTo | Self::TakeOut => (Some(group), Some(json!({ "relatedIds": keys }))),
            Self::Delete | Self::Restore if self.is_each(op) => (keys.first().copied(), None),
            Self::RemovePasswords | Self::GiveBackPasswords | Self::Delete | Self::Restore => {
                (None, Some(json!(keys)))
            }
        };
        let mut input = Input::of(op, path.map(str::to_owned).into_iter().collect());
        (input.body, input.is_minimal) = (body, true);
        input
    }

    /// The action that undoes it.
    pub const fn undo(self) -> Option<Self> {
        match self {
            Self::Activate => Some(Self::Deactivate),
            Self::Deactivate => Some(Self::Activate),
            Self::AddTo => Some(Self::TakeOut),
            Self::TakeOut => Some(Self::AddTo),
            Self::RemovePasswords => Some(Self::GiveBackPasswords),
            Self::GiveBackPasswords => Some(Self::RemovePasswords),
            Self::Delete => Some(Self::Restore),
            // a lock that was removed cannot be restored
            Self::Unlock | Self::Restore => None,
        }
    }
}

fn is_member(row: &Value, group: &str) -> bool {
    let groups = row["memberOfGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    groups.iter().any(|one| one["id"].as_str().is_some_and(|id| id.eq_ignore_ascii_case(group)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Act, LISTED};
    use crate::shell::directory::find;

    #[test]
    fn rows_in_the_requested_state_are_recognized() {
        let row = json!({
            "isUserActive": true, "isUserLocked": false, "lockedUntil": null, "memberOfGroups": [{ "id": "aa" }],
        });
        let done: Vec<_> = LISTED.into_iter().filter(|act| act.is_done(&row, "AA")).collect();
        assert_eq!(done, [Act::Unlock, Act::Activate, Act::AddTo]);
        assert!(
            !Act::Unlock.is_done(&json!({ "isUserLocked": false, "failedTemporaryLockAttempts": 1 }), "")
        );
    }

    #[test]
    fn batch_operations_are_preferred() {
        crate::resources::fill();
        let user = find("User", true).unwrap();
        for act in LISTED {
            let op = act.op(user).unwrap();
            assert!(!act.is_each(op), "{act:?} {}", op.name);
        }
        let tenant = find("Tenant", false).unwrap();
        let offered: Vec<_> = LISTED.into_iter().filter(|act| act.op(tenant).is_some()).collect();
        assert_eq!(offered, [Act::Delete]);
    }
}
