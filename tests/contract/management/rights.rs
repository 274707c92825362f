//! What administrators cannot do with what is theirs to change.

use chancery_testkit::{World, on_both_engines};
use http::Method;
use rcgen::PKCS_ECDSA_P256_SHA256;
use serde_json::{Value, json};

use super::{BASE, one, related, type_id};
use crate::{id, pointers, token::certificate::body};

const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");

/// Something of every kind that client apps are linked to, in a subscription.
async fn linkable(world: &World, subscription: &Value, name: &str) -> Vec<(&'static str, Value)> {
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
    /// Section 15: `allowCrossSubscription` is needed for any link between two subscriptions, whoever makes
    /// it.
    async fn nothing_is_linked_across_subscriptions_but_by_a_client_app_that_says_so(world: World) {
        let home = world.all("Tenant").await[0]["subscriptionId"].clone();
        let far = world.other_subscription("far").await;
        let own = world.make("ClientApp", json!({ "name": "own", "subscriptionId": home })).await;
        let things = linkable(&world, &far, "far").await;
        let path = |end: &str| format!("{}/{end}", one("ClientApp", &own));
        for (end, thing) in &things {
            for method in [Method::PUT, Method::POST] {
                let headers = [("content-type", "application/json")];
                let body = related(&[thing]).to_string().into_bytes();
                let problem = world.admin.send(method, &path(end), &headers, body).await.problem(409, "conflict");
                assert!(problem["detail"].as_str().unwrap().contains("allowCrossSubscription"), "{problem}");
            }
        }
        // from the other side, too
        let tenant = &things[0].1;
        world.admin.post(&format!("{}/clientapps", one("Tenant", tenant)), related(&[&own])).await.problem(409, "conflict");
        let rule = json!({
            "name": "linked at once", "ruleType": "Filter", "ruleLevel": "ClientApp", "subscriptionId": far,
            "clientApps": [{ "id": own["id"] }],
        });
        world.admin.post(&format!("{BASE}/ClaimRule"), rule).await.problem(409, "conflict");
        let near = linkable(&world, &home, "near").await;
        let allow = async |value: bool| {
            let now = world.admin.get(&one("ClientApp", &own)).await.is(200).json();
            let patch = json!({ "allowCrossSubscription": value, "concurrencyToken": now["concurrencyToken"] });
            world.admin.patch(&one("ClientApp", &own), patch).await
        };
        allow(true).await.expect(202);
        for (end, thing) in &things {
            world.admin.post(&path(end), related(&[thing])).await.expect(202);
            assert_eq!(pointers(&allow(false).await.problem(409, "conflict")), ["/allowCrossSubscription"], "{end}");
            world.admin.delete_with(&path(end), related(&[thing])).await.expect(202);
        }
        allow(false).await.expect(202);
        for (end, thing) in &near {
            world.admin.post(&path(end), related(&[thing])).await.expect(202);
        }
    }

    /// Section 15: nor without a client app, which nothing else can take the place of.
    async fn what_is_no_client_app_is_not_linked_across_subscriptions(world: World) {
        let home = world.all("Tenant").await[0]["subscriptionId"].clone();
        let far = world.other_subscription("far").await;
        let (near, things) = (linkable(&world, &home, "near").await, linkable(&world, &far, "far").await);
        let certificate = async |subscription: &Value| {
            let target = json!({ "certType": "OidcTokenSigning", "applyToSubscriptionId": subscription });
            world.make("CertStore", body(&PKCS_ECDSA_P256_SHA256, 2080, &target).0).await
        };
        let (ours, theirs) = (certificate(&home).await, certificate(&far).await);
        let [tenant, instance, factor] = [0, 1, 2].map(|place| (&near[place].1, &things[place].1));
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

    /// Section 15: a role for a user store is given at an instance of type UserStore; else 400.
    async fn a_role_for_a_store_is_given_at_a_store(world: World) {
        let kind = type_id(&world, "OpenIdConnect").await;
        let home = world.all("Tenant").await[0]["subscriptionId"].clone();
        let work = world.make("IdpInstance", json!({ "name": "work", "idpTypeId": kind, "subscriptionId": home })).await;
        let store = world.all("IdpInstance?filter=name%20eq%20%22default%22").await[0].clone();
        let app = world.make("ClientApp", json!({ "name": "own", "subscriptionId": home })).await;
        world.user("ada").await;
        world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
        let person = world.all("ApplicationUser").await[0]["id"].clone();
        let role = |instance: &Value| json!({ "clientAppId": app["id"], "roleType": "UserStoreAdmin", "applyToIdpInstanceId": instance["id"] });
        let assignment = |instance: &Value| json!({
            "principalType": "PlatformUser", "principalId": person, "roleType": "UserStoreAdmin",
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
            let made = world.make(resource, good).await;
            if resource == "ClientAppRole" {
                let patch = json!({ "applyToIdpInstanceId": work["id"], "concurrencyToken": made["concurrencyToken"] });
                world.admin.patch(&one(resource, &made), patch).await.problem(400, "invalid-request");
            }
        }
        // who reads what came from an instance reads it whatever the instance is
        let reader = json!({ "clientAppId": app["id"], "roleType": "ApplicationDataReader", "applyToIdpInstanceId": work["id"] });
        world.make("ClientAppRole", reader).await;
    }

    /// Section 15: granting `UserAdmin` says in EffectivePermissions that it is no permission yet.
    async fn a_user_admin_has_the_role_and_no_permission(world: World) {
        let app = world.make("ClientApp", json!({ "name": "own" })).await;
        world.make("ClientAppRole", json!({ "clientAppId": app["id"], "roleType": "UserAdmin" })).await;
        let path = format!("{BASE}/EffectivePermissions/clientapp/{}", id(&app));
        let told = world.admin.get(&path).await.is(200).json();
        assert_eq!(told["assignments"][0]["roleType"], "UserAdmin");
        assert_eq!(told["permissions"], json!([]));
    }

    /// Section 15: a change that would take what it changes out of the caller's own reach is 409 with the
    /// reason.
    async fn nobody_changes_what_they_could_not_change_back(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let target = json!({ "certType": "OidcTokenSigning", "applyToTenantId": tenant["id"] });
        let (certificate, _) = body(&PKCS_ECDSA_P256_SHA256, 2080, &target);
        let made = low.post(&format!("{BASE}/CertStore"), certificate).await.is(201).json();
        let open = json!({ "applyToTenantId": null, "concurrencyToken": made["concurrencyToken"] });
        let patch = async |body: &Value| {
            low.send(Method::PATCH, &one("CertStore", &made), &[MERGE], body.to_string().into_bytes()).await
        };
        let problem = patch(&open).await.problem(409, "conflict");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("out of what your roles cover"), "{problem}");
        assert_eq!(low.get(&one("CertStore", &made)).await.is(200).json(), made);
        // nor by a batch, nor by taking the tenant off what it has
        let element = json!({
            "id": made["id"], "name": made["name"], "certType": made["certType"],
            "certificateStorageFormat": "Pem", "concurrencyToken": made["concurrencyToken"],
        });
        let answer = low.put(&format!("{BASE}/CertStore/batch"), json!([element])).await;
        assert_eq!(pointers(&answer.problem(409, "conflict")), ["/0"]);
        let app = world.make("ClientApp", json!({ "name": "shop" })).await;
        let relation = format!("{}/tenants", one("ClientApp", &app));
        world.admin.put(&relation, related(&[&tenant])).await.expect(202);
        low.delete_with(&relation, related(&[&tenant])).await.problem(409, "conflict");
        low.put(&relation, related(&[])).await.problem(409, "conflict");
        low.get(&one("ClientApp", &app)).await.expect(200);
        // whose roles cover both can
        world.admin.delete_with(&relation, related(&[&tenant])).await.expect(202);
    }
}
