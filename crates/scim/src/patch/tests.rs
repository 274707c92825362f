//! Each row of the crate's table of client requests, and rejected requests.

use chancery_record::Json;
use serde_json::{Value, json};

use super::{Members, Patch, Patched};
use crate::{GROUP, ScimError, ScimType, Target, USER};

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

fn ada() -> Value {
    let mut ada = json!({
        "schemas": [USER.core.urn], "id": "7", "userName": "ada", "active": true,
        "name": { "givenName": "Ada", "familyName": "Lovelace" }, "nickName": "Ada",
        "emails": [
            { "value": "a@example.com", "type": "work", "primary": true },
            { "value": "b@example.com", "type": "home" },
        ],
    });
    ada[ENTERPRISE] = json!({ "department": "Engines", "manager": { "value": "9" } });
    ada
}

fn patch(before: &Value, operations: &Value) -> Result<Patched, ScimError> {
    let body = Json::from_serde(json!({ "Operations": operations }));
    Patch::read(&USER, Target::Store, &body)?.apply(before.as_object().unwrap())
}

/// Patches Ada and returns her with the names of what changed.
fn patched(operations: &Value) -> (Value, Vec<String>) {
    let done = patch(&ada(), operations).unwrap();
    (done.resource.into(), done.changed.into_iter().collect())
}

fn refused(operations: &Value) -> ScimType {
    patch(&ada(), operations).unwrap_err().scim_type.unwrap()
}

#[test]
fn operations_are_read_in_any_case_and_without_schemas() {
    let (after, changed) = patched(&json!([
        { "op": "Replace", "path": "NICKNAME", "value": "Countess" },
        { "OP": "Add", "Path": "title", "Value": "Dr" },
        { "op": "REMOVE", "path": "name.givenName" },
    ]));
    assert_eq!((&after["nickName"], &after["title"]), (&json!("Countess"), &json!("Dr")));
    assert_eq!(after["name"], json!({ "familyName": "Lovelace" }));
    assert_eq!(changed, ["name", "nickName", "title"]);
}

#[test]
fn without_a_path_each_key_is_a_path() {
    let department = format!("{ENTERPRISE}:department");
    let (after, changed) = patched(&json!([{ "op": "replace", "value": {
        "schemas": ["x"], "id": "7", "name.familyName": "King", "userName": "countess", department: "Numbers",
    } }]));
    assert_eq!(after["name"], json!({ "givenName": "Ada", "familyName": "King" }));
    assert_eq!(after[ENTERPRISE], json!({ "department": "Numbers", "manager": { "value": "9" } }));
    assert_eq!(changed, ["name", &format!("{ENTERPRISE}:department"), "userName"]);
    let (after, _) =
        patched(&json!([{ "op": "add", "value": { ENTERPRISE: { "costCenter": "4", "manager": null } } }]));
    assert_eq!(after[ENTERPRISE], json!({ "department": "Engines", "costCenter": "4" }));
    let (after, _) = patched(&json!([{ "op": "replace", "value": { "name": { "givenName": "A" } } }]));
    assert_eq!(after["name"], json!({ "givenName": "A", "familyName": "Lovelace" }));
}

#[test]
fn an_element_has_its_value_once_all_operations_are_done() {
    let mobile = |part: &str| format!("phoneNumbers[type eq \"mobile\"].{part}");
    let display = json!({ "op": "add", "path": mobile("display"), "value": "M" });
    let number = json!({ "op": "add", "path": mobile("value"), "value": "12345" });
    let (after, _) = patched(&json!([display, number]));
    assert_eq!(
        after["phoneNumbers"][0],
        json!({ "type": "mobile", "primary": true, "display": "M", "value": "12345" })
    );
    let (after, changed) = patched(&json!([display]));
    assert_eq!((after.get("phoneNumbers"), changed.len()), (None, 0));
}

#[test]
fn a_whole_extension_is_a_path() {
    let (after, _) =
        patched(&json!([{ "op": "replace", "path": ENTERPRISE, "value": { "division": "First" } }]));
    assert_eq!(after[ENTERPRISE]["division"], "First");
    assert_eq!(after[ENTERPRISE]["department"], "Engines");
    let (after, changed) = patched(&json!([{ "op": "remove", "path": ENTERPRISE }]));
    assert_eq!(after.get(ENTERPRISE), None);
    assert_eq!(changed, [format!("{ENTERPRISE}:department"), format!("{ENTERPRISE}:manager")]);
}

