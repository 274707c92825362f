//! Access tokens of people at the platform's services, with the roles that were assigned to them.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, PASSWORD, SignInApp, browser::Browser, claims, encode, first, parameter, relate};
use crate::{id, roles::assign_role};

const MANAGEMENT: &str = "PlatformManagementService";
pub const USER_STORE: &str = "PlatformUserStoreService";

/// An app that may request the platform's resources.
pub async fn console(world: &World) -> SignInApp {
    let home = SignInApp::new(world).await;
    for key in [MANAGEMENT, USER_STORE] {
        world.make("ClientAppResource", json!({ "clientAppId": home.app["id"], "key": key })).await;
    }
    home
}

/// The platform user of `ann`.
async fn person(world: &World) -> Value {
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = encode("emailAddress eq \"ann@example.com\"");
    first(world, &format!("/ApplicationUser?filter={filter}")).await
}

/// Ann's access token for a resource, or for the app's own resource.
pub async fn token(world: &World, home: &SignInApp, resource: &str) -> (Browser, Client, Value) {
    token_of(world, home, "ann", resource).await
}

/// The access token of another person with the same password, for a resource or for the app's own.
pub async fn token_of(
    world: &World,
    home: &SignInApp,
    name: &str,
    resource: &str,
) -> (Browser, Client, Value) {
    let mut browser = Browser::new(world);
    let page =
        browser.open(&home.request(&[("resource", resource), ("scope", "openid offline_access")])).await;
    let answer = browser.sign_in_to_platform(&page, name, PASSWORD).await;
    let code = parameter(&answer, "code").unwrap_or_else(|| panic!("{answer}"));
    let tokens = home.redeem(world, &code, &[]).await.is(200).json();
    (browser, world.anonymous.with_token(tokens["access_token"].as_str().unwrap()), tokens)
}

