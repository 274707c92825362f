//! Protection of platform users of any origin: directories, replaced identities, second factors.

use chancery_testkit::{Answer, Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{assert_refused, assign_role, default_store, person, platform_user, store_admin};
use crate::{
    id,
    instance::{create_instance, option, set_option},
    sign_in::{
        SignInApp,
        second_factor::{enrol, require_factor},
    },
};

const BASE: &str = "/api/management/v2";

/// The SCIM client of a new identity provider instance, that instance, and the path of its users.
async fn directory(world: &World) -> (Client, Value, String) {
    let instance = create_instance(world, "partner", "OpenIdConnect").await;
    set_option(world, &instance, "ScimEnabled", "true").await;
    let path = format!("{BASE}/IdpInstance/partner/scim/token");
    world.admin.send(http::Method::POST, &path, &[], Vec::new()).await.expect(204);
    let token = option(world, &instance, "ScimToken").await["value"].as_str().unwrap().to_owned();
    (world.admin.with_token(&token), instance, "/api/scim/v2/partner/Users".to_owned())
}

/// Replaces a user's identity with one at the instance.
async fn replace(world: &World, person: &Value, instance: &Value, subject: &str) {
    let requester = administrator(world, &format!("asks for {subject}")).await;
    let approver = administrator(world, &format!("approves {subject}")).await;
    let body = json!({
        "platformUserId": person["id"], "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": subject, "reason": "moved", "requiredApprovals": 1,
    });
    let created = requester.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
    let one = format!("{BASE}/identity-replacements/{}", id(&created));
    for step in ["approvals", "execute"] {
        approver.post(&format!("{one}/{step}"), json!(null)).await.expect(200);
    }
}

/// A SystemAdmin without a recorded creator.
async fn administrator(world: &World, name: &str) -> Client {
    let client = world.client(name, &[("SystemAdmin", None, None)]).await;
    delete_controllers(world).await;
    client
}

/// Deletes the recorded creators of client apps, so that they are independent of `root`.
pub async fn delete_controllers(world: &World) {
    world.sql(vec![("DELETE FROM client_app_controller", vec![])]).await;
}

fn patch(path: &str, value: &Value) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{ "op": "replace", "path": path, "value": value }],
    })
}

/// Assigns SystemAdmin to a platform user; the assignment.
pub async fn assign_system_admin(world: &World, person: &Value) -> Value {
    let body =
        json!({ "principalType": "PlatformUser", "principalId": person["id"], "roleType": "SystemAdmin" });
    world.make("RoleAssignment", body).await
}

fn is_refused(answer: &Answer) -> bool {
    answer.status == 403
}

