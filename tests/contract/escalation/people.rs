//! People as the platform knows them, wherever they come from: directories, replaced identities, second factors.

use chancery_testkit::{Answer, Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{assign, helper, person, platform_user, refused};
use crate::{
    id,
    management::instance::{make, option, set_option},
    sign_in::{
        Home,
        second_factor::{ask_for, enrol},
    },
};

const BASE: &str = "/api/management/v2";

/// The platform user who is a user of the store.
/// The directory of a new identity provider instance, that instance, and the address of its people.
async fn directory(world: &World) -> (Client, Value, String) {
    let instance = make(world, "partner", "OpenIdConnect").await;
    set_option(world, &instance, "ScimEnabled", "true").await;
    let path = format!("{BASE}/IdpInstance/partner/scim/token");
    world.admin.send(http::Method::POST, &path, &[], Vec::new()).await.expect(204);
    let token = option(world, &instance, "ScimToken").await["value"].as_str().unwrap().to_owned();
    (world.admin.with_token(&token), instance, "/api/scim/v2/partner/Users".to_owned())
}

/// Gives a person an identity at the instance in place of the person's own.
async fn replace(world: &World, person: &Value, instance: &Value, subject: &str) {
    let asks = administrator(world, &format!("asks for {subject}")).await;
    let approves = administrator(world, &format!("approves {subject}")).await;
    let body = json!({
        "platformUserId": person["id"], "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": subject, "reason": "moved", "requiredApprovals": 1,
    });
    let made = asks.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
    let one = format!("{BASE}/identity-replacements/{}", id(&made));
    for step in ["approvals", "execute"] {
        approves.post(&format!("{one}/{step}"), json!(null)).await.expect(200);
    }
}

/// A SystemAdmin whom nobody made.
async fn administrator(world: &World, name: &str) -> Client {
    let client = world.client(name, &[("SystemAdmin", None, None)]).await;
    forget_makers(world).await;
    client
}

/// As if client apps had been made by somebody else than `root`.
pub async fn forget_makers(world: &World) {
    world.sql(vec![("DELETE FROM client_app_controller", vec![])]).await;
}

fn patch(path: &str, value: &Value) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{ "op": "replace", "path": path, "value": value }],
    })
}

/// Makes a platform user SystemAdmin; the assignment.
async fn assign_one(world: &World, person: &Value) -> Value {
    let body =
        json!({ "principalType": "PlatformUser", "principalId": person["id"], "roleType": "SystemAdmin" });
    world.make("RoleAssignment", body).await
}

fn is_refused(answer: &Answer) -> bool {
    answer.status == 403
}

