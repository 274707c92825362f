//! Administrators list and end sessions, grants and records.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, PASSWORD, SignInApp, browser::Browser, change, encode, first, parameter, relate};
use crate::id;

on_both_engines! {
    async fn an_administrator_ends_a_session(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let session = world.all("SignInSession").await[0].clone();
        assert_eq!((&session["tenantId"], &session["endedOn"]), (&json!(home.tenant), &json!(null)));
        let path = format!("{BASE}/SignInSession/{}", id(&session));
        world.admin.delete(&path).await.expect(204);
        assert!(world.admin.get(&path).await.is(200).json()["endedOn"].is_string());
        bearer.get("/connect/userinfo").await.expect(401);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        let entry = world.admin.get(&format!("{BASE}/CustomAuditTrail?sortOrder=descending&count=1")).await;
        let entry = entry.is(200).json()[0].clone();
        assert_eq!((&entry["area"], &entry["primaryKey"]), (&json!("SignInSession"), &session["id"]));
    }

    async fn an_administrator_revokes_a_grant(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid offline_access")])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let grant = world.all("SignInGrant").await[0].clone();
        assert_eq!((&grant["clientAppId"], &grant["isOffline"]), (&home.app["id"], &json!(true)));
        world.admin.delete(&format!("{BASE}/SignInGrant/{}", id(&grant))).await.expect(204);
        bearer.get("/connect/userinfo").await.expect(401);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "the session goes on");
    }

    async fn an_administrator_signs_a_person_out(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut one, _) = home.sign_in(&world).await;
        let (mut two, _) = home.sign_in(&world).await;
        let person = world.all("ApplicationUser").await[0].clone();
        world.admin.post(&format!("{BASE}/ApplicationUser/{}/signout", id(&person)), json!(null)).await.expect(204);
        for browser in [&mut one, &mut two] {
            let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        }
    }

    /// An administrator sees only the sessions of the own tenant or store.
    async fn administrators_see_sessions_of_their_scope_only(world: World) {
        let home = SignInApp::new(&world).await;
        home.sign_in(&world).await;
        let subscription = first(&world, "/Subscription").await;
        let other = world.make("Tenant", json!({ "name": "Other", "subscriptionId": subscription["id"] })).await;
        let store = home.user["instanceId"].as_str().unwrap().parse().unwrap();
        let other_store = world.other_store("elsewhere").await;
        let (tenant, other) = (home.tenant.parse().unwrap(), id(&other).parse().unwrap());
        let own = world.client("own", &[("TenantAdmin", Some(tenant), None)]).await;
        let foreign = world.client("foreign", &[("TenantAdmin", Some(other), None)]).await;
        let keeper = world.client("keeper", &[("UserStoreAdmin", None, Some(store))]).await;
        let other_store_admin = world.client("stranger", &[("UserStoreAdmin", None, Some(other_store))]).await;
        let auditor = world.client("auditor", &[("AuditTrailReader", None, None)]).await;
        let session = world.all("SignInSession").await[0].clone();
        let path = format!("{BASE}/SignInSession/{}", id(&session));
        for (client, count) in [(&own, 1), (&foreign, 0), (&keeper, 1), (&other_store_admin, 0)] {
            let seen = client.get(&format!("{BASE}/SignInSession")).await.is(200).json();
            assert_eq!(seen.as_array().unwrap().len(), count);
            client.get(&path).await.expect(if count == 1 { 200 } else { 404 });
        }
        foreign.delete(&path).await.expect(404);
        other_store_admin.delete(&path).await.expect(404);
        auditor.get(&path).await.expect(403);
        for (client, count) in [(&own, 1), (&foreign, 0), (&auditor, 1)] {
            let seen = client.get(&format!("{BASE}/SignInRecord")).await.is(200).json();
            assert_eq!(seen.as_array().unwrap().len(), count);
        }
        keeper.get(&format!("{BASE}/SignInRecord")).await.expect(403);
        keeper.delete(&path).await.expect(204);
    }

    /// Records contain address and browser until the person is erased.
    async fn erasure_removes_personal_data_from_records(world: World) {
        let home = SignInApp::new(&world).await;
        home.sign_in(&world).await;
        let record = world.all("SignInRecord").await[0].clone();
        assert_eq!(
            (&record["outcome"], &record["methods"], &record["acr"]),
            (&json!("SignedIn"), &json!("pwd"), &json!("sfa"))
        );
        assert_eq!(record["address"], json!("127.0.0.1"));
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&home.user))), json!(null)).await.expect(204);
        let record = world.admin.get(&format!("{BASE}/SignInRecord/{}", id(&record))).await.is(200).json();
        assert_eq!((&record["address"], &record["userAgent"]), (&json!(null), &json!(null)));
    }

    /// Section 12: a restricted app admits people and groups at any depth; the groups claim contains these groups.
    ///
    /// - Effect of `ClientApp.authorizedPlatformGroups`: Members of these groups may use the app while it is restricted.
    /// - Effect of `ClientApp.isRestricted`: Only authorized people and groups get tokens of the app.
    /// - Effect of `Group.memberGroups`: The members of these groups are members of the group, at any depth.
    async fn a_restricted_app_admits_members_of_nested_groups(world: World) {
        let home = SignInApp::with(&world, json!({ "isRestricted": true })).await;
        let (inner, outer) = (world.group("Ledger").await, world.group("Finance").await);
        let link = async |path: String, ids: serde_json::Value| {
            world.admin.put(&world.path(&path), json!({ "relatedIds": [ids] })).await.expect(202);
        };
        link(format!("/User/{}/groups", id(&home.user)), inner["id"].clone()).await;
        link(format!("/Group/{}/membergroups", id(&outer)), inner["id"].clone()).await;
        world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
        let filter = encode("name eq \"Finance\"");
        let group = first(&world, &format!("/ApplicationGroup?filter={filter}")).await;
        relate(&world, &format!("/ClientApp/{}/authorizedgroups", id(&home.app)), &[id(&group)]).await;
        let (mut browser, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let response = bearer.get("/connect/userinfo").await.is(200).json();
        assert!(response.get("groups").is_none(), "only where the app asks for them: {response}");
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "includeGroupsClaims": true })).await;
        let response = bearer.get("/connect/userinfo").await.is(200).json();
        assert_eq!(response["groups"], json!(["Finance", "Ledger"]));
        let empty = json!({ "relatedIds": [] });
        world.admin.put(&world.path(&format!("/User/{}/groups", id(&home.user))), empty).await.expect(202);
        bearer.get("/connect/userinfo").await.expect(401);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("access_denied"));
    }
}
