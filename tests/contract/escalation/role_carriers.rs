//! Who was assigned roles is cached for each security epoch. These are the changes after which a cached set must not let anybody
//! through: those that advance the epoch, those that do not, and those of another process.

use chancery_testkit::{Client, Database, Engine, Process, World, on_both_engines};
use serde_json::{Value, json};

use super::{assign, default_store, group, helper, person, platform_user};
use crate::id;

const MANAGEMENT: &str = "/api/management/v2";
const OTHER: &str = "/api/userstore/v2/other/administration";
/// More assignments than are cached.
const MANY: usize = 513;

/// The status of a change of a protected fact of a user, by the address of the user.
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
    /// A role counts from the answer to its assignment on, and no longer than until it is taken away.
    async fn an_assignment_counts_at_once_and_no_longer_than_it_lasts(world: World) {
        let helper = helper(&world).await;
        let (ada, bob) = (person(&world, "ada", None).await, person(&world, "bob", None).await);
        let (ada_path, bob_path) = [&ada, &bob].map(|user| world.path(&format!("/User/{}", id(user)))).into();
        let platform = platform_user(&world, &ada).await;
        for _ in 0..3 {
            assert_eq!((change(&helper, &ada_path).await, change(&helper, &bob_path).await), (202, 202));
            assign(&world, "PlatformUser", &platform, ("SystemAdmin", json!({}))).await;
            assert_eq!((change(&helper, &ada_path).await, change(&helper, &bob_path).await), (403, 202));
            for assignment in assignments(&world, &platform).await {
                world.admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{assignment}")).await.expect(204);
            }
        }
        assert_eq!(change(&helper, &ada_path).await, 202);
        // a role that the helper covers leaves everything as it is
        let store = json!({ "applyToIdpInstanceId": default_store(&world).await["id"] });
        assign(&world, "PlatformUser", &platform, ("UserStoreAdmin", store)).await;
        assert_eq!(change(&helper, &ada_path).await, 202);
    }

    /// Members and nesting of groups change without a new epoch.
    async fn a_membership_counts_at_once(world: World) {
        let helper = helper(&world).await;
        let ada = person(&world, "ada", None).await;
        let path = world.path(&format!("/User/{}", id(&ada)));
        let (top, team) = (group(&world, "top", Some(("SystemAdmin", json!({})))).await, group(&world, "team", None).await);
        assert_eq!(change(&helper, &path).await, 202);
        let set = async |group: &Value, set: &str, ids: Value| {
            let path = world.path(&format!("/Group/{}/{set}", id(group)));
            world.admin.put(&path, json!({ "relatedIds": ids })).await.expect(202);
        };
        for (group, members) in [(&top, json!([ada["id"]])), (&top, json!([])), (&team, json!([ada["id"]]))] {
            set(group, "users", members.clone()).await;
            let wanted = if group["id"] == top["id"] && members != json!([]) { 403 } else { 202 };
            assert_eq!(change(&helper, &path).await, wanted, "{members}");
        }
        set(&top, "membergroups", json!([team["id"]])).await;
        assert_eq!(change(&helper, &path).await, 403);
        set(&top, "membergroups", json!([])).await;
        assert_eq!(change(&helper, &path).await, 202);
    }

    /// Identities change without a new epoch, too.
    async fn an_identity_in_another_store_counts_at_once(world: World) {
        let other = json!(world.other_store("other").await);
        let store = other.as_str().unwrap().parse().unwrap();
        let (boss, ada) = (person(&world, "boss", Some(("SystemAdmin", json!({})))).await, person(&world, "ada", None).await);
        let own = default_store(&world).await["id"].as_str().unwrap().parse().unwrap();
        let roles = [("UserStoreAdmin", None, Some(store)), ("UserStoreAdmin", None, Some(own))];
        let helper = world.client("helper", &roles).await;
        let make = async |name: &str| world.admin.post(&format!("{OTHER}/User"), json!({ "loginName": name })).await.is(201).json();
        let (theirs, hers) = (make("theirs").await, make("hers").await);
        let group = world.admin.post(&format!("{OTHER}/Group"), json!({ "name": "top" })).await.is(201).json();
        world.admin.post(&format!("{OTHER}/Group/synchronize"), json!(null)).await.expect(200);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22top%22").await[0].clone();
        assign(&world, "PlatformGroup", &platform, ("SystemAdmin", json!({}))).await;
        let (at_other, at_own) = (format!("{OTHER}/User/{}", id(&theirs)), world.path(&format!("/User/{}", id(&ada))));
        let replace = async |person: &Value, subject: &Value| {
            let body = json!({
                "platformUserId": platform_user(&world, person).await["id"], "replacementIdpInstanceId": other,
                "replacementUniqueUserId": subject["id"], "reason": "moved",
            });
            world.admin.post(&format!("{MANAGEMENT}/identity-replacements"), body).await.expect(201);
        };
        assert_eq!((change(&helper, &at_other).await, change(&helper, &at_own).await), (202, 202));
        replace(&boss, &theirs).await;
        assert_eq!((change(&helper, &at_other).await, change(&helper, &at_own).await), (403, 202));
        replace(&ada, &hers).await;
        assert_eq!(change(&helper, &at_own).await, 202, "her group there has no role");
        let members = format!("{OTHER}/Group/{}/users", id(&group));
        world.admin.put(&members, json!({ "relatedIds": [hers["id"]] })).await.expect(202);
        assert_eq!(change(&helper, &at_own).await, 403);
        world.admin.put(&members, json!({ "relatedIds": [] })).await.expect(202);
        assert_eq!(change(&helper, &at_own).await, 202);
    }

    /// A person can be two users of one store, while an identity is replaced.
    async fn another_identity_in_the_same_store_counts_at_once(world: World) {
        let helper = helper(&world).await;
        let boss = person(&world, "boss", None).await;
        let platform = platform_user(&world, &boss).await;
        let top = group(&world, "top", Some(("SystemAdmin", json!({})))).await;
        let members = world.path(&format!("/Group/{}/users", id(&top)));
        world.admin.put(&members, json!({ "relatedIds": [boss["id"]] })).await.expect(202);
        // made since, so that it is no platform user of its own
        let next = world.user("next").await;
        let path = world.path(&format!("/User/{}", id(&next)));
        assert_eq!(change(&helper, &path).await, 202);
        let body = json!({
            "platformUserId": platform["id"],
            "replacementIdpInstanceId": default_store(&world).await["id"], "replacementUniqueUserId": next["id"],
            "reason": "moved",
        });
        world.admin.post(&format!("{MANAGEMENT}/identity-replacements"), body).await.expect(201);
        assert_eq!(change(&helper, &path).await, 403);
    }

    /// Where more roles are assigned than are cached, they are looked up for each person.
    async fn many_assignments_are_looked_up(world: World) {
        let helper = helper(&world).await;
        let people: Vec<Value> = (0..MANY).map(|number| json!({ "loginName": format!("u{number}") })).collect();
        let users = world.admin.post(&world.path("/User/batch"), json!(people)).await.is(200).json();
        let ada = person(&world, "ada", None).await;
        let path = |user: &Value| world.path(&format!("/User/{}", id(user)));
        assert_eq!(change(&helper, &path(&users[0])).await, 202);
        let mut principals = Vec::new();
        for row in world.all("ApplicationUser?count=1000").await.as_array().unwrap() {
            if row["identities"][0]["subject"] != ada["id"] {
                principals.push(json!({ "principalType": "PlatformUser", "principalId": row["id"], "roleType": "AuditTrailReader" }));
            }
        }
        assert!(principals.len() >= MANY, "{}", principals.len());
        let batch = format!("{MANAGEMENT}/RoleAssignment/batch");
        let made = world.admin.post(&batch, json!(principals)).await.is(200).json();
        assert_eq!((change(&helper, &path(&users[0])).await, change(&helper, &path(&ada)).await), (403, 202));
        let group = group(&world, "top", Some(("SystemAdmin", json!({})))).await;
        assert_eq!(change(&helper, &path(&ada)).await, 202);
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.put(&members, json!({ "relatedIds": [ada["id"]] })).await.expect(202);
        assert_eq!(change(&helper, &path(&ada)).await, 403);
        world.admin.put(&members, json!({ "relatedIds": [] })).await.expect(202);
        // fewer again
        for row in made.as_array().unwrap().iter().take(3) {
            world.admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{}", id(row))).await.expect(204);
        }
        assert_eq!(change(&helper, &path(&ada)).await, 202);
    }

    /// Of a reset and a grant that meet, the reset is refused unless it came first.
    async fn no_change_begins_after_a_grant(world: World) {
        let helper = helper(&world).await;
        let ada = person(&world, "ada", None).await;
        let (path, platform) = (world.path(&format!("/User/{}", id(&ada))), platform_user(&world, &ada).await);
        for _ in 0..5 {
            assert_eq!(change(&helper, &path).await, 202);
            let (granted, is_granted) = tokio::sync::watch::channel(false);
            let changing = async {
                // each change begins after the one before it was answered
                loop {
                    let after_grant = *is_granted.borrow();
                    let status = change(&helper, &path).await;
                    assert!(!after_grant || status == 403, "{status} after the grant was answered");
                    if after_grant {
                        break;
                    }
                }
            };
            let granting = async {
                assign(&world, "PlatformUser", &platform, ("SystemAdmin", json!({}))).await;
                granted.send_replace(true);
            };
            tokio::join!(changing, granting);
            for assignment in assignments(&world, &platform).await {
                world.admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{assignment}")).await.expect(204);
            }
        }
    }
}