on_both_engines! {
    /// A directory holds no role: it takes over nobody who has one, by whichever identity.
    async fn a_directory_takes_over_nobody_who_administers(world: World) {
        let (directory, instance, users) = directory(&world).await;
        let (boss, plain) = (person(&world, "boss", Some(("SystemAdmin", json!({})))).await, person(&world, "plain", None).await);
        for (user, subject) in [(&boss, "s-boss"), (&plain, "s-plain")] {
            replace(&world, &platform_user(&world, user).await, &instance, subject).await;
        }
        let taken = |subject: &str| json!({
            "userName": format!("{subject}-eve"), "externalId": subject, "active": false,
            "emails": [{ "value": "eve@example.org", "primary": true }],
        });
        let before = platform_user(&world, &boss).await;
        assert!(is_refused(&directory.post(&users, taken("s-boss")).await));
        assert_eq!(platform_user(&world, &boss).await["emailAddress"], before["emailAddress"]);
        directory.post(&users, taken("s-plain")).await.expect(201);
    }

    /// Whose identity it is, the name, the address and the state of who administers are no directory's; the names are.
    async fn a_directory_changes_nothing_that_decides_who_administers(world: World) {
        let (directory, _, users) = directory(&world).await;
        let boss = directory.post(&users, json!({ "userName": "boss", "externalId": "s-boss" })).await.is(201).json();
        let plain = directory.post(&users, json!({ "userName": "plain", "externalId": "s-plain" })).await.is(201).json();
        assign(&world, "PlatformUser", &boss, ("SystemAdmin", json!({}))).await;
        let emails = json!([{ "value": "eve@example.org", "primary": true }]);
        for (path, value) in [("externalId", json!("s-eve")), ("userName", json!("eve")), ("emails", emails), ("active", json!(false))] {
            let answer = directory.patch(&format!("{users}/{}", id(&boss)), patch(path, &value)).await;
            assert!(is_refused(&answer), "{path}: {}", answer.status);
            directory.patch(&format!("{users}/{}", id(&plain)), patch(path, &value)).await.expect(200);
        }
        let now = world.all(&format!("ApplicationUser/{}", id(&boss))).await;
        assert_eq!(now["identities"][0]["subject"], json!("s-boss"));
        let renamed = patch("name.familyName", &json!("Lovelace"));
        directory.patch(&format!("{users}/{}", id(&boss)), renamed).await.expect(200);
    }

    /// Whom a directory wanted to remove and could not is told to those who administer, so that leavers are not forgotten.
    async fn a_refused_removal_is_told(world: World) {
        let (directory, _, users) = directory(&world).await;
        let boss = directory.post(&users, json!({ "userName": "boss" })).await.is(201).json();
        assign(&world, "PlatformUser", &boss, ("TenantAdmin", json!({ "applyToTenantId": world.all("Tenant").await[0]["id"] }))).await;
        let one = format!("{users}/{}", id(&boss));
        for _ in 0..2 {
            assert!(is_refused(&directory.patch(&one, patch("active", &json!(false))).await));
            assert!(is_refused(&directory.delete(&one).await));
        }
        let path = format!("{BASE}/Event?count=1000&wait=5&type=platform.management.applicationuser.removal-refused");
        let told = world.admin.get(&path).await.is(200).json();
        assert_eq!(told["items"].as_array().map(Vec::len), Some(1), "once a day: {told}");
        assert_eq!(told["items"][0]["subject"], boss["id"]);
    }

    /// Whom directories could not remove is listed for those who administer the instance, until the person is gone.
    async fn refused_removals_are_listed_until_the_person_is_gone(world: World) {
        let (directory, instance, users) = directory(&world).await;
        let boss = directory.post(&users, json!({ "userName": "boss" })).await.is(201).json();
        let token = world.admin.post(&world.path("/ScimToken"), json!({ "name": "of the store", "reach": "All" })).await.is(201).json();
        let of_store = world.admin.with_token(token["token"].as_str().unwrap());
        let ada = person(&world, "ada", Some(("SystemAdmin", json!({})))).await;
        let boss_s = assign_one(&world, &boss).await;
        let refused = |one: &Value| format!("/api/scim/v2/default/Users/{}", id(one));
        for _ in 0..2 {
            assert!(is_refused(&directory.delete(&format!("{users}/{}", id(&boss))).await));
            assert!(is_refused(&of_store.patch(&refused(&ada), patch("active", &json!(false))).await));
        }
        let list = async |client: &Client| client.get(&format!("{BASE}/DirectoryRefusal?sortBy=loginName")).await.is(200).json();
        let all = list(&world.admin).await;
        let told: Vec<_> = all.as_array().unwrap().iter().map(|row| (&row["loginName"], &row["userId"], &row["userStore"])).collect();
        let (name, none) = (json!("default"), json!(null));
        assert_eq!(told, [(&json!("ada"), &ada["id"], &name), (&json!("boss"), &boss["id"], &none)]);
        assert!(all[1]["idpInstanceId"] == instance["id"] && all[1]["toldOn"].is_string(), "{all}");
        let first = world.admin.get(&format!("{BASE}/DirectoryRefusal?count=1")).await.is(200).json();
        assert_eq!(first, json!([all[1]]), "in the order in which they were refused first");
        let helper = helper(&world).await;
        assert_eq!(list(&helper).await, json!([all[0]]), "whoever administers one of the instances");
        let now = world.admin.get(&world.path(&format!("/User/{}", id(&ada)))).await.is(200).json();
        let off = json!({ "isUserActive": false, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&world.path(&format!("/User/{}", id(&ada))), off).await.expect(202);
        world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(&boss_s))).await.expect(204);
        directory.delete(&format!("{users}/{}", id(&boss))).await.expect(204);
        assert_eq!(list(&world.admin).await, json!([]));
    }

    /// The second factor of who administers, and who the person is at another provider, are nobody's who has less.
    async fn second_factors_and_identities_of_who_administers_are_protected(world: World) {
        let home = Home::new(&world).await;
        ask_for(&world, &home, "totp").await;
        enrol(&world, &home).await;
        let ann = platform_user(&world, &home.user).await;
        let assignment = json!({ "principalType": "PlatformUser", "principalId": ann["id"], "roleType": "SystemAdmin" });
        let role = world.make("RoleAssignment", assignment).await;
        let lower = world.client("lower", &[("SubscriptionAdmin", None, None)]).await;
        forget_makers(&world).await;
        let factor = world.all("SignInFactor").await[0].clone();
        let factor = format!("{BASE}/SignInFactor/{}", id(&factor));
        refused(lower.delete(&factor).await, "SystemAdmin", &ann);
        let instance = make(&world, "partner", "OpenIdConnect").await;
        let body = json!({
            "platformUserId": ann["id"], "replacementIdpInstanceId": instance["id"],
            "replacementUniqueUserId": "eve", "reason": "moved",
        });
        let all = format!("{BASE}/identity-replacements");
        refused(lower.post(&all, body.clone()).await, "SystemAdmin", &ann);
        let made = world.admin.post(&all, body).await.is(201).json();
        refused(lower.post(&format!("{all}/{}/approvals", id(&made)), json!(null)).await, "SystemAdmin", &ann);
        // to sign somebody out gives nothing away
        lower.send(http::Method::POST, &format!("{BASE}/ApplicationUser/{}/signout", id(&ann)), &[], Vec::new()).await.expect(204);
        world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(&role))).await.expect(204);
        lower.post(&format!("{all}/{}/approvals", id(&made)), json!(null)).await.expect(200);
        lower.delete(&factor).await.expect(204);
    }

    /// In version 1, too, names are anybody's who has access, and what decides who signs in is not.
    async fn version_1_lets_names_be_changed(world: World) {
        let helper = helper(&world).await;
        let boss = person(&world, "boss", Some(("SystemAdmin", json!({})))).await;
        let one = format!("/api/userstore/v1/default/administration/User/{}", id(&boss));
        let named = json!([{ "op": "replace", "path": "/firstName", "value": "Augusta" }]);
        let headers = [("content-type", "application/json-patch+json")];
        let send = async |body: Value| helper.send(http::Method::PATCH, &one, &headers, body.to_string().into_bytes()).await;
        assert!(send(named).await.status.is_success());
        let moved = json!([{ "op": "replace", "path": "/emailAddress", "value": "eve@example.com" }]);
        assert_eq!(send(moved).await.status, 403);
    }
}
