//! References in a circle. Two people may be each other's managers: a manager who comes later is left out at first, and
//! added when all are there. Groups cannot contain each other, so a member that closes a circle is refused at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::REFERENCE;

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

/// The patch that adds a manager, once it is there under this id.
pub fn patch(id: &str) -> Value {
    json!({ "Operations": [{ "op": "add", "path": format!("{ENTERPRISE}:manager"), "value": id }] })
}

/// The bulkId that a value refers to, if that is still to be created.
fn named<'a>(value: &'a Value, unmade: &BTreeSet<String>) -> Option<&'a str> {
    let text = value.as_str().or_else(|| value.get("value")?.as_str())?;
    text.strip_prefix(REFERENCE).filter(|id| unmade.contains(*id))
}

/// Takes out the reference to a manager who is still to be created.
pub fn take_manager(data: &mut Value, unmade: &BTreeSet<String>) -> Option<String> {
    let own = data.get_mut(ENTERPRISE)?.as_object_mut()?;
    let manager = named(own.get("manager")?, unmade)?.to_owned();
    own.remove("manager");
    Some(manager)
}

/// A member that is still to be created. All that a group refers to is created before the group, unless that refers to
/// the group, too; and only groups have members.
pub fn group_behind<'a>(data: &'a Value, unmade: &BTreeSet<String>) -> Option<&'a str> {
    data.get("members")?.as_array()?.iter().find_map(|member| named(member, unmade))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::{ENTERPRISE, group_behind, patch, take_manager};

    #[test]
    fn a_manager_who_is_not_there_yet_is_taken_out() {
        let mut data = json!({ "userName": "ada" });
        data[ENTERPRISE] = json!({ "manager": { "value": "bulkId:a" }, "department": "x" });
        assert_eq!(take_manager(&mut data, &BTreeSet::new()), None);
        let unmade = BTreeSet::from(["a".to_owned()]);
        assert_eq!(take_manager(&mut data, &unmade).as_deref(), Some("a"));
        assert_eq!(data[ENTERPRISE], json!({ "department": "x" }));
        assert_eq!(take_manager(&mut data, &unmade), None);
        assert_eq!(patch("1")["Operations"][0]["value"], "1");
    }

    #[test]
    fn a_member_that_is_not_there_yet_closes_a_circle() {
        let data = json!({ "members": [{ "value": "7" }, { "value": "bulkId:b" }, { "value": "bulkId:a" }] });
        assert_eq!(group_behind(&data, &BTreeSet::from(["a".to_owned()])), Some("a"));
        assert_eq!(group_behind(&data, &BTreeSet::new()), None);
    }
}
