//! Settings that decide who signs in, by what proof, and where links and codes go: nobody changes them who could not act on
//! everybody with a role who signs in by them.

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

use super::{assign, default_store, group, person, refused};
use crate::{
    id,
    list::encode,
    management::{BASE, one, related, type_id},
    pointers,
};

/// A platform user, by the address of the user in the store.
pub async fn platform_user(world: &World, name: &str) -> Value {
    let filter = encode(&format!("emailAddress eq \"{name}@example.com\""));
    world.all(&format!("ApplicationUser?filter={filter}")).await[0].clone()
}

/// Gives a platform user another identity, at this instance.
pub async fn identify(world: &World, platform_user: &Value, instance: &Value, number: u128) {
    let text = "INSERT INTO application_identity \
        (id, application_user_rid, idp_instance_id, issuer, subject, is_user_store_identity, lifecycle_status) \
        VALUES (?1, (SELECT rid FROM application_user WHERE id = ?2), ?3, 'https://provider.example', ?4, FALSE, 'Active')";
    let parsed = |row: &Value| Bound::Id(id(row).parse().unwrap());
    let own = Bound::Id(Uuid::from_u128(number));
    let subject = Bound::Text(format!("somebody {number}"));
    world.sql(vec![(text, vec![own, parsed(platform_user), parsed(instance), subject])]).await;
}

/// Who writes settings with less than a SystemAdmin has.
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

/// What has options of each kind that there is, all of it of the world's tenant: the member by which options name it.
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

