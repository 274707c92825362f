//! Settings that decide who signs in, by which proof, and where links and codes are sent: only callers whose roles cover
//! those of everybody who signs in by them can change them.

use std::collections::HashMap;

use chancery_record::Value as Bound;
use chancery_resource::{
    Action, CarriedBy, Op, Protection, RelationChange,
    settings::{CATALOGUE, Entry, Form, Owner, span},
};
use chancery_testkit::{Answer, Client, World, catalogue::operations, on_both_engines};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{assert_refused, assign_role, default_store, group, person, reviewed_now};
use crate::{
    encode, id, pointers,
    resources::{BASE, one, related, type_id},
};

/// A platform user, by the email address of the user in the store.
pub async fn platform_user(world: &World, name: &str) -> Value {
    let filter = encode(&format!("emailAddress eq \"{name}@example.com\""));
    world.all(&format!("ApplicationUser?filter={filter}")).await[0].clone()
}

/// Inserts another identity of a platform user, at this instance.
pub async fn identify(world: &World, platform_user: &Value, instance: &Value, number: u128) {
    let sql = "INSERT INTO application_identity \
        (id, application_user_rid, idp_instance_id, issuer, subject, is_user_store_identity, lifecycle_status) \
        VALUES (?1, (SELECT rid FROM application_user WHERE id = ?2), ?3, 'https://provider.example', ?4, FALSE, 'Active')";
    let id_of = |row: &Value| Bound::Id(id(row).parse().unwrap());
    let identity_id = Bound::Id(Uuid::from_u128(number));
    let subject = Bound::Text(format!("somebody {number}"));
    world.sql(vec![(sql, vec![identity_id, id_of(platform_user), id_of(instance), subject])]).await;
}

/// Administrators that may write settings, below SystemAdmin.
async fn lower_administrators(world: &World) -> [(&'static str, Client); 2] {
    let tenant = id(&world.all("Tenant").await[0]).parse().unwrap();
    [
        ("SubscriptionAdmin", world.client("lower", &[("SubscriptionAdmin", None, None)]).await),
        ("TenantAdmin", world.client("lowest", &[("TenantAdmin", Some(tenant), None)]).await),
    ]
}

/// The world's store, and its tenant.
pub async fn store_and_tenant(world: &World) -> (Value, Value) {
    (default_store(world).await, world.all("Tenant").await[0].clone())
}

pub async fn make(world: &World, resource: &str, name: &str, kind: &str) -> Value {
    world.make(resource, json!({ "name": name, "idpTypeId": type_id(world, kind).await })).await
}

pub async fn link(world: &World, from: (&str, &Value), relation: &str, to: &Value) {
    world.admin.post(&format!("{}/{relation}", one(from.0, from.1)), related(&[to])).await.expect(202);
}

/// One option owner of each kind, all in the world's tenant, with the member of options that names it.
async fn owners(world: &World) -> Vec<(Owner, &'static str, Value)> {
    let (store, tenant) = store_and_tenant(world).await;
    let mut owners = Vec::new();
    for (kind, owner) in Owner::TYPES {
        owners.push(match owner {
            Owner::UserStore => (owner, "applyToIdpInstanceId", store.clone()),
            Owner::Tenant => (owner, "applyToTenantId", tenant.clone()),
            _ if owner.is_second_factor() => {
                let factor = make(world, "MfaInstance", kind, kind).await;
                link(world, ("MfaInstance", &factor), "tenants", &tenant).await;
                (owner, "applyToMfaInstanceId", factor)
            }
            _ => {
                let provider = make(world, "IdpInstance", kind, kind).await;
                link(world, ("IdpInstance", &provider), "tenants", &tenant).await;
                (owner, "applyToIdpInstanceId", provider)
            }
        });
    }
    owners
}

/// A value of an option that differs from this one, near the default.
fn another(entry: &Entry, now: &str) -> String {
    let step_towards_limit =
        |default: i64, min: i64, step: i64| if default > min { default - step } else { default + step };
    let other = match entry.form {
        Form::Flag => (entry.default != "true").to_string(),
        Form::Number(min, _) => step_towards_limit(entry.default.parse().unwrap(), min, 1).to_string(),
        Form::Span(min, _) => {
            format!("PT{}S", step_towards_limit(span(entry.default).unwrap(), min, 1000) / 1000)
        }
        Form::Choice(words) => words.iter().find(|word| **word != entry.default).unwrap().to_string(),
        Form::MailServer => r#"{"Host":"mail.example.com"}"#.to_owned(),
        Form::Sender | Form::Recipients => "help@example.com".to_owned(),
        Form::LinkTemplate => "https://example.com/reset?token={token}".to_owned(),
        Form::Colour => "#123456".to_owned(),
        Form::Links => "Help https://help.example.com".to_owned(),
        Form::Domain => "example.com".to_owned(),
        Form::Aaguids => "8446ccb9-ab1d-b374-750b-2367ff6f3a1f".to_owned(),
        // unique for each instance
        Form::CallbackPath => format!("/signin-{}", entry.owner.type_name()),
        Form::Scopes | Form::Identifiers | Form::AuthenticatorIssuer => "other".to_owned(),
        Form::Text
        | Form::Address
        | Form::Page
        | Form::Endpoint
        | Form::Origins
        | Form::Resources
        | Form::Name => "https://example.com".to_owned(),
    };
    match (now == other, entry.default) {
        (false, _) => other,
        (true, "") if entry.form == Form::MailServer => r#"{"Host":"mail.example.org"}"#.to_owned(),
        (true, "") if entry.mandatory => "https://example.org".to_owned(),
        (true, default) => default.to_owned(),
    }
}

/// The options of an owner, by name.
async fn options_of(world: &World, member: &str, owner: &Value) -> HashMap<String, Value> {
    let filter = encode(&format!("{member} eq \"{}\"", id(owner)));
    let all = world.all(&format!("Option?filter={filter}&count=200")).await;
    all.as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap().to_owned(), row.clone()))
        .collect()
}

