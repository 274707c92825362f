//! The explanation why somebody can or cannot sign in: each check, and agreement with a real sign-in.

use chancery_record::Value as Bound;
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{PASSWORD, SignInApp, browser::Browser, passkey::with_passkey};
use crate::{
    each, id,
    signing::{millis, now},
};

const DAY: i64 = 24 * 60 * 60 * 1000;
const CHECKS: [&str; 12] = [
    "Deleted",
    "Active",
    "ValidFrom",
    "ValidTo",
    "LockedByAdministrator",
    "LockedByFailures",
    "LockedForNow",
    "AttemptUndecided",
    "Throttled",
    "PasswordSet",
    "PasswordExpired",
    "PasswordChangeDue",
];

async fn explain(world: &World, user: &Value) -> Value {
    world.admin.get(&world.path(&format!("/User/{}/signin/explain", id(user)))).await.is(200).json()
}

/// The result of this check.
fn line<'a>(explanation: &'a Value, check: &str) -> &'a Value {
    let lines = explanation["lines"].as_array().unwrap();
    lines.iter().find(|line| line["check"] == check).unwrap_or_else(|| panic!("no {check} in {explanation}"))
}

/// Asserts that only this check fails and prevents the sign-in; returns it.
async fn assert_refused_by(world: &World, user: &Value, check: &str, remedy: Value) -> Value {
    let explanation = explain(world, user).await;
    let failing: Vec<&Value> =
        explanation["lines"].as_array().unwrap().iter().filter(|line| line["passes"] == false).collect();
    assert_eq!(failing.iter().map(|line| &line["check"]).collect::<Vec<_>>(), [check], "{explanation}");
    assert_eq!(
        (&explanation["canSignIn"], &explanation["ways"]),
        (&json!(false), &json!([])),
        "{explanation}"
    );
    assert_eq!(failing[0]["remedy"], remedy);
    failing[0].clone()
}

async fn assert_can(world: &World, user: &Value, ways: &[&str]) -> Value {
    let explanation = explain(world, user).await;
    assert_eq!(
        (&explanation["canSignIn"], &explanation["ways"]),
        (&json!(true), &json!(ways)),
        "{explanation}"
    );
    explanation
}

async fn post(world: &World, user: &Value, rest: &str, body: Value) {
    world.admin.post(&world.path(&format!("/User/{}/{rest}", id(user))), body).await.expect(200);
}

async fn patch(world: &World, user: &Value, mut members: Value) {
    let path = world.path(&format!("/User/{}", id(user)));
    members["concurrencyToken"] = world.admin.get(&path).await.is(200).json()["concurrencyToken"].clone();
    let body = members.to_string().into_bytes();
    let kind = [("content-type", "application/merge-patch+json")];
    world.admin.send(http::Method::PATCH, &path, &kind, body).await.expect(202);
}

/// Submits a wrong password this many times.
async fn guess(world: &World, home: &SignInApp, times: usize) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    for _ in 0..times {
        browser.type_password(&page, "ann", "not this one").await;
    }
}

/// Whether the sign-in page accepts the right password of this user.
async fn can_sign_in(world: &World, home: &SignInApp, name: &str) -> bool {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    let next = browser.type_password(&page, name, PASSWORD).await;
    assert_eq!(next.status, 200);
    !next.html.contains("The user name or the password is not right.")
}

