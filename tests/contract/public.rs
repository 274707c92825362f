//! Public operations: changing one's own password, by the old one or by a token.

use chancery_testkit::{Answer, Client, on_both_engines, with_stopped_clock};
use serde_json::{Value, json};

use crate::{
    encode,
    signing::{FIRST, Person, SECOND, counters, set, set_all, set_mail_server, texts, wrong},
};

fn path(store: &str, login_name: &str, rest: &str) -> String {
    format!("/api/userstore/v2/{store}/PublicAdmin/user/loginname/{}/password/{rest}", encode(login_name))
}

async fn change(client: &Client, login_name: &str, old: &str, new: &str) -> Answer {
    let body = json!({ "oldPassword": old, "newPassword": new });
    client.post(&path("default", login_name, "change"), body).await
}

async fn redeem(client: &Client, login_name: &str, token: &str, new: &str) -> Answer {
    let body = json!({ "token": token, "newPassword": new });
    client.post(&path("default", login_name, "reset/response"), body).await
}

/// The problem without its variable members.
fn refusal(answer: Answer) -> Value {
    let mut problem = answer.problem(400, "invalid-request");
    for member in ["traceId", "instance"] {
        problem.as_object_mut().unwrap().remove(member);
    }
    problem
}

on_both_engines! {
    /// 200 with an empty body; the user of the audit entry is the user.
    async fn a_user_changes_the_own_password(world: World) {
        let ada = Person::named(&world, "Ada").await;
        let answer = change(&world.anonymous, "aDA", FIRST, SECOND).await.is(200);
        assert!(answer.bytes.is_empty() && answer.header("content-type").is_none() && answer.header("etag").is_none());
        assert!(ada.has(SECOND).await);
        let entries = ada.entries().await;
        let entry = entries.iter().find(|entry| entry["user"] == ada.id.as_str()).unwrap();
        assert_eq!((&entry["action"], &entry["area"]), (&json!("Modified"), &json!("User")));

        set_mail_server(&world.admin).await;
        ada.patch(json!({ "emailAddress": "ada@example.com" })).await;
        let token = ada.token().await;
        let answer = redeem(&world.anonymous, "ADA", &token, FIRST).await.is(200);
        assert!(answer.bytes.is_empty());
        assert_eq!(ada.entries().await.pop().unwrap()["user"], ada.id.as_str());
        assert!(ada.has(FIRST).await);
    }

    /// One answer for unknown login, wrong password, locked, throttled, inactive, bad token.
    async fn a_refusal_reveals_nothing(world: World) {
        set_mail_server(&world.admin).await;
        let ada = Person::named(&world, "ada").await;
        ada.patch(json!({ "emailAddress": "ada@example.com" })).await;
        let anyone = &world.anonymous;
        let expected = refusal(change(anyone, "nobody", FIRST, SECOND).await);
        assert!(expected.get("errors").is_none());
        let same = |what: &str, answer: Answer| assert_eq!(refusal(answer), expected, "{what}");
        same("unknown, for a token", redeem(anyone, "nobody", "t", SECOND).await);
        same("unknown, with a bad new password", change(anyone, "nobody", FIRST, "x").await);
        same("a name that cannot be", change(anyone, &"x".repeat(300), FIRST, SECOND).await);
        same("bad token", redeem(anyone, "ada", "t", SECOND).await);
        same("bad token, bad new password", redeem(anyone, "ada", "t", "x").await);
        same("wrong", change(anyone, "ada", "not it", SECOND).await);
        same("throttled", change(anyone, "ada", FIRST, SECOND).await);
        ada.call("lockout/reset").await.expect(200);
        same("wrong, bad new password", change(anyone, "ada", "not it", "x").await);
        ada.call("lockout/reset").await.expect(200);
        let token = ada.token().await;
        for (what, state) in [
            ("locked for a while", json!({ "lockedUntil": "2099-01-01T00:00:00Z" })),
            ("locked", json!({ "isUserLocked": true })),
            ("inactive", json!({ "isUserLocked": false, "isUserActive": false })),
        ] {
            ada.post("state", state).await.expect(200);
            same(what, change(anyone, "ada", FIRST, SECOND).await);
            if what != "locked for a while" {
                same(what, redeem(anyone, "ada", &token, SECOND).await);
            }
        }
        ada.post("state", json!({ "isUserActive": true })).await.expect(200);
        for (what, patch) in [("not yet valid", json!({ "userValidFrom": "2099-01-01T00:00:00Z" })),
            ("no longer valid", json!({ "userValidFrom": "2019-01-01T00:00:00Z", "userValidTo": "2020-01-01T00:00:00Z" }))] {
            ada.patch(patch).await;
            same(what, change(anyone, "ada", FIRST, SECOND).await);
            same(what, redeem(anyone, "ada", &token, SECOND).await);
        }
        Person::new(&world, json!({ "loginName": "bob" })).await;
        same("without a password", change(anyone, "bob", FIRST, SECOND).await);
        let eve = Person::named(&world, "eve").await;
        world.admin.delete(&eve.path).await.expect(204);
        same("in quarantine", change(anyone, "eve", FIRST, SECOND).await);
    }

    /// A14: an attempt at an unknown name writes as durably as one at a user's, before and after the
    /// password is checked; so does one that is refused without being counted.
    async fn an_attempt_at_an_unknown_name_writes_as_durably(world: World) {
        let attempts = async || texts(&world, "SELECT CAST(slot AS TEXT) FROM attempt_at_nobody").await.len();
        let ada = Person::named(&world, "ada").await;
        change(&world.anonymous, "ada", "not it", SECOND).await.expect(400);
        assert_eq!(attempts().await, 0, "hers is at her counters");
        change(&world.anonymous, "nobody", FIRST, SECOND).await.expect(400);
        let first = attempts().await;
        assert!((1..=2).contains(&first), "{first}");
        ada.post("state", json!({ "isUserActive": false })).await.expect(200);
        for _ in 0..8 {
            change(&world.anonymous, "ada", FIRST, SECOND).await.expect(400);
        }
        let more = attempts().await;
        assert!(more > first && more <= 64, "{more}");
    }

    /// A wrong password counts towards lockout; a bad token does not. A caller with the right password gets the reason.
    async fn a_wrong_password_counts(world: World) {
        set_all(&world.admin, &[("LoginThrottlingEnabled", "false"), ("PasswordRequireDigit", "true")]).await;
        let ada = Person::new(&world, json!({ "loginName": "ada" })).await;
        ada.reset("a good one, 1815").await.expect(200);
        for _ in 0..7 {
            redeem(&world.anonymous, "ada", "t", FIRST).await.expect(400);
        }
        assert_eq!(counters(&ada.read().await), (0, 0));
        change(&world.anonymous, "ada", "not it", "a good one, 1816").await.expect(400);
        ada.change("not it", FIRST).await.expect(400);
        assert_eq!(counters(&ada.read().await), (2, 2), "one count over every path");
        assert_eq!(wrong(change(&world.anonymous, "ada", "a good one, 1815", "password").await), ["/newPassword"; 2]);
        assert_eq!(counters(&ada.read().await), (0, 0));
        assert_eq!(wrong(change(&world.anonymous, "ada", "a good one, 1815", "a good one, 1815").await), ["/newPassword"]);
        for _ in 0..6 {
            change(&world.anonymous, "ada", "not it", "a good one, 1816").await.expect(400);
        }
        assert_eq!(counters(&ada.read().await), (5, 5));
        assert!(ada.read().await["lockedUntil"].is_string());
        // nor by a dry run
        ada.call("lockout/reset").await.expect(200);
        let guess = json!({ "oldPassword": "not it", "newPassword": "a good one, 1816" });
        world.anonymous.post(&format!("{}?dryRun=true", path("default", "ada", "change")), guess).await.expect(400);
        assert_eq!(counters(&ada.read().await), (1, 1));
        let right = json!({ "oldPassword": "a good one, 1815", "newPassword": "a good one, 1816" });
        let answer = world.anonymous.post(&format!("{}?dryRun=true", path("default", "ada", "change")), right).await.is(200);
        assert!(answer.bytes.is_empty());
        assert!(ada.has("a good one, 1815").await);
        // an expired one that can no longer be changed is reported to its owner
        ada.patch(json!({ "passwordExpiration": "2020-01-01T00:00:00Z", "canChangePasswordOnExpiration": false })).await;
        change(&world.anonymous, "ada", "a good one, 1815", "a good one, 1816").await.expect(400);
        assert!(change(&world.anonymous, "ada", "a good one, 1815", "x").await.problem(400, "invalid-request")["detail"].as_str().unwrap().contains("expired"));
    }

    /// A token is neither needed nor harmful. The store is named in any way that paths allow.
    async fn the_store_is_named_as_in_other_paths(world: World) {
        let ada = Person::named(&world, "ada").await;
        let (mut old, mut new) = (FIRST, SECOND);
        let store = ada.read().await["instanceId"].as_str().unwrap().to_owned();
        let unprivileged = world.client("stranger", &[("AuditTrailReader", None, None)]).await;
        let garbage = world.anonymous.with_token("garbage");
        for (client, name) in [
            (&world.anonymous, "default"), (&world.anonymous, "DeFault"), (&world.anonymous, store.as_str()),
            (&world.admin, "default"), (&unprivileged, "default"), (&garbage, "default"),
        ] {
            let body = json!({ "oldPassword": old, "newPassword": new });
            client.post(&path(name, "ada", "change"), body).await.expect(200);
            (old, new) = (new, old);
        }
        let body = json!({ "oldPassword": FIRST, "newPassword": SECOND });
        world.anonymous.post(&path("none", "ada", "change"), body.clone()).await.problem(404, "not-found");
        world.anonymous.get(&path("default", "ada", "change")).await.problem(405, "method-not-allowed");
        world.anonymous.post(&path("default", "ada", "change"), json!({ "newPassword": SECOND })).await.problem(400, "invalid-request");
        // not another store's user of the same name
        world.other_store("other").await;
        world.anonymous.post(&path("other", "ada", "change"), body.clone()).await.problem(400, "invalid-request");
        world.sql(vec![("UPDATE idp_instance SET is_active = FALSE WHERE name = 'default'", Vec::new())]).await;
        world.anonymous.post(&path("default", "ada", "change"), body).await.problem(404, "not-found");
    }

    /// Section 15: `GetUserByLoginName` looks up login names alone, also where addresses sign in.
    async fn a_login_name_is_looked_up_by_login_names(world: World) {
        set(&world.admin, "LoginByEmailEnabled", "true").await;
        let body = json!({ "loginName": "ada", "emailAddress": "ada@example.com" });
        world.admin.post(&world.path("/User"), body).await.expect(201);
        world.admin.get(&world.path("/User/loginname/ADA")).await.expect(200);
        world.admin.get(&world.path("/User/loginname/ada@example.com")).await.problem(404, "not-found");
    }

    /// LoginByEmailEnabled: the login name is looked up first, then the e-mail address.
    ///
    /// - Effect of `UserStore options.LoginByEmailEnabled`: People may sign in with their mail address instead of their login name.
    async fn an_address_signs_in_where_the_store_has_it_so(world: World) {
        let body = json!({ "loginName": "ada", "emailAddress": "Ada@Example.com" });
        let ada = Person::new(&world, body).await;
        ada.reset(FIRST).await.expect(200);
        change(&world.anonymous, "ada@example.com", FIRST, SECOND).await.expect(400);
        assert_eq!(counters(&ada.read().await), (0, 0));
        set(&world.admin, "LoginByEmailEnabled", "true").await;
        change(&world.anonymous, "ADA@example.com", FIRST, SECOND).await.expect(200);
        change(&world.anonymous, "ADA@example.com", FIRST, SECOND).await.expect(400);
        assert_eq!(counters(&ada.read().await), (1, 1));
        assert!(ada.has(SECOND).await || { ada.call("lockout/reset").await.expect(200); ada.has(SECOND).await });
        // an address of two users signs in neither
        set(&world.admin, "LoginByEmailEnabled", "false").await;
        let bob = Person::new(&world, json!({ "loginName": "bob", "emailAddress": "ada@example.com" })).await;
        set(&world.admin, "LoginByEmailEnabled", "true").await;
        change(&world.anonymous, "ada@example.com", SECOND, FIRST).await.expect(400);
        assert_eq!(counters(&ada.read().await), (0, 0));
        world.admin.delete(&bob.path).await.expect(204);
        change(&world.anonymous, "ada@example.com", SECOND, FIRST).await.expect(200);
    }

    async fn a_store_that_is_read_only_refuses(world: World) {
        Person::named(&world, "ada").await;
        set(&world.admin, "IsDatabaseReadOnlyMode", "true").await;
        change(&world.anonymous, "ada", FIRST, SECOND).await.problem(409, "conflict");
        redeem(&world.anonymous, "ada", "t", SECOND).await.problem(409, "conflict");
    }
}