on_both_engines! {
    /// Section 7: a person has the assigned roles at the services; the audit trail names the person.
    async fn a_token_has_the_roles_assigned_to_the_person(world: World) {
        let home = console(&world).await;
        let ann = person(&world).await;
        let (_, without_role, _) = token(&world, &home, MANAGEMENT).await;
        without_role.get(&format!("{BASE}/Tenant")).await.expect(403);
        let role = assign_role(&world, "PlatformUser", &ann, "TenantAdmin", json!({ "applyToTenantId": home.tenant })).await;
        without_role.get(&format!("{BASE}/Tenant")).await.expect(200);
        let (_, admin, tokens) = token(&world, &home, MANAGEMENT).await;
        assert_eq!(claims(&tokens["access_token"])["aud"], json!([MANAGEMENT]));
        let seen = admin.get(&format!("{BASE}/Tenant")).await.is(200).json();
        assert_eq!(seen.as_array().unwrap().len(), 1);
        admin.get(&format!("{BASE}/Customer")).await.expect(403);
        // asking questions requires administering the people, too
        let store = first(&world, "/IdpInstance?filter=name%20eq%20%22default%22").await;
        let second = assign_role(&world, "PlatformUser", &ann, "UserStoreAdmin", json!({ "applyToIdpInstanceId": store["id"] })).await;
        let item = json!({ "tenantId": home.tenant, "key": "shoe-size", "label": "Shoe size" });
        admin.post(&format!("{BASE}/UserQuestionnaireItem"), item).await.expect(201);
        let entry = first(&world, "/CustomAuditTrail?sortOrder=descending&count=1").await;
        assert_eq!((&entry["area"], &entry["user"]), (&json!("UserQuestionnaireItem"), &ann["id"]));
        world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(&second))).await.expect(204);
        let own = format!("{BASE}/EffectivePermissions/platformuser/{}", id(&ann));
        let response = admin.get(&own).await.is(200).json();
        assert_eq!(response["assignments"][0]["roleType"], json!("TenantAdmin"));
        world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(&role))).await.expect(204);
        admin.get(&format!("{BASE}/Tenant")).await.expect(403);
    }

    /// People who are exempt from locks are not locked, and neither are their tokens.
    async fn a_person_exempt_from_locks_is_never_locked_out(world: World) {
        let home = console(&world).await;
        let ann = person(&world).await;
        assign_role(&world, "PlatformUser", &ann, "TenantAdmin", json!({ "applyToTenantId": home.tenant })).await;
        let (_, admin, _) = token(&world, &home, MANAGEMENT).await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let now = world.admin.get(&path).await.is(200).json();
        let exempt = json!({ "isUserLockEnabled": false, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, exempt).await.expect(202);
        world.admin.post(&format!("{path}/state"), json!({ "isUserLocked": true })).await.expect(200);
        admin.get(&format!("{BASE}/Tenant")).await.expect(200);
        let (_, again, _) = token(&world, &home, MANAGEMENT).await;
        let now = world.admin.get(&path).await.is(200).json();
        let held = json!({ "isUserLockEnabled": true, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, held).await.expect(202);
        for client in [admin, again] {
            client.get(&format!("{BASE}/Tenant")).await.expect(401);
        }
    }

    /// Roles of groups apply to members at any depth, while they are members.
    async fn roles_of_groups_apply_to_nested_members(world: World) {
        let home = console(&world).await;
        let (inner, outer) = (world.group("Helpdesk").await, world.group("Operations").await);
        let user = world.path(&format!("/User/{}/groups", id(&home.user)));
        world.admin.put(&user, json!({ "relatedIds": [inner["id"]] })).await.expect(202);
        let members = world.path(&format!("/Group/{}/membergroups", id(&outer)));
        world.admin.put(&members, json!({ "relatedIds": [inner["id"]] })).await.expect(202);
        world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
        let group = first(&world, &format!("/ApplicationGroup?filter={}", encode("name eq \"Operations\""))).await;
        let store = json!({ "applyToIdpInstanceId": home.user["instanceId"] });
        assign_role(&world, "PlatformGroup", &group, "UserStoreAdmin", store).await;
        let (_, keeper, _) = token(&world, &home, USER_STORE).await;
        keeper.get(&world.path("/User")).await.expect(200);
        keeper.get(&format!("{BASE}/Tenant")).await.expect(401);
        let (_, both, _) = token(&world, &home, MANAGEMENT).await;
        both.get(&world.path("/User")).await.expect(200);
        world.admin.put(&user, json!({ "relatedIds": [] })).await.expect(202);
        keeper.get(&world.path("/User")).await.expect(403);
    }

    /// A sign-out, a revocation or a lock takes effect on administrators immediately, without a new epoch.
    async fn an_administrator_s_token_is_revoked_immediately(world: World) {
        let home = console(&world).await;
        let ann = person(&world).await;
        assign_role(&world, "PlatformUser", &ann, "SystemAdmin", json!({})).await;
        let tenants = format!("{BASE}/Tenant");
        let (_, admin, tokens) = token(&world, &home, MANAGEMENT).await;
        admin.get(&tenants).await.expect(200);
        let form = format!(
            "token={}&client_id={}&client_secret={}", tokens["access_token"].as_str().unwrap(), id(&home.app), home.secret
        );
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let send = async |path: &str| {
            world.anonymous.send(http::Method::POST, path, &headers, form.clone().into_bytes()).await
        };
        let response = send("/connect/introspect").await.is(200).json();
        assert_eq!((&response["active"], &response["sub"]), (&json!(true), &ann["id"]));
        send("/connect/revoke").await.expect(200);
        admin.get(&tenants).await.expect(401);
        assert_eq!(send("/connect/introspect").await.is(200).json(), json!({ "active": false }));
        let (_, admin, _) = token(&world, &home, MANAGEMENT).await;
        admin.get(&tenants).await.expect(200);
        let state = world.path(&format!("/User/{}/state", id(&home.user)));
        world.admin.post(&state, json!({ "isUserLocked": true })).await.expect(200);
        admin.get(&tenants).await.expect(401);
        world.admin.post(&state, json!({ "isUserLocked": false })).await.expect(200);
        admin.get(&tenants).await.expect(401);
    }

    /// Neither an app without the resource nor a person who signs in for another resource gets rights.
    async fn an_app_without_the_resource_gets_no_administrator_rights(world: World) {
        let home = SignInApp::new(&world).await;
        let ann = person(&world).await;
        assign_role(&world, "PlatformUser", &ann, "SystemAdmin", json!({})).await;
        let (_, plain, _) = token(&world, &home, "").await;
        plain.get(&format!("{BASE}/Tenant")).await.expect(401);
        plain.get("/connect/userinfo").await.expect(200);
        let mut browser = Browser::new(&world);
        let redirect = browser.open(&home.request(&[("resource", MANAGEMENT)])).await.left.unwrap();
        assert_eq!(parameter(&redirect, "error").as_deref(), Some("invalid_target"));
        // only a SystemAdmin can give an app the platform's resources
        let far = world.client("far", &[("SubscriptionAdmin", None, None)]).await;
        let body = json!({ "clientAppId": home.app["id"], "key": MANAGEMENT });
        far.post(&format!("{BASE}/ClientAppResource"), body).await.expect(403);
    }

    /// A token exchange keeps the person as subject, and names the app as actor.
    async fn an_exchanged_token_keeps_its_subject(world: World) {
        let home = console(&world).await;
        let ann = person(&world).await;
        assign_role(&world, "PlatformUser", &ann, "SystemAdmin", json!({})).await;
        let (_, _, tokens) = token(&world, &home, MANAGEMENT).await;
        let other = world.make("ClientApp", json!({ "name": "Reports" })).await;
        let secret = world.make("ClientAppSecret", json!({ "clientAppId": other["id"], "name": "s" })).await;
        relate(&world, &format!("/ClientApp/{}/allowedtokenexchangeclientapps", id(&home.app)), &[id(&other)]).await;
        let form = format!(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token={}\
             &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&client_id={}&client_secret={}",
            tokens["access_token"].as_str().unwrap(), id(&other), secret["secret"].as_str().unwrap()
        );
        let exchanged = world.anonymous.ask_for_token(&form).await.is(200).json();
        let (before, after) = (claims(&tokens["access_token"]), claims(&exchanged["access_token"]));
        for same in ["sub", "gid", "acr", "tid"] {
            assert_eq!(before[same], after[same], "{same}");
        }
        assert_eq!(after["act"]["sub"], other["id"]);
        let acting = world.anonymous.with_token(exchanged["access_token"].as_str().unwrap());
        acting.get(&format!("{BASE}/Tenant")).await.expect(200);
        let person = format!("{BASE}/ApplicationUser/{}/signout", id(&ann));
        world.admin.post(&person, json!(null)).await.expect(204);
        acting.get(&format!("{BASE}/Tenant")).await.expect(401);
    }
}
