//! CRUD, batches and relations: one row for each resource, one walk for all of them.

use std::collections::BTreeSet;

use chancery::services;
use chancery_resource::{Action, Op, RelationChange};
use chancery_testkit::{Answer, Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE,
    fixtures::{Fixtures, create_fixtures},
};
use crate::each;

/// Resource, body that creates one, members that a change sets. `%` is a number, so that no two are the
/// same; names in braces are fixtures of [`create_fixtures`]. A role assignment cannot be changed.
const ROWS: &[(&str, &str, &str)] = &[
    ("Customer", r#"{"name": "Customer %", "address": "Street %"}"#, r#"{"address": "Avenue %"}"#),
    (
        "Subscription",
        r#"{"name": "Subscription %", "customerId": "{customerId}"}"#,
        r#"{"name": "Changed subscription %"}"#,
    ),
    (
        "Tenant",
        r#"{"name": "Tenant %", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"description": "Changed %"}"#,
    ),
    (
        "IdpType",
        r#"{"name": "Type %", "providerType": "IdentityProvider", "factoryType": "OpenIdConnect"}"#,
        r#"{"name": "Changed type %"}"#,
    ),
    (
        "IdpInstance",
        r#"{"name": "Instance %", "idpTypeId": "{Google}", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"name": "Changed instance %"}"#,
    ),
    ("IdpInstanceMetadata", r#"{"key": "instance-entry-%", "value": "x"}"#, r#"{"value": "changed %"}"#),
    (
        "MfaInstance",
        r#"{"name": "Factor %", "idpTypeId": "{totp}", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"name": "Changed factor %"}"#,
    ),
    (
        "Option",
        r#"{"name": "BrandName", "value": "as it was", "applyToTenantId": "{Tenant %}"}"#,
        r#"{"value": "changed %"}"#,
    ),
    (
        "ClientApp",
        r#"{"name": "App %", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"name": "Changed app %"}"#,
    ),
    (
        "ClientAppAuthenticationConfiguration",
        r#"{"clientAppId": "{ClientApp %}", "tokenEndpointAuthMethod": "tls_client_auth",
            "tlsClientAuthSanDns": "app-%.example"}"#,
        r#"{"tlsClientAuthSanDns": "changed-%.example"}"#,
    ),
    (
        "ClientAppFederatedIdentity",
        r#"{"clientAppId": "{ClientApp 1}", "name": "pipeline %", "issuer": "https://ci.example",
            "subject": "repo:%"}"#,
        r#"{"subject": "repo:changed-%"}"#,
    ),
    (
        "ClientAppKeySet",
        r#"{"clientAppId": "{ClientApp 1}", "name": "keys %", "use": "Signing", "jwks": "{jwks}"}"#,
        r#"{"name": "changed keys %"}"#,
    ),
    ("ClientAppMetadata", r#"{"key": "app-entry-%", "value": "x"}"#, r#"{"value": "changed %"}"#),
    (
        "ClientAppRedirectUri",
        r#"{"clientAppId": "{ClientApp 1}", "uri": "https://app.example/%"}"#,
        r#"{"uri": "https://app.example/changed/%"}"#,
    ),
    (
        "ClientAppRequestUri",
        r#"{"clientAppId": "{ClientApp 1}", "uri": "https://app.example/%"}"#,
        r#"{"uri": "https://app.example/changed/%"}"#,
    ),
    (
        "ClientAppResource",
        r#"{"clientAppId": "{ClientApp 1}", "key": "resource-%"}"#,
        r#"{"description": "Changed %"}"#,
    ),
    (
        "ClientAppRole",
        r#"{"clientAppId": "{ClientApp 1}", "roleType": "TenantAdmin", "applyToTenantId": "{Tenant %}"}"#,
        r#"{"applyToTenantId": "{Tenant %}"}"#,
    ),
    (
        "ClientAppScope",
        r#"{"clientAppId": "{ClientApp 1}", "key": "scope-%"}"#,
        r#"{"description": "Changed %"}"#,
    ),
    (
        "ClientAppSecret",
        r#"{"clientAppId": "{ClientApp 1}", "name": "secret %"}"#,
        r#"{"name": "changed secret %"}"#,
    ),
    (
        "CertStore",
        r#"{"name": "certificate %", "certType": "OidcTokenSigning", "applyToTenantId": "{Tenant 1}",
            "certificateInput": {"format": "Pem", "data": "{certificate}", "privateKey": "{private key}"}}"#,
        r#"{"name": "changed certificate %"}"#,
    ),
    (
        "ClaimRule",
        r#"{"name": "rule %", "ruleType": "Filter", "ruleLevel": "ClientApp",
            "subscriptionId": "{subscriptionId}"}"#,
        r#"{"typeEvaluationRule": "^changed%$"}"#,
    ),
    // four letters of base64 are three of text
    (
        "CustomAsset",
        r#"{"location": "/assets/tenant/{Tenant 1}/file-%.txt", "mimetype": "text/plain", "data": "YWF%"}"#,
        r#"{"data": "YWJ%"}"#,
    ),
    (
        "CustomView",
        r#"{"location": "/views/tenant/{Tenant 1}/View%", "content": "<p>%</p>"}"#,
        r#"{"content": "<p>changed %</p>"}"#,
    ),
    (
        "EventSubscription",
        r#"{"name": "receiver %", "url": "https://receiver.example/%", "subscriptionId": "{subscriptionId}"}"#,
        r#"{"name": "changed receiver %"}"#,
    ),
    (
        "IpAddressRange",
        r#"{"lower": "10.0.0.%", "upper": "10.0.0.200", "tenantId": "{Tenant 1}"}"#,
        r#"{"upper": "10.0.1.%"}"#,
    ),
    (
        "UserQuestionnaireItem",
        r#"{"tenantId": "{Tenant 1}", "key": "item-%", "label": "Item %"}"#,
        r#"{"label": "Changed item %"}"#,
    ),
    (
        "RoleAssignment",
        r#"{"principalType": "PlatformUser", "principalId": "{ApplicationUser 1}",
            "roleType": "TenantAdmin", "applyToTenantId": "{Tenant %}"}"#,
        "{}",
    ),
];

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

