//! The set of role holders is cached for each security epoch. After these changes a stale set must not let anybody
//! through: those that advance the epoch, those that do not, and those of another process.

use chancery_testkit::{Client, Database, Engine, Process, World, on_both_engines};
use serde_json::{Value, json};

use super::{assign_role, default_store, group, person, platform_user, store_admin};
use crate::id;

const MANAGEMENT: &str = "/api/management/v2";
const OTHER_STORE: &str = "/api/userstore/v2/other/administration";
/// More assignments than are cached.
const MORE_THAN_CACHED: usize = 513;

/// Changes a protected attribute of a user; the status.
async fn change(client: &Client, path: &str) -> u16 {
    let now = client.get(path).await.is(200).json();
    let token = now["concurrencyToken"].as_str().unwrap();
    let body = json!({ "emailAddress": format!("e{token}@example.org"), "concurrencyToken": token });
    client.patch(path, body).await.status.as_u16()
}

/// The ids of the assignments of a platform user.
async fn assignments(world: &World, principal: &Value) -> Vec<String> {
    let filter = format!("RoleAssignment?filter=principalId%20eq%20%22{}%22", id(principal));
    let all = world.all(&filter).await;
    all.as_array().unwrap().iter().map(|row| id(row).to_owned()).collect()
}

on_both_engines! {
    /// A role is in effect from the answer to its assignment until it is removed.
    async fn an_assignment_takes_effect_and_ends_immediately(world: World) {
        let store_admin = store_admin(&world).await;
        let (ada, bob) = (person(&world, "ada", None).await, person(&world, "bob", None).await);
        let (ada_path, bob_path) = [&ada, &bob].map(|user| world.path(&format!("/User/{}", id(user)))).into();
        let platform = platform_user(&world, &ada).await;
        for _ in 0..3 {
            assert_eq!((change(&store_admin, &ada_path).await, change(&store_admin, &bob_path).await), (202, 202));
            assign_role(&world, "PlatformUser", &platform, "SystemAdmin", json!({})).await;
            assert_eq!((change(&store_admin, &ada_path).await, change(&store_admin, &bob_path).await), (403, 202));
            for assignment in assignments(&world, &platform).await {
                world.admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{assignment}")).await.expect(204);
            }
        }
        assert_eq!(change(&store_admin, &ada_path).await, 202);
        // a role that the caller covers changes nothing
        let store = json!({ "applyToIdpInstanceId": default_store(&world).await["id"] });
        assign_role(&world, "PlatformUser", &platform, "UserStoreAdmin", store).await;
        assert_eq!(change(&store_admin, &ada_path).await, 202);
    }

    /// Members and nesting of groups change without a new epoch.
    async fn a_membership_takes_effect_immediately(world: World) {
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", None).await;
        let path = world.path(&format!("/User/{}", id(&ada)));
        let (top, team) = (group(&world, "top", Some(("SystemAdmin", json!({})))).await, group(&world, "team", None).await);
        assert_eq!(change(&store_admin, &path).await, 202);
        let set = async |group: &Value, set: &str, ids: Value| {
            let path = world.path(&format!("/Group/{}/{set}", id(group)));
            world.admin.put(&path, json!({ "relatedIds": ids })).await.expect(202);
        };
        for (group, members) in [(&top, json!([ada["id"]])), (&top, json!([])), (&team, json!([ada["id"]]))] {
            set(group, "users", members.clone()).await;
            let expected = if group["id"] == top["id"] && members != json!([]) { 403 } else { 202 };
            assert_eq!(change(&store_admin, &path).await, expected, "{members}");
        }
        set(&top, "membergroups", json!([team["id"]])).await;
        assert_eq!(change(&store_admin, &path).await, 403);
        set(&top, "membergroups", json!([])).await;
        assert_eq!(change(&store_admin, &path).await, 202);
    }

    /// Identities change without a new epoch, too.
    async fn an_identity_in_another_store_takes_effect_immediately(world: World) {
        let other = json!(world.other_store("other").await);
        let store = other.as_str().unwrap().parse().unwrap();
        let (boss, ada) = (person(&world, "boss", Some(("SystemAdmin", json!({})))).await, person(&world, "ada", None).await);
        let own = default_store(&world).await["id"].as_str().unwrap().parse().unwrap();
        let roles = [("UserStoreAdmin", None, Some(store)), ("UserStoreAdmin", None, Some(own))];
        let store_admin = world.client("helper", &roles).await;
        let create_user = async |name: &str| world.admin.post(&format!("{OTHER_STORE}/User"), json!({ "loginName": name })).await.is(201).json();
        let (their_user, her_user) = (create_user("theirs").await, create_user("hers").await);
        let group = world.admin.post(&format!("{OTHER_STORE}/Group"), json!({ "name": "top" })).await.is(201).json();
        world.admin.post(&format!("{OTHER_STORE}/Group/synchronize"), json!(null)).await.expect(200);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22top%22").await[0].clone();
        assign_role(&world, "PlatformGroup", &platform, "SystemAdmin", json!({})).await;
        let (at_other, at_own) = (format!("{OTHER_STORE}/User/{}", id(&their_user)), world.path(&format!("/User/{}", id(&ada))));
        let replace = async |person: &Value, subject: &Value| {
            let body = json!({
                "platformUserId": platform_user(&world, person).await["id"], "replacementIdpInstanceId": other,
                "replacementUniqueUserId": subject["id"], "reason": "moved",
            });
            world.admin.post(&format!("{MANAGEMENT}/identity-replacements"), body).await.expect(201);
        };
        assert_eq!((change(&store_admin, &at_other).await, change(&store_admin, &at_own).await), (202, 202));
        replace(&boss, &their_user).await;
        assert_eq!((change(&store_admin, &at_other).await, change(&store_admin, &at_own).await), (403, 202));
        replace(&ada, &her_user).await;
        assert_eq!(change(&store_admin, &at_own).await, 202, "her group there has no role");
        let members = format!("{OTHER_STORE}/Group/{}/users", id(&group));
        world.admin.put(&members, json!({ "relatedIds": [her_user["id"]] })).await.expect(202);
        assert_eq!(change(&store_admin, &at_own).await, 403);
        world.admin.put(&members, json!({ "relatedIds": [] })).await.expect(202);
        assert_eq!(change(&store_admin, &at_own).await, 202);
    }

    /// A person can be two users of one store, while an identity is replaced.
    async fn a_second_identity_in_the_same_store_takes_effect_immediately(world: World) {
        let store_admin = store_admin(&world).await;
        let boss = person(&world, "boss", None).await;
        let platform = platform_user(&world, &boss).await;
        let top = group(&world, "top", Some(("SystemAdmin", json!({})))).await;
        let members = world.path(&format!("/Group/{}/users", id(&top)));
        world.admin.put(&members, json!({ "relatedIds": [boss["id"]] })).await.expect(202);
        // created after the synchronization, so that it is no platform user of its own
        let next = world.user("next").await;
        let path = world.path(&format!("/User/{}", id(&next)));
        assert_eq!(change(&store_admin, &path).await, 202);
        let body = json!({
            "platformUserId": platform["id"],
            "replacementIdpInstanceId": default_store(&world).await["id"], "replacementUniqueUserId": next["id"],
            "reason": "moved",
        });
        world.admin.post(&format!("{MANAGEMENT}/identity-replacements"), body).await.expect(201);
        assert_eq!(change(&store_admin, &path).await, 403);
    }

    /// With more assignments than are cached, roles are looked up for each user.
    async fn more_assignments_than_the_cache_holds_are_looked_up(world: World) {
        let store_admin = store_admin(&world).await;
        let bodies: Vec<Value> = (0..MORE_THAN_CACHED).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        let users = world.admin.post(&world.path("/User/batch"), json!(bodies)).await.is(200).json();
        let ada = person(&world, "ada", None).await;
        let path = |user: &Value| world.path(&format!("/User/{}", id(user)));
        assert_eq!(change(&store_admin, &path(&users[0])).await, 202);
        let mut principals = Vec::new();
        for row in world.all("ApplicationUser?count=1000").await.as_array().unwrap() {
            if row["identities"][0]["subject"] != ada["id"] {
                principals.push(json!({ "principalType": "PlatformUser", "principalId": row["id"], "roleType": "AuditTrailReader" }));
            }
        }
        assert!(principals.len() >= MORE_THAN_CACHED, "{}", principals.len());
        let batch = format!("{MANAGEMENT}/RoleAssignment/batch");
        let created = world.admin.post(&batch, json!(principals)).await.is(200).json();
        assert_eq!((change(&store_admin, &path(&users[0])).await, change(&store_admin, &path(&ada)).await), (403, 202));
        let group = group(&world, "top", Some(("SystemAdmin", json!({})))).await;
        assert_eq!(change(&store_admin, &path(&ada)).await, 202);
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.put(&members, json!({ "relatedIds": [ada["id"]] })).await.expect(202);
        assert_eq!(change(&store_admin, &path(&ada)).await, 403);
        world.admin.put(&members, json!({ "relatedIds": [] })).await.expect(202);
        // fewer again
        for row in created.as_array().unwrap().iter().take(3) {
            world.admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{}", id(row))).await.expect(204);
        }
        assert_eq!(change(&store_admin, &path(&ada)).await, 202);
    }

    /// A role of a newer release: what it permits is unknown, so requests that concern its carriers fail.
    async fn an_unknown_role_protects_its_carriers_alone(world: World) {
        let store_admin = store_admin(&world).await;
        let (ada, bob) = (person(&world, "ada", Some(("AuditTrailReader", json!({})))).await, person(&world, "bob", None).await);
        let dora = person(&world, "dora", None).await;
        let top = group(&world, "top", Some(("AuditTrailReader", json!({})))).await;
        let members = world.path(&format!("/Group/{}/users", id(&top)));
        world.admin.put(&members, json!({ "relatedIds": [dora["id"]] })).await.expect(202);
        let text = "UPDATE role_assignment SET role_type = 'Emperor' WHERE role_type = 'AuditTrailReader'";
        world.sql(vec![(text, vec![])]).await;
        // another change of roles, so that the cached carriers are read again
        let platform_bob = platform_user(&world, &bob).await;
        assign_role(&world, "PlatformUser", &platform_bob, "AuditTrailReader", json!({})).await;
        for assignment in assignments(&world, &platform_bob).await {
            world.admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{assignment}")).await.expect(204);
        }
        let [ada, bob, dora] = [&ada, &bob, &dora].map(|user| world.path(&format!("/User/{}", id(user))));
        assert_eq!(change(&store_admin, &bob).await, 202);
        assert_eq!((change(&store_admin, &ada).await, change(&store_admin, &dora).await), (500, 500));
        // the same if each transaction looks up the roles of its people
        let more: Vec<Value> = (0..MORE_THAN_CACHED).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(more)).await.expect(200);
        world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
        let all = world.all("ApplicationUser?count=1000").await;
        let principals: Vec<Value> = all.as_array().unwrap().iter().filter(|row| row["id"] != platform_bob["id"]).map(|row| {
            json!({ "principalType": "PlatformUser", "principalId": row["id"], "roleType": "AuditTrailReader" })
        }).collect();
        assert!(principals.len() >= MORE_THAN_CACHED, "{}", principals.len());
        world.admin.post(&format!("{MANAGEMENT}/RoleAssignment/batch"), json!(principals)).await.expect(200);
        assert_eq!(change(&store_admin, &bob).await, 202);
        assert_eq!((change(&store_admin, &ada).await, change(&store_admin, &dora).await), (500, 500));
    }

    /// A setting of a sign-in concerns the people who sign in by it, whatever roles groups of other stores have.
    async fn an_unknown_role_in_another_store_protects_no_setting(world: World) {
        let lower = world.client("lower", &[("SubscriptionAdmin", None, None)]).await;
        world.other_store("other").await;
        world.admin.post(&format!("{OTHER_STORE}/Group"), json!({ "name": "top" })).await.expect(201);
        world.admin.post(&format!("{OTHER_STORE}/Group/synchronize"), json!(null)).await.expect(200);
        let platform_group = world.all("ApplicationGroup?filter=name%20eq%20%22top%22").await[0].clone();
        assign_role(&world, "PlatformGroup", &platform_group, "AuditTrailReader", json!({})).await;
        let unknown = "UPDATE role_assignment SET role_type = 'Emperor' WHERE role_type = 'AuditTrailReader'";
        world.sql(vec![(unknown, vec![])]).await;
        let store = default_store(&world).await;
        let set = async |value: &str| {
            let filter = format!("name%20eq%20%22LoginByEmailEnabled%22%20and%20applyToIdpInstanceId%20eq%20%22{}%22", id(&store));
            let option = world.all(&format!("Option?filter={filter}")).await[0].clone();
            let body = json!({ "value": value, "concurrencyToken": option["concurrencyToken"] });
            lower.patch(&format!("{MANAGEMENT}/Option/{}", id(&option)), body).await.status.as_u16()
        };
        assert_eq!(set("true").await, 202);
        let ada = person(&world, "ada", Some(("AuditTrailReader", json!({})))).await;
        assert_eq!(ada["loginName"], "ada");
        world.sql(vec![(unknown, vec![])]).await;
        assert_eq!(set("false").await, 500, "ada signs in there");
    }

    /// A reset that races with a grant is refused unless it came first.
    async fn no_change_succeeds_after_a_grant(world: World) {
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", None).await;
        let (path, platform) = (world.path(&format!("/User/{}", id(&ada))), platform_user(&world, &ada).await);
        for _ in 0..5 {
            assert_eq!(change(&store_admin, &path).await, 202);
            let (granted, is_granted) = tokio::sync::watch::channel(false);
            let changing = async {
                // the changes are sequential
                loop {
                    let after_grant = *is_granted.borrow();
                    let status = change(&store_admin, &path).await;
                    assert!(!after_grant || status == 403, "{status} after the grant was answered");
                    if after_grant {
                        break;
                    }
                }
            };
            let granting = async {
                assign_role(&world, "PlatformUser", &platform, "SystemAdmin", json!({})).await;
                granted.send_replace(true);
            };
            tokio::join!(changing, granting);
            for assignment in assignments(&world, &platform).await {
                world.admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{assignment}")).await.expect(204);
            }
        }
    }
}