on_both_engines! {
    /// A directory holds no role, so it cannot take over a user with a role, by any identity.
    async fn a_directory_cannot_take_over_an_administrator(world: World) {
        let (directory, instance, users) = directory(&world).await;
        let (boss, plain) = (person(&world, "boss", Some(("SystemAdmin", json!({})))).await, person(&world, "plain", None).await);
        for (user, subject) in [(&boss, "s-boss"), (&plain, "s-plain")] {
            replace(&world, &platform_user(&world, user).await, &instance, subject).await;
        }
        let claiming_body = |subject: &str| json!({
            "userName": format!("{subject}-eve"), "externalId": subject, "active": false,
            "emails": [{ "value": "eve@example.org", "primary": true }],
        });
        let before = platform_user(&world, &boss).await;
        assert!(is_refused(&directory.post(&users, claiming_body("s-boss")).await));
        assert_eq!(platform_user(&world, &boss).await["emailAddress"], before["emailAddress"]);
        directory.post(&users, claiming_body("s-plain")).await.expect(201);
    }

    /// A directory cannot change identity, login name, address or state of an administrator; other names it can.
    async fn a_directory_cannot_change_protected_members_of_an_administrator(world: World) {
        let (directory, _, users) = directory(&world).await;
        let boss = directory.post(&users, json!({ "userName": "boss", "externalId": "s-boss" })).await.is(201).json();
        let plain = directory.post(&users, json!({ "userName": "plain", "externalId": "s-plain" })).await.is(201).json();
        assign_role(&world, "PlatformUser", &boss, "SystemAdmin", json!({})).await;
        let emails = json!([{ "value": "eve@example.org", "primary": true }]);
        for (path, value) in [("externalId", json!("s-eve")), ("userName", json!("eve")), ("emails", emails), ("active", json!(false))] {
            let answer = directory.patch(&format!("{users}/{}", id(&boss)), patch(path, &value)).await;
            assert!(is_refused(&answer), "{path}: {}", answer.status);
            directory.patch(&format!("{users}/{}", id(&plain)), patch(path, &value)).await.expect(200);
        }
        let current = world.all(&format!("ApplicationUser/{}", id(&boss))).await;
        assert_eq!(current["identities"][0]["subject"], json!("s-boss"));
        let renamed = patch("name.familyName", &json!("Lovelace"));
        directory.patch(&format!("{users}/{}", id(&boss)), renamed).await.expect(200);
    }

    /// A group that a directory provisions protects its members by its roles: from directories and from administrators who do not hold
    /// them, with every identity, and in the settings of the instances at which they sign in.
    async fn members_of_a_provisioned_role_group_are_protected(world: World) {
        let (directory, instance, users) = directory(&world).await;
        let boss = directory.post(&users, json!({ "userName": "boss", "externalId": "s-boss" })).await.is(201).json();
        let plain = directory.post(&users, json!({ "userName": "plain", "externalId": "s-plain" })).await.is(201).json();
        let body = json!({ "displayName": "Chiefs", "members": [{ "value": boss["id"] }] });
        let group = directory.post("/api/scim/v2/partner/Groups", body).await.is(201).json();
        let lower_admin = world.client("lower", &[("SubscriptionAdmin", None, None)]).await;
        let store_admin = store_admin(&world).await;
        delete_controllers(&world).await;
        // later the person is a user of the store, too, and still in the group
        let account = world.user("boss").await;
        replace(&world, &boss, &default_store(&world).await, id(&account)).await;
        let account = world.path(&format!("/User/{}", id(&account)));
        let change = async |client: &Client| {
            let row = world.admin.get(&account).await.is(200).json();
            let token = row["concurrencyToken"].as_str().unwrap();
            client.patch(&account, json!({ "emailAddress": format!("e{token}@example.org"), "concurrencyToken": token })).await
        };
        let point = async |instance: &Value, name: &str, value: &str| {
            let row = option(&world, instance, name).await;
            let body = json!({ "value": value, "concurrencyToken": row["concurrencyToken"] });
            lower_admin.patch(&format!("{BASE}/Option/{}", id(&row)), body).await
        };
        change(&store_admin).await.expect(202);
        point(&instance, "Authority", "https://one.example").await.expect(202);
        point(&default_store(&world).await, "LoginByEmailEnabled", "true").await.expect(202);
        assign_role(&world, "PlatformGroup", &group, "SystemAdmin", json!({})).await;
        let user = json!({ "id": account.rsplit('/').next() });
        assert_refused(change(&store_admin).await, "SystemAdmin", &user);
        assert_refused(point(&instance, "Authority", "https://two.example").await, "SystemAdmin", &instance);
        let store = default_store(&world).await;
        assert_refused(point(&store, "LoginByEmailEnabled", "false").await, "SystemAdmin", &store);
        let request = |person: &Value| json!({
            "platformUserId": person["id"], "replacementIdpInstanceId": instance["id"],
            "replacementUniqueUserId": "s-eve", "reason": "moved",
        });
        let all = format!("{BASE}/identity-replacements");
        assert_refused(lower_admin.post(&all, request(&boss)).await, "SystemAdmin", &boss);
        lower_admin.post(&all, request(&plain)).await.expect(201);
        let chief = directory.post(&users, json!({ "userName": "chief", "externalId": "s-chief" })).await.is(201).json();
        let members = json!({ "displayName": "Chiefs", "members": [{ "value": boss["id"] }, { "value": chief["id"] }] });
        assert!(is_refused(&directory.put(&format!("/api/scim/v2/partner/Groups/{}", id(&group)), members).await));
        let role = world.all("RoleAssignment?filter=principalType%20eq%20%22PlatformGroup%22").await[0].clone();
        world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(&role))).await.expect(204);
        change(&store_admin).await.expect(202);
        point(&instance, "Authority", "https://two.example").await.expect(202);
    }

    /// A refused removal by a directory emits an event, so that administrators learn about leavers.
    async fn a_refused_removal_emits_an_event(world: World) {
        let (directory, _, users) = directory(&world).await;
        let boss = directory.post(&users, json!({ "userName": "boss" })).await.is(201).json();
        assign_role(&world, "PlatformUser", &boss, "TenantAdmin", json!({ "applyToTenantId": world.all("Tenant").await[0]["id"] })).await;
        let one = format!("{users}/{}", id(&boss));
        for _ in 0..2 {
            assert!(is_refused(&directory.patch(&one, patch("active", &json!(false))).await));
            assert!(is_refused(&directory.delete(&one).await));
        }
        let path = format!("{BASE}/Event?count=1000&wait=5&type=platform.management.applicationuser.removal-refused");
        let events = world.admin.get(&path).await.is(200).json();
        assert_eq!(events["items"].as_array().map(Vec::len), Some(1), "once a day: {events}");
        assert_eq!(events["items"][0]["subject"], boss["id"]);
    }

    /// Refused removals are listed for the administrators of the instance, until the user is removed.
    async fn refused_removals_are_listed_until_the_user_is_removed(world: World) {
        let (directory, instance, users) = directory(&world).await;
        let boss = directory.post(&users, json!({ "userName": "boss" })).await.is(201).json();
        let token = world.admin.post(&world.path("/ScimToken"), json!({ "name": "of the store", "reach": "All" })).await.is(201).json();
        let of_store = world.admin.with_token(token["token"].as_str().unwrap());
        let ada = person(&world, "ada", Some(("SystemAdmin", json!({})))).await;
        let boss_assignment = assign_system_admin(&world, &boss).await;
        let path_in_store = |one: &Value| format!("/api/scim/v2/default/Users/{}", id(one));
        for _ in 0..2 {
            assert!(is_refused(&directory.delete(&format!("{users}/{}", id(&boss))).await));
            assert!(is_refused(&of_store.patch(&path_in_store(&ada), patch("active", &json!(false))).await));
        }
        let list = async |client: &Client| client.get(&format!("{BASE}/DirectoryRefusal?sortBy=loginName")).await.is(200).json();
        let all = list(&world.admin).await;
        let rows: Vec<_> = all.as_array().unwrap().iter().map(|row| (&row["loginName"], &row["userId"], &row["userStore"])).collect();
        let (name, none) = (json!("default"), json!(null));
        assert_eq!(rows, [(&json!("ada"), &ada["id"], &name), (&json!("boss"), &boss["id"], &none)]);
        assert!(all[1]["idpInstanceId"] == instance["id"] && all[1]["toldOn"].is_string(), "{all}");
        let first = world.admin.get(&format!("{BASE}/DirectoryRefusal?count=1")).await.is(200).json();
        assert_eq!(first, json!([all[1]]), "in the order in which they were refused first");
        let store_admin = store_admin(&world).await;
        assert_eq!(list(&store_admin).await, json!([all[0]]), "whoever administers one of the instances");
        let current = world.admin.get(&world.path(&format!("/User/{}", id(&ada)))).await.is(200).json();
        let off = json!({ "isUserActive": false, "concurrencyToken": current["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/User/{}", id(&ada))), off).await.expect(202);
        world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(&boss_assignment))).await.expect(204);
        directory.delete(&format!("{users}/{}", id(&boss))).await.expect(204);
        assert_eq!(list(&world.admin).await, json!([]));
    }

    /// Second factors and identities of an administrator cannot be changed by a lower administrator.
    async fn second_factors_and_identities_of_administrators_are_protected(world: World) {
        let user_session = SignInApp::new(&world).await;
        require_factor(&world, &user_session, "totp").await;
        enrol(&world, &user_session).await;
        let ann = platform_user(&world, &user_session.user).await;
        let assignment = json!({ "principalType": "PlatformUser", "principalId": ann["id"], "roleType": "SystemAdmin" });
        let role = world.make("RoleAssignment", assignment).await;
        let lower_admin = world.client("lower", &[("SubscriptionAdmin", None, None)]).await;
        delete_controllers(&world).await;
        let factor = world.all("SignInFactor").await[0].clone();
        let factor = format!("{BASE}/SignInFactor/{}", id(&factor));
        assert_refused(lower_admin.delete(&factor).await, "SystemAdmin", &ann);
        let instance = create_instance(&world, "partner", "OpenIdConnect").await;
        let body = json!({
            "platformUserId": ann["id"], "replacementIdpInstanceId": instance["id"],
            "replacementUniqueUserId": "eve", "reason": "moved",
        });
        let all = format!("{BASE}/identity-replacements");
        assert_refused(lower_admin.post(&all, body.clone()).await, "SystemAdmin", &ann);
        let created = world.admin.post(&all, body).await.is(201).json();
        assert_refused(lower_admin.post(&format!("{all}/{}/approvals", id(&created)), json!(null)).await, "SystemAdmin", &ann);
        // a sign-out gives no access
        lower_admin.send(http::Method::POST, &format!("{BASE}/ApplicationUser/{}/signout", id(&ann)), &[], Vec::new()).await.expect(204);
        world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(&role))).await.expect(204);
        lower_admin.post(&format!("{all}/{}/approvals", id(&created)), json!(null)).await.expect(200);
        lower_admin.delete(&factor).await.expect(204);
    }

    /// In version 1, too, any caller with access may change names, but not the attributes that decide who signs in.
    async fn version_1_allows_changes_of_names(world: World) {
        let store_admin = store_admin(&world).await;
        let boss = person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let one = format!("/api/userstore/v1/default/administration/User/{}", id(&boss));
        let patch_name = json!([{ "op": "replace", "path": "/firstName", "value": "Augusta" }]);
        let headers = [("content-type", "application/json-patch+json")];
        let send = async |body: Value| store_admin.send(http::Method::PATCH, &one, &headers, body.to_string().into_bytes()).await;
        assert!(send(patch_name).await.status.is_success());
        let moved = json!([{ "op": "replace", "path": "/emailAddress", "value": "eve@example.com" }]);
        assert_eq!(send(moved).await.status, 403);
    }
}
