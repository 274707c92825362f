//! CRUD, batches and relations: one row for each resource, one walk for all of them.

use std::collections::BTreeSet;

use chancery_resource::{Action, Op, RelationChange};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::BASE;
use crate::{
    each,
    fixtures::{Fixtures, create_fixtures},
    pattern::{ROWS, Row, key_of, kind_of, operations, pattern_of, rows, send},
};

/// The path of a relation, the member that lists it, and the resource of its items.
const RELATIONS: &[(&str, &str, &str)] = &[
    ("/Tenant/{id}/idpinstances", "idpInstances", "IdpInstance"),
    ("/Tenant/{id}/mfainstances", "mfaInstances", "MfaInstance"),
    ("/Tenant/{id}/clientapps", "clientApps", "ClientApp"),
    ("/IdpInstance/{id}/tenants", "tenants", "Tenant"),
    ("/IdpInstance/{id}/certstores", "certStores", "CertStore"),
    ("/IdpInstance/{id}/clientapps", "clientApps", "ClientApp"),
    ("/IdpInstance/{id}/mfainstances", "mfaInstances", "MfaInstance"),
    ("/MfaInstance/{id}/tenants", "tenants", "Tenant"),
    ("/MfaInstance/{id}/idpinstances", "idpInstances", "IdpInstance"),
    ("/MfaInstance/{id}/clientapps", "clientApps", "ClientApp"),
    ("/ClientApp/{id}/tenants", "tenants", "Tenant"),
    ("/ClientApp/{id}/idpinstances", "idpInstances", "IdpInstance"),
    ("/ClientApp/{id}/mfainstances", "mfaInstances", "MfaInstance"),
    ("/ClientApp/{id}/claimrules", "claimRules", "ClaimRule"),
    ("/ClientApp/{id}/allowedtokenexchangeclientapps", "allowedTokenExchangeClientApps", "ClientApp"),
    ("/ClientApp/{id}/authorizedusers", "authorizedPlatformUsers", "ApplicationUser"),
    ("/ClientApp/{id}/authorizedgroups", "authorizedPlatformGroups", "ApplicationGroup"),
    ("/CertStore/{id}/idpinstances", "idpInstances", "IdpInstance"),
    ("/ClaimRule/{id}/clientapps", "clientApps", "ClientApp"),
];

/// An item with these members replaced.
fn with(item: &Value, change: &Value) -> Value {
    let mut body = item.clone();
    body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    body
}

/// Asserts that an item has the change, a new concurrencyToken and the same key.
#[track_caller]
fn assert_changed(resource: &str, before: &Value, after: &Value, change: &Value) {
    assert_ne!(before["concurrencyToken"], after["concurrencyToken"], "{resource}");
    assert_eq!(key_of(resource, before), key_of(resource, after), "{resource}");
    for (member, value) in change.as_object().unwrap() {
        assert_eq!(&after[member], value, "{resource}: {member}");
    }
}

/// A walk through the standard operations of a resource.
struct Walk<'a> {
    world: &'a World,
    fixtures: &'a Fixtures,
    resource: &'static str,
    called: BTreeSet<&'static str>,
}

impl Walk<'_> {
    fn op(&self, name: &str) -> Option<&'static Op> {
        pattern_of(self.resource).find(|op| kind_of(op) == name)
    }

    /// Calls the operation of this name, asserts its status, and returns its response.
    async fn call(&mut self, name: &str, key: &str, body: &Value) -> Value {
        let op = self.op(name).unwrap();
        self.called.insert(op.name);
        let address = self.fixtures.address(op.path, key);
        let answer = send(&self.world.admin, op, &address, body).await.is(op.status);
        if answer.bytes.is_empty() { Value::Null } else { answer.json() }
    }

    async fn read(&mut self, key: &str) -> Value {
        self.call("read", key, &Value::Null).await
    }

    /// The item of a key in the list.
    async fn listed(&mut self, key: &str) -> Value {
        let all = self.call("list", "", &Value::Null).await;
        let found = all.as_array().unwrap().iter().find(|one| key_of(self.resource, one) == key);
        found.unwrap().clone()
    }

    async fn expect_gone(&self, key: &str) {
        let op = self.op("read").unwrap();
        let address = self.fixtures.address(op.path, key);
        send(&self.world.admin, op, &address, &Value::Null).await.problem(404, "not-found");
    }
}

