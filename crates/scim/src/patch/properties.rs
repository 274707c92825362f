//! Random patches against simple models.

use std::collections::BTreeSet;

use chancery_record::Json;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use serde_json::{Value, json};

use super::Patch;
use crate::{GROUP, Resource, ScimType, Target, USER};

/// The model of a user: two plain attributes, and one address for each type.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    nick: Option<String>,
    given: Option<String>,
    home: Option<String>,
    work: Option<String>,
}

impl Model {
    fn of(resource: &Resource) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let address = |of_type: &str| {
            let email = resource.get("emails")?.as_array()?.iter().find(|one| one["type"] == of_type)?;
            text(email.get("value"))
        };
        Self {
            nick: text(resource.get("nickName")),
            given: text(resource.get("name").and_then(|name| name.get("givenName"))),
            home: address("home"),
            work: address("work"),
        }
    }

    fn slot(&mut self, path: &str) -> &mut Option<String> {
        match path {
            "nickName" => &mut self.nick,
            "name.givenName" => &mut self.given,
            HOME => &mut self.home,
            _ => &mut self.work,
        }
    }
}

const HOME: &str = r#"emails[type eq "home"].value"#;
const WORK: &str = r#"emails[type eq "work"].value"#;

fn steps() -> impl Strategy<Value = Vec<(&'static str, &'static str, String)>> {
    let ops = prop_oneof![Just("add"), Just("replace"), Just("remove")];
    let paths = prop_oneof![Just("nickName"), Just("name.givenName"), Just(HOME), Just(WORK)];
    proptest::collection::vec((ops, paths, "[a-z]{1,3}"), 0..12)
}

/// Adding, removing, replacing all and removing all of six members.
fn member_steps() -> impl Strategy<Value = Vec<(u8, BTreeSet<u8>)>> {
    proptest::collection::vec((0..4_u8, proptest::collection::btree_set(0..6_u8, 0..4)), 0..10)
}

fn listed(ids: &BTreeSet<u8>) -> Value {
    ids.iter().map(|id| json!({ "value": id.to_string() })).collect()
}

/// JSON that has the words of patches more often than chance would.
fn noise() -> impl Strategy<Value = Value> {
    let words =
        ["add", "remove", "replace", "members", "emails", "emails[type eq \"x\"]", "name.", "active", "True"];
    let words = words.into_iter().map(Value::from).collect::<Vec<_>>();
    let leaf = prop_oneof![
        proptest::sample::select(words),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let names =
            prop_oneof![Just("op"), Just("path"), Just("value"), Just("members"), Just("type"), Just("name")];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((names, inner), 0..4).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn users_are_as_the_model_says(steps in steps()) {
        let before = Resource::from_iter([("userName".to_owned(), "ada".into())]);
        let mut model = Model::default();
        let mut operations = Vec::new();
        for (op, path, value) in &steps {
            *model.slot(path) = (*op != "remove").then(|| value.clone());
            operations.push(json!({ "op": op, "path": path, "value": value }));
        }
        let body = Json::from_serde(json!({ "Operations": operations }));
        let done = Patch::read(&USER, Target::Store, &body).unwrap().apply(&before).unwrap();
        prop_assert_eq!(Model::of(&done.resource), model.clone());
        let changed = done.changed.iter().map(String::as_str).collect::<BTreeSet<_>>();
        let mut expected = BTreeSet::new();
        expected.extend(model.nick.map(|_| "nickName"));
        expected.extend(model.given.map(|_| "name"));
        expected.extend(model.home.or(model.work).map(|_| "emails"));
        prop_assert_eq!(changed, expected);
    }

    /// Applying the changes of a group's members at once has the result of applying the operations one by one.
    #[test]
    fn members_are_as_the_model_says(
        before in proptest::collection::btree_set(0..6_u8, 0..6),
        steps in member_steps(),
    ) {
        let mut model = before.clone();
        let mut operations = Vec::new();
        for (kind, ids) in &steps {
            let operation = match kind {
                0 => {
                    model.extend(ids);
                    json!({ "op": "add", "path": "members", "value": listed(ids) })
                }
                1 => {
                    model = ids.clone();
                    json!({ "op": "replace", "path": "members", "value": listed(ids) })
                }
                2 => {
                    model.retain(|id| !ids.contains(id));
                    json!({ "op": "remove", "path": "members", "value": listed(ids) })
                }
                _ => {
                    model.clear();
                    json!({ "op": "remove", "path": "members" })
                }
            };
            operations.push(operation);
        }
        let body = Json::from_serde(json!({ "Operations": operations }));
        let patch = Patch::read(&GROUP, Target::Store, &body).unwrap();
        let members = patch.members();
        let mut after: BTreeSet<String> = before.iter().map(u8::to_string).collect();
        if members.replaced {
            after.clear();
        }
        after.retain(|id| !members.removed.contains_key(id));
        after.extend(members.added.keys().cloned());
        prop_assert_eq!(after, model.iter().map(u8::to_string).collect::<BTreeSet<_>>());
        prop_assert!(members.added.keys().all(|id| !members.removed.contains_key(id)));
    }

    /// Any input is a patch or is rejected.
    #[test]
    fn no_input_makes_a_patch_panic(operations in proptest::collection::vec(noise(), 0..4), groups in any::<bool>()) {
        let of = if groups { &GROUP } else { &USER };
        let body = Json::from_serde(json!({ "Operations": operations }));
        let names = [("userName".to_owned(), "ada".into()), ("displayName".to_owned(), "Staff".into())];
        match Patch::read(of, Target::Provider, &body).and_then(|patch| patch.apply(&Resource::from_iter(names))) {
            Ok(done) => prop_assert!(done.resource.contains_key("displayName")),
            Err(error) => prop_assert!(error.status == 413 || error.scim_type.is_some_and(|one| one != ScimType::Uniqueness)),
        }
    }
}
