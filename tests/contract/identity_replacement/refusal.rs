//! Refusals by request, caller and state.

use chancery_testkit::{Engine, World, on_both_engines, run_with};
use serde_json::json;

use super::{
    ALL, admin, body, client_id, completed, current_user, delete_controllers, merged, new_instance,
    new_platform_user, path, read, request, statuses, step, texts,
};
use crate::{id, pointers};

const UNKNOWN_ID: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

on_both_engines! {
    async fn invalid_requests_are_refused(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let good = body(&user, &instance, "a");
        for missing in ["platformUserId", "replacementIdpInstanceId", "replacementUniqueUserId", "reason"] {
            let mut body = good.clone();
            body.as_object_mut().unwrap().remove(missing);
            let problem = world.admin.post(ALL, body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{missing}")]);
        }
        let store = &user["identities"][0]["idpInstanceId"];
        let account = world.user("account").await;
        let with_account = |more| merged(body(&user, &json!({ "id": store }), id(&account)), &more);
        for (body, pointer) in [
            (merged(good.clone(), &json!({ "requiredApprovals": 0 })), "/requiredApprovals"),
            (merged(good.clone(), &json!({ "requiredApprovals": 11 })), "/requiredApprovals"),
            (merged(good.clone(), &json!({ "lifetimeMinutes": 4 })), "/lifetimeMinutes"),
            (merged(good.clone(), &json!({ "lifetimeMinutes": 43_201 })), "/lifetimeMinutes"),
            (merged(good.clone(), &json!({ "reason": "  " })), "/reason"),
            (merged(good.clone(), &json!({ "status": "Approved" })), "/status"),
            (merged(good.clone(), &json!({ "platformUserId": UNKNOWN_ID })), "/platformUserId"),
            (merged(good.clone(), &json!({ "replacementIdpInstanceId": UNKNOWN_ID })), "/replacementIdpInstanceId"),
            (merged(good.clone(), &json!({ "isUserStoreIdentity": true })), "/isUserStoreIdentity"),
            (with_account(json!({ "isUserStoreIdentity": false })), "/isUserStoreIdentity"),
            (with_account(json!({ "replacementUniqueUserId": "ada" })), "/replacementUniqueUserId"),
            (with_account(json!({ "replacementUniqueUserId": UNKNOWN_ID })), "/replacementUniqueUserId"),
            (with_account(json!({ "replacementSubject": UNKNOWN_ID })), "/replacementSubject"),
            (with_account(json!({ "replacementIssuer": "Somebody" })), "/replacementIssuer"),
        ] {
            let problem = world.admin.post(ALL, body.clone()).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [pointer], "{body}");
        }
        assert_eq!(world.admin.get(ALL).await.is(200).json(), json!([]));
        let created = request(&world.admin, merged(good, &json!({ "requiredApprovals": null, "lifetimeMinutes": null }))).await;
        assert_eq!((&created["requiredApprovals"], &created["replacementIdentity"]["issuer"]), (&json!(1), &json!("")));
    }

    async fn an_identity_belongs_to_one_user(world: World) {
        let (ada, bob) = (new_platform_user(&world, "ada").await, new_platform_user(&world, "bob").await);
        let instance = new_instance(&world, "work").await;
        let store = json!({ "id": ada["identities"][0]["idpInstanceId"] });
        let body_for_subject = |user, subject: &str| body(user, &store, subject);
        let (adas, bobs) = (&ada["identities"][0]["subject"], &bob["identities"][0]["subject"]);
        world.admin.post(ALL, body_for_subject(&ada, bobs.as_str().unwrap())).await.problem(409, "conflict");
        world.admin.post(ALL, body_for_subject(&ada, adas.as_str().unwrap())).await.problem(409, "conflict");
        let created = request(&world.admin, body(&ada, &instance, "a")).await;
        world.admin.post(ALL, body(&bob, &instance, "a")).await.problem(409, "conflict");
        world.admin.post(ALL, body(&ada, &instance, "b")).await.problem(409, "conflict");
        let cancelled = step(&world.admin, &created, "/cancel").await.is(200).json();
        assert_eq!((&cancelled["status"], &cancelled["replacementIdentity"]["lifecycleStatus"]), (&json!("Cancelled"), &json!("Revoked")));
        assert_eq!(statuses(&current_user(&world, &ada).await), ["Active"]);
        let other = request(&world.admin, body(&bob, &instance, "a")).await;
        assert_ne!(other["replacementIdentityId"], created["replacementIdentityId"]);
        assert_eq!(read(&world, &created).await, cancelled);
        request(&world.admin, body(&ada, &instance, "b")).await;
    }

    async fn steps_are_allowed_by_state(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let (first, second) = (admin(&world, "first").await, admin(&world, "second").await);
        let created = request(&world.admin, merged(body(&user, &instance, "a"), &json!({ "requiredApprovals": 2 }))).await;
        let own_approval = step(&world.admin, &created, "/approvals").await.problem(409, "conflict");
        assert!(own_approval["detail"].as_str().unwrap().contains("requester"), "{own_approval}");
        step(&first, &created, "/execute").await.problem(409, "conflict");
        step(&first, &created, "/approvals").await.expect(200);
        step(&first, &created, "/approvals").await.problem(409, "conflict");
        step(&second, &created, "/approvals").await.expect(200);
        step(&admin(&world, "third").await, &created, "/approvals").await.problem(409, "conflict");
        step(&second, &created, "/execute").await.expect(200);
        let completed_replacement = completed(&world, &created).await;
        for rest in ["/approvals", "/cancel"] {
            step(&first, &created, rest).await.problem(409, "conflict");
        }
        let proof = json!({ "identity": "Current" });
        first.post(&path(&created, "/proofs"), proof.clone()).await.problem(409, "conflict");
        assert_eq!(read(&world, &created).await, completed_replacement);

        let created = request(&world.admin, body(&user, &instance, "b")).await;
        step(&first, &created, "/approvals").await.expect(200);
        step(&world.admin, &created, "/cancel").await.expect(200);
        for rest in ["/approvals", "/cancel", "/execute"] {
            step(&first, &created, rest).await.problem(409, "conflict");
        }
        first.post(&path(&created, "/proofs"), proof).await.problem(409, "conflict");
        first.get(&format!("{ALL}/x")).await.problem(400, "invalid-request");
        step(&first, &json!({ "id": UNKNOWN_ID }), "/execute").await.problem(404, "not-found");
        let stale = [("if-match", "\"stale\"")];
        let created = request(&world.admin, body(&user, &instance, "c")).await;
        let answer = first.send(http::Method::POST, &path(&created, "/approvals"), &stale, Vec::new()).await;
        answer.problem(412, "precondition-failed");
    }

    async fn only_administrators_of_the_subscription_have_access(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let other_store = world.other_store("other").await;
        let other_subscription = world.all("IdpInstance").await;
        let other_subscription = other_subscription.as_array().unwrap().iter().find(|one| one["name"] == "other").unwrap()["subscriptionId"].clone();
        let role = [("SubscriptionAdmin", None, None)];
        let (requester, peer) = (world.client("asking", &role).await, world.client("ours", &role).await);
        let other_admin = world.client_in(&other_subscription, "stranger", &role).await;
        let tenant = world.all("Tenant").await[0]["id"].as_str().unwrap().parse().unwrap();
        let tenant_admin = world.client("lower", &[("TenantAdmin", Some(tenant), None)]).await;
        delete_controllers(&world).await;

        let problem = other_admin.post(ALL, body(&user, &instance, "a")).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/platformUserId"]);
        let body_with_other_store = body(&user, &json!({ "id": other_store }), UNKNOWN_ID);
        let problem = requester.post(ALL, body_with_other_store).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/replacementIdpInstanceId"]);
        let created = request(&requester, body(&user, &instance, "a")).await;

        assert_eq!(other_admin.get(ALL).await.is(200).json(), json!([]));
        assert_eq!(other_admin.get(&format!("{ALL}/queue")).await.is(200).json(), json!({ "items": [], "totalCount": 0 }));
        other_admin.get(&path(&created, "")).await.problem(404, "not-found");
        step(&other_admin, &created, "/approvals").await.problem(404, "not-found");
        tenant_admin.get(ALL).await.problem(403, "forbidden");
        step(&tenant_admin, &created, "/approvals").await.problem(403, "forbidden");
        assert_eq!(peer.get(&path(&created, "")).await.is(200).json(), created);
        assert_eq!(peer.get(&format!("{ALL}/queue")).await.is(200).json()["totalCount"], 1);
        step(&requester, &created, "/approvals").await.problem(409, "conflict");
        step(&peer, &created, "/approvals").await.expect(200);
        for rest in ["/execute", "/cancel"] {
            step(&peer, &created, rest).await.problem(403, "forbidden");
        }
        peer.post(&path(&created, "/proofs"), json!({ "identity": "Current" })).await.problem(403, "forbidden");
        step(&world.admin, &created, "/execute").await.expect(200);
    }

    /// A10 and section 15: an approver must be independent: a client app that the requester or another approver created,
    /// or whose secrets, key sets or roles one of them changed, is not.
    async fn a_controlled_client_app_cannot_approve(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let role = [("SubscriptionAdmin", None, None)];
        let (requester, other) = (world.client("asking", &role).await, world.client("other", &role).await);
        delete_controllers(&world).await;
        let request_body = merged(body(&user, &instance, "a"), &json!({ "requiredApprovals": 3 }));
        let created = request(&requester, request_body).await;
        let (base, subscription_id) = ("/api/management/v2", world.all("Tenant").await[0]["subscriptionId"].clone());
        // created by the requester, directly or through another client app
        let mut controller = requester.clone();
        for name in ["puppet", "puppet's puppet"] {
            controller = world.client_by(&controller, &subscription_id, name, &role).await;
            step(&controller, &created, "/approvals").await.problem(403, "forbidden");
        }
        // independent until the requester changes its credentials or roles
        for (number, (resource, more)) in [
            ("ClientAppSecret", json!({})),
            ("ClientAppKeySet", json!({ "name": "k", "use": "Signing", "jwksUri": "https://keys.example.com" })),
            ("ClientAppRole", json!({ "roleType": "UserAdmin" })),
        ].into_iter().enumerate() {
            let name = format!("taken {number}");
            let modified_client = world.client(&name, &role).await;
            delete_controllers(&world).await;
            let mut body = more;
            body["clientAppId"] = client_id(&world, &name).await;
            requester.post(&format!("{base}/{resource}"), body).await.expect(201);
            step(&modified_client, &created, "/approvals").await.problem(403, "forbidden");
        }
        // controlled by an approver, whichever of the two approves first
        step(&other, &created, "/approvals").await.expect(200);
        let (early, late) = (world.client("early", &role).await, world.client("late", &role).await);
        delete_controllers(&world).await;
        other.post(&format!("{base}/ClientAppSecret"), json!({ "clientAppId": client_id(&world, "late").await })).await.expect(201);
        step(&late, &created, "/approvals").await.problem(403, "forbidden");
        step(&early, &created, "/approvals").await.expect(200);
        let last = world.client("last", &role).await;
        delete_controllers(&world).await;
        last.post(&format!("{base}/ClientAppSecret"), json!({ "clientAppId": client_id(&world, "early").await })).await.expect(201);
        step(&last, &created, "/approvals").await.problem(403, "forbidden");
        let third = world.client("third", &role).await;
        delete_controllers(&world).await;
        assert_eq!(step(&third, &created, "/approvals").await.is(200).json()["status"], "Approved");
    }

    /// A10 and section 15: client apps with one controller are not independent of each other, even if the controller does nothing
    /// or one of them is deleted; those of a SystemAdmin are.
    async fn client_apps_with_the_same_controller_cannot_approve_for_each_other(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let role = [("SubscriptionAdmin", None, None)];
        let controller = world.client("maker", &role).await;
        let (base, subscription_id) = ("/api/management/v2", world.all("Tenant").await[0]["subscriptionId"].clone());
        let mut clients = Vec::new();
        for name in ["asking", "approving", "made by that"] {
            let by = if name == "made by that" { &clients[1] } else { &controller };
            let client = world.client_by(by, &subscription_id, name, &role).await;
            clients.push(client);
        }
        let request_body = merged(body(&user, &instance, "a"), &json!({ "requiredApprovals": 1 }));
        let replacement = request(&clients[0], request_body).await;
        for sibling in &clients[1..] {
            let problem = step(sibling, &replacement, "/approvals").await.problem(403, "forbidden");
            assert!(problem["detail"].as_str().unwrap().contains("a third party did so for both"), "{problem}");
        }
        // also after the deletion of the requester or the controller
        for name in ["asking", "maker"] {
            let gone = client_id(&world, name).await;
            world.admin.delete(&format!("{base}/ClientApp/{}", gone.as_str().unwrap())).await.expect(204);
            step(&clients[1], &replacement, "/approvals").await.problem(403, "forbidden");
        }
        // the SystemAdmin created this one and the controller
        let other = world.client("other", &role).await;
        assert_eq!(step(&other, &replacement, "/approvals").await.is(200).json()["status"], "Approved");
    }

    async fn users_pending_deletion_are_refused(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let first = admin(&world, "first").await;
        let created = request(&world.admin, body(&user, &instance, "a")).await;
        step(&first, &created, "/approvals").await.expect(200);
        let account = world.path(&format!("/User/{}", user["identities"][0]["subject"].as_str().unwrap()));
        world.admin.delete(&account).await.expect(204);
        crate::identity_replacement::synchronize(&world, "default").await;
        step(&first, &created, "/execute").await.problem(409, "conflict");
        step(&first, &created, "/cancel").await.expect(200);
        let problem = world.admin.post(ALL, body(&user, &instance, "a")).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/platformUserId"]);
    }

    async fn a_policy_fingerprint_mismatch_is_refused(world: World) {
        let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
        let wrong = merged(body(&user, &instance, "a"), &json!({ "policyFingerprint": "0".repeat(64) }));
        let problem = world.admin.post(ALL, wrong).await.problem(409, "conflict");
        let digest = chancery_resource::digest("{\"proofs\":\"none\"}");
        assert!(problem["detail"].as_str().unwrap().contains(&digest), "{problem}");
        let right = merged(body(&user, &instance, "a"), &json!({ "policyFingerprint": digest }));
        assert_eq!(request(&world.admin, right).await["policyFingerprint"], digest);
    }
}

