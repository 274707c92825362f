//! Tokens that reset a password: created, mailed, used once.

use chancery_record::Value as Bound;
use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use crate::{
    encode,
    signing::{FIRST, Person, SECOND, counters, mails, set, set_mail_server, texts, wrong},
};

const HOUR: i64 = 3600 * 1000;

async fn ada(world: &World) -> Person<'_> {
    let ada = Person::new(world, json!({ "loginName": "ada", "emailAddress": "ada@example.com" })).await;
    ada.reset(FIRST).await.expect(200);
    ada
}

/// As if this many milliseconds had passed for the existing tokens.
async fn age(world: &World, milliseconds: i64) {
    let text = "UPDATE password_reset SET expires_on = expires_on - ?1";
    world.sql(vec![(text, vec![Bound::Int(milliseconds)])]).await;
}

on_both_engines! {
    /// `sendresetemail`: 400 without an e-mail address, 409 when no mail server is configured.
    async fn a_token_goes_out_by_mail_alone(world: World) {
        let nameless = Person::named(&world, "bob").await;
        let ada = ada(&world).await;
        for rest in ["password/reset/sendresetemail", "password/reset/request"] {
            ada.call(rest).await.problem(409, "conflict");
        }
        nameless.call("password/reset/sendresetemail").await.problem(400, "invalid-request");
        set(&world.admin, "MailServerConfig", r#"{"Host":"127.0.0.1","Port":9}"#).await;
        ada.call("password/reset/sendresetemail").await.problem(409, "conflict");
        set_mail_server(&world.admin).await;
        nameless.call("password/reset/sendresetemail").await.problem(400, "invalid-request");
        nameless.call("password/reset/request").await.problem(400, "invalid-request");
        ada.call("password/reset/request?dryRun=true").await.expect(200);
        assert!(mails(&world).await.is_empty());

        for (count, rest) in ["sendresetemail", "request"].into_iter().enumerate() {
            let before = ada.read().await;
            let answer = ada.call(&format!("password/reset/{rest}")).await.is(200);
            let user = answer.json();
            assert_eq!(ada.read().await, user);
            assert_ne!(user["concurrencyToken"], before["concurrencyToken"]);
            let mails = mails(&world).await;
            assert_eq!(mails.len(), count + 1);
            let mail = &mails[count];
            assert_eq!((&mail["recipient"], &mail["kind"]), (&json!("ada@example.com"), &json!("PasswordReset")));
            let token = mail["token"].as_str().unwrap();
            assert_eq!(token.len(), 43, "256 bits in base64url");
            assert!(!String::from_utf8_lossy(&answer.bytes).contains(token));
        }
        assert_eq!(ada.events().await[2..], ["password-reset-requested", "password-reset-requested"]);
        let entry = ada.entries().await.pop().unwrap();
        assert_eq!((&entry["action"], &entry["area"]), (&json!("Modified"), &json!("User")));
    }

    /// PasswordResetUrlTemplate: the placeholders are filled percent-encoded.
    ///
    /// - Effect of `UserStore options.PasswordResetUrlTemplate`: Mails that reset a password link to this address.
    async fn the_mail_has_a_link_where_the_store_has_a_template(world: World) {
        set_mail_server(&world.admin).await;
        set(&world.admin, "PasswordResetUrlTemplate", "https://id.example.com/reset?u={loginName}#{token}").await;
        let body = json!({ "loginName": "a&b=\u{fc} {token}", "emailAddress": "ada@example.com" });
        let ada = Person::new(&world, body).await;
        ada.call("password/reset/sendresetemail").await.expect(200);
        let mail = mails(&world).await.pop().unwrap();
        let link = mail["link"].as_str().unwrap();
        let (login, token) = link.strip_prefix("https://id.example.com/reset?u=").unwrap().split_once('#').unwrap();
        assert_eq!(login, encode("a&b=\u{fc} {token}"));
        let token = token.replace("%2D", "-").replace("%5F", "_");
        ada.redeem(&token, SECOND).await.expect(200);
    }

    /// Single use, one at a time, only its user's.
    async fn a_token_works_once_for_one_user(world: World) {
        set_mail_server(&world.admin).await;
        let ada = ada(&world).await;
        let bob = Person::new(&world, json!({ "loginName": "bob", "emailAddress": "bob@example.com" })).await;
        let (first, token) = (ada.token().await, ada.token().await);
        assert_ne!(first, token);
        assert_eq!(wrong(ada.redeem(&first, SECOND).await), ["/token"], "another was made");
        assert_eq!(wrong(bob.redeem(&token, SECOND).await), ["/token"]);
        assert_eq!(wrong(ada.redeem(&format!("{token}x"), SECOND).await), ["/token"]);
        assert_eq!(counters(&ada.read().await), (0, 0), "a bad token counts nothing");
        let before = ada.read().await;
        let user = ada.redeem(&token, SECOND).await.is(200).json();
        assert_ne!(user["concurrencyToken"], before["concurrencyToken"]);
        assert_eq!(ada.events().await.last().unwrap(), "password-reset");
        assert!(ada.has(SECOND).await);
        assert_eq!(wrong(ada.redeem(&token, FIRST).await), ["/token"]);
    }

    async fn one_of_many_at_once_uses_a_token(world: World) {
        set_mail_server(&world.admin).await;
        let ada = ada(&world).await;
        let token = ada.token().await;
        let news: Vec<String> = (0..5).map(|number| format!("a hedge with {number} gates")).collect();
        let answers = futures_util::future::join_all(news.iter().map(|new| ada.redeem(&token, new))).await;
        let done: Vec<&String> = news.iter().zip(&answers).filter(|(_, answer)| answer.status == 200).map(|(new, _)| new).collect();
        assert_eq!(done.len(), 1);
        assert!(ada.has(done[0]).await);
    }

    /// A15: a token becomes invalid with a change of its address, in any way, and does not become valid again
    /// with the address.
    async fn a_token_dies_with_its_address(world: World) {
        set_mail_server(&world.admin).await;
        let ada = ada(&world).await;
        let path = |rest: &str| world.path(&format!("/User/{}{rest}", ada.id));
        for way in ["patch", "put", "member", "batch", "v1", "empty"] {
            let token = ada.token().await;
            ada.patch(json!({ "firstName": way })).await;
            let user = ada.read().await;
            let mut other = user.clone();
            other["emailAddress"] = json!(format!("{way}@example.com"));
            let sent = json!({ "emailAddress": other["emailAddress"], "concurrencyToken": user["concurrencyToken"] });
            let answer = match way {
                "patch" => world.admin.patch(&path(""), sent).await,
                "put" => world.admin.put(&path(""), other).await,
                "member" => world.admin.put(&path("/emailaddress"), sent).await,
                "batch" => world.admin.put(&world.path("/User/batch"), json!([other])).await,
                "v1" => {
                    let old = format!("/api/userstore/v1/default/administration/User/{}", ada.id);
                    world.admin.patch(&old, json!([{ "op": "replace", "path": "/emailAddress", "value": other["emailAddress"] }])).await
                }
                _ => {
                    other["emailAddress"] = json!(null);
                    world.admin.put(&path(""), other).await
                }
            };
            assert!(answer.status.is_success(), "{way}: {answer:?}");
            ada.patch(json!({ "emailAddress": "ada@example.com" })).await;
            assert_eq!(wrong(ada.redeem(&token, SECOND).await), ["/token"], "{way}");
        }
        let token = ada.token().await;
        ada.patch(json!({ "firstName": "Ada" })).await;
        ada.redeem(&token, SECOND).await.expect(200);
    }

    /// Section 15: an administrator's initial password ends a temporary lock, and no other.
    async fn an_initial_password_ends_a_temporary_lock(world: World) {
        let ada = ada(&world).await;
        ada.post("state", json!({ "lockedUntil": "2099-01-01T00:00:00Z" })).await.expect(200);
        let user = ada.initial(SECOND).await.is(200).json();
        assert_eq!(user["lockedUntil"], json!(null));
        assert_eq!(counters(&user), (0, 0));
        assert!(ada.has(SECOND).await);
        ada.post("state", json!({ "isUserLocked": true })).await.expect(200);
        assert_eq!(ada.initial(FIRST).await.is(200).json()["isUserLocked"], true);
    }

    /// Invalid after any change of the password, after its lifetime, and after a deletion.
    ///
    /// - Effect of `UserStore options.PasswordResetTokenLifetime`: A link that resets a password works for this time.
    async fn a_token_dies(world: World) {
        set_mail_server(&world.admin).await;
        set(&world.admin, "PasswordResetTokenLifetime", "02:00:00").await;
        let ada = ada(&world).await;
        let token = ada.token().await;
        ada.change(FIRST, SECOND).await.expect(200);
        assert_eq!(wrong(ada.redeem(&token, FIRST).await), ["/token"]);
        let token = ada.token().await;
        ada.reset(SECOND).await.expect(200);
        assert_eq!(wrong(ada.redeem(&token, FIRST).await), ["/token"]);
        let token = ada.token().await;
        ada.initial(SECOND).await.expect(200);
        assert_eq!(wrong(ada.redeem(&token, FIRST).await), ["/token"]);

        let token = ada.token().await;
        age(&world, 2 * HOUR).await;
        assert_eq!(wrong(ada.redeem(&token, FIRST).await), ["/token"]);
        let token = ada.token().await;
        age(&world, 2 * HOUR - 60_000).await;
        ada.redeem(&token, FIRST).await.expect(200);

        let token = ada.token().await;
        world.admin.delete(&ada.path).await.expect(204);
        ada.redeem(&token, SECOND).await.problem(404, "not-found");
        ada.call("restore-deletion").await.expect(200);
        assert_eq!(wrong(ada.redeem(&token, SECOND).await), ["/token"]);
        assert!(ada.has(FIRST).await);
    }

    /// A refused password leaves the token valid: its user tries a better one.
    async fn a_token_outlives_a_password_that_breaks_rules(world: World) {
        set_mail_server(&world.admin).await;
        let ada = ada(&world).await;
        set(&world.admin, "PasswordRequireDigit", "true").await;
        let token = ada.token().await;
        assert_eq!(wrong(ada.redeem(&token, "password").await), ["/newPassword", "/newPassword"]);
        assert_eq!(wrong(ada.post("password/reset/response?dryRun=true", json!({ "token": token, "newPassword": "short" })).await), ["/newPassword"; 2]);
        ada.post("password/reset/response?dryRun=true", json!({ "token": token, "newPassword": "a good one, 1815" })).await.expect(200);
        ada.redeem(&token, "a good one, 1815").await.expect(200);
    }

    /// Flags and expiry are those of a new password; the change needs no old one, even expired.
    async fn a_token_sets_what_a_reset_sets(world: World) {
        set_mail_server(&world.admin).await;
        let ada = ada(&world).await;
        let body = json!({ "password": SECOND, "passwordExpiration": "2020-01-01T00:00:00Z" });
        ada.post("password/initial", body).await.expect(200);
        ada.patch(json!({ "canChangePasswordOnExpiration": false })).await;
        let token = ada.token().await;
        let user = ada.redeem(&token, FIRST).await.is(200).json();
        assert_eq!((&user["isInitialPassword"], &user["isPasswordChangeRequired"]), (&json!(false), &json!(false)));
        assert_eq!(user["passwordExpiration"], json!(null));
        assert!(ada.has(FIRST).await);
    }

    /// A valid token works during a temporary lock and ends it, not during a permanent one; nor for
    /// those who may not sign in.
    async fn a_token_ends_a_temporary_lock(world: World) {
        set_mail_server(&world.admin).await;
        let ada = ada(&world).await;
        ada.change("not it", SECOND).await.expect(400);
        ada.post("state", json!({ "lockedUntil": "2099-01-01T00:00:00Z" })).await.expect(200);
        let token = ada.token().await;
        let user = ada.redeem(&token, SECOND).await.is(200).json();
        assert_eq!((&user["lockedUntil"], counters(&user)), (&json!(null), (0, 0)));
        assert!(ada.has(SECOND).await, "no delay is left either");

        let token = ada.token().await;
        ada.post("state", json!({ "isUserLocked": true })).await.expect(200);
        assert_eq!(wrong(ada.redeem(&token, FIRST).await), ["/token"]);
        ada.patch(json!({ "isUserLockEnabled": false })).await;
        ada.redeem(&token, FIRST).await.expect(200);
        assert_eq!(ada.read().await["isUserLocked"], true, "only an administrator ends it");
        ada.patch(json!({ "isUserLockEnabled": true })).await;
        ada.call("lockout/reset").await.expect(200);

        let token = ada.token().await;
        for patch in [json!({ "isUserActive": false }), json!({ "isUserActive": true, "userValidTo": "2020-01-01T00:00:00Z" })] {
            ada.patch(patch).await;
            assert_eq!(wrong(ada.redeem(&token, SECOND).await), ["/token"]);
        }
        ada.patch(json!({ "userValidTo": "2099-01-01T00:00:00Z" })).await;
        ada.redeem(&token, SECOND).await.expect(200);
    }

    /// Only a digest is stored.
    async fn only_a_digest_of_a_token_is_stored(world: World) {
        set_mail_server(&world.admin).await;
        let ada = ada(&world).await;
        let token = ada.token().await;
        ada.redeem(&token, SECOND).await.expect(200);
        for table in ["SELECT envelope FROM outbox_event", "SELECT COALESCE(current_content, '') || COALESCE(original_content, '') FROM audit_entry"] {
            assert!(!texts(&world, table).await.concat().contains(&token));
        }
    }
}