/// A grant by another process takes effect immediately.
#[tokio::test]
async fn a_grant_by_another_process_takes_effect_immediately() {
    let database = Database::create(Engine::Postgres);
    let (left, right) = (Process::start(&database, &[]).await, Process::start(&database, &[]).await);
    let (users, admin) = ("/api/userstore/v2/default/administration/User", &left.admin);
    let create = async |resource: &str, body: Value| {
        admin.post(&format!("{MANAGEMENT}/{resource}"), body).await.is(201).json()
    };
    let all = async |resource: &str| admin.get(&format!("{MANAGEMENT}/{resource}")).await.is(200).json();
    let stores = all("IdpInstance?filter=name%20eq%20%22default%22").await;
    let app = json!({
        "name": "helper", "allowClientCredentialLogin": true, "subscriptionId": stores[0]["subscriptionId"],
    });
    let app = create("ClientApp", app).await;
    let secret = create("ClientAppSecret", json!({ "clientAppId": app["id"] })).await;
    let role = json!({
        "clientAppId": app["id"], "roleType": "UserStoreAdmin", "applyToIdpInstanceId": stores[0]["id"],
    });
    create("ClientAppRole", role).await;
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}",
        id(&app),
        secret["secret"].as_str().unwrap()
    );
    let token = Client::anonymous(&right.base).ask_for_token(&form).await.is(200).json();
    let store_admin = right.admin.with_token(token["access_token"].as_str().unwrap());
    let ada = admin.post(users, json!({ "loginName": "ada" })).await.is(201).json();
    admin.post(&format!("{users}/synchronize"), json!(null)).await.expect(200);
    let platform =
        all(&format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(&ada))).await[0].clone();
    let path = format!("{users}/{}", id(&ada));
    for _ in 0..5 {
        assert_eq!(change(&store_admin, &path).await, 202);
        let body = json!({ "principalType": "PlatformUser", "principalId": platform["id"], "roleType": "SystemAdmin" });
        let assigned = create("RoleAssignment", body).await;
        assert_eq!(change(&store_admin, &path).await, 403);
        admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{}", id(&assigned))).await.expect(204);
    }
}
