//! Limits of administrators on objects that they may change.

use chancery_testkit::{World, on_both_engines};
use http::Method;
use rcgen::PKCS_ECDSA_P256_SHA256;
use serde_json::{Value, json};

use super::{BASE, one, related, type_id};
use crate::{certificate::body, id, pointers};

const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");

/// Creates one object of every kind that client apps are linked to, in a subscription.
async fn create_linkable(world: &World, subscription: &Value, name: &str) -> Vec<(&'static str, Value)> {
    let of = |more: Value| {
        let mut body = json!({ "name": name, "subscriptionId": subscription });
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        body
    };
    let oidc = json!({ "idpTypeId": type_id(world, "OpenIdConnect").await });
    let totp = json!({ "idpTypeId": type_id(world, "totp").await });
    let rule = json!({ "ruleType": "Filter", "ruleLevel": "ClientApp" });
    vec![
        ("tenants", world.make("Tenant", of(json!({}))).await),
        ("idpinstances", world.make("IdpInstance", of(oidc)).await),
        ("mfainstances", world.make("MfaInstance", of(totp)).await),
        ("claimrules", world.make("ClaimRule", of(rule)).await),
        (
            "allowedtokenexchangeclientapps",
            world.make("ClientApp", of(json!({ "allowCrossSubscription": true }))).await,
        ),
    ]
}