/// What another process grants counts at once.
#[tokio::test]
async fn a_grant_by_another_process_counts_at_once() {
    let database = Database::create(Engine::Postgres);
    let (left, right) = (Process::start(&database, &[]).await, Process::start(&database, &[]).await);
    let (users, admin) = ("/api/userstore/v2/default/administration/User", &left.admin);
    let make = async |resource: &str, body: Value| {
        admin.post(&format!("{MANAGEMENT}/{resource}"), body).await.is(201).json()
    };
    let all = async |resource: &str| admin.get(&format!("{MANAGEMENT}/{resource}")).await.is(200).json();
    let stores = all("IdpInstance?filter=name%20eq%20%22default%22").await;
    let app = json!({
        "name": "helper", "allowClientCredentialLogin": true, "subscriptionId": stores[0]["subscriptionId"],
    });
    let app = make("ClientApp", app).await;
    let secret = make("ClientAppSecret", json!({ "clientAppId": app["id"] })).await;
    let role = json!({
        "clientAppId": app["id"], "roleType": "UserStoreAdmin", "applyToIdpInstanceId": stores[0]["id"],
    });
    make("ClientAppRole", role).await;
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}",
        id(&app),
        secret["secret"].as_str().unwrap()
    );
    let token = Client::anonymous(&right.base).ask_for_token(&form).await.is(200).json();
    let helper = right.admin.with_token(token["access_token"].as_str().unwrap());
    let ada = admin.post(users, json!({ "loginName": "ada" })).await.is(201).json();
    admin.post(&format!("{users}/synchronize"), json!(null)).await.expect(200);
    let platform =
        all(&format!("ApplicationUser?filter=identities.subject%20eq%20%22{}%22", id(&ada))).await[0].clone();
    let path = format!("{users}/{}", id(&ada));
    for _ in 0..5 {
        assert_eq!(change(&helper, &path).await, 202);
        let body = json!({ "principalType": "PlatformUser", "principalId": platform["id"], "roleType": "SystemAdmin" });
        let assigned = make("RoleAssignment", body).await;
        assert_eq!(change(&helper, &path).await, 403);
        admin.delete(&format!("{MANAGEMENT}/RoleAssignment/{}", id(&assigned))).await.expect(204);
    }
}