on_both_engines! {
    /// Activity, validity and deletion, each with its remedy.
    async fn the_state_of_the_account_is_explained(world: World) {
        let home = SignInApp::new(&world).await;
        let ann = &home.user;
        let fine = assert_can(&world, ann, &["Password"]).await;
        assert_eq!(each(&fine["lines"], "check"), CHECKS);
        let is_plain = |line: &Value| line["passes"] == true && line["until"].is_null() && line["remedy"].is_null();
        assert!(fine["lines"].as_array().unwrap().iter().all(is_plain), "{fine}");
        patch(&world, ann, json!({ "isUserActive": false })).await;
        assert_refused_by(&world, ann, "Active", json!("SetUserState")).await;
        post(&world, ann, "state", json!({ "isUserActive": true })).await;
        let soon = "2099-01-01T00:00:00.000Z";
        patch(&world, ann, json!({ "userValidFrom": soon })).await;
        assert_eq!(assert_refused_by(&world, ann, "ValidFrom", json!("PatchUser")).await["until"], soon);
        patch(&world, ann, json!({ "userValidFrom": null, "userValidTo": "2001-01-01T00:00:00.000Z" })).await;
        assert_eq!(assert_refused_by(&world, ann, "ValidTo", json!("PatchUser")).await["until"], json!(null));
        patch(&world, ann, json!({ "userValidTo": soon })).await;
        assert_eq!(line(&assert_can(&world, ann, &["Password"]).await, "ValidTo")["until"], soon);
        world.admin.delete(&world.path(&format!("/User/{}", id(ann)))).await.expect(204);
        let deleted = assert_refused_by(&world, ann, "Deleted", json!("RestoreUserDeletionQuarantine")).await;
        assert!((millis(&deleted["until"]) - now() - 30 * DAY).abs() < DAY, "{deleted}");
        world.admin.send(http::Method::POST, &world.path(&format!("/User/{}/restore-deletion", id(ann))), &[], Vec::new()).await.expect(200);
        assert_can(&world, ann, &["Password"]).await;
        world.admin.get(&world.path("/User/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f/signin/explain")).await.problem(404, "not-found");
        let other_store = world.other_store("other").await;
        let path = format!("/api/userstore/v2/other/administration/User/{}/signin/explain", id(ann));
        world.admin.get(&path).await.problem(404, "not-found");
        let admin = world.client("elsewhere", &[("UserStoreAdmin", None, Some(other_store))]).await;
        admin.get(&world.path(&format!("/User/{}/signin/explain", id(ann)))).await.problem(404, "not-found");
    }

    /// Locks are explained with their cause and end; the throttle and a pending attempt with their end.
    async fn locks_are_explained_with_cause_and_end(world: World) {
        let home = SignInApp::new(&world).await;
        let ann = &home.user;
        world.set_option("LoginThrottlingEnabled", "false").await;
        post(&world, ann, "state", json!({ "isUserLocked": true })).await;
        let explanation = assert_refused_by(&world, ann, "LockedByAdministrator", json!("SetUserState")).await;
        assert_eq!(explanation["text"], "An administrator has locked the user for good.");
        patch(&world, ann, json!({ "isUserLockEnabled": false })).await;
        assert_can(&world, ann, &["Password"]).await;
        assert!(can_sign_in(&world, &home, "ann").await, "an exempt user is held by no lock");
        patch(&world, ann, json!({ "isUserLockEnabled": true })).await;
        post(&world, ann, "state", json!({ "isUserLocked": false, "lockedUntil": "2099-01-01T00:00:00.000Z" })).await;
        let explanation = assert_refused_by(&world, ann, "LockedForNow", json!("ResetAccessFailedCount")).await;
        assert_eq!(explanation["until"], "2099-01-01T00:00:00.000Z");
        assert_eq!(explanation["text"], "The user is locked for a while by an administrator.");
        let reset = world.path(&format!("/User/{}/lockout/reset", id(ann)));
        let unlock = async || world.admin.send(http::Method::POST, &reset, &[], Vec::new()).await.expect(200);
        unlock().await;
        guess(&world, &home, 5).await;
        let explanation = assert_refused_by(&world, ann, "LockedForNow", json!("ResetAccessFailedCount")).await;
        assert_eq!(explanation["text"], "The user is locked for a while after 5 wrong attempts.");
        assert!(millis(&explanation["until"]) > now(), "{explanation}");
        world.set_option("AttemptsBeforeTemporaryLock", "6").await;
        let explanation = assert_refused_by(&world, ann, "LockedForNow", json!("ResetAccessFailedCount")).await;
        assert_eq!(explanation["text"], "The user is locked for a while, by an administrator or by 5 wrong attempts.");
        unlock().await;
        world.set_option("AttemptsBeforeUserLocked", "3").await;
        guess(&world, &home, 3).await;
        let explanation = assert_refused_by(&world, ann, "LockedByFailures", json!("ResetAccessFailedCount")).await;
        assert_eq!(explanation["text"], "The user is locked after 3 wrong attempts.");
        // after a change of the option the cause of the lock is unknown
        for value in ["0", "10"] {
            world.set_option("AttemptsBeforeUserLocked", value).await;
            let explanation = assert_refused_by(&world, ann, "LockedForGood", json!("SetUserState")).await;
            assert_eq!(explanation["text"], "The user is locked for good, by an administrator or by 3 wrong attempts.");
        }
        unlock().await;
        let begun = "UPDATE user_account SET closing_attempt = id, closing_since = ?1 WHERE login_name = 'ann'";
        world.sql(vec![(begun, vec![Bound::Int(now())])]).await;
        let explanation = assert_refused_by(&world, ann, "AttemptUndecided", json!("ResetAccessFailedCount")).await;
        assert!(millis(&explanation["until"]) > now(), "{explanation}");
        unlock().await;
        for (option, value) in [("LoginThrottlingEnabled", "true"), ("LoginThrottlingInitialDelay", "01:00:00"), ("LoginThrottlingMaxDelay", "01:00:00")] {
            world.set_option(option, value).await;
        }
        guess(&world, &home, 1).await;
        let explanation = assert_refused_by(&world, ann, "Throttled", json!("ResetAccessFailedCount")).await;
        assert!(millis(&explanation["until"]) > now(), "{explanation}");
        assert_eq!(explanation["text"], "Attempts are slowed down after 1 wrong ones.");
        unlock().await;
        assert_can(&world, ann, &["Password"]).await;
    }

    /// Ways to sign in: a usable password, an access pass, a passkey, which a temporary lock does not prevent.
    async fn ways_to_sign_in_are_explained(world: World) {
        let (home, _) = with_passkey(&world).await;
        let ann = &home.user;
        assert_can(&world, ann, &["Password", "Passkey"]).await;
        patch(&world, ann, json!({ "passwordExpiration": "2001-01-01T00:00:00.000Z" })).await;
        let explanation = assert_can(&world, ann, &["Password", "Passkey"]).await;
        assert_eq!(line(&explanation, "PasswordExpired")["text"], "The password expired, and is changed at the sign-in.");
        assert_eq!(line(&explanation, "PasswordChangeDue")["text"], "The password is changed at the sign-in.");
        patch(&world, ann, json!({ "canChangePasswordOnExpiration": false })).await;
        let explanation = assert_can(&world, ann, &["Passkey"]).await;
        let expired = line(&explanation, "PasswordExpired");
        assert_eq!((&expired["passes"], &expired["remedy"]), (&json!(false), &json!("SetInitialPassword")));
        patch(&world, ann, json!({ "passwordExpiration": "2099-01-01T00:00:00.000Z" })).await;
        let explanation = assert_can(&world, ann, &["Password", "Passkey"]).await;
        assert_eq!(line(&explanation, "PasswordExpired")["until"], "2099-01-01T00:00:00.000Z");
        post(&world, ann, "state", json!({ "lockedUntil": "2099-01-01T00:00:00.000Z" })).await;
        let explanation = assert_can(&world, ann, &["Passkey"]).await;
        assert_eq!(line(&explanation, "LockedForNow")["passes"], false);
        world.sql(vec![("DELETE FROM user_password", vec![])]).await;
        assert_eq!(line(&assert_can(&world, ann, &["Passkey"]).await, "HasPasskey")["passes"], true);

        let bob = world.user("bob").await;
        assert_refused_by(&world, &bob, "PasswordSet", json!("IssueTemporaryAccessPass")).await;
        let passes = world.path("/passkey-security/temporary-access-passes");
        world.admin.post(&passes, json!({ "userId": bob["id"] })).await.expect(201);
        assert_eq!(line(&assert_can(&world, &bob, &["AccessPass"]).await, "AccessPass")["passes"], true);
        world.set_option("TemporaryAccessPassEnabled", "false").await;
        assert_refused_by(&world, &bob, "PasswordSet", json!("SetInitialPassword")).await;
        post(&world, &bob, "password/initial", json!({ "password": PASSWORD })).await;
        let explanation = assert_can(&world, &bob, &["Password"]).await;
        assert_eq!(line(&explanation, "PasswordChangeDue")["text"], "The password is changed at the sign-in.");
    }

    /// For each combination of settings of a user the explanation equals the result of the sign-in page with the right password.
    async fn the_explanation_matches_a_real_sign_in(world: World) {
        let home = SignInApp::new(&world).await;
        let none = world.user("bob").await;
        let (past, future) = (Bound::Int(now() - DAY), Bound::Int(now() + DAY));
        let set = "UPDATE user_account SET is_user_active = ?1, is_user_locked = ?2, locked_until = ?3, is_user_lock_enabled = ?4, \
            user_valid_from = ?5, user_valid_to = ?6, quarantined_on = ?7, password_expiration = ?8, \
            can_change_password_on_expiration = ?9, is_password_change_required = ?10, throttled_until = ?11, throttle_step = 0, \
            closing_attempt = NULL, closing_since = NULL, failed_user_login_attempts = 0, failed_temporary_lock_attempts = 0";
        let mut let_in = 0;
        for number in 0..1_u32 << 9 {
            let bit = |index: u32| number >> index & 1 == 1;
            // further combinations only repeat these results: the first failed check prevents the sign-in
            if number.count_ones() > 3 {
                continue;
            }
            let time = |is_set: bool, time: &Bound| if is_set { time.clone() } else { Bound::Null };
            let values = vec![
                Bound::Bool(!bit(0)), Bound::Bool(bit(1)), time(bit(2), &future), Bound::Bool(!bit(3)), time(bit(4), &future),
                time(bit(5), &past), time(bit(6), &past), time(bit(7), &past), Bound::Bool(!bit(8)), Bound::Bool(bit(8)),
                time(bit(3) && bit(8), &future),
            ];
            world.sql(vec![(set, values)]).await;
            for (user, name) in [(&home.user, "ann"), (&none, "bob")] {
                let explained = explain(&world, user).await;
                let is_in = can_sign_in(&world, &home, name).await;
                assert_eq!(explained["canSignIn"], is_in, "{number:b} {name} {explained}");
                let_in += u32::from(is_in);
            }
        }
        assert!(let_in >= 10, "{let_in}");
    }
}
