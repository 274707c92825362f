//! Passwords: set, reset and changed by administrators, with the store's rules for them.

use chancery_testkit::on_both_engines;
use futures_util::future::join_all;
use serde_json::json;

use crate::signing::{FIRST, Person, SECOND, counters, millis, now, option, set, set_all, wrong};

const DAY: i64 = 24 * 3600 * 1000;
const UNKNOWN_USER: &str = "/User/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

on_both_engines! {
    /// Initial password: both flags, expiry by the option or as given, over an existing one too.
    ///
    /// - Effect of `UserStore options.InitialPasswordExpiration`: A password that an administrator sets must be changed within this time.
    async fn an_initial_password_must_be_changed(world: World) {
        let ada = Person::new(&world, json!({ "loginName": "ada" })).await;
        let before = (now(), ada.read().await);
        let user = ada.initial(FIRST).await.is(200).json();
        assert_eq!((&user["isInitialPassword"], &user["isPasswordChangeRequired"]), (&json!(true), &json!(true)));
        let expires = millis(&user["passwordExpiration"]);
        assert!((before.0 + 7 * DAY..=now() + 7 * DAY).contains(&expires), "InitialPasswordExpiration is a week");
        assert_ne!(user["concurrencyToken"], before.1["concurrencyToken"]);
        assert_eq!(ada.read().await, user);

        let body = json!({ "password": SECOND, "passwordExpiration": "2099-01-01T00:00:00+01:00" });
        let again = ada.post("password/initial", body).await.is(200).json();
        assert_eq!(again["passwordExpiration"], "2098-12-31T23:00:00.000Z");
        set(&world.admin, "InitialPasswordExpiration", "PT1H").await;
        let short = ada.post("password/initial", json!({ "password": SECOND, "passwordExpiration": null })).await.is(200).json();
        assert!(millis(&short["passwordExpiration"]) <= now() + DAY / 24);

        // the user's own password ends all of it
        let user = ada.change(SECOND, FIRST).await.is(200).json();
        assert_eq!((&user["isInitialPassword"], &user["isPasswordChangeRequired"]), (&json!(false), &json!(false)));
        assert_eq!(user["passwordExpiration"], json!(null));
        assert_eq!(ada.events().await, ["created", "password-set", "password-set", "password-set", "password-changed"]);
        assert!(ada.entries().await.iter().skip(1).all(|entry| entry["action"] == "Modified" && entry["user"].is_string()));
    }

    /// `initial/reset`: only while isInitialPassword, else 409.
    async fn an_initial_password_is_extended(world: World) {
        let ada = Person::named(&world, "ada").await;
        ada.call("password/initial/reset").await.problem(409, "conflict");
        let body = json!({ "password": SECOND, "passwordExpiration": "2020-01-01T00:00:00Z" });
        let expired = ada.post("password/initial", body).await.is(200).json();
        let user = ada.call("password/initial/reset").await.is(200).json();
        assert!(millis(&user["passwordExpiration"]) > now() + 6 * DAY);
        assert_eq!((&user["isInitialPassword"], &user["isPasswordChangeRequired"]), (&json!(true), &json!(true)));
        assert_ne!(user["concurrencyToken"], expired["concurrencyToken"]);
        assert_eq!(ada.events().await.last().unwrap(), "updated");
        ada.change(SECOND, FIRST).await.expect(200);
        ada.call("password/initial/reset").await.problem(409, "conflict");
    }

    /// Admin reset clears both flags, counters and locks.
    async fn a_reset_clears_flags_counters_and_locks(world: World) {
        let ada = Person::new(&world, json!({ "loginName": "ada" })).await;
        ada.initial(FIRST).await.expect(200);
        ada.change("wrong", SECOND).await.expect(400);
        assert_eq!(counters(&ada.read().await), (1, 1));
        ada.post("state", json!({ "isUserLocked": true, "lockedUntil": "2099-01-01T00:00:00Z" })).await.expect(200);
        let before = ada.read().await;
        let user = ada.reset(SECOND).await.is(200).json();
        for flag in ["isInitialPassword", "isPasswordChangeRequired", "isUserLocked"] {
            assert_eq!(user[flag], false, "{flag}");
        }
        assert_eq!((counters(&user), &user["lockedUntil"], &user["passwordExpiration"]), ((0, 0), &json!(null), &json!(null)));
        assert_ne!(user["concurrencyToken"], before["concurrencyToken"]);
        assert_eq!(ada.events().await.last().unwrap(), "password-reset");
        assert!(ada.has(SECOND).await && !ada.has(FIRST).await);
    }

    /// Wrong old password 400 and counted; same as old 400; success zeroes both counters.
    async fn a_change_needs_the_old_password(world: World) {
        set(&world.admin, "LoginThrottlingEnabled", "false").await;
        let ada = Person::named(&world, "ada").await;
        let before = ada.read().await;
        assert_eq!(wrong(ada.change("not it", SECOND).await), ["/oldPassword"]);
        assert_eq!(wrong(ada.change("", SECOND).await), ["/oldPassword"], "an empty one is none");
        assert_eq!(counters(&ada.read().await), (1, 1));
        assert_eq!(wrong(ada.change(&FIRST.to_uppercase(), SECOND).await), ["/oldPassword"]);
        let user = ada.read().await;
        assert_eq!(counters(&user), (2, 2));
        assert_eq!(user["concurrencyToken"], before["concurrencyToken"], "counting changes no token");
        assert_eq!(wrong(ada.change(FIRST, FIRST).await), ["/newPassword"]);
        assert_eq!(counters(&ada.read().await), (0, 0), "the password was right");
        ada.change("not it", SECOND).await.expect(400);
        let user = ada.change(FIRST, SECOND).await.is(200).json();
        assert_eq!(counters(&user), (0, 0));
        assert_ne!(user["concurrencyToken"], before["concurrencyToken"]);
        assert!(ada.has(SECOND).await);
        // failed attempts are no entries
        let events = ada.events().await;
        assert_eq!(events[..3], ["created", "password-reset", "password-changed"]);
    }

    /// A new user has no password, and the empty password is wrong.
    async fn without_a_password_nothing_is_right(world: World) {
        let ada = Person::new(&world, json!({ "loginName": "ada" })).await;
        for guess in ["null", " ", "password"] {
            assert_eq!(wrong(ada.change(guess, SECOND).await), ["/oldPassword"]);
            ada.age(DAY).await;
        }
        assert_eq!(counters(&ada.read().await), (3, 3));
    }

    /// A password is taken unchanged: nothing is trimmed, cut or folded.
    async fn passwords_are_neither_trimmed_nor_folded(world: World) {
        let ada = Person::named(&world, "ada").await;
        for (password, not) in [
            ("  a nice blank frame  ", "a nice blank frame"),
            ("Gr\u{fc}ne Ameisen 7", "gr\u{fc}ne ameisen 7"),
            ("\u{1f41c}\u{1f41c} two of the ants \u{0}", "\u{1f41c}\u{1f41c} two of the ants "),
            (&"x9 ".repeat(42), &"x9 ".repeat(41)),
        ] {
            ada.reset(password).await.expect(200);
            assert!(!ada.has(not).await, "{not:?} is not {password:?}");
            ada.call("lockout/reset").await.expect(200);
            assert!(ada.has(password).await, "{password:?}");
        }
    }

    /// Systems compose the same letters differently, and some keyboards type other spaces (RFC 8265, OpaqueString).
    async fn a_password_is_the_same_however_its_letters_are_composed(world: World) {
        let ada = Person::new(&world, json!({ "loginName": "Zo\u{eb} Adelaide" })).await;
        let forms = ["Gr\u{f6}\u{df}e z\u{e4}hlt gr\u{fc}n", "Gro\u{308}\u{df}e\u{a0}za\u{308}hlt gru\u{308}n"];
        for (set, typed) in [(forms[0], forms[1]), (forms[1], forms[0])] {
            ada.reset(set).await.expect(200);
            assert!(ada.has(set).await && ada.has(typed).await);
            // the new password is the old one, whether or not there is a history
            assert_eq!(wrong(ada.change(set, typed).await), ["/newPassword"]);
        }
        assert_eq!(wrong(ada.reset("Zoe\u{308}\u{2003}Adelaide").await), ["/newPassword"], "the login name");
        world.set_option("PasswordHistoryCount", "2").await;
        ada.reset(FIRST).await.expect(200);
        assert_eq!(wrong(ada.reset(forms[1]).await), ["/newPassword"]);
    }

    /// A hash by an earlier release of the uncomposed password is right, and is replaced by a hash of the
    /// composed one.
    async fn a_hash_of_the_uncomposed_password_is_replaced(world: World) {
        let ada = Person::named(&world, "ada").await;
        // made with argon2-cffi 25.1.0: "Gru\u{308}ne Ameisen 7", 8 KiB, one pass
        let old = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQtb2YtMTYtYg$0SHMe/4cTm6MQIzoJehQ9NNbCIoAYGVgHny5UR70cWM";
        world.sql(vec![("UPDATE user_password SET hash = ?1", vec![old.into()])]).await;
        let (typed, composed) = ("Gru\u{308}ne Ameisen 7", "Gr\u{fc}ne Ameisen 7");
        assert_eq!(wrong(ada.change(composed, "short").await), ["/oldPassword"], "the hash is of other bytes");
        ada.call("lockout/reset").await.expect(200);
        // the new password is refused, so the old one was right
        assert_eq!(wrong(ada.change(typed, "short").await), ["/newPassword"]);
        assert_eq!(wrong(ada.change(composed, "short").await), ["/newPassword"], "the hash was made anew");
    }

    /// A broken rule is 400 listing every broken rule, for each operation that sets the password.
    async fn every_broken_rule_is_listed(world: World) {
        set_all(&world.admin, &[
            ("PasswordMinLength", "10"), ("PasswordRequireDigit", "true"), ("PasswordRequireLowercase", "true"),
            ("PasswordRequireUppercase", "TRUE"), ("PasswordRequireNonAlphanumeric", "true"),
        ]).await;
        let ada = Person::new(&world, json!({ "loginName": "qwerty", "emailAddress": "QwErTy@example.com" })).await;
        // too short, no digit, no lower case, no other, common, the login name, the e-mail's first part
        let listed = vec!["/newPassword"; 7];
        assert_eq!(wrong(ada.reset("QWERTY").await), listed);
        assert_eq!(wrong(ada.initial("QWERTY").await), vec!["/password"; 7]);
        ada.reset("A good one, 1815").await.expect(200);
        let before = ada.read().await;
        assert_eq!(wrong(ada.change("A good one, 1815", "QWERTY").await), listed);
        assert_eq!(wrong(ada.change("A good one, 1815", "lower case & digits 1").await), ["/newPassword"]);
        assert_eq!(ada.read().await, before, "nothing changed");
        for good in ["Ten chars!1", "\u{c4}\u{f6} \u{df}tra\u{df}e 12"] {
            ada.reset(good).await.expect(200);
        }
    }

    /// - Effect of `UserStore options.PasswordBlocklistEnabled`: Common passwords are refused.
    /// - Effect of `UserStore options.PasswordMaxLength`: Longer passwords are refused.
    /// - Effect of `UserStore options.PasswordMinLength`: Shorter passwords are refused.
    /// - Effect of `UserStore options.PasswordNotEmail`: Passwords that contain the mail address are refused.
    /// - Effect of `UserStore options.PasswordNotLoginName`: Passwords that contain the login name are refused.
    /// - Effect of `UserStore options.PasswordRequireDigit`: Passwords without a digit are refused.
    /// - Effect of `UserStore options.PasswordRequireLowercase`: Passwords without a lowercase letter are refused.
    /// - Effect of `UserStore options.PasswordRequireNonAlphanumeric`: Passwords that have only letters and digits are refused.
    /// - Effect of `UserStore options.PasswordRequireUppercase`: Passwords without an uppercase letter are refused.
    async fn each_rule_is_an_option(world: World) {
        let body = json!({ "loginName": "Ada.Lovelace", "emailAddress": "countess.lovelace@example.com" });
        let ada = Person::new(&world, body).await;
        let long = "x".repeat(60) + &"7 ".repeat(35);
        for (name, off, on, password) in [
            ("PasswordMinLength", "5", "8", "kQ7-x"),
            ("PasswordMaxLength", "130", "", &long),
            ("PasswordRequireDigit", "false", "true", "a hedge without any"),
            ("PasswordRequireLowercase", "False", "true", "SHOUTING AT HEDGES"),
            ("PasswordRequireUppercase", "false", "true", "a hedge without any"),
            ("PasswordRequireNonAlphanumeric", "false", "true", "hedgeswithout7of"),
            ("PasswordBlocklistEnabled", "false", "true", "PassWord1"),
            ("PasswordNotLoginName", "false", "true", "aDA.lovelace"),
            ("PasswordNotEmail", "false", "true", "COUNTESS.lovelace@example.com"),
            ("PasswordNotEmail", "false", "true", "Countess.Lovelace"),
        ] {
            set(&world.admin, name, on).await;
            assert_eq!(wrong(ada.reset(password).await), ["/newPassword"], "{name} {on:?}");
            set(&world.admin, name, off).await;
            ada.reset(password).await.expect(200);
            set(&world.admin, name, "").await;
        }
        // length has an end that no option moves
        set(&world.admin, "PasswordMaxLength", "1024").await;
        assert_eq!(wrong(ada.reset(&"\u{1f41c}".repeat(257)).await), ["/newPassword"]);
        assert_eq!(wrong(ada.reset(&"x".repeat(1025)).await), ["/newPassword"]);
    }

    /// PasswordHistoryCount: the last ones, including the current one, must not be used again.
    ///
    /// - Effect of `UserStore options.PasswordHistoryCount`: This number of former passwords of a user is refused.
    async fn the_last_passwords_do_not_come_again(world: World) {
        set(&world.admin, "PasswordHistoryCount", "3").await;
        let ada = Person::named(&world, "ada").await;
        for number in 1..=3 {
            ada.reset(&format!("a hedge with {number} gates")).await.expect(200);
        }
        for number in [3, 2, 1] {
            let used = format!("a hedge with {number} gates");
            assert_eq!(wrong(ada.reset(&used).await), ["/newPassword"], "{used}");
            assert_eq!(wrong(ada.initial(&used).await), ["/password"], "{used}");
        }
        assert_eq!(wrong(ada.change("a hedge with 3 gates", "a hedge with 2 gates").await), ["/newPassword"]);
        ada.change("a hedge with 3 gates", FIRST).await.expect(200);
        // without a history an administrator may set the former one, and nothing of it is stored
        set(&world.admin, "PasswordHistoryCount", "0").await;
        ada.reset(FIRST).await.expect(200);
        assert_eq!(crate::signing::texts(&world, "SELECT hash FROM user_password_history").await, [""; 0]);
        set(&world.admin, "PasswordHistoryCount", "24").await;
        ada.reset("a hedge with 2 gates").await.expect(200);
        assert_eq!(wrong(ada.reset(FIRST).await), ["/newPassword"]);
    }

    /// A hash with other parameters is replaced when its password is used, even without success.
    async fn an_old_hash_gives_way(world: World) {
        let ada = Person::named(&world, "ada").await;
        // made with the reference implementation: "password", 256 KiB, two passes
        let old = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQtb2YtMTYtYg$8D7/ApckZcc0bRkriENTYsEoN+rMp6zPcdD21zMG55w";
        world.sql(vec![("UPDATE user_password SET hash = ?1", vec![old.into()])]).await;
        assert_eq!(wrong(ada.change("password", "short").await), ["/newPassword"]);
        let stored = crate::signing::texts(&world, "SELECT hash FROM user_password").await;
        // the parameters of a server of tests
        assert!(stored[0].starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{}", stored[0]);
        ada.change("password", FIRST).await.expect(200);
    }

    /// A correct password during a concurrent renewal of its hash is right, too.
    async fn a_hash_that_is_renewed_refuses_nobody(world: World) {
        let ada = Person::named(&world, "ada").await;
        // as in `an_old_hash_gives_way`
        let old = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQtb2YtMTYtYg$8D7/ApckZcc0bRkriENTYsEoN+rMp6zPcdD21zMG55w";
        world.set_option("LoginThrottlingEnabled", "false").await;
        world.set_option("TemporaryLockEnabled", "false").await;
        for _ in 0..4 {
            world.sql(vec![("UPDATE user_password SET hash = ?1", vec![old.into()])]).await;
            let attempts = join_all((0..8).map(|_| ada.change("password", "short"))).await;
            for attempt in attempts {
                assert_eq!(wrong(attempt), ["/newPassword"], "the old password is right");
            }
        }
    }

    /// PasswordExpirationDays counts from each change; 0 is never.
    ///
    /// - Effect of `UserStore options.PasswordExpirationDays`: A new password expires after this number of days; 0 disables the expiration.
    async fn expiry_is_set_at_each_change(world: World) {
        let ada = Person::named(&world, "ada").await;
        assert_eq!(ada.read().await["passwordExpiration"], json!(null));
        set(&world.admin, "PasswordExpirationDays", "90").await;
        let begun = now();
        let user = ada.change(FIRST, SECOND).await.is(200).json();
        assert!((begun + 90 * DAY..=now() + 90 * DAY).contains(&millis(&user["passwordExpiration"])));
        let user = ada.reset(FIRST).await.is(200).json();
        assert!(millis(&user["passwordExpiration"]) > begun + 89 * DAY);
        // set by hand
        let user = ada.patch(json!({ "passwordExpiration": "2050-01-01T00:00:00Z" })).await;
        assert_eq!(user["passwordExpiration"], "2050-01-01T00:00:00.000Z");
        assert_eq!(option(&world.admin, "PasswordExpirationDays").await["value"], "90");
    }

    /// An expired password still serves a change while canChangePasswordOnExpiration; without it
    /// only a reset helps; passwordNeverExpires wins.
    ///
    /// - Effect of `User.passwordExpiration`: From this time on the password must be changed, or is no longer accepted.
    /// - Effect of `User.passwordNeverExpires`: The password stays valid after its expiration.
    async fn an_expired_password_serves_a_change_or_nothing(world: World) {
        let ada = Person::named(&world, "ada").await;
        let past = json!({ "passwordExpiration": "2020-01-01T00:00:00Z" });
        ada.patch(past.clone()).await;
        let user = ada.change(FIRST, SECOND).await.is(200).json();
        assert_eq!(user["passwordExpiration"], json!(null));

        ada.patch(json!({ "passwordExpiration": "2020-01-01T00:00:00Z", "canChangePasswordOnExpiration": false })).await;
        let before = ada.read().await;
        ada.change(SECOND, FIRST).await.problem(400, "invalid-request");
        assert_eq!(ada.read().await, before);
        let user = ada.patch(json!({ "passwordNeverExpires": true })).await;
        assert_eq!(user["passwordExpiration"], "2020-01-01T00:00:00.000Z");
        ada.change(SECOND, FIRST).await.expect(200);
        ada.patch(json!({ "passwordNeverExpires": false, "passwordExpiration": "2020-01-01T00:00:00Z" })).await;
        ada.change(FIRST, SECOND).await.expect(400);
        ada.reset(SECOND).await.expect(200);
        ada.change(SECOND, FIRST).await.expect(200);
        // an initial one that has expired is no other
        let body = json!({ "password": SECOND, "passwordExpiration": "2020-01-01T00:00:00Z" });
        ada.post("password/initial", body).await.expect(200);
        ada.change(SECOND, FIRST).await.expect(400);
    }

    async fn bodies_are_checked(world: World) {
        let ada = Person::named(&world, "ada").await;
        for (rest, body, expected) in [
            ("password/initial", json!({}), &["/password"][..]),
            ("password/initial", json!({ "password": 7, "passwordExpiration": "soon" }), &["/password", "/passwordExpiration"]),
            ("password/reset", json!({ "password": "x" }), &["/password", "/newPassword"]),
            ("password/reset", json!({ "newPassword": null }), &["/newPassword"]),
            ("password/change", json!({ "newPassword": SECOND }), &["/oldPassword"]),
            ("password/reset/response", json!({ "newPassword": SECOND }), &["/token"]),
        ] {
            assert_eq!(wrong(ada.post(rest, body.clone()).await), expected, "{rest} {body}");
        }
        ada.call("password/reset").await.problem(400, "invalid-request");
        for rest in ["initial", "reset", "change", "reset/response"] {
            ada.post(&format!("password/{rest}"), json!([])).await.problem(400, "invalid-request");
        }
        assert_eq!(counters(&ada.read().await), (0, 0));
        // an unknown user
        let path = |rest: &str| world.path(&format!("{UNKNOWN_USER}/password/{rest}"));
        for (rest, body) in [
            ("initial", json!({ "password": FIRST })),
            ("reset", json!({ "newPassword": FIRST })),
            ("change", json!({ "oldPassword": FIRST, "newPassword": SECOND })),
        ] {
            world.admin.post(&path(rest), body).await.problem(404, "not-found");
        }
        for rest in ["initial/reset", "reset/request", "reset/sendresetemail"] {
            world.admin.send(http::Method::POST, &path(rest), &[], Vec::new()).await.problem(404, "not-found");
        }
        world.admin.send(http::Method::POST, &world.path(&format!("{UNKNOWN_USER}/lockout/reset")), &[], Vec::new()).await.problem(404, "not-found");
        world.admin.post(&world.path("/User/ada/password/reset"), json!({ "newPassword": FIRST })).await.problem(400, "invalid-request");
    }

    /// A dry run changes nothing, except that a guess at a password counts in any case.
    async fn a_dry_run_is_no_way_to_guess(world: World) {
        set(&world.admin, "LoginThrottlingEnabled", "false").await;
        let ada = Person::named(&world, "ada").await;
        let before = (ada.read().await, ada.events().await);
        for rest in ["password/reset", "password/initial"] {
            let member = if rest.ends_with("initial") { "password" } else { "newPassword" };
            let user = ada.post(&format!("{rest}?dryRun=true"), json!({ member: SECOND })).await.is(200).json();
            assert_ne!(user["concurrencyToken"], before.0["concurrencyToken"]);
            assert_eq!(wrong(ada.post(&format!("{rest}?dryRun=true"), json!({ member: "short" })).await), [format!("/{member}")]);
        }
        let body = json!({ "oldPassword": FIRST, "newPassword": SECOND });
        let user = ada.post("password/change?dryRun=true", body.clone()).await.is(200).json();
        assert_ne!(user["concurrencyToken"], before.0["concurrencyToken"]);
        assert_eq!((ada.read().await, ada.events().await), before);

        let guess = json!({ "oldPassword": SECOND, "newPassword": FIRST });
        assert_eq!(wrong(ada.post("password/change?dryRun=true", guess.clone()).await), ["/oldPassword"]);
        assert_eq!(counters(&ada.read().await), (1, 1));
        ada.post("password/change?dryRun=true", body.clone()).await.expect(200);
        assert_eq!(counters(&ada.read().await), (0, 0), "as a right one would");
        for _ in 0..5 {
            ada.post("password/change?dryRun=true", guess.clone()).await.expect(400);
        }
        assert!(ada.read().await["lockedUntil"].is_string());
        assert_eq!(wrong(ada.post("password/change?dryRun=true", body).await), ["/oldPassword"]);
    }

    /// Of two changes with the same old password one is too late: it is not the password any more.
    async fn the_old_password_proves_once(world: World) {
        set(&world.admin, "LoginThrottlingEnabled", "false").await;
        set(&world.admin, "TemporaryLockEnabled", "false").await;
        let ada = Person::named(&world, "ada").await;
        let news: Vec<String> = (0..4).map(|number| format!("a hedge with {number} gates")).collect();
        let changes = news.iter().map(|new| ada.change(FIRST, new));
        let answers = futures_util::future::join_all(changes).await;
        let done: Vec<&String> = news.iter().zip(&answers).filter(|(_, answer)| answer.status == 200).map(|(new, _)| new).collect();
        assert_eq!(done.len(), 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
        assert!(ada.has(done[0]).await);
    }

    /// A POST with an Idempotency-Key is executed once, and its answer repeated.
    async fn a_repeated_request_is_done_once(world: World) {
        let ada = Person::named(&world, "ada").await;
        let path = format!("{}/password/change", ada.path);
        let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
        let body = json!({ "oldPassword": FIRST, "newPassword": SECOND }).to_string().into_bytes();
        let first = world.admin.send(http::Method::POST, &path, &headers, body.clone()).await.is(200);
        let again = world.admin.send(http::Method::POST, &path, &headers, body).await.is(200);
        assert_eq!((again.header("idempotency-replayed"), again.json()), (Some("true"), first.json()));
        let other = json!({ "oldPassword": SECOND, "newPassword": FIRST }).to_string().into_bytes();
        world.admin.send(http::Method::POST, &path, &headers, other).await.problem(422, "idempotency-key-reused");
        assert_eq!(counters(&ada.read().await), (0, 0));
        let wrong_one = json!({ "oldPassword": FIRST, "newPassword": SECOND }).to_string().into_bytes();
        let headers = [("content-type", "application/json"), ("idempotency-key", "k2")];
        for _ in 0..2 {
            world.admin.send(http::Method::POST, &path, &headers, wrong_one.clone()).await.expect(400);
        }
        assert_eq!(counters(&ada.read().await), (1, 1), "a refusal is given again, not guessed again");
    }
}
