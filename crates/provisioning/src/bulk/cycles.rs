//! Cyclic references. Two people may be each other's managers: a manager who is created later is left out at first, and
//! added at the end. Groups cannot contain each other, so a member that closes a cycle is rejected at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::REFERENCE_PREFIX;

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

/// The patch that adds a manager after its creation.
pub fn patch(id: &str) -> Value {
    json!({ "Operations": [{ "op": "add", "path": format!("{ENTERPRISE}:manager"), "value": id }] })
}

/// The bulkId that a value refers to, if its resource is still to be created.
fn pending_reference<'a>(value: &'a Value, pending: &BTreeSet<String>) -> Option<&'a str> {
    let text = value.as_str().or_else(|| value.get("value")?.as_str())?;
    text.strip_prefix(REFERENCE_PREFIX).filter(|id| pending.contains(*id))
}

/// Removes and returns the reference to a manager who is still to be created.
pub fn take_manager(data: &mut Value, pending: &BTreeSet<String>) -> Option<String> {
    let own = data.get_mut(ENTERPRISE)?.as_object_mut()?;
    let manager = pending_reference(own.get("manager")?, pending)?.to_owned();
    own.remove("manager");
    Some(manager)
}

/// The first member that is still to be created. All that a group refers to is created before the group, unless that
/// refers to the group, too; and only groups have members.
pub fn pending_member<'a>(data: &'a Value, pending: &BTreeSet<String>) -> Option<&'a str> {
    data.get("members")?.as_array()?.iter().find_map(|member| pending_reference(member, pending))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::{ENTERPRISE, patch, pending_member, take_manager};

    #[test]
    fn a_pending_manager_is_removed_from_the_body() {
        let mut data = json!({ "userName": "ada" });
        data[ENTERPRISE] = json!({ "manager": { "value": "bulkId:a" }, "department": "x" });
        assert_eq!(take_manager(&mut data, &BTreeSet::new()), None);
        let pending = BTreeSet::from(["a".to_owned()]);
        assert_eq!(take_manager(&mut data, &pending).as_deref(), Some("a"));
        assert_eq!(data[ENTERPRISE], json!({ "department": "x" }));
        assert_eq!(take_manager(&mut data, &pending), None);
        assert_eq!(patch("1")["Operations"][0]["value"], "1");
    }

    #[test]
    fn a_pending_member_closes_a_cycle() {
        let data = json!({ "members": [{ "value": "7" }, { "value": "bulkId:b" }, { "value": "bulkId:a" }] });
        assert_eq!(pending_member(&data, &BTreeSet::from(["a".to_owned()])), Some("a"));
        assert_eq!(pending_member(&data, &BTreeSet::new()), None);
    }
}
