//! Who is refused what, and in which state.

use chancery_testkit::{Engine, World, on_both_engines, run_with};
use serde_json::json;

use super::{
    ALL, admin, body, client_id, completed, forget_makers, found, new_instance, new_person, path, person,
    read, request, statuses, step, with,
};
use crate::{id, pointers};

const NOBODY: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

on_both_engines! {
    async fn what_a_request_may_not_say(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let good = body(&user, &instance, "a");
        for missing in ["platformUserId", "replacementIdpInstanceId", "replacementUniqueUserId", "reason"] {
            let mut body = good.clone();
            body.as_object_mut().unwrap().remove(missing);
            let problem = world.admin.post(ALL, body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{missing}")]);
        }
        let store = &user["identities"][0]["idpInstanceId"];
        let account = world.user("account").await;
        let of_store = |more| with(body(&user, &json!({ "id": store }), id(&account)), &more);
        for (body, pointer) in [
            (with(good.clone(), &json!({ "requiredApprovals": 0 })), "/requiredApprovals"),
            (with(good.clone(), &json!({ "requiredApprovals": 11 })), "/requiredApprovals"),
            (with(good.clone(), &json!({ "lifetimeMinutes": 4 })), "/lifetimeMinutes"),
            (with(good.clone(), &json!({ "lifetimeMinutes": 43_201 })), "/lifetimeMinutes"),
            (with(good.clone(), &json!({ "reason": "  " })), "/reason"),
            (with(good.clone(), &json!({ "status": "Approved" })), "/status"),
            (with(good.clone(), &json!({ "platformUserId": NOBODY })), "/platformUserId"),
            (with(good.clone(), &json!({ "replacementIdpInstanceId": NOBODY })), "/replacementIdpInstanceId"),
            (with(good.clone(), &json!({ "isUserStoreIdentity": true })), "/isUserStoreIdentity"),
            (of_store(json!({ "isUserStoreIdentity": false })), "/isUserStoreIdentity"),
            (of_store(json!({ "replacementUniqueUserId": "ada" })), "/replacementUniqueUserId"),
            (of_store(json!({ "replacementUniqueUserId": NOBODY })), "/replacementUniqueUserId"),
            (of_store(json!({ "replacementSubject": NOBODY })), "/replacementSubject"),
            (of_store(json!({ "replacementIssuer": "Somebody" })), "/replacementIssuer"),
        ] {
            let problem = world.admin.post(ALL, body.clone()).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [pointer], "{body}");
        }
        assert_eq!(world.admin.get(ALL).await.is(200).json(), json!([]));
        let made = request(&world.admin, with(good, &json!({ "requiredApprovals": null, "lifetimeMinutes": null }))).await;
        assert_eq!((&made["requiredApprovals"], &made["replacementIdentity"]["issuer"]), (&json!(1), &json!("")));
    }

    async fn an_identity_is_one_person_s(world: World) {
        let (ada, bob) = (new_person(&world, "ada").await, new_person(&world, "bob").await);
        let instance = new_instance(&world, "work").await;
        let store = json!({ "id": ada["identities"][0]["idpInstanceId"] });
        let taken = |user, subject: &str| body(user, &store, subject);
        let (adas, bobs) = (&ada["identities"][0]["subject"], &bob["identities"][0]["subject"]);
        world.admin.post(ALL, taken(&ada, bobs.as_str().unwrap())).await.problem(409, "conflict");
        world.admin.post(ALL, taken(&ada, adas.as_str().unwrap())).await.problem(409, "conflict");
        let made = request(&world.admin, body(&ada, &instance, "a")).await;
        world.admin.post(ALL, body(&bob, &instance, "a")).await.problem(409, "conflict");
        world.admin.post(ALL, body(&ada, &instance, "b")).await.problem(409, "conflict");
        let over = step(&world.admin, &made, "/cancel").await.is(200).json();
        assert_eq!((&over["status"], &over["replacementIdentity"]["lifecycleStatus"]), (&json!("Cancelled"), &json!("Revoked")));
        assert_eq!(statuses(&person(&world, &ada).await), ["Active"]);
        let other = request(&world.admin, body(&bob, &instance, "a")).await;
        assert_ne!(other["replacementIdentityId"], made["replacementIdentityId"]);
        assert_eq!(read(&world, &made).await, over);
        request(&world.admin, body(&ada, &instance, "b")).await;
    }

    async fn states_allow_what_they_allow(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let (first, second) = (admin(&world, "first").await, admin(&world, "second").await);
        let made = request(&world.admin, with(body(&user, &instance, "a"), &json!({ "requiredApprovals": 2 }))).await;
        let mine = step(&world.admin, &made, "/approvals").await.problem(409, "conflict");
        assert!(mine["detail"].as_str().unwrap().contains("asked for"), "{mine}");
        step(&first, &made, "/execute").await.problem(409, "conflict");
        step(&first, &made, "/approvals").await.expect(200);
        step(&first, &made, "/approvals").await.problem(409, "conflict");
        step(&second, &made, "/approvals").await.expect(200);
        step(&admin(&world, "third").await, &made, "/approvals").await.problem(409, "conflict");
        step(&second, &made, "/execute").await.expect(200);
        let end = completed(&world, &made).await;
        for rest in ["/approvals", "/cancel"] {
            step(&first, &made, rest).await.problem(409, "conflict");
        }
        let proof = json!({ "identity": "Current" });
        first.post(&path(&made, "/proofs"), proof.clone()).await.problem(409, "conflict");
        assert_eq!(read(&world, &made).await, end);

        let made = request(&world.admin, body(&user, &instance, "b")).await;
        step(&first, &made, "/approvals").await.expect(200);
        step(&world.admin, &made, "/cancel").await.expect(200);
        for rest in ["/approvals", "/cancel", "/execute"] {
            step(&first, &made, rest).await.problem(409, "conflict");
        }
        first.post(&path(&made, "/proofs"), proof).await.problem(409, "conflict");
        first.get(&format!("{ALL}/x")).await.problem(400, "invalid-request");
        step(&first, &json!({ "id": NOBODY }), "/execute").await.problem(404, "not-found");
        let stale = [("if-match", "\"stale\"")];
        let made = request(&world.admin, body(&user, &instance, "c")).await;
        let answer = first.send(http::Method::POST, &path(&made, "/approvals"), &stale, Vec::new()).await;
        answer.problem(412, "precondition-failed");
    }

    async fn only_administrators_of_the_subscription(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let elsewhere = world.other_store("other").await;
        let theirs = world.all("IdpInstance").await;
        let theirs = theirs.as_array().unwrap().iter().find(|one| one["name"] == "other").unwrap()["subscriptionId"].clone();
        let role = [("SubscriptionAdmin", None, None)];
        let (asking, ours) = (world.client("asking", &role).await, world.client("ours", &role).await);
        let stranger = world.client_in(&theirs, "stranger", &role).await;
        let tenant = world.all("Tenant").await[0]["id"].as_str().unwrap().parse().unwrap();
        let lower = world.client("lower", &[("TenantAdmin", Some(tenant), None)]).await;
        forget_makers(&world).await;

        let problem = stranger.post(ALL, body(&user, &instance, "a")).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/platformUserId"]);
        let there = body(&user, &json!({ "id": elsewhere }), NOBODY);
        let problem = asking.post(ALL, there).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/replacementIdpInstanceId"]);
        let made = request(&asking, body(&user, &instance, "a")).await;

        assert_eq!(stranger.get(ALL).await.is(200).json(), json!([]));
        assert_eq!(stranger.get(&format!("{ALL}/queue")).await.is(200).json(), json!({ "items": [], "totalCount": 0 }));
        stranger.get(&path(&made, "")).await.problem(404, "not-found");
        step(&stranger, &made, "/approvals").await.problem(404, "not-found");
        lower.get(ALL).await.problem(403, "forbidden");
        step(&lower, &made, "/approvals").await.problem(403, "forbidden");
        assert_eq!(ours.get(&path(&made, "")).await.is(200).json(), made);
        assert_eq!(ours.get(&format!("{ALL}/queue")).await.is(200).json()["totalCount"], 1);
        step(&asking, &made, "/approvals").await.problem(409, "conflict");
        step(&ours, &made, "/approvals").await.expect(200);
        for rest in ["/execute", "/cancel"] {
            step(&ours, &made, rest).await.problem(403, "forbidden");
        }
        ours.post(&path(&made, "/proofs"), json!({ "identity": "Current" })).await.problem(403, "forbidden");
        step(&world.admin, &made, "/execute").await.expect(200);
    }

    /// A10 and section 15: an approval is another's: a client app that the requester or another approver made,
    /// or whose secrets, key sets or roles one of them changed, does not count as another.
    async fn nobody_approves_by_a_client_app_of_their_own(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let role = [("SubscriptionAdmin", None, None)];
        let (asking, other) = (world.client("asking", &role).await, world.client("other", &role).await);
        forget_makers(&world).await;
        let asked = with(body(&user, &instance, "a"), &json!({ "requiredApprovals": 3 }));
        let made = request(&asking, asked).await;
        let (base, home) = ("/api/management/v2", world.all("Tenant").await[0]["subscriptionId"].clone());
        // made by who asks, alone or through another that they made
        let mut maker = asking.clone();
        for name in ["puppet", "puppet's puppet"] {
            maker = world.client_by(&maker, &home, name, &role).await;
            step(&maker, &made, "/approvals").await.problem(403, "forbidden");
        }
        // another's, until who asks changes what it proves itself by or may do
        for (number, (resource, more)) in [
            ("ClientAppSecret", json!({})),
            ("ClientAppKeySet", json!({ "name": "k", "use": "Signing", "jwksUri": "https://keys.example.com" })),
            ("ClientAppRole", json!({ "roleType": "UserAdmin" })),
        ].into_iter().enumerate() {
            let name = format!("taken {number}");
            let taken = world.client(&name, &role).await;
            forget_makers(&world).await;
            let mut body = more;
            body["clientAppId"] = client_id(&world, &name).await;
            asking.post(&format!("{base}/{resource}"), body).await.expect(201);
            step(&taken, &made, "/approvals").await.problem(403, "forbidden");
        }
        // an approver's own, whichever of the two approves first
        step(&other, &made, "/approvals").await.expect(200);
        let (early, late) = (world.client("early", &role).await, world.client("late", &role).await);
        forget_makers(&world).await;
        other.post(&format!("{base}/ClientAppSecret"), json!({ "clientAppId": client_id(&world, "late").await })).await.expect(201);
        step(&late, &made, "/approvals").await.problem(403, "forbidden");
        step(&early, &made, "/approvals").await.expect(200);
        let last = world.client("last", &role).await;
        forget_makers(&world).await;
        last.post(&format!("{base}/ClientAppSecret"), json!({ "clientAppId": client_id(&world, "early").await })).await.expect(201);
        step(&last, &made, "/approvals").await.problem(403, "forbidden");
        let third = world.client("third", &role).await;
        forget_makers(&world).await;
        assert_eq!(step(&third, &made, "/approvals").await.is(200).json()["status"], "Approved");
    }

    /// A10 and section 15: client apps of one maker are not each other's other, whether the maker does anything
    /// or one of them is gone; those of who is SystemAdmin are.
    async fn nobody_approves_by_two_client_apps_of_one_maker(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let role = [("SubscriptionAdmin", None, None)];
        let maker = world.client("maker", &role).await;
        let (base, home) = ("/api/management/v2", world.all("Tenant").await[0]["subscriptionId"].clone());
        let mut made = Vec::new();
        for name in ["asking", "approving", "made by that"] {
            let by = if name == "made by that" { &made[1] } else { &maker };
            let client = world.client_by(by, &home, name, &role).await;
            made.push(client);
        }
        let asked = with(body(&user, &instance, "a"), &json!({ "requiredApprovals": 1 }));
        let replacement = request(&made[0], asked).await;
        for sibling in &made[1..] {
            let told = step(sibling, &replacement, "/approvals").await.problem(403, "forbidden");
            assert!(told["detail"].as_str().unwrap().contains("a third party did so for both"), "{told}");
        }
        // neither who asked nor who made all of them has to be there any more
        for name in ["asking", "maker"] {
            let gone = client_id(&world, name).await;
            world.admin.delete(&format!("{base}/ClientApp/{}", gone.as_str().unwrap())).await.expect(204);
            step(&made[1], &replacement, "/approvals").await.problem(403, "forbidden");
        }
        // the installation's administrator made this one and the maker
        let other = world.client("other", &role).await;
        assert_eq!(step(&other, &replacement, "/approvals").await.is(200).json()["status"], "Approved");
    }

    async fn who_waits_to_be_deleted_is_left_alone(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let first = admin(&world, "first").await;
        let made = request(&world.admin, body(&user, &instance, "a")).await;
        step(&first, &made, "/approvals").await.expect(200);
        let account = world.path(&format!("/User/{}", user["identities"][0]["subject"].as_str().unwrap()));
        world.admin.delete(&account).await.expect(204);
        crate::identity_replacement::synchronize(&world, "default").await;
        step(&first, &made, "/execute").await.problem(409, "conflict");
        step(&first, &made, "/cancel").await.expect(200);
        let problem = world.admin.post(ALL, body(&user, &instance, "a")).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/platformUserId"]);
    }

    async fn settings_are_those_that_were_meant(world: World) {
        let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
        let wrong = with(body(&user, &instance, "a"), &json!({ "policyFingerprint": "0".repeat(64) }));
        let problem = world.admin.post(ALL, wrong).await.problem(409, "conflict");
        let digest = chancery_resource::digest("{\"proofs\":\"none\"}");
        assert!(problem["detail"].as_str().unwrap().contains(&digest), "{problem}");
        let right = with(body(&user, &instance, "a"), &json!({ "policyFingerprint": digest }));
        assert_eq!(request(&world.admin, right).await["policyFingerprint"], digest);
    }
}