/// Another value of an option than this one, near its default.
fn another(entry: &Entry, now: &str) -> String {
    let near =
        |default: i64, min: i64, step: i64| if default > min { default - step } else { default + step };
    let other = match entry.form {
        Form::Flag => (entry.default != "true").to_string(),
        Form::Number(min, _) => near(entry.default.parse().unwrap(), min, 1).to_string(),
        Form::Span(min, _) => format!("PT{}S", near(span(entry.default).unwrap(), min, 1000) / 1000),
        Form::Choice(words) => words.iter().find(|word| **word != entry.default).unwrap().to_string(),
        Form::MailServer => r#"{"Host":"mail.example.com"}"#.to_owned(),
        Form::Sender | Form::Recipients => "help@example.com".to_owned(),
        Form::LinkTemplate => "https://example.com/reset?token={token}".to_owned(),
        Form::Colour => "#123456".to_owned(),
        Form::Links => "Help https://help.example.com".to_owned(),
        Form::Domain => "example.com".to_owned(),
        Form::Aaguids => "8446ccb9-ab1d-b374-750b-2367ff6f3a1f".to_owned(),
        // each instance has its own
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

/// The options of what has some, by their names.
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

/// Changes every option of the catalogue; the answers in its order.
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
    /// Every option, as the catalogue has them: what nobody declared to be open is refused as soon as somebody signs in by it
    /// who has a role beyond the caller's. While all roles are covered, all of it is administered.
    async fn an_option_that_decides_who_signs_in_is_changed_by_who_could_act_on_all(world: World) {
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
        let mut could = Vec::new();
        for (role, client) in &lower {
            let answers = change_all(&world, client, &owners).await;
            for (entry, _, answer) in &answers {
                assert_ne!(answer.status, 403, "{role}: {:?} {}", entry.owner, entry.name);
                assert!(answer.status == 202 || *role != "SubscriptionAdmin" && entry.owner != Owner::Tenant, "{role}: {:?} {}: {}", entry.owner, entry.name, answer.status);
            }
            could.push(answers.into_iter().map(|(.., answer)| answer.status).collect::<Vec<_>>());
        }

        assign(&world, "PlatformUser", &boss.1, ("SystemAdmin", json!({}))).await;
        for ((role, client), could) in lower.iter().zip(could) {
            for ((entry, target, answer), before) in change_all(&world, client, &owners).await.into_iter().zip(could) {
                if entry.open || before != 202 {
                    assert_eq!(answer.status, before, "{role}: {:?} {}", entry.owner, entry.name);
                } else {
                    refused(answer, "SystemAdmin", &target);
                }
            }
        }
        // to make one, and to delete one, is no less; who holds the role may
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
                    refused(client.delete(&path).await, "SystemAdmin", target);
                    world.admin.delete(&path).await.expect(204);
                    refused(client.post(&format!("{BASE}/Option"), body.clone()).await, "SystemAdmin", target);
                    world.make("Option", body).await;
                }
            }
        }
        for (entry, _, answer) in change_all(&world, &world.admin, &owners).await {
            assert_eq!(answer.status, 202, "{:?} {}", entry.owner, entry.name);
        }
    }

    /// What is sent back as it is passes, secrets too; each element of a batch has its pointer; a dry run and version 1 are no
    /// way around; and a role that a group gives counts.
    async fn what_stays_as_it_is_passes_and_no_way_leads_around(world: World) {
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
        let problem = refused(client.put(&format!("{BASE}/Option/batch"), batch).await, "SystemAdmin", &store);
        assert_eq!(pointers(&problem), ["/2", "/3"]);
        let ids = json!([open["id"], locked["id"]]);
        let problem = refused(client.delete_with(&format!("{BASE}/Option/batch"), ids).await, "SystemAdmin", &store);
        assert_eq!(pointers(&problem), ["/1"]);
        let of_tenant = options_of(&world, "applyToTenantId", &tenant).await;
        world.admin.delete(&one("Option", &of_tenant["PageLinks"])).await.expect(204);
        let new = json!([{ "name": "PageLinks", "value": "", "applyToTenantId": tenant["id"] }]);
        let problem = refused(client.post(&format!("{BASE}/Option/batch"), new).await, "SystemAdmin", &tenant);
        assert_eq!(pointers(&problem), ["/0"]);

        let dry = format!("{}?dryRun=true", one("Option", locked));
        refused(client.put(&dry, changed("PasswordMinLength", "9")).await, "SystemAdmin", &store);
        let old = format!("/api/management/v1/Option/{}", id(locked));
        let body = json!({ "id": locked["id"], "name": "PasswordMinLength", "value": "9", "applyToIdpInstanceId": store["id"] });
        refused(client.put(&old, body).await, "SystemAdmin", &store);
        // an option does not leave for what the caller may set, nor come from there
        let elsewhere = make(&world, "IdpInstance", "elsewhere", "UserStore").await;
        let there = options_of(&world, "applyToIdpInstanceId", &elsewhere).await;
        client.delete(&one("Option", &there["PasswordMinLength"])).await.expect(204);
        let away = |row: &Value, to: &Value| json!({ "applyToIdpInstanceId": to["id"], "concurrencyToken": row["concurrencyToken"] });
        refused(client.patch(&one("Option", locked), away(&now["PasswordMinLength"], &elsewhere)).await, "SystemAdmin", &store);
        world.admin.delete(&one("Option", &now["PasswordMaxLength"])).await.expect(204);
        let ours = &there["PasswordMaxLength"];
        refused(client.patch(&one("Option", ours), away(ours, &store)).await, "SystemAdmin", &store);
        let renamed = json!({ "name": "PasswordMaxLength", "concurrencyToken": now["UserLockNotificationEnabled"]["concurrencyToken"] });
        refused(client.patch(&one("Option", open), renamed).await, "SystemAdmin", &store);
    }

    /// Instances, second factors, tenants and linked certificates: all of their fields but what they are called and where they
    /// stand, and whether they exist.
    async fn what_people_sign_in_by_is_changed_by_who_could_act_on_all(world: World) {
        let (store, tenant) = store_and_tenant(&world).await;
        let (_, client) = lower_administrators(&world).await.into_iter().next().unwrap();
        person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let provider = make(&world, "IdpInstance", "Partner", "OpenIdConnect").await;
        let factor = make(&world, "MfaInstance", "Codes", "totp").await;
        let certificate = certificate(&world, "linked").await;
        let all = [("IdpInstance", &provider), ("MfaInstance", &factor), ("CertStore", &certificate)];
        let acts = |resource: &'static str| match resource {
            "IdpInstance" => ["isActive", "treatMfaFactorClaimsAsConfirmed", "autoCreatePlatformUser", "isHidden"].as_slice(),
            "CertStore" => &["certType"],
            _ => &["isActive"],
        };
        let patch = async |client: &Client, resource: &str, row: &Value, member: &str| {
            let now = world.admin.get(&one(resource, row)).await.is(200).json();
            let value = match &now[member] {
                Value::Bool(is) => json!(!is),
                Value::Number(number) => json!(number.as_i64().unwrap() + 1),
                Value::String(now) if now == "OidcTokenEncryption" => json!("AdfsOAuthTokenSigning"),
                Value::String(now) if now == "AdfsOAuthTokenSigning" => json!("OidcTokenEncryption"),
                _ => json!(format!("{}2", now[member].as_str().unwrap_or_default())),
            };
            client.patch(&one(resource, row), json!({ member: value, "concurrencyToken": now["concurrencyToken"] })).await
        };
        // nobody signs in by them yet
        for (resource, row) in all {
            for member in acts(resource).iter().copied().chain(["name"]) {
                patch(&client, resource, row, member).await.expect(202);
            }
        }
        identify(&world, &platform_user(&world, "boss").await, &provider, 1).await;
        link(&world, ("MfaInstance", &factor), "tenants", &tenant).await;
        link(&world, ("CertStore", &certificate), "idpinstances", &provider).await;
        for (resource, row) in all.into_iter().chain([("IdpInstance", &store), ("Tenant", &tenant)]) {
            for member in acts(resource) {
                refused(patch(&client, resource, row, member).await, "SystemAdmin", row);
            }
            let open: &[&str] = if ["IdpInstance", "MfaInstance"].contains(&resource) { &["name", "position"] } else { &["name", "description"] };
            for member in open {
                patch(&client, resource, row, member).await.expect(202);
            }
            let now = world.admin.get(&one(resource, row)).await.is(200).json();
            let same: serde_json::Map<String, Value> = now.as_object().unwrap().iter().filter(|(_, value)| !value.is_array()).map(|(name, value)| (name.clone(), value.clone())).collect();
            client.put(&one(resource, row), Value::Object(same)).await.expect(202);
        }
        for (resource, row) in [("MfaInstance", &factor), ("CertStore", &certificate)] {
            refused(client.delete(&one(resource, row)).await, "SystemAdmin", row);
        }
        // what is new is whoever makes it's
        let made = client.post(&format!("{BASE}/IdpInstance"), json!({ "name": "new", "idpTypeId": type_id(&world, "UserStore").await })).await.is(201).json();
        client.delete(&one("IdpInstance", &made)).await.expect(204);
    }

    /// Every relation that the catalogue has between what people sign in by, from either side. Which client apps there are says
    /// nothing about it.
    async fn what_people_sign_in_by_is_linked_by_who_could_act_on_all(world: World) {
        let (store, tenant) = store_and_tenant(&world).await;
        let (_, client) = lower_administrators(&world).await.into_iter().next().unwrap();
        person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let (factor, certificate) = (make(&world, "MfaInstance", "Codes", "totp").await, certificate(&world, "linked").await);
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        // the console's client app is a SystemAdmin's, so a set that has it is too
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
                Action::Relate(relation, how) => Some((op.shape.name, relation.target.name, op, how)),
                _ => None,
            })
            .filter(|(own, other, ..)| used.contains_key(own) && used.contains_key(other))
            .collect();
        assert!(relations.len() >= 3 * 14, "{}", relations.len());
        let path = |op: &Op, row: &Value| format!("{BASE}{}", op.path.replace("{id}", id(row)));
        let judged = |own: &str, other: &str, answer: Answer, what: &str| {
            if [own, other].contains(&"ClientApp") {
                assert_eq!(answer.status, 202, "{what}");
            } else {
                assert_eq!(answer.problem(403, "forbidden")["role"], "SystemAdmin", "{what}");
            }
        };
        // all is linked that can be, so that there is something to take away
        for (own, other, op, how) in &relations {
            if *how == RelationChange::Add {
                world.admin.post(&path(op, &used[own]), related(&[&used[other]])).await.expect(202);
            }
        }
        for (own, other, op, how) in &relations {
            let (here, there) = (path(op, &used[own]), path(op, &fresh[own]));
            match how {
                RelationChange::Add => {
                    judged(own, other, client.post(&here, related(&[&fresh[other]])).await, op.name);
                    judged(own, other, client.post(&there, related(&[&used[other]])).await, op.name);
                    client.post(&there, related(&[&fresh[other]])).await.expect(202);
                }
                RelationChange::Set => {
                    let all = world.admin.get(&one(own, &used[own])).await.is(200).json();
                    let Action::Relate(relation, _) = op.action else { unreachable!() };
                    let links: Vec<&Value> = all[relation.name].as_array().unwrap().iter().collect();
                    client.put(&here, related(&links)).await.expect(202);
                    judged(own, other, client.put(&here, related(&[])).await, op.name);
                }
                RelationChange::Remove => {
                    // an earlier operation may have taken it away
                    world.admin.post(&here, related(&[&used[other]])).await.expect(202);
                    judged(own, other, client.delete_with(&here, related(&[&used[other]])).await, op.name);
                }
            }
        }
    }

    /// Tokens of directories: those of a provider, and those of a store. To try a provider out changes nothing.
    async fn a_directory_s_token_is_made_by_who_could_act_on_all(world: World) {
        let (store, _) = store_and_tenant(&world).await;
        let (_, client) = lower_administrators(&world).await.into_iter().next().unwrap();
        let helper = world.client("helper", &[("UserStoreAdmin", None, Some(id(&store).parse().unwrap()))]).await;
        let provider = make(&world, "IdpInstance", "Partner", "OpenIdConnect").await;
        let enabled = &options_of(&world, "applyToIdpInstanceId", &provider).await["ScimEnabled"];
        client.patch(&one("Option", enabled), json!({ "value": "true", "concurrencyToken": enabled["concurrencyToken"] })).await.expect(202);
        let post = async |path: String| client.send(Method::POST, &path, &[], Vec::new()).await;
        let paths = |rest: &str| [format!("{}/{rest}", one("IdpInstance", &provider)), format!("{BASE}/IdpInstance/Partner/{rest}")];
        for path in paths("scim/token") {
            post(path).await.expect(204);
        }
        let tokens = world.path("/ScimToken");
        let made = helper.post(&tokens, json!({ "name": "ours" })).await.is(201).json();

        person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        identify(&world, &platform_user(&world, "boss").await, &provider, 1).await;
        for path in paths("scim/token").into_iter().chain(paths("scim/resume")) {
            refused(post(path).await, "SystemAdmin", &provider);
        }
        refused(helper.post(&tokens, json!({ "name": "theirs" })).await, "SystemAdmin", &store);
        let token = format!("{tokens}/{}", id(&made));
        let change = json!({ "confirmsEmail": true, "concurrencyToken": made["concurrencyToken"] });
        refused(helper.patch(&token, change).await, "SystemAdmin", &store);
        refused(helper.delete(&token).await, "SystemAdmin", &store);
        assert_ne!(post(format!("{}/trial", one("IdpInstance", &provider))).await.status, 403);
        world.admin.delete(&token).await.expect(204);
    }

    /// Whoever signs in has the roles of all identities, so those count that a group of another store gives.
    async fn a_role_by_a_group_of_another_store_counts(world: World) {
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
        refused(set().await, "SystemAdmin", &second);
        world.admin.delete_with(&members, related(&[&user])).await.expect(202);
        set().await.expect(202);
    }
}

