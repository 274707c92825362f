//! Deletion of users, restoring from quarantine, and the rate limit on directories that remove many.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{at, directory, error, group, of_provider, one, operations, own, user};
use crate::{
    id,
    sign_in::{
        SignInApp,
        second_factor::{enrol, require_factor},
    },
};

on_both_engines! {
    /// A restored user keeps the id and is otherwise reset.
    ///
    /// - Effect of `UserStore options.ScimCreateRestores`: A directory that creates a user who is in quarantine restores that user.
    async fn a_restored_user_is_reset(world: World) {
        let client = own(&world).await;
        let body = json!({ "userName": "ada", "externalId": "x1", "title": "Countess", "password": "four lively grey herons",
            "roles": [{ "value": "author" }], "phoneNumbers": [{ "value": "12345" }] });
        let created = client.post(&at("/Users"), body).await.is(201).json();
        let team = group(&client, "team", &[&created]).await;
        client.delete(&one("Users", &created)).await.expect(204);
        error(&client.get(&one("Users", &created)).await, 404);
        let other = json!({ "userName": "ada", "externalId": "x2" });
        let (word, detail) = error(&client.post(&at("/Users"), other).await, 409);
        assert!(word == "uniqueness" && detail.contains("externalId"), "{detail}");
        error(&own(&world).await.post(&at("/Users"), json!({ "userName": "ada" })).await, 409);
        world.set_option("ScimCreateRestores", "false").await;
        error(&client.post(&at("/Users"), json!({ "userName": "ada", "externalId": "x1" })).await, 409);
        world.set_option("ScimCreateRestores", "true").await;
        let restored = client.post(&at("/Users"), json!({ "userName": "Ada", "externalId": "x1", "nickName": "A" })).await.is(201).json();
        assert_eq!((&restored["id"], &restored["userName"], &restored["nickName"]), (&created["id"], &json!("Ada"), &json!("A")));
        for name in ["title", "roles", "phoneNumbers", "groups"] {
            assert_eq!(restored.get(name), None, "{name}");
        }
        assert_eq!(client.get(&one("Groups", &team)).await.is(200).json().get("members"), None);
        let path = world.path("").replace("/administration", "/PublicAdmin/user/loginname/ada/password/change");
        let old = json!({ "oldPassword": "four lively grey herons", "newPassword": "six noisy red foxes" });
        assert_ne!(world.anonymous.post(&path, old).await.status, 200, "the password is gone");
    }

    /// A restored user may be somebody else, or have another telephone.
    async fn second_factors_are_not_restored(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        enrol(&world, &home).await;
        assert_eq!(world.all("SignInFactor").await.as_array().map(Vec::len), Some(1));
        let (client, _) = directory(&world, json!({ "reach": "All" })).await;
        client.delete(&one("Users", &home.user)).await.expect(204);
        assert_eq!(world.all("SignInFactor").await.as_array().map(Vec::len), Some(1), "an administrator may restore");
        let restored = client.post(&at("/Users"), json!({ "userName": "ann" })).await.is(201).json();
        assert_eq!(restored["id"], home.user["id"]);
        assert_eq!(world.all("SignInFactor").await, json!([]));
    }

    /// - Effect of `UserStore options.ScimMassChangeLimit`: A directory that removes more users than this within an hour is stopped until
    ///   an administrator resumes it.
    async fn too_many_removals_stop_a_token(world: World) {
        world.set_option("ScimMassChangeLimit", "2").await;
        let (client, created) = directory(&world, json!({})).await;
        let mut users = Vec::new();
        for name in ["a", "b", "c"] {
            users.push(user(&client, name).await);
        }
        let off = operations(&json!([{ "op": "replace", "path": "active", "value": false }]));
        client.patch(&one("Users", &users[0]), off.clone()).await.expect(200);
        client.delete(&one("Users", &users[1])).await.expect(204);
        let (_, detail) = error(&client.delete(&one("Users", &users[2])).await, 403);
        assert!(detail.contains("more than 2"), "{detail}");
        error(&client.post(&at("/Users"), json!({ "userName": "d" })).await, 403);
        client.get(&one("Users", &users[2])).await.expect(200);
        let path = world.path(&format!("/ScimToken/{}", id(&created)));
        let row = world.admin.get(&path).await.is(200).json();
        assert!(row["stoppedOn"].is_string(), "{row}");
        let events = world.admin.get(&world.path("/Event?count=1000&wait=5&type=platform.userstore.scimtoken.stopped")).await.is(200).json();
        assert_eq!(events["items"][0]["subject"], created["id"]);
        let resume = format!("{path}/resume");
        world.admin.send(http::Method::POST, &resume, &[], Vec::new()).await.expect(204);
        world.admin.send(http::Method::POST, &resume, &[], Vec::new()).await.problem(409, "conflict");
        client.delete(&one("Users", &users[2])).await.expect(204);
    }

    /// - Effect of `OpenIdConnect options.ScimMassChangeLimit`: A directory that removes more people than this within an hour is stopped
    ///   until an administrator resumes it.
    async fn a_provider_s_stopped_token_is_resumed_by_its_administrator(world: World) {
        let (client, base) = of_provider(&world, "partner").await;
        let instance = world.all("IdpInstance?filter=name%20eq%20%22partner%22").await[0].clone();
        crate::instance::set_option(&world, &instance, "ScimMassChangeLimit", "0").await;
        let ada = client.post(&format!("{base}/Users"), json!({ "userName": "ada" })).await.is(201).json();
        let path = format!("{base}/Users/{}", id(&ada));
        error(&client.delete(&path).await, 403);
        error(&client.post(&format!("{base}/Users"), json!({ "userName": "bob" })).await, 403);
        crate::instance::set_option(&world, &instance, "ScimMassChangeLimit", "5").await;
        let state = "/api/management/v2/IdpInstance/partner/scim";
        let state_now = world.admin.get(state).await.is(200).json();
        assert_eq!((&state_now["isEnabled"], &state_now["ownedUsers"], &state_now["ownedGroups"]), (&json!(true), &json!(1), &json!(0)));
        assert!(state_now["stoppedOn"].is_string() && state_now["tokenId"].is_string(), "{state_now}");
        let resume = "/api/management/v2/IdpInstance/partner/scim/resume";
        world.admin.send(http::Method::POST, resume, &[], Vec::new()).await.expect(204);
        world.admin.send(http::Method::POST, resume, &[], Vec::new()).await.problem(409, "conflict");
        client.delete(&path).await.expect(204);
    }

    /// Client apps that authorize a person by name prevent the deletion, unless cascades are on.
    ///
    /// - Effect of `OpenIdConnect options.ScimDeleteCascades`: When a directory removes a person, role assignments and links to client apps
    ///   are removed, too.
    async fn references_prevent_the_deletion_of_a_person(world: World) {
        let (client, base) = of_provider(&world, "partner").await;
        let ada = client.post(&format!("{base}/Users"), json!({ "userName": "ada" })).await.is(201).json();
        let app = world.all("ClientApp").await[0].clone();
        let users = format!("/api/management/v2/ClientApp/{}/authorizedusers", id(&app));
        world.admin.post(&users, json!({ "relatedIds": [ada["id"]] })).await.expect(202);
        let path = format!("{base}/Users/{}", id(&ada));
        let (word, _) = error(&client.delete(&path).await, 409);
        assert_eq!(word, "");
        let instance = world.all("IdpInstance?filter=name%20eq%20%22partner%22").await[0].clone();
        crate::instance::set_option(&world, &instance, "ScimDeleteCascades", "true").await;
        client.delete(&path).await.expect(204);
    }

    /// A role without permits prevents the deletion as a reference does; an administrator's role forbids it.
    async fn a_role_prevents_the_deletion_of_a_person(world: World) {
        let (client, base) = of_provider(&world, "partner").await;
        let ada = client.post(&format!("{base}/Users"), json!({ "userName": "ada" })).await.is(201).json();
        let role = |of: &str| json!({ "principalType": "PlatformUser", "principalId": ada["id"], "roleType": of });
        let path = format!("{base}/Users/{}", id(&ada));
        let admin_role = world.make("RoleAssignment", role("SystemAdmin")).await;
        error(&client.delete(&path).await, 403);
        world.admin.delete(&format!("/api/management/v2/RoleAssignment/{}", id(&admin_role))).await.expect(204);
        let created = world.make("RoleAssignment", role("UserAdmin")).await;
        let (word, detail) = error(&client.delete(&path).await, 409);
        assert!(word.is_empty() && detail.contains("ScimDeleteCascades"), "{detail}");
        let instance = world.all("IdpInstance?filter=name%20eq%20%22partner%22").await[0].clone();
        crate::instance::set_option(&world, &instance, "ScimDeleteCascades", "true").await;
        client.delete(&path).await.expect(204);
        world.admin.get(&format!("/api/management/v2/RoleAssignment/{}", id(&created))).await.problem(404, "not-found");
    }
}
