//! A user's state as administrators set it, and the deletion quarantine.

use chancery_testkit::on_both_engines;
use serde_json::json;

use crate::signing::{FIRST, Person, SECOND, counters, set, wrong};

const LATER: &str = "2099-01-01T00:00:00.000Z";
const UNKNOWN_USER: &str = "/User/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

on_both_engines! {
    /// Every member alone and together; isUserLocked false also zeroes counters and clears
    /// lockedUntil.
    async fn is_set_by_any_of_its_members(world: World) {
        let ada = Person::named(&world, "ada").await;
        for active in [false, true] {
            for locked in [None, Some(true), Some(false)] {
                for until in [None, Some(LATER)] {
                    let before = ada.read().await;
                    let body = json!({ "isUserActive": active, "isUserLocked": locked, "lockedUntil": until });
                    let user = ada.post("state", body.clone()).await.is(200).json();
                    assert_eq!(user["isUserActive"], active, "{body}");
                    assert_eq!(user["isUserLocked"], locked.map_or(before["isUserLocked"].clone(), |locked| json!(locked)), "{body}");
                    let unchanged = if locked == Some(false) { json!(null) } else { before["lockedUntil"].clone() };
                    assert_eq!(user["lockedUntil"], until.map_or(unchanged, |until| json!(until)), "{body}");
                    assert_eq!(ada.read().await, user);
                }
            }
        }
        let user = ada.post("state", json!({ "isUserLocked": false })).await.is(200).json();
        assert_eq!((&user["isUserLocked"], &user["lockedUntil"]), (&json!(false), &json!(null)));
    }

    async fn unlocking_forgets_what_was_counted(world: World) {
        let ada = Person::named(&world, "ada").await;
        for rest in ["state", "lockout/reset"] {
            ada.change("not it", SECOND).await.expect(400);
            assert_eq!(counters(&ada.read().await), (1, 1));
            let before = (ada.read().await, ada.events().await);
            let user = ada.post(rest, json!({ "isUserLocked": false })).await;
            let user = if rest == "state" { user.is(200).json() } else { ada.call(rest).await.is(200).json() };
            assert_eq!(counters(&user), (0, 0), "{rest}");
            // counters are run-time state: no token, no entry
            assert_eq!(user["concurrencyToken"], before.0["concurrencyToken"], "{rest}");
            assert_eq!(ada.events().await, before.1, "{rest}");
            // the throttle is over, too
            ada.change(FIRST, SECOND).await.expect(200);
            ada.change(SECOND, FIRST).await.expect(200);
        }
    }

    /// Lock and unlock have entries, and change the token.
    async fn locks_are_audited_and_change_the_token(world: World) {
        let ada = Person::named(&world, "ada").await;
        let mut token = ada.read().await["concurrencyToken"].clone();
        for (rest, body) in [
            ("state", json!({ "isUserLocked": true })), ("lockout/reset", json!(null)),
            ("state", json!({ "lockedUntil": LATER })), ("lockout/reset", json!(null)),
            ("state", json!({ "isUserActive": false })), ("state", json!({ "isUserActive": true })),
        ] {
            let count = ada.entries().await.len();
            let answer = if body.is_null() { ada.call(rest).await } else { ada.post(rest, body.clone()).await };
            let user = answer.is(200).json();
            assert_ne!(user["concurrencyToken"], token, "{rest} {body}");
            token = user["concurrencyToken"].clone();
            assert_eq!(ada.entries().await.len(), count + 1, "{rest} {body}");
            // the same again changes nothing
            let answer = if body.is_null() { ada.call(rest).await } else { ada.post(rest, body.clone()).await };
            assert_eq!(answer.is(200).json(), user);
            assert_eq!(ada.entries().await.len(), count + 1, "{rest} {body}");
        }
    }

    /// A token is not needed; a stale one is 409 with the current one. At least one member is.
    async fn takes_a_token_and_needs_a_member(world: World) {
        let ada = Person::named(&world, "ada").await;
        let stale = ada.read().await["concurrencyToken"].clone();
        let user = ada.post("state", json!({ "isUserLocked": true, "concurrencyToken": stale })).await.is(200).json();
        let problem = ada.post("state", json!({ "isUserLocked": false, "concurrencyToken": stale })).await.problem(409, "concurrency-conflict");
        assert_eq!(problem["currentConcurrencyToken"], user["concurrencyToken"]);
        assert_eq!(ada.read().await, user);
        for body in [json!({}), json!({ "concurrencyToken": user["concurrencyToken"] }), json!({ "isUserLocked": null, "lockedUntil": null })] {
            ada.post("state", body).await.problem(400, "invalid-request");
        }
        assert_eq!(wrong(ada.post("state", json!({ "isUserLocked": "yes", "lockedUntil": "soon", "isLocked": true })).await), ["/isLocked", "/isUserLocked", "/lockedUntil"]);
        world.admin.post(&world.path(&format!("{UNKNOWN_USER}/state")), json!({ "isUserLocked": true })).await.problem(404, "not-found");
        world.admin.post(&world.path(&format!("{UNKNOWN_USER}/lockout/reset")), json!({})).await.problem(404, "not-found");
    }

    /// No body of PUT, PATCH or POST sets the members of the state operation.
    async fn is_not_written_by_other_bodies(world: World) {
        let ada = Person::named(&world, "ada").await;
        ada.post("state", json!({ "isUserLocked": true, "lockedUntil": LATER })).await.expect(200);
        let mut body = ada.read().await;
        body["isUserLocked"] = json!(false);
        body["lockedUntil"] = json!(null);
        body["isInitialPassword"] = json!(true);
        let user = world.admin.put(&ada.path, body).await.is(202).json();
        assert_eq!((&user["isUserLocked"], &user["lockedUntil"], &user["isInitialPassword"]), (&json!(true), &json!(LATER), &json!(false)));
        let born = json!({ "loginName": "b", "isUserLocked": true, "failedUserLoginAttempts": 7, "isPasswordChangeRequired": true });
        let user = world.admin.post(&world.path("/User"), born).await.is(201).json();
        assert_eq!((&user["isUserLocked"], counters(&user), &user["isPasswordChangeRequired"]), (&json!(false), (0, 0), &json!(false)));
    }

    /// The answer is the user, with the same `ETag` as a read; `If-Match` holds before anything else.
    async fn answers_are_the_user_and_conditions_hold(world: World) {
        let ada = Person::named(&world, "ada").await;
        let change = json!({ "oldPassword": "not it", "newPassword": SECOND });
        let state = json!({ "isUserLocked": false, "isUserActive": true });
        for (rest, body) in [("password/reset", json!({ "newPassword": FIRST })), ("password/change", change), ("state", state), ("lockout/reset", json!({}))] {
            let path = format!("{}/{rest}", ada.path);
            let send = async |tag: &str| {
                let headers = [("content-type", "application/json"), ("if-match", tag)];
                world.admin.send(http::Method::POST, &path, &headers, body.to_string().into_bytes()).await
            };
            let before = ada.read().await;
            send("\"other\"").await.problem(412, "precondition-failed");
            assert_eq!(ada.read().await, before, "{rest}");
            let tag = world.admin.get(&ada.path).await.header("etag").unwrap().to_owned();
            let answer = send(&tag).await;
            if rest == "password/change" {
                assert_eq!(wrong(answer), ["/oldPassword"]);
                continue;
            }
            let answer = answer.is(200);
            assert_eq!(answer.header("etag"), world.admin.get(&ada.path).await.header("etag"), "{rest}");
            let token = format!("\"{}\"", ada.read().await["concurrencyToken"].as_str().unwrap());
            send(&token).await.expect(200);
        }
    }

    /// A dry run sets nothing.
    async fn a_dry_run_sets_nothing(world: World) {
        let ada = Person::named(&world, "ada").await;
        let before = ada.read().await;
        let user = ada.post("state?dryRun=true", json!({ "isUserLocked": true })).await.is(200).json();
        assert_eq!(user["isUserLocked"], true);
        assert_eq!(ada.read().await, before);
        set(&world.admin, "IsDatabaseReadOnlyMode", "true").await;
        ada.post("state?dryRun=true", json!({ "isUserLocked": true })).await.problem(409, "conflict");
    }

    /// Many at once, all or none: each with an entry and a token; a user already in that state is unchanged.
    async fn of_many_is_set_at_once(world: World) {
        let people = [Person::named(&world, "ada").await, Person::named(&world, "bob").await, Person::named(&world, "eve").await];
        let batch = world.path("/User/state/batch");
        people[1].post("state", json!({ "isUserActive": false })).await.expect(200);
        let before = (people[1].read().await, people[0].entries().await.len());
        let states = |active: bool| json!(people.iter().map(|one| json!({ "id": one.id, "isUserActive": active })).collect::<Vec<_>>());
        let done = world.admin.post(&batch, states(false)).await.is(200).json();
        assert_eq!(crate::each(&done, "loginName"), ["ada", "bob", "eve"]);
        assert!(done.as_array().unwrap().iter().all(|user| user["isUserActive"] == json!(false)));
        assert_eq!(people[1].read().await, before.0, "who is so already stays as it is");
        assert_eq!(people[0].entries().await.len(), before.1 + 1);
        world.admin.post(&format!("{batch}?dryRun=true"), states(true)).await.expect(200);
        assert_eq!(people[0].read().await["isUserActive"], json!(false), "a dry run sets nothing");
        people[0].post("state", json!({ "isUserLocked": true, "isUserActive": true })).await.expect(200);
        world.admin.post(&batch, json!([{ "id": people[0].id, "isUserLocked": false }])).await.expect(200);
        assert_eq!(people[0].read().await["isUserLocked"], json!(false));
    }

    async fn of_many_is_refused_by_element(world: World) {
        let ada = Person::named(&world, "ada").await;
        let batch = world.path("/User/state/batch");
        let unknown_id = UNKNOWN_USER.trim_start_matches("/User/");
        let active = |id: &str| json!({ "id": id, "isUserActive": false });
        let problem = world.admin.post(&batch, json!([active(&ada.id), active(unknown_id)])).await.problem(404, "not-found");
        assert_eq!(crate::pointers(&problem), ["/1/id"]);
        assert_eq!(ada.read().await["isUserActive"], json!(true), "all or none");
        let stale = json!([{ "id": ada.id, "isUserLocked": true, "concurrencyToken": "old" }]);
        let problem = world.admin.post(&batch, stale).await.problem(409, "concurrency-conflict");
        assert_eq!(crate::pointers(&problem), ["/0/concurrencyToken"]);
        let bodies = json!([active(&ada.id), active(&ada.id), { "id": unknown_id }, { "id": "x", "isUserLocked": true }, { "id": unknown_id, "isUserLocked": 1 }, { "isUserLocked": true }]);
        assert_eq!(wrong(world.admin.post(&batch, bodies).await), ["/1/id", "/2", "/3/id", "/4/isUserLocked", "/5/id"]);
        let many: Vec<_> = (0..10_001).map(|_| active(unknown_id)).collect();
        world.admin.post(&batch, json!(many)).await.problem(413, "payload-too-large");
        world.admin.post(&batch, json!({})).await.problem(400, "invalid-request");
    }
}