/// Create, read, list, PATCH, PUT of the read item, the batches, DELETE.
async fn walk(world: &World, fixtures: &Fixtures, row: &Row) {
    let resource = row.resource;
    let mut walk = Walk { world, fixtures, resource, called: BTreeSet::new() };
    let body = |number: usize| fixtures.fill(&row.create, number);
    let change = |number: usize| fixtures.fill(&row.change, number);

    let created = walk.call("create", "", &body(1)).await;
    let key = key_of(resource, &created).to_owned();
    let read = walk.read(&key).await;
    assert_eq!(read["concurrencyToken"], created["concurrencyToken"], "{resource}");
    assert_eq!(walk.listed(&key).await["concurrencyToken"], created["concurrencyToken"], "{resource}");

    let token = json!({ "concurrencyToken": read["concurrencyToken"] });
    let patched = walk.call("patch", &key, &with(&change(2), &token)).await;
    assert_changed(resource, &read, &patched, &change(2));
    let replaced = walk.call("replace", &key, &with(&patched, &change(3))).await;
    assert_changed(resource, &patched, &replaced, &change(3));
    for shown in [walk.read(&key).await, walk.listed(&key).await] {
        assert_changed(resource, &patched, &shown, &change(3));
        assert_eq!(shown["concurrencyToken"], replaced["concurrencyToken"], "{resource}");
    }

    if walk.op("create many").is_some() {
        let many = walk.call("create many", "", &json!([body(4), body(5)])).await;
        let [first, second] = many.as_array().unwrap().as_slice() else { panic!("{resource}: {many}") };
        let changes = [(first, change(6)), (second, change(7))];
        let bodies: Vec<Value> = changes.iter().map(|(item, change)| with(item, change)).collect();
        let answers = walk.call("replace many", "", &json!(bodies)).await;
        assert_eq!(answers.as_array().unwrap().len(), 2, "{resource}");
        for ((before, change), after) in changes.iter().zip(answers.as_array().unwrap()) {
            assert_changed(resource, before, after, change);
            let read = walk.read(key_of(resource, before)).await;
            assert_changed(resource, before, &read, change);
        }
        let keys = [key_of(resource, first), key_of(resource, second)];
        walk.call("delete many", "", &json!(keys)).await;
        for key in keys {
            walk.expect_gone(key).await;
        }
    }
    walk.call("delete", &key, &Value::Null).await;
    walk.expect_gone(&key).await;
    let expected: BTreeSet<&str> = pattern_of(resource).map(|op| op.name).collect();
    assert_eq!(walk.called, expected, "{resource}: all of its operations were called");
}

/// Sets one, adds another, removes the first; asserts the listed items after each step.
async fn relate(world: &World, fixtures: &Fixtures, (path, member, other): (&str, &str, &str)) {
    let owner = path.split('/').nth(1).unwrap();
    let fixture_id = |resource: &str, number: usize| fixtures.text(&format!("{{{resource} {number}}}"), 0);
    let (key, first, second) = (fixture_id(owner, 1), fixture_id(other, 2), fixture_id(other, 3));
    let (first, second) = (first.as_str(), second.as_str());
    let steps: [(RelationChange, &[&str], &[&str]); 7] = [
        (RelationChange::Set, &[first], &[first]),
        (RelationChange::Add, &[second], &[first, second]),
        // adding a present item and removing an absent one are no errors
        (RelationChange::Add, &[first], &[first, second]),
        (RelationChange::Remove, &[first], &[second]),
        (RelationChange::Remove, &[first], &[second]),
        (RelationChange::Set, &[first, second], &[first, second]),
        (RelationChange::Set, &[], &[]),
    ];
    for (change, related_ids, expected) in steps {
        let matches_change = |op: &Op| matches!(op.action, Action::Relate(relation, kind) if relation.name == member && kind == change);
        let op = operations().find(|op| op.path == path && matches_change(op)).unwrap();
        let address = fixtures.address(path, &key);
        let answer = send(&world.admin, op, &address, &json!({ "relatedIds": related_ids })).await;
        let shown = answer.is(op.status).json();
        let read = world.admin.get(&format!("{BASE}/{owner}/{key}")).await.is(200).json();
        for item in [&shown, &read] {
            let mut ids = each(&item[member], "id");
            ids.sort_unstable();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(ids, expected, "{} {related_ids:?}", op.name);
        }
    }
}

on_both_engines! {
    /// It shows the effects that its rows state ([`ROWS`]).
    async fn every_resource_follows_the_crud_pattern(world: World) {
        let fixtures = create_fixtures(&world.admin).await;
        for row in rows() {
            walk(&world, &fixtures, &row).await;
        }
    }

    async fn every_relation_is_set_added_to_and_reduced(world: World) {
        let fixtures = create_fixtures(&world.admin).await;
        for row in RELATIONS {
            relate(&world, &fixtures, *row).await;
        }
    }
}

/// A new resource or relation needs a row, too.
#[test]
fn every_resource_and_relation_has_a_row() {
    for op in operations() {
        match op.action {
            Action::Patch => {
                let row = ROWS.iter().find(|(resource, ..)| *resource == op.shape.name);
                assert!(row.is_some(), "{}: no row", op.shape.name);
            }
            Action::Relate(relation, _) => {
                let row = RELATIONS.iter().find(|(path, ..)| *path == op.path);
                assert_eq!(row.map(|(_, member, _)| *member), Some(relation.name), "{}: no row", op.path);
            }
            _ => {}
        }
    }
}
