//! Identity provider instances, second factors and their types.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, one, related, type_id};
use crate::{
    each, id,
    instance::{create_instance, option, set_option},
    pointers,
};

on_both_engines! {
    /// Creating an instance of type UserStore creates a working store at once.
    async fn a_user_store_works_at_once(world: World) {
        let created = create_instance(&world, "Staff", "UserStore").await;
        assert_eq!((&created["idpFactoryType"], &created["hasConfigurationError"]), (&json!("UserStore"), &json!(false)));
        assert_eq!(created["options"].as_array().unwrap().len(), 52);
        let users = "/api/userstore/v2/staff/administration/User";
        let ada = world.admin.post(users, json!({ "loginName": "ada" })).await.is(201).json();
        assert_eq!(ada["instanceId"], created["id"]);
        let problem = world.admin.delete(&one("IdpInstance", &created)).await.problem(409, "conflict");
        assert!(problem["detail"].as_str().unwrap().contains("user \"ada\""), "{problem}");
        world.admin.delete(&format!("{users}/{}", id(&ada))).await.expect(204);
        world.admin.delete(&one("IdpInstance", &created)).await.problem(409, "conflict");
        world.admin.send(http::Method::POST, &format!("{users}/{}/erase", id(&ada)), &[], Vec::new()).await.expect(204);
        world.admin.delete(&one("IdpInstance", &created)).await.expect(204);
        world.admin.get(users).await.problem(404, "not-found");
        // store numbers are not reused: a new store has no data of the deleted one
        create_instance(&world, "Staff", "UserStore").await;
        let trail = "/api/userstore/v2/staff/administration/CustomAuditTrail";
        assert_eq!(world.admin.get(trail).await.is(200).json(), json!([]));
        // an inactive store is not found
        let staff = world.all("IdpInstance").await.as_array().unwrap().iter().find(|one| one["name"] == "Staff").unwrap().clone();
        world.admin.patch(&one("IdpInstance", &staff), json!({ "isActive": false, "concurrencyToken": staff["concurrencyToken"] })).await.expect(202);
        world.admin.get(users).await.problem(404, "not-found");
    }

    async fn a_store_name_must_be_path_safe(world: World) {
        let kind = type_id(&world, "UserStore").await;
        let far = world.other_subscription("Far").await;
        let near = world.all("Subscription").await[0]["id"].clone();
        let path = format!("{BASE}/IdpInstance");
        for (name, status) in [("my store", 400), ("a/b", 400), ("0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f", 400), ("..", 400), ("DEFAULT", 409)] {
            let body = json!({ "name": name, "idpTypeId": kind, "subscriptionId": far });
            let answer = world.admin.post(&path, body).await.is(status);
            assert_eq!(pointers(&answer.json()), ["/name"], "{name}");
        }
        // other kinds of instances may have any name
        let kind = type_id(&world, "Google").await;
        world.make("IdpInstance", json!({ "name": "my store", "idpTypeId": kind, "subscriptionId": near })).await;
        let wrong = json!({ "name": "x", "idpTypeId": type_id(&world, "totp").await, "subscriptionId": near });
        assert_eq!(pointers(&world.admin.post(&path, wrong).await.problem(400, "invalid-request")), ["/idpTypeId"]);
    }

    async fn health_reflects_the_options(world: World) {
        let created = create_instance(&world, "Partner", "OpenIdConnect").await;
        assert_eq!(created["hasConfigurationError"], true);
        let health = format!("{BASE}/IdpInstance/partner/health");
        let health_report = world.admin.get(&health).await.is(200).json();
        assert_eq!(health_report, json!({ "instanceId": created["id"], "hasConfigurationError": true, "isOperational": false }));
        for (name, value) in [("Authority", "https://partner.example.com"), ("ClientId", "us"), ("ClientSecret", "quiet")] {
            set_option(&world, &created, name, value).await;
        }
        let health_report = world.admin.get(&format!("{}/health", one("IdpInstance", &created))).await.is(200).json();
        assert_eq!((&health_report["hasConfigurationError"], &health_report["isOperational"]), (&json!(false), &json!(true)));
        let list = world.all("IdpInstance?filter=hasConfigurationError%20eq%20true").await;
        assert_eq!(list, json!([]), "it can be asked for");
        world.admin.get(&format!("{BASE}/IdpInstance/nobody/health")).await.problem(404, "not-found");
    }

    /// - Effect of `OpenIdConnect options.ScimTokenId`: The id is that of the token that is in use.
    async fn a_scim_token_replaces_the_one_before(world: World) {
        let partner = create_instance(&world, "Partner", "OpenIdConnect").await;
        let path = format!("{BASE}/IdpInstance/Partner/scim/token");
        let post = async |path: &str| world.admin.send(http::Method::POST, path, &[], Vec::new()).await;
        post(&path).await.problem(400, "invalid-request");
        set_option(&world, &partner, "ScimEnabled", "True").await;
        let mut seen = Vec::new();
        for _ in 0..2 {
            assert!(post(&path).await.is(204).bytes.is_empty());
            seen.push((option(&world, &partner, "ScimToken").await["value"].clone(), option(&world, &partner, "ScimTokenId").await["value"].clone()));
        }
        assert!(seen[0].0 != seen[1].0 && seen[0].1 != seen[1].1 && seen[1].0.as_str().unwrap().len() == 56, "{seen:?}");
        assert!(seen[1].0.as_str().unwrap().starts_with("chscim_"));
        post(&format!("{BASE}/IdpInstance/default/scim/token")).await.problem(400, "invalid-request");
        let trail = world.all("CustomAuditTrail?sortOrder=descending&count=5").await.to_string();
        assert!(!trail.contains(seen[1].0.as_str().unwrap()));
    }

    async fn look_ups_are_sorted_by_position_then_name(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let app = world.make("ClientApp", json!({ "name": "app" })).await;
        let kind = type_id(&world, "Google").await;
        for (name, position) in [("b", 1), ("a", 1), ("z", 0)] {
            let created = world.make("IdpInstance", json!({ "name": name, "idpTypeId": kind, "position": position })).await;
            world.admin.post(&format!("{}/tenants", one("IdpInstance", &created)), related(&[&tenant])).await.expect(202);
            if name != "b" {
                world.admin.post(&format!("{}/clientapps", one("IdpInstance", &created)), related(&[&app])).await.expect(202);
            }
        }
        let by_tenant = world.all(&format!("IdpInstance/tenant/{}", id(&tenant))).await;
        assert_eq!(each(&by_tenant, "name"), ["default", "z", "a", "b"]);
        let by_both = world.all(&format!("IdpInstance/tenant/{}/clientapp/{}", id(&tenant), id(&app))).await;
        assert_eq!(each(&by_both, "name"), ["z", "a"]);
        let page = world.all(&format!("IdpInstance/tenant/{}?count=1&sortBy=name", id(&tenant))).await;
        assert_eq!(each(&page, "name"), ["a"]);
        let subscription = world.all("Subscription").await[0].clone();
        assert_eq!(world.all(&format!("IdpInstance/subscription/{}", id(&subscription))).await.as_array().unwrap().len(), 4);
        world.admin.get(&format!("{BASE}/IdpInstance/tenant/{}", id(&app))).await.problem(404, "not-found");
        let shown = world.admin.get(&one("Tenant", &tenant)).await.is(200).json();
        assert_eq!(shown["idpInstances"].as_array().unwrap().len(), 4);
        assert_eq!(shown["idpInstances"][0].as_object().unwrap().len(), 2, "shallow: id and name");
    }

    /// - Effect of `MfaInstance.name`: Administrators see the second factor under this name.
    async fn second_factors_have_their_options(world: World) {
        let created = world.make("MfaInstance", json!({ "name": "Codes", "idpTypeId": type_id(&world, "totp").await })).await;
        assert_eq!(each(&created["options"], "name"), ["Digits", "Period", "Algorithm", "Issuer"]);
        assert_eq!(created["options"][0]["applyToMfaInstanceId"], created["id"]);
        let store = world.all("IdpInstance").await[0].clone();
        let path = format!("{}/mfainstances", one("IdpInstance", &store));
        let set = world.admin.put(&path, related(&[&created])).await.is(202).json();
        assert_eq!(each(&set["mfaInstances"], "name"), ["Codes"]);
        let other = world.admin.get(&one("MfaInstance", &created)).await.is(200).json();
        assert_eq!(each(&other["idpInstances"], "name"), ["default"]);
        let kinds = world.all("IdpType?filter=name%20eq%20%22totp%22").await;
        assert_eq!(each(&kinds[0]["mfaInstances"], "name"), ["Codes"]);
        world.admin.delete(&one("MfaInstance", &created)).await.expect(204);
        assert_eq!(world.admin.get(&one("IdpInstance", &store)).await.is(200).json()["mfaInstances"], json!([]));
    }

    /// - Effect of `IdpType.providerType`: Instances of the type are identity providers or second factors.
    async fn seeded_types_cannot_be_deleted(world: World) {
        assert_eq!(world.all("IdpType").await.as_array().unwrap().len(), 10);
        let google = world.all("IdpType?filter=name%20eq%20%22Google%22").await[0].clone();
        assert_eq!((&google["providerType"], &google["factoryType"]), (&json!("IdentityProvider"), &json!("Google")));
        world.admin.delete(&one("IdpType", &google)).await.problem(409, "conflict");
        let token = &google["concurrencyToken"];
        let renamed = world.admin.patch(&one("IdpType", &google), json!({ "name": "G", "concurrencyToken": token })).await;
        assert_eq!(pointers(&renamed.problem(409, "conflict")), ["/name"]);
        world.admin.patch(&one("IdpType", &google), json!({ "isActive": false, "concurrencyToken": token })).await.expect(202);
        let body = json!({ "name": "x", "idpTypeId": google["id"] });
        assert_eq!(pointers(&world.admin.post(&format!("{BASE}/IdpInstance"), body).await.problem(400, "invalid-request")), ["/idpTypeId"]);
        let own = world.make("IdpType", json!({ "name": "Partners", "providerType": "IdentityProvider", "factoryType": "OpenIdConnect" })).await;
        let created = world.make("IdpInstance", json!({ "name": "p", "idpTypeId": own["id"] })).await;
        assert_eq!(created["idpFactoryType"], "OpenIdConnect");
        world.admin.delete(&one("IdpType", &own)).await.problem(409, "conflict");
        let other = json!({ "factoryType": "totp", "providerType": "MultiFactor", "concurrencyToken": own["concurrencyToken"] });
        let problem = world.admin.patch(&one("IdpType", &own), other.clone()).await.problem(409, "conflict");
        assert_eq!(pointers(&problem), ["/factoryType"]);
        world.admin.delete(&one("IdpInstance", &created)).await.expect(204);
        world.admin.patch(&one("IdpType", &own), other).await.expect(202);
        world.make("MfaInstance", json!({ "name": "Codes", "idpTypeId": own["id"] })).await;
        let body = json!({ "name": "p", "idpTypeId": own["id"] });
        let problem = world.admin.post(&format!("{BASE}/IdpInstance"), body).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/idpTypeId"]);
        let contradictory = json!({ "name": "Odd", "providerType": "MultiFactor", "factoryType": "Google" });
        assert_eq!(pointers(&world.admin.post(&format!("{BASE}/IdpType"), contradictory).await.problem(400, "invalid-request")), ["/providerType"]);
    }

    async fn metadata_are_entries_by_key(world: World) {
        let store = world.all("IdpInstance").await[0].clone();
        let all = format!("{}/IdpInstanceMetadata", one("IdpInstance", &store));
        let created = world.admin.post(&all, json!({ "key": "region", "value": "north" })).await.is(201).json();
        assert_eq!((&created["idpInstanceId"], &created["key"]), (&store["id"], &json!("region")));
        world.admin.post(&all, json!({ "key": "region", "value": "x" })).await.problem(409, "conflict");
        world.admin.post(&all, json!({ "key": "batch", "value": "x" })).await.problem(400, "invalid-request");
        let entry = format!("{all}/region");
        let patch = json!({ "value": "", "concurrencyToken": created["concurrencyToken"] });
        assert_eq!(world.admin.patch(&entry, patch).await.is(202).json()["value"], "");
        let shown = world.admin.get(&one("IdpInstance", &store)).await.is(200).json();
        assert_eq!(shown["metadata"][0]["key"], "region");
        world.admin.delete(&entry).await.expect(204);
        assert_eq!(world.admin.get(&all).await.is(200).json(), json!([]));
        let far = world.other_subscription("Far").await;
        let other = world.client_in(&far, "far", &[("SubscriptionAdmin", None, None)]).await;
        other.get(&all).await.problem(404, "not-found");
        other.post(&all, json!({ "key": "x", "value": "x" })).await.problem(404, "not-found");
    }
}