on_both_engines! {
    /// Section 15: `allowCrossSubscription` is needed for any link between two subscriptions, whoever creates
    /// it.
    ///
    /// - Effect of `ClaimRule.subscriptionId`: The rule belongs to this subscription, whose administrators may change it.
    /// - Effect of `ClientApp.subscriptionId`: The app belongs to this subscription, whose administrators may change it.
    async fn cross_subscription_links_need_allow_cross_subscription(world: World) {
        let subscription = world.all("Tenant").await[0]["subscriptionId"].clone();
        let far = world.other_subscription("far").await;
        let own = world.make("ClientApp", json!({ "name": "own", "subscriptionId": subscription })).await;
        let foreign = create_linkable(&world, &far, "far").await;
        let path = |end: &str| format!("{}/{end}", one("ClientApp", &own));
        for (end, item) in &foreign {
            for method in [Method::PUT, Method::POST] {
                let headers = [("content-type", "application/json")];
                let body = related(&[item]).to_string().into_bytes();
                let problem = world.admin.send(method, &path(end), &headers, body).await.problem(409, "conflict");
                assert!(problem["detail"].as_str().unwrap().contains("allowCrossSubscription"), "{problem}");
            }
        }
        // from the other side, too
        let tenant = &foreign[0].1;
        world.admin.post(&format!("{}/clientapps", one("Tenant", tenant)), related(&[&own])).await.problem(409, "conflict");
        let rule = json!({
            "name": "linked at once", "ruleType": "Filter", "ruleLevel": "ClientApp", "subscriptionId": far,
            "clientApps": [{ "id": own["id"] }],
        });
        world.admin.post(&format!("{BASE}/ClaimRule"), rule).await.problem(409, "conflict");
        let near = create_linkable(&world, &subscription, "near").await;
        let allow = async |value: bool| {
            let now = world.admin.get(&one("ClientApp", &own)).await.is(200).json();
            let patch = json!({ "allowCrossSubscription": value, "concurrencyToken": now["concurrencyToken"] });
            world.admin.patch(&one("ClientApp", &own), patch).await
        };
        allow(true).await.expect(202);
        for (end, item) in &foreign {
            world.admin.post(&path(end), related(&[item])).await.expect(202);
            assert_eq!(pointers(&allow(false).await.problem(409, "conflict")), ["/allowCrossSubscription"], "{end}");
            world.admin.delete_with(&path(end), related(&[item])).await.expect(202);
        }
        allow(false).await.expect(202);
        for (end, item) in &near {
            world.admin.post(&path(end), related(&[item])).await.expect(202);
        }
    }

    /// Section 15: links without a client app never cross subscriptions.
    ///
    /// - Effect of `CertStore.subscriptionId`: The certificate belongs to this subscription, whose administrators may change it.
    /// - Effect of `IdpInstance.subscriptionId`: The instance belongs to this subscription, whose administrators may change it.
    /// - Effect of `MfaInstance.subscriptionId`: The second factor belongs to this subscription, whose administrators may change it.
    /// - Effect of `Tenant.subscriptionId`: The tenant belongs to this subscription, whose administrators may change it.
    async fn cross_subscription_links_without_a_client_app_are_refused(world: World) {
        let subscription = world.all("Tenant").await[0]["subscriptionId"].clone();
        let far = world.other_subscription("far").await;
        let (near, foreign) = (create_linkable(&world, &subscription, "near").await, create_linkable(&world, &far, "far").await);
        let certificate = async |subscription: &Value| {
            let target = json!({ "certType": "OidcTokenSigning", "subscriptionId": subscription });
            world.make("CertStore", body(&PKCS_ECDSA_P256_SHA256, 2080, &target).0).await
        };
        let (ours, theirs) = (certificate(&subscription).await, certificate(&far).await);
        let [tenant, instance, factor] = [0, 1, 2].map(|index| (&near[index].1, &foreign[index].1));
        let certificate = (&ours, &theirs);
        for (resource, (own, _), end, (near, far)) in [
            ("Tenant", tenant, "idpinstances", instance),
            ("Tenant", tenant, "mfainstances", factor),
            ("IdpInstance", instance, "tenants", tenant),
            ("IdpInstance", instance, "mfainstances", factor),
            ("IdpInstance", instance, "certstores", certificate),
            ("MfaInstance", factor, "tenants", tenant),
            ("MfaInstance", factor, "idpinstances", instance),
            ("CertStore", certificate, "idpinstances", instance),
        ] {
            let path = format!("{}/{end}", one(resource, own));
            let refused = world.admin.post(&path, related(&[near, far])).await.problem(409, "conflict");
            assert!(refused["detail"].as_str().unwrap().contains("two subscriptions"), "{path}: {refused}");
            world.admin.put(&path, related(&[far])).await.problem(409, "conflict");
            world.admin.post(&path, related(&[near])).await.expect(202);
        }
    }

    /// Section 15: a role for a user store needs an instance of type UserStore; else 400.
    async fn user_store_roles_need_a_user_store_instance(world: World) {
        let kind = type_id(&world, "OpenIdConnect").await;
        let subscription = world.all("Tenant").await[0]["subscriptionId"].clone();
        let work = world.make("IdpInstance", json!({ "name": "work", "idpTypeId": kind, "subscriptionId": subscription })).await;
        let store = world.all("IdpInstance?filter=name%20eq%20%22default%22").await[0].clone();
        let app = world.make("ClientApp", json!({ "name": "own", "subscriptionId": subscription })).await;
        world.user("ada").await;
        world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
        let user = world.all("ApplicationUser").await[0]["id"].clone();
        let role = |instance: &Value| json!({ "clientAppId": app["id"], "roleType": "UserStoreAdmin", "applyToIdpInstanceId": instance["id"] });
        let assignment = |instance: &Value| json!({
            "principalType": "PlatformUser", "principalId": user, "roleType": "UserStoreAdmin",
            "applyToIdpInstanceId": instance["id"],
        });
        for (resource, wrong, good) in [
            ("ClientAppRole", role(&work), role(&store)),
            ("RoleAssignment", assignment(&work), assignment(&store)),
        ] {
            let path = format!("{BASE}/{resource}");
            let refused = world.admin.post(&path, wrong.clone()).await;
            assert_eq!(pointers(&refused.problem(400, "invalid-request")), ["/applyToIdpInstanceId"]);
            let refused = world.admin.post(&format!("{path}/batch"), json!([wrong])).await;
            assert_eq!(pointers(&refused.problem(400, "invalid-request")), ["/0/applyToIdpInstanceId"]);
            let created = world.make(resource, good).await;
            if resource == "ClientAppRole" {
                let patch = json!({ "applyToIdpInstanceId": work["id"], "concurrencyToken": created["concurrencyToken"] });
                world.admin.patch(&one(resource, &created), patch).await.problem(400, "invalid-request");
            }
        }
        // a reader of an instance's data may have an instance of any type
        let reader = json!({ "clientAppId": app["id"], "roleType": "ApplicationDataReader", "applyToIdpInstanceId": work["id"] });
        world.make("ClientAppRole", reader).await;
    }

    /// Section 15: `UserAdmin` has no permissions in EffectivePermissions yet.
    async fn a_user_admin_has_the_role_and_no_permission(world: World) {
        let app = world.make("ClientApp", json!({ "name": "own" })).await;
        world.make("ClientAppRole", json!({ "clientAppId": app["id"], "roleType": "UserAdmin" })).await;
        let path = format!("{BASE}/EffectivePermissions/clientapp/{}", id(&app));
        let permissions = world.admin.get(&path).await.is(200).json();
        assert_eq!(permissions["assignments"][0]["roleType"], "UserAdmin");
        assert_eq!(permissions["permissions"], json!([]));
    }

    /// Section 15: a change that would move the object out of the caller's own scope is 409 with the
    /// reason.
    async fn a_change_out_of_the_caller_s_scope_is_refused(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let target = json!({ "certType": "OidcTokenSigning", "applyToTenantId": tenant["id"] });
        let (certificate, _) = body(&PKCS_ECDSA_P256_SHA256, 2080, &target);
        let created = low.post(&format!("{BASE}/CertStore"), certificate).await.is(201).json();
        let open = json!({ "applyToTenantId": null, "concurrencyToken": created["concurrencyToken"] });
        let patch = async |body: &Value| {
            low.send(Method::PATCH, &one("CertStore", &created), &[MERGE], body.to_string().into_bytes()).await
        };
        let problem = patch(&open).await.problem(409, "conflict");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("out of what your roles cover"), "{problem}");
        assert_eq!(low.get(&one("CertStore", &created)).await.is(200).json(), created);
        // nor by a batch, nor by removing the tenant from a client app
        let element = json!({
            "id": created["id"], "name": created["name"], "certType": created["certType"],
            "certificateStorageFormat": "Pem", "concurrencyToken": created["concurrencyToken"],
        });
        let answer = low.put(&format!("{BASE}/CertStore/batch"), json!([element])).await;
        assert_eq!(pointers(&answer.problem(409, "conflict")), ["/0"]);
        let app = world.make("ClientApp", json!({ "name": "shop" })).await;
        let relation = format!("{}/tenants", one("ClientApp", &app));
        world.admin.put(&relation, related(&[&tenant])).await.expect(202);
        low.delete_with(&relation, related(&[&tenant])).await.problem(409, "conflict");
        low.put(&relation, related(&[])).await.problem(409, "conflict");
        low.get(&one("ClientApp", &app)).await.expect(200);
        // a caller whose roles cover both can
        world.admin.delete_with(&relation, related(&[&tenant])).await.expect(202);
    }
}