#[test]
fn active_is_read_from_text() {
    for value in [json!("False"), json!("false"), json!([{ "value": "False" }]), json!(false)] {
        let (after, changed) = patched(&json!([{ "op": "replace", "path": "active", "value": value }]));
        assert_eq!(after["active"], false);
        assert_eq!(changed, ["active"]);
        let (after, _) = patched(&json!([{ "op": "replace", "value": { "active": value } }]));
        assert_eq!(after["active"], false);
    }
    assert_eq!(
        refused(&json!([{ "op": "replace", "path": "active", "value": "off" }])),
        ScimType::InvalidValue
    );
}

#[test]
fn written_elements_leave_one_primary_and_none_twice() {
    let patched_value = |name: &str, before: Value, path: &str, value: Value| {
        let bo = json!({ "userName": "bo", name: before });
        let done = patch(&bo, &json!([{ "op": "replace", "path": path, "value": value }]));
        done.unwrap().resource.get(name).cloned().unwrap_or_default()
    };
    let ims = json!([{ "value": "a", "type": "home", "primary": true }]);
    let lost = patched_value("ims", ims.clone(), r#"ims[type eq "x"].primary"#, json!(true));
    assert_eq!(lost, ims, "what tells nothing takes no mark");
    let towns = json!([{ "locality": "A" }, { "locality": "B" }]);
    assert_eq!(
        patched_value("addresses", towns, r#"addresses[locality eq "A"].locality"#, json!("B")),
        json!([{ "locality": "B" }])
    );
    let roles = json!([{ "value": "a", "type": "x" }, { "value": "b", "type": "x" }]);
    let marked = json!([{ "value": "a", "type": "x" }, { "value": "b", "type": "x", "primary": true }]);
    assert_eq!(
        patched_value("roles", roles, r#"roles[type eq "x"].primary"#, json!(true)),
        marked,
        "the last is"
    );
}

#[test]
fn an_element_that_does_not_exist_is_created() {
    let path = r#"emails[type eq "work"].value"#;
    let bo = json!({ "userName": "bo" });
    for op in ["add", "replace"] {
        let done = patch(&bo, &json!([{ "op": op, "path": path, "value": "b@example.com" }])).unwrap();
        let created = json!([{ "type": "work", "value": "b@example.com", "primary": true }]);
        assert_eq!(done.resource["emails"], created);
    }
    let (after, _) = patched(&json!([
        { "op": "add", "path": r#"phoneNumbers[type eq "mobile"].value"#, "value": "+41 1" },
        { "op": "add", "path": r#"phoneNumbers[type eq "work"].value"#, "value": "+41 2" },
        { "op": "replace", "path": path, "value": "c@example.com" },
        { "op": "replace", "path": r#"emails[type eq "work" and value eq "C@example.com"].display"#, "value": "C" },
    ]));
    let phones = json!([
        { "type": "mobile", "value": "+41 1", "primary": true }, { "type": "work", "value": "+41 2" },
    ]);
    assert_eq!(after["phoneNumbers"], phones);
    let work = json!({ "type": "work", "value": "c@example.com", "primary": true, "display": "C" });
    assert_eq!(after["emails"][0], work);
    let done =
        patch(&bo, &json!([{ "op": "replace", "path": "emails[primary eq true].value", "value": "x" }]));
    assert_eq!(done.unwrap().resource["emails"], json!([{ "primary": true, "value": "x" }]));
}

#[test]
fn replacing_at_a_path_that_matches_nothing_is_rejected() {
    let path = r#"emails[value eq "nobody@example.com"].type"#;
    assert_eq!(refused(&json!([{ "op": "replace", "path": path, "value": "work" }])), ScimType::NoTarget);
    assert_eq!(patched(&json!([{ "op": "remove", "path": path }])), (ada(), vec![]));
    assert_eq!(refused(&json!([{ "op": "remove", "path": "emails[nobody pr]" }])), ScimType::InvalidFilter);
}

#[test]
fn a_manager_is_set_and_cleared_in_every_way() {
    let path = format!("{ENTERPRISE}:manager");
    for value in [json!("8"), json!({ "value": "8" }), json!({ "value": "8", "displayName": "Bo" })] {
        let (after, _) = patched(&json!([{ "op": "replace", "path": path, "value": value }]));
        assert_eq!(after[ENTERPRISE]["manager"], json!({ "value": "8" }));
    }
    for value in [json!({ "value": "" }), json!(""), Value::Null, json!({ "value": null })] {
        let (after, _) = patched(&json!([{ "op": "replace", "path": path, "value": value }]));
        assert_eq!(after[ENTERPRISE].get("manager"), None, "{value}");
    }
    let (after, _) = patched(&json!([{ "op": "replace", "path": format!("{path}.value"), "value": "" }]));
    assert_eq!(after[ENTERPRISE].get("manager"), None);
}

#[test]
fn many_values_are_added_replaced_and_removed() {
    let added =
        json!([{ "value": "c@example.com", "primary": true }, { "value": "b@example.com", "type": "home" }]);
    let (after, _) = patched(&json!([{ "op": "add", "path": "emails", "value": added }]));
    let expected = json!([
        { "value": "a@example.com", "type": "work" },
        { "value": "b@example.com", "type": "home" },
        { "value": "c@example.com", "primary": true },
    ]);
    assert_eq!(after["emails"], expected);
    let (after, _) = patched(&json!([{ "op": "replace", "path": "emails", "value": added }]));
    assert_eq!(after["emails"], added);
    let named = json!([{ "value": "b@example.com" }]);
    let (after, _) = patched(&json!([{ "op": "remove", "path": "emails", "value": named }]));
    assert_eq!(after["emails"].as_array().map(Vec::len), Some(1));
    for nothing in [json!([]), json!([{}])] {
        assert_eq!(
            patched(&json!([{ "op": "remove", "path": "emails", "value": nothing }])),
            (ada(), vec![])
        );
    }
    for path in ["emails", "emails[value pr]", "emails.value"] {
        let (after, _) = patched(&json!([{ "op": "remove", "path": path }]));
        assert_eq!(after.get("emails"), None, "{path}");
    }
    let (after, _) =
        patched(&json!([{ "op": "replace", "path": r#"emails[type eq "home"].primary"#, "value": true }]));
    assert_eq!(after["emails"][0].get("primary"), None);
    assert_eq!(after["emails"][1]["primary"], true);
}

#[test]
fn operations_without_effect_report_no_change() {
    for operations in [
        json!([]),
        json!([{ "op": "remove", "path": "title" }]),
        json!([{ "op": "remove", "path": "profileUrl" }, { "op": "replace", "path": "userName", "value": "ada" }]),
        json!([{ "op": "replace", "path": "id", "value": "7" }]),
        json!([{ "op": "replace", "path": "name.honorificPrefix", "value": "Lady" }]),
        json!([{ "op": "add", "path": "name.formatted", "value": "Somebody" }]),
        json!([{ "op": "add", "path": "nickName", "value": "x" }, { "op": "add", "path": "nickName", "value": "Ada" }]),
    ] {
        assert_eq!(patched(&operations), (ada(), vec![]), "{operations}");
    }
}

#[test]
fn attributes_that_cannot_be_written_are_rejected() {
    for (operation, expected) in [
        (json!({ "op": "add", "path": "nobody", "value": 1 }), ScimType::InvalidPath),
        (json!({ "op": "add", "value": { "nobody": 1 } }), ScimType::InvalidPath),
        (json!({ "op": "replace", "path": "groups", "value": [] }), ScimType::Mutability),
        (json!({ "op": "replace", "path": "meta.created", "value": "x" }), ScimType::Mutability),
        (json!({ "op": "replace", "path": "id", "value": "8" }), ScimType::Mutability),
        (json!({ "op": "remove", "path": "id" }), ScimType::Mutability),
        (json!({ "op": "remove" }), ScimType::NoTarget),
        (json!({ "op": "remove", "path": "userName" }), ScimType::InvalidValue),
        (json!({ "op": "add", "path": "title" }), ScimType::InvalidValue),
        (json!({ "op": "add", "path": "title", "value": 1 }), ScimType::InvalidValue),
        (json!({ "op": "add", "value": "x" }), ScimType::InvalidValue),
        (json!({ "op": "move", "path": "title" }), ScimType::InvalidSyntax),
        (json!({ "op": "add", "path": 1 }), ScimType::InvalidPath),
    ] {
        assert_eq!(refused(&json!([operation])), expected, "{operation}");
    }
    let body = Json::from_serde(json!({ "operations": 1 }));
    let error = Patch::read(&USER, Target::Store, &body).err().unwrap();
    assert_eq!(error.scim_type, Some(ScimType::InvalidSyntax));
}

#[test]
fn patches_are_bounded() {
    let many: Vec<Value> = (0..1001).map(|_| json!({ "op": "remove", "path": "title" })).collect();
    assert_eq!(patch(&ada(), &many.into()).unwrap_err().status, 413);
    let add = |n: usize| json!({ "op": "add", "path": "emails", "value": [{ "value": n.to_string() }] });
    let many: Vec<Value> = (0..99).map(add).collect();
    assert_eq!(refused(&many.into()), ScimType::InvalidValue);
}

fn members(operations: &Value) -> Result<Members, ScimError> {
    let body = Json::from_serde(json!({ "Operations": operations }));
    let patch = Patch::read(&GROUP, Target::Store, &body)?;
    let done = patch.apply(json!({ "displayName": "Staff" }).as_object().unwrap())?;
    assert!(done.changed.is_empty());
    Ok(done.members)
}

fn ids(members: &Members) -> (Vec<&str>, Vec<&str>) {
    (members.added.keys().map(String::as_str).collect(), members.removed.keys().map(String::as_str).collect())
}

#[test]
fn members_are_added_and_removed_each_once() {
    let done = members(&json!([
        { "op": "Add", "path": "members", "value": [{ "value": "A", "type": "User" }, { "value": "a" }, { "value": "b" }] },
        { "op": "Remove", "path": "members[value eq \"b\"]" },
        { "op": "remove", "path": "members", "value": [{ "value": "c" }] },
        { "op": "remove", "path": "members[value eq \"d\" or value eq \"e\"]" },
        { "op": "add", "value": { "members": [{ "value": "e" }] } },
        { "op": "remove", "path": "members", "value": [] },
    ]));
    let done = done.unwrap();
    assert_eq!(ids(&done), (vec!["a", "e"], vec!["b", "c", "d"]));
    assert!(!done.replaced && !done.emptied);
    assert!(members(&json!([])).unwrap().is_empty());
}

#[test]
fn all_members_are_removed_only_by_an_explicit_request() {
    let emptied = members(&json!([{ "op": "remove", "path": "members" }])).unwrap();
    assert!(emptied.replaced && emptied.emptied);
    let set = json!([{ "op": "replace", "path": "members", "value": [{ "value": "a" }] }]);
    let set = members(&set).unwrap();
    assert!(set.replaced && !set.emptied);
    assert_eq!(ids(&set), (vec!["a"], vec![]));
    for (operation, expected) in [
        (json!({ "op": "replace", "path": "members" }), ScimType::InvalidValue),
        (json!({ "op": "replace", "path": "members", "value": null }), ScimType::InvalidValue),
        (json!({ "op": "replace", "path": "members", "value": [null] }), ScimType::InvalidValue),
        (json!({ "op": "replace", "path": "members", "value": [{}] }), ScimType::InvalidValue),
        (json!({ "op": "replace", "path": "members", "value": { "value": "a" } }), ScimType::InvalidValue),
        (json!({ "op": "remove", "path": "members", "value": [{ "display": "x" }] }), ScimType::InvalidValue),
        (json!({ "op": "add", "path": "members", "value": ["a"] }), ScimType::InvalidValue),
        (json!({ "op": "replace", "path": "members.value", "value": "a" }), ScimType::Mutability),
        (json!({ "op": "remove", "path": "members[type eq \"User\"]" }), ScimType::InvalidFilter),
        (json!({ "op": "replace", "path": "members[value eq \"a\"]", "value": {} }), ScimType::NoTarget),
    ] {
        assert_eq!(members(&json!([operation])).unwrap_err().scim_type, Some(expected), "{operation}");
    }
}