/// With proofs of both identities required, execution needs both.
async fn proofs_are_required(world: World) {
    let (user, instance) = (new_platform_user(&world, "ada").await, new_instance(&world, "work").await);
    let first = admin(&world, "first").await;
    let created = request(&world.admin, body(&user, &instance, "a")).await;
    assert_eq!(created["policyFingerprint"], chancery_resource::digest("{\"proofs\":\"both\"}"));
    let proofs = path(&created, "/proofs");
    world.admin.post(&proofs, json!({ "identity": "Current" })).await.problem(409, "conflict");
    first.post(&proofs, json!({ "identity": "Other" })).await.problem(400, "invalid-request");
    let proven = first.post(&proofs, json!({ "identity": "current" })).await.is(200).json();
    assert!(proven["currentIdentityProvenOn"].is_string() && proven["replacementIdentityProvenOn"].is_null());
    let again = first.post(&proofs, json!({ "identity": "Current" })).await.is(200).json();
    assert_eq!(again, proven);
    step(&first, &created, "/approvals").await.expect(200);
    let problem = step(&first, &created, "/execute").await.problem(409, "conflict");
    assert!(problem["detail"].as_str().unwrap().contains("replacement identity"), "{problem}");
    let proven = first.post(&proofs, json!({ "identity": "Replacement" })).await.is(200).json();
    assert!(proven["replacementIdentityProvenOn"].is_string());
    step(&first, &created, "/execute").await.expect(200);
    let events = super::events(&world, &created).await;
    assert_eq!(events.iter().filter(|event| *event == "proven").count(), 2);
    assert_eq!(
        texts(&world, "SELECT status FROM identity_replacement WHERE status = 'Approved'").await.len(),
        0
    );
}

#[test]
fn proofs_are_required_sqlite() {
    run_with(
        Engine::Sqlite,
        |_| vec!["--identity-replacement-proofs".into(), "both".into()],
        |world| Box::pin(proofs_are_required(world)),
    );
}

#[test]
fn proofs_are_required_postgres() {
    run_with(
        Engine::Postgres,
        |_| vec!["--identity-replacement-proofs".into(), "both".into()],
        |world| Box::pin(proofs_are_required(world)),
    );
}