async fn change(client: &Client, entry: &Entry, row: &Value) -> Answer {
    let value = another(entry, row["value"].as_str().unwrap_or_default());
    client
        .patch(&one("Option", row), json!({ "value": value, "concurrencyToken": row["concurrencyToken"] }))
        .await
}

/// Changes every option of the catalogue; the answers in catalogue order.
async fn change_all(
    world: &World,
    client: &Client,
    owners: &[(Owner, &str, Value)],
) -> Vec<(&'static Entry, Value, Answer)> {
    let mut answers = Vec::new();
    for (owner, member, target) in owners {
        let rows = options_of(world, member, target).await;
        for entry in owner.entries() {
            let row = &rows[entry.name];
            answers.push((entry, target.clone(), change(client, entry, row).await));
        }
    }
    assert_eq!(answers.len(), CATALOGUE.len());
    answers
}

on_both_engines! {
    /// Every option of the catalogue that is not declared open is refused as soon as a user signs in by it
    /// whose role the caller does not cover. While all roles are covered, all options can be changed.
    async fn protected_options_need_roles_that_cover_every_user(world: World) {
        let owners = owners(&world).await;
        let (_, tenant) = store_and_tenant(&world).await;
        let lower = lower_administrators(&world).await;
        person(&world, "peer", Some(("TenantAdmin", json!({ "applyToTenantId": tenant["id"] })))).await;
        let boss = person(&world, "boss", None).await;
        let boss = (boss, platform_user(&world, "boss").await);
        for (number, (owner, member, target)) in owners.iter().enumerate() {
            if *member == "applyToIdpInstanceId" && *owner != Owner::UserStore {
                identify(&world, &boss.1, target, number as u128 + 1).await;
            }
        }
        let mut statuses_before = Vec::new();
        for (role, client) in &lower {
            let answers = change_all(&world, client, &owners).await;
            for (entry, _, answer) in &answers {
                assert_ne!(answer.status, 403, "{role}: {:?} {}", entry.owner, entry.name);
                assert!(answer.status == 202 || *role != "SubscriptionAdmin" && entry.owner != Owner::Tenant, "{role}: {:?} {}: {}", entry.owner, entry.name, answer.status);
            }
            statuses_before.push(answers.into_iter().map(|(.., answer)| answer.status).collect::<Vec<_>>());
        }

        for (_, _, provider) in owners.iter().filter(|(owner, member, _)| *member == "applyToIdpInstanceId" && *owner != Owner::UserStore) {
            let confirm = format!("{}/settings/confirm", one("IdpInstance", provider));
            world.admin.post(&confirm, reviewed_now()).await.expect(204);
        }
        assign_role(&world, "PlatformUser", &boss.1, "SystemAdmin", json!({})).await;
        for ((role, client), statuses_before) in lower.iter().zip(statuses_before) {
            for ((entry, target, answer), before) in change_all(&world, client, &owners).await.into_iter().zip(statuses_before) {
                if entry.open || before != 202 {
                    assert_eq!(answer.status, before, "{role}: {:?} {}", entry.owner, entry.name);
                } else {
                    assert_refused(answer, "SystemAdmin", &target);
                }
            }
        }
        // creation and deletion are protected, too; a holder of the role may do both
        let (_, client) = &lower[0];
        for (owner, member, target) in &owners {
            let rows = options_of(&world, member, target).await;
            for entry in owner.entries() {
                let path = one("Option", &rows[entry.name]);
                let body = json!({ "name": entry.name, *member: target["id"], "value": entry.default });
                if entry.open {
                    client.delete(&path).await.expect(204);
                    client.post(&format!("{BASE}/Option"), body).await.expect(201);
                } else {
                    assert_refused(client.delete(&path).await, "SystemAdmin", target);
                    world.admin.delete(&path).await.expect(204);
                    assert_refused(client.post(&format!("{BASE}/Option"), body.clone()).await, "SystemAdmin", target);
                    world.make("Option", body).await;
                }
            }
        }
        for (entry, _, answer) in change_all(&world, &world.admin, &owners).await {
            assert_eq!(answer.status, 202, "{:?} {}", entry.owner, entry.name);
        }
    }

    /// Unchanged values pass, also secrets; each element of a batch has its pointer; a dry run, version 1 and moves do not bypass
    /// the check; and a group's role counts.
    async fn unchanged_values_pass_and_the_check_cannot_be_bypassed(world: World) {
        let (store, tenant) = store_and_tenant(&world).await;
        let (_, client) = lower_administrators(&world).await.into_iter().next().unwrap();
        group(&world, "admins", Some(("SystemAdmin", json!({})))).await;
        let rows = options_of(&world, "applyToIdpInstanceId", &store).await;
        let (locked, open) = (&rows["PasswordMinLength"], &rows["UserLockNotificationEnabled"]);
        let secret = json!({ "value": "{\"Host\":\"mail.example.com\"}", "concurrencyToken": rows["MailServerConfig"]["concurrencyToken"] });
        let secret = world.admin.patch(&one("Option", &rows["MailServerConfig"]), secret).await.is(202).json();

        for row in [locked, &secret] {
            client.put(&one("Option", row), row.clone()).await.expect(202);
        }
        let now = options_of(&world, "applyToIdpInstanceId", &store).await;
        let changed = |name: &str, value: &str| {
            let mut row = now[name].clone();
            row["value"] = json!(value);
            row
        };
        let batch = json!([now["PasswordMaxLength"], changed("UserLockNotificationEnabled", "true"), changed("PasswordMinLength", "9"), changed("MailServerConfig", "{}")]);
        let problem = assert_refused(client.put(&format!("{BASE}/Option/batch"), batch).await, "SystemAdmin", &store);
        assert_eq!(pointers(&problem), ["/2", "/3"]);
        let ids = json!([open["id"], locked["id"]]);
        let problem = assert_refused(client.delete_with(&format!("{BASE}/Option/batch"), ids).await, "SystemAdmin", &store);
        assert_eq!(pointers(&problem), ["/1"]);
        let of_tenant = options_of(&world, "applyToTenantId", &tenant).await;
        world.admin.delete(&one("Option", &of_tenant["PageLinks"])).await.expect(204);
        let new = json!([{ "name": "PageLinks", "value": "", "applyToTenantId": tenant["id"] }]);
        let problem = assert_refused(client.post(&format!("{BASE}/Option/batch"), new).await, "SystemAdmin", &tenant);
        assert_eq!(pointers(&problem), ["/0"]);

        let dry_run = format!("{}?dryRun=true", one("Option", locked));
        assert_refused(client.put(&dry_run, changed("PasswordMinLength", "9")).await, "SystemAdmin", &store);
        let v1_path = format!("/api/management/v1/Option/{}", id(locked));
        let body = json!({ "id": locked["id"], "name": "PasswordMinLength", "value": "9", "applyToIdpInstanceId": store["id"] });
        assert_refused(client.put(&v1_path, body).await, "SystemAdmin", &store);
        // an option cannot move to or from an owner that the caller may change
        let other_store = make(&world, "IdpInstance", "elsewhere", "UserStore").await;
        let other_options = options_of(&world, "applyToIdpInstanceId", &other_store).await;
        client.delete(&one("Option", &other_options["PasswordMinLength"])).await.expect(204);
        let move_to = |row: &Value, to: &Value| json!({ "applyToIdpInstanceId": to["id"], "concurrencyToken": row["concurrencyToken"] });
        assert_refused(client.patch(&one("Option", locked), move_to(&now["PasswordMinLength"], &other_store)).await, "SystemAdmin", &store);
        world.admin.delete(&one("Option", &now["PasswordMaxLength"])).await.expect(204);
        let other_option = &other_options["PasswordMaxLength"];
        assert_refused(client.patch(&one("Option", other_option), move_to(other_option, &store)).await, "SystemAdmin", &store);
        let renamed = json!({ "name": "PasswordMaxLength", "concurrencyToken": now["UserLockNotificationEnabled"]["concurrencyToken"] });
        assert_refused(client.patch(&one("Option", open), renamed).await, "SystemAdmin", &store);
    }

    /// Instances, second factors, tenants and linked certificates: all of their fields except name, description and position,
    /// and their deletion.
    async fn sign_in_objects_need_roles_that_cover_every_user(world: World) {
        let (store, tenant) = store_and_tenant(&world).await;
        let (_, client) = lower_administrators(&world).await.into_iter().next().unwrap();
        person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let provider = make(&world, "IdpInstance", "Partner", "OpenIdConnect").await;
        let factor = make(&world, "MfaInstance", "Codes", "totp").await;
        let certificate = certificate(&world, "linked").await;
        let all = [("IdpInstance", &provider), ("MfaInstance", &factor), ("CertStore", &certificate)];
        let protected_members = |resource: &'static str| match resource {
            "IdpInstance" => ["isActive", "treatMfaFactorClaimsAsConfirmed", "autoCreatePlatformUser", "isHidden"].as_slice(),
            "CertStore" => &["certType"],
            _ => &["isActive"],
        };
        let patch = async |client: &Client, resource: &str, row: &Value, member: &str| {
            let current = world.admin.get(&one(resource, row)).await.is(200).json();
            let value = match &current[member] {
                Value::Bool(flag) => json!(!flag),
                Value::Number(number) => json!(number.as_i64().unwrap() + 1),
                Value::String(current) if current == "OidcTokenEncryption" => json!("AdfsOAuthTokenSigning"),
                Value::String(current) if current == "AdfsOAuthTokenSigning" => json!("OidcTokenEncryption"),
                _ => json!(format!("{}2", current[member].as_str().unwrap_or_default())),
            };
            client.patch(&one(resource, row), json!({ member: value, "concurrencyToken": current["concurrencyToken"] })).await
        };
        // nobody signs in by them yet
        for (resource, row) in all {
            for member in protected_members(resource).iter().copied().chain(["name"]) {
                patch(&client, resource, row, member).await.expect(202);
            }
        }
        identify(&world, &platform_user(&world, "boss").await, &provider, 1).await;
        link(&world, ("MfaInstance", &factor), "tenants", &tenant).await;
        link(&world, ("CertStore", &certificate), "idpinstances", &provider).await;
        for (resource, row) in all.into_iter().chain([("IdpInstance", &store), ("Tenant", &tenant)]) {
            for member in protected_members(resource) {
                assert_refused(patch(&client, resource, row, member).await, "SystemAdmin", row);
            }
            let open: &[&str] = if ["IdpInstance", "MfaInstance"].contains(&resource) { &["name", "position"] } else { &["name", "description"] };
            for member in open {
                patch(&client, resource, row, member).await.expect(202);
            }
            let current = world.admin.get(&one(resource, row)).await.is(200).json();
            let same: serde_json::Map<String, Value> = current.as_object().unwrap().iter().filter(|(_, value)| !value.is_array()).map(|(name, value)| (name.clone(), value.clone())).collect();
            client.put(&one(resource, row), Value::Object(same)).await.expect(202);
        }
        for (resource, row) in [("MfaInstance", &factor), ("CertStore", &certificate)] {
            assert_refused(client.delete(&one(resource, row)).await, "SystemAdmin", row);
        }
        // a new instance can be deleted by its creator
        let created = client.post(&format!("{BASE}/IdpInstance"), json!({ "name": "new", "idpTypeId": type_id(&world, "UserStore").await })).await.is(201).json();
        client.delete(&one("IdpInstance", &created)).await.expect(204);
    }

    /// Every relation between objects that users sign in by, from either side. Links to client apps
    /// are not protected.
    async fn links_of_sign_in_objects_need_roles_that_cover_every_user(world: World) {
        let (store, tenant) = store_and_tenant(&world).await;
        let (_, client) = lower_administrators(&world).await.into_iter().next().unwrap();
        person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let (factor, certificate) = (make(&world, "MfaInstance", "Codes", "totp").await, certificate(&world, "linked").await);
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        // the console's client app is protected, so it must not be in the sets
        for (resource, row) in [("Tenant", &tenant), ("IdpInstance", &store)] {
            world.admin.put(&format!("{}/clientapps", one(resource, row)), related(&[])).await.expect(202);
        }
        let fresh = [
            ("IdpInstance", make(&world, "IdpInstance", "fresh", "Google").await),
            ("Tenant", world.make("Tenant", json!({ "name": "fresh", "subscriptionId": tenant["subscriptionId"] })).await),
            ("MfaInstance", make(&world, "MfaInstance", "fresh", "totp").await),
            ("CertStore", self::certificate(&world, "fresh").await),
            ("ClientApp", world.make("ClientApp", json!({ "name": "fresh" })).await),
        ];
        let fresh = HashMap::from(fresh);
        let used = HashMap::from([("IdpInstance", store.clone()), ("Tenant", tenant.clone()), ("MfaInstance", factor.clone()), ("CertStore", certificate), ("ClientApp", app)]);
        let relations: Vec<(&str, &str, &Op, RelationChange)> = operations()
            .filter(|(name, ..)| name.starts_with("management:"))
            .filter_map(|(.., op)| match op.action {
                Action::Relate(relation, kind) => Some((op.shape.name, relation.target.name, op, kind)),
                _ => None,
            })
            .filter(|(own, other, ..)| used.contains_key(own) && used.contains_key(other))
            .collect();
        assert!(relations.len() >= 3 * 14, "{}", relations.len());
        let path = |op: &Op, row: &Value| format!("{BASE}{}", op.path.replace("{id}", id(row)));
        let assert_status = |own: &str, other: &str, answer: Answer, what: &str| {
            if [own, other].contains(&"ClientApp") {
                assert_eq!(answer.status, 202, "{what}");
            } else {
                assert_eq!(answer.problem(403, "forbidden")["role"], "SystemAdmin", "{what}");
            }
        };
        // link everything, so that there are links to remove
        for (own, other, op, kind) in &relations {
            if *kind == RelationChange::Add {
                world.admin.post(&path(op, &used[own]), related(&[&used[other]])).await.expect(202);
            }
        }
        for (own, other, op, kind) in &relations {
            let (used_path, fresh_path) = (path(op, &used[own]), path(op, &fresh[own]));
            match kind {
                RelationChange::Add => {
                    assert_status(own, other, client.post(&used_path, related(&[&fresh[other]])).await, op.name);
                    assert_status(own, other, client.post(&fresh_path, related(&[&used[other]])).await, op.name);
                    client.post(&fresh_path, related(&[&fresh[other]])).await.expect(202);
                }
                RelationChange::Set => {
                    let all = world.admin.get(&one(own, &used[own])).await.is(200).json();
                    let Action::Relate(relation, _) = op.action else { unreachable!() };
                    let links: Vec<&Value> = all[relation.name].as_array().unwrap().iter().collect();
                    client.put(&used_path, related(&links)).await.expect(202);
                    assert_status(own, other, client.put(&used_path, related(&[])).await, op.name);
                }
                RelationChange::Remove => {
                    // an earlier operation may have removed it
                    world.admin.post(&used_path, related(&[&used[other]])).await.expect(202);
                    assert_status(own, other, client.delete_with(&used_path, related(&[&used[other]])).await, op.name);
                }
            }
        }
    }

    /// SCIM tokens of a provider and of a store are protected. A trial of a provider is not.
    async fn directory_tokens_need_roles_that_cover_every_user(world: World) {
        let (store, _) = store_and_tenant(&world).await;
        let (_, client) = lower_administrators(&world).await.into_iter().next().unwrap();
        let store_admin = world.client("helper", &[("UserStoreAdmin", None, Some(id(&store).parse().unwrap()))]).await;
        let provider = make(&world, "IdpInstance", "Partner", "OpenIdConnect").await;
        let enabled = &options_of(&world, "applyToIdpInstanceId", &provider).await["ScimEnabled"];
        client.patch(&one("Option", enabled), json!({ "value": "true", "concurrencyToken": enabled["concurrencyToken"] })).await.expect(202);
        let post = async |path: String| client.send(Method::POST, &path, &[], Vec::new()).await;
        let paths = |rest: &str| [format!("{}/{rest}", one("IdpInstance", &provider)), format!("{BASE}/IdpInstance/Partner/{rest}")];
        for path in paths("scim/token") {
            post(path).await.expect(204);
        }
        let tokens = world.path("/ScimToken");
        let created = store_admin.post(&tokens, json!({ "name": "ours" })).await.is(201).json();

        person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        identify(&world, &platform_user(&world, "boss").await, &provider, 1).await;
        for path in paths("scim/token").into_iter().chain(paths("scim/resume")) {
            assert_refused(post(path).await, "SystemAdmin", &provider);
        }
        assert_refused(store_admin.post(&tokens, json!({ "name": "theirs" })).await, "SystemAdmin", &store);
        let token = format!("{tokens}/{}", id(&created));
        let change = json!({ "confirmsEmail": true, "concurrencyToken": created["concurrencyToken"] });
        assert_refused(store_admin.patch(&token, change).await, "SystemAdmin", &store);
        assert_refused(store_admin.delete(&token).await, "SystemAdmin", &store);
        assert_ne!(post(format!("{}/trial", one("IdpInstance", &provider))).await.status, 403);
        world.admin.delete(&token).await.expect(204);
    }

    /// A sign-in has the roles of all identities, so group roles of another store count.
    async fn a_group_role_of_another_store_counts(world: World) {
        let store = world.other_store("second").await;
        let second = world.admin.get(&format!("{BASE}/IdpInstance/{store}")).await.is(200).json();
        let client = world.client_in(&second["subscriptionId"], "lower", &[("SubscriptionAdmin", None, None)]).await;
        let admins = group(&world, "admins", Some(("SystemAdmin", json!({})))).await;
        let inner = world.group("inner").await;
        let nest = world.path(&format!("/Group/{}/membergroups", id(&admins)));
        world.admin.post(&nest, related(&[&inner])).await.expect(202);
        let user = person(&world, "boss", None).await;
        identify(&world, &platform_user(&world, "boss").await, &second, 1).await;
        let set = async || {
            let row = &options_of(&world, "applyToIdpInstanceId", &second).await["PasswordMinLength"];
            change(&client, Owner::UserStore.entry("PasswordMinLength").unwrap(), row).await
        };
        set().await.expect(202);
        let members = world.path(&format!("/Group/{}/users", id(&inner)));
        world.admin.post(&members, related(&[&user])).await.expect(202);
        assert_refused(set().await, "SystemAdmin", &second);
        world.admin.delete_with(&members, related(&[&user])).await.expect(202);
        set().await.expect(202);
    }
}