/// Where the settings ask for proofs of both, execution waits for both.
async fn proofs_are_asked_for(world: World) {
    let (user, instance) = (new_person(&world, "ada").await, new_instance(&world, "work").await);
    let first = admin(&world, "first").await;
    let made = request(&world.admin, body(&user, &instance, "a")).await;
    assert_eq!(made["policyFingerprint"], chancery_resource::digest("{\"proofs\":\"both\"}"));
    let proofs = path(&made, "/proofs");
    world.admin.post(&proofs, json!({ "identity": "Current" })).await.problem(409, "conflict");
    first.post(&proofs, json!({ "identity": "Other" })).await.problem(400, "invalid-request");
    let proven = first.post(&proofs, json!({ "identity": "current" })).await.is(200).json();
    assert!(proven["currentIdentityProvenOn"].is_string() && proven["replacementIdentityProvenOn"].is_null());
    let again = first.post(&proofs, json!({ "identity": "Current" })).await.is(200).json();
    assert_eq!(again, proven);
    step(&first, &made, "/approvals").await.expect(200);
    let problem = step(&first, &made, "/execute").await.problem(409, "conflict");
    assert!(problem["detail"].as_str().unwrap().contains("replacement identity"), "{problem}");
    let proven = first.post(&proofs, json!({ "identity": "Replacement" })).await.is(200).json();
    assert!(proven["replacementIdentityProvenOn"].is_string());
    step(&first, &made, "/execute").await.expect(200);
    let events = super::events(&world, &made).await;
    assert_eq!(events.iter().filter(|event| *event == "proven").count(), 2);
    assert_eq!(
        found(&world, "SELECT status FROM identity_replacement WHERE status = 'Approved'").await.len(),
        0
    );
}

#[test]
fn proofs_are_asked_for_sqlite() {
    run_with(
        Engine::Sqlite,
        |_| vec!["--identity-replacement-proofs".into(), "both".into()],
        |world| Box::pin(proofs_are_asked_for(world)),
    );
}

#[test]
fn proofs_are_asked_for_postgres() {
    run_with(
        Engine::Postgres,
        |_| vec!["--identity-replacement-proofs".into(), "both".into()],
        |world| Box::pin(proofs_are_asked_for(world)),
    );
}