with_stopped_clock! {
    /// `CHANCERY_PUBLIC_RATE_LIMIT` requests a minute for an address, a third of it for a login name.
    ["--public-rate-limit", "9"]
    async fn too_many_requests_are_told_to_wait(server: World) {
        let anyone = Client::anonymous(&server.base);
        let refused = |answer: Answer| {
            let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
            answer.problem(429, "too-many-requests");
        };
        let body = json!({});
        // by any name of the store
        for store in ["default", "DEFAULT", "\u{ff44}efault"] {
            anyone.post(&path(&encode(store), "ada", "change"), body.clone()).await.expect(400);
        }
        refused(change(&anyone, "\u{ff21}DA", FIRST, SECOND).await);
        refused(redeem(&anyone, "ada", "t", SECOND).await);
        for number in 0..4 {
            let path = path("default", &format!("u{number}"), "reset/response");
            anyone.post(&path, body.clone()).await.expect(400);
        }
        refused(redeem(&anyone, "u9", "t", SECOND).await);
        // a token lifts no limit, and other operations have none
        refused(change(&server.admin, "u10", FIRST, SECOND).await);
        refused(anyone.post(&path("none", "u11", "change"), body).await);
        for _ in 0..20 {
            server.admin.get("/api/userstore/v2/default/administration/User").await.expect(200);
            anyone.get("/health/live").await.expect(200);
        }
    }

    /// With `off` there is none.
    ["--public-rate-limit", "off"]
    async fn the_limit_can_be_off(server: World) {
        let anyone = Client::anonymous(&server.base);
        let calls = (0..70).map(|_| redeem(&anyone, "ada", "t", SECOND));
        let answers = futures_util::future::join_all(calls).await;
        assert!(answers.iter().all(|answer| answer.status == 400));
    }
}