/// A certificate of the world's subscription.
pub async fn certificate(world: &World, name: &str) -> Value {
    let generated = rcgen::generate_simple_self_signed(vec![format!("{name}.example.com")]).unwrap();
    let input = json!({ "format": "Pem", "data": generated.cert.pem() });
    world
        .make(
            "CertStore",
            json!({ "name": name, "certType": "OidcTokenEncryption", "certificateInput": input }),
        )
        .await
}

/// Custom operations on objects that users sign in by are checked by the id in the path. These accept a name
/// instead of the id and check themselves, or write nothing.
#[test]
fn custom_operations_on_sign_in_objects_are_listed() {
    let own = operations().filter(|(name, _, op)| {
        let is_setting = |own: &Protection| own.carried_by == CarriedBy::WhoSignsIn;
        let is_guarded = op.shape.writes.protection.is_some_and(is_setting) || op.shape.name == "Option";
        name.starts_with("management:") && op.writes() && matches!(op.action, Action::Custom(_)) && is_guarded
    });
    let mut own: Vec<&str> = own.map(|(.., op)| op.name).collect();
    own.sort_unstable();
    let known = [
        "CompleteIdpInstanceTrial",
        "ConfirmIdpInstanceSettings",
        "CreateIdpInstanceScimToken",
        "ResumeIdpInstanceScim",
        "StartIdpInstanceTrial",
    ];
    assert_eq!(own, known);
}