/// A row, read.
pub struct Row {
    /// The resource.
    pub resource: &'static str,
    /// The body that creates one.
    pub create: Value,
    change: Value,
}

/// The rows.
pub fn rows() -> Vec<Row> {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    ROWS.iter()
        .map(|&(resource, create, change)| Row { resource, create: read(create), change: read(change) })
        .collect()
}

/// The operations of the service.
pub fn operations() -> impl Iterator<Item = &'static Op> {
    services()
        .iter()
        .filter(|service| service.name == "management" && service.version == "v2")
        .flat_map(|service| service.all())
}

/// The member that is a resource's key.
pub fn key_of<'a>(resource: &str, item: &'a Value) -> &'a str {
    let member = match resource {
        "ClientAppAuthenticationConfiguration" => "clientAppId",
        "ClientAppMetadata" | "GroupMetadata" | "IdpInstanceMetadata" => "key",
        "CustomAsset" | "CustomView" => "location",
        _ => "id",
    };
    item[member].as_str().unwrap()
}

/// The name of the standard operation; empty for any other operation.
fn kind_of(op: &Op) -> &'static str {
    match op.action {
        Action::List => "list",
        Action::Create => "create",
        Action::Read => "read",
        Action::Replace => "replace",
        Action::Patch => "patch",
        Action::Delete => "delete",
        Action::CreateBatch => "create many",
        Action::ReplaceBatch => "replace many",
        Action::DeleteBatch => "delete many",
        Action::ReplaceMembers(_) | Action::Relate(..) | Action::Custom(_) => "",
    }
}

fn pattern_of(resource: &'static str) -> impl Iterator<Item = &'static Op> {
    operations().filter(move |op| op.shape.name == resource && !kind_of(op).is_empty())
}

async fn send(client: &Client, op: &Op, address: &str, body: &Value) -> Answer {
    let method = http::Method::from_bytes(op.method.name().as_bytes()).unwrap();
    let bytes = if op.takes_body() { body.to_string().into_bytes() } else { Vec::new() };
    client.send(method, address, &[("content-type", "application/json")], bytes).await
}

/// Creates the one with this number of a row's resource.
pub async fn create(world: &World, fixtures: &Fixtures, row: &Row, number: usize) -> Value {
    let op = pattern_of(row.resource).find(|op| kind_of(op) == "create").unwrap();
    let body = fixtures.fill(&row.create, number);
    send(&world.admin, op, &fixtures.address(op.path, ""), &body).await.is(op.status).json()
}

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
    let all = walk.call("list", "", &Value::Null).await;
    let listed = all.as_array().unwrap().iter().find(|one| key_of(resource, one) == key);
    assert_eq!(listed.unwrap()["concurrencyToken"], created["concurrencyToken"], "{resource}");

    let token = json!({ "concurrencyToken": read["concurrencyToken"] });
    let patched = walk.call("patch", &key, &with(&change(2), &token)).await;
    assert_changed(resource, &read, &patched, &change(2));
    let replaced = walk.call("replace", &key, &with(&patched, &change(3))).await;
    assert_changed(resource, &patched, &replaced, &change(3));
    let read = walk.read(&key).await;
    assert_changed(resource, &patched, &read, &change(3));
    assert_eq!(read["concurrencyToken"], replaced["concurrencyToken"], "{resource}");

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