/// A certificate of the world's subscription.
pub async fn certificate(world: &World, name: &str) -> Value {
    let made = rcgen::generate_simple_self_signed(vec![format!("{name}.example.com")]).unwrap();
    let input = json!({ "format": "Pem", "data": made.cert.pem() });
    world
        .make(
            "CertStore",
            json!({ "name": name, "certType": "OidcTokenEncryption", "certificateInput": input }),
        )
        .await
}

/// An operation of its own on what people sign in by is judged where its path names it by its id. These may name it by its name
/// as well, and look for themselves, or write nothing.
#[test]
fn operations_of_their_own_on_what_people_sign_in_by_are_known() {
    let own = operations().filter(|(name, _, op)| {
        let is_setting = |own: &Protection| own.carried_by == CarriedBy::WhoSignsIn;
        let is_guarded = op.shape.writes.protection.is_some_and(is_setting) || op.shape.name == "Option";
        name.starts_with("management:") && op.writes() && matches!(op.action, Action::Custom(_)) && is_guarded
    });
    let mut own: Vec<&str> = own.map(|(.., op)| op.name).collect();
    own.sort_unstable();
    let known = [
        "CompleteIdpInstanceTrial",
        "CreateIdpInstanceScimToken",
        "ResumeIdpInstanceScim",
        "StartIdpInstanceTrial",
    ];
    assert_eq!(own, known);
}
