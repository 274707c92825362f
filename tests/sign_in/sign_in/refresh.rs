//! Refresh tokens, and the ends of their grants.

use chancery_record::Value as Bound;
use chancery_store::Mode;
use chancery_testkit::{Answer, World, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    PASSWORD, SignInApp, browser::Browser, change, claims, encode, first, form, parameter, relate,
    tenant_option,
};
use crate::id;

const OFFLINE: &str = "openid profile offline_access";

/// The tokens of a person who signs in with `offline_access`.
async fn offline(world: &World, home: &SignInApp) -> (Browser, Value) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[("scope", OFFLINE)])).await;
    let answer = browser.sign_in(&page, "ann", PASSWORD).await;
    let code = parameter(&answer, "code").unwrap();
    (browser, home.redeem(world, &code, &[]).await.is(200).json())
}

async fn refresh(world: &World, home: &SignInApp, token: &Value, more: &[(&str, &str)]) -> Answer {
    let usual = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token.as_str().unwrap()),
        ("client_id", id(&home.app)),
        ("client_secret", home.secret.as_str()),
    ];
    let all = usual.into_iter().chain(more.iter().copied()).filter(|(_, value)| !value.is_empty());
    let form: Vec<String> = all.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    world.anonymous.ask_for_token(&form.join("&")).await
}

async fn is_accepted(world: &World, tokens: &Value) -> bool {
    let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
    bearer.get("/connect/userinfo").await.status == 200
}

fn public() -> Value {
    json!({ "isPublic": true })
}

on_both_engines! {
    /// A restore ends sessions, refresh tokens and codes: otherwise those that were revoked after the backup would be valid again.
    async fn a_restore_ends_sessions_tokens_and_codes(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, tokens) = offline(&world, &home).await;
        let tokens = refresh(&world, &home, &tokens["refresh_token"], &[]).await.is(200).json();
        let (_, answer) = home.sign_in(&world).await;
        chancery::end_rows(&world.app.store, chancery_web::now()).await.unwrap();
        refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(400);
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(400);
        let page = browser.open(&home.request(&[])).await;
        assert!(page.html.contains("name=\"password\""), "the session is over: {}", page.html);
    }

    /// OpenID Connect Core 1.0, sections 11 and 12: the token is issued with `offline_access`, and lasts beyond the
    /// session; the ID token contains the time of the sign-in.
    async fn offline_access_outlasts_the_session(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let plain = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert!(plain.get("refresh_token").is_none(), "{plain}");
        let (mut browser, first) = offline(&world, &home).await;
        assert_eq!(first["scope"], json!(OFFLINE));
        let page = browser.open("/connect/endsession").await;
        let csrf = page.field("csrf");
        browser.post(&page.action(), &[("csrf", &csrf), ("decision", "allow")], &[]).await;
        assert!(is_accepted(&world, &first).await, "the grant outlasts its session");
        let second = refresh(&world, &home, &first["refresh_token"], &[]).await.is(200).json();
        assert!(is_accepted(&world, &second).await);
        let (before, after) = (claims(&first["id_token"]), claims(&second["id_token"]));
        for same in ["sub", "aud", "auth_time", "acr", "amr", "tid", "sid", "iss"] {
            assert_eq!(before[same], after[same], "{same}");
        }
        assert!(after.get("nonce").is_none(), "section 12.2");
        assert_eq!(second["refresh_token"], first["refresh_token"], "a client app that proves itself keeps its token");
    }

    /// RFC 6749, section 6: the scope can be narrowed for this response, but not exceed the grant.
    async fn a_refresh_can_narrow_the_scope(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, tokens) = offline(&world, &home).await;
        let token = &tokens["refresh_token"];
        let less = refresh(&world, &home, token, &[("scope", "openid")]).await.is(200).json();
        assert_eq!(less["scope"], json!("openid"));
        let more = refresh(&world, &home, token, &[("scope", "openid email")]).await.is(400).json();
        assert_eq!(more["error"], json!("invalid_scope"));
        assert_eq!(refresh(&world, &home, token, &[]).await.is(200).json()["scope"], json!(OFFLINE));
    }

    /// A resource can be requested in each spelling of its URI, at each endpoint; consent and tokens contain the registered one.
    async fn resource_uris_are_normalized(world: World) {
        let home = SignInApp::with(&world, json!({ "accessGrantConsent": "Explicit", "allowDeviceAuthorizationGrant": true })).await;
        let registered = "https://mcp.example.com";
        for key in [registered, "https://api.example.com/v1"] {
            world.make("ClientAppResource", json!({ "clientAppId": home.app["id"], "key": key })).await;
        }
        let spelled = "HTTPS://mcp.example.com:443/";
        let mut browser = Browser::new(&world);
        let request = home.request(&[("scope", OFFLINE), ("resource", spelled)]);
        let page = browser.open(&request).await;
        let consent = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(consent.html.contains(registered) && !consent.html.contains(spelled), "{}", consent.html);
        let given = [("decision", "allow"), ("remember", "true"), ("scope", "profile"), ("scope", "offline_access")];
        let next = browser.submit(&consent, &given).await;
        let code = parameter(&browser.continue_to_app(&next).await, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[("resource", "https://mcp.example.com/")]).await.is(200).json();
        assert_eq!(claims(&tokens["access_token"])["aud"], json!([registered]));
        let token = &tokens["refresh_token"];
        let less = refresh(&world, &home, token, &[("resource", spelled)]).await.is(200).json();
        assert_eq!(claims(&less["access_token"])["aud"], json!([registered]));
        refresh(&world, &home, token, &[("resource", "https://api.example.com/v1")]).await.expect(400);
        // the stored consent applies to the resource, however it is spelled
        let again = browser.open(&home.request(&[("scope", OFFLINE), ("resource", registered)])).await;
        assert!(again.left.is_some(), "{}", again.html);
        let fields = [("client_id", id(&home.app)), ("client_secret", home.secret.as_str()), ("resource", spelled)];
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let sent = form(fields.into_iter()).into_bytes();
        world.anonymous.send(http::Method::POST, "/connect/deviceauthorization", &headers, sent).await.expect(200);
    }

    /// Tokens end when the app or the tenant loses the instance of the sign-in. A
    /// store that is closed because of wrong options ends nothing.
    async fn tokens_end_with_the_instance_of_the_sign_in(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, tokens) = offline(&world, &home).await;
        let token = &tokens["refresh_token"];
        let instance = first(&world, "/IdpInstance").await;
        let introspection_form = |of: &Value| {
            let own = [("client_id", id(&home.app)), ("client_secret", home.secret.as_str())];
            form(own.into_iter().chain([("token", of.as_str().unwrap())])).into_bytes()
        };
        let is_active = async |of: &Value| {
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            let answer = world.anonymous.send(http::Method::POST, "/connect/introspect", &headers, introspection_form(of)).await;
            answer.is(200).json()["active"] == json!(true)
        };
        let (app, tenant) = (format!("/ClientApp/{}/idpinstances", id(&home.app)), format!("/Tenant/{}/idpinstances", home.tenant));
        for path in [app, tenant] {
            relate(&world, &path, &[]).await;
            refresh(&world, &home, token, &[]).await.expect(400);
            assert!(!is_accepted(&world, &tokens).await, "{path}");
            assert!(!is_active(token).await && !is_active(&tokens["access_token"]).await, "{path}");
            relate(&world, &path, &[id(&instance)]).await;
            assert!(is_accepted(&world, &tokens).await && is_active(token).await, "{path}");
            assert!(is_active(&tokens["access_token"]).await, "{path}");
            refresh(&world, &home, token, &[]).await.expect(200);
        }
        world.sql(vec![("UPDATE option_value SET has_configuration_error = TRUE WHERE name = 'PasswordMinLength'", vec![])]).await;
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "name": "read anew" })).await;
        refresh(&world, &home, token, &[]).await.expect(200);
        assert!(is_accepted(&world, &tokens).await);
    }

    /// A public app's token is replaced at each use; within the leeway a second use gets the same successor, so
    /// that two tabs, or a lost response, do no harm.
    ///
    /// - Effect of `ClientApp.isPublic`: The app needs no secret; it must use PKCE, and its refresh tokens change with each use.
    async fn refresh_tokens_of_public_apps_rotate(world: World) {
        let home = SignInApp::with(&world, public()).await;
        let (_, first) = offline(&world, &home).await;
        let second = refresh(&world, &home, &first["refresh_token"], &[]).await.is(200).json();
        assert_ne!(first["refresh_token"], second["refresh_token"]);
        let again = refresh(&world, &home, &first["refresh_token"], &[]).await.is(200).json();
        assert_eq!(again["refresh_token"], second["refresh_token"]);
        let third = refresh(&world, &home, &second["refresh_token"], &[]).await.is(200).json();
        // two generations back is reuse, independent of the leeway: the token may be stolen
        let reused = refresh(&world, &home, &first["refresh_token"], &[]).await.is(400).json();
        assert_eq!(reused["error"], json!("invalid_grant"));
        refresh(&world, &home, &third["refresh_token"], &[]).await.expect(400);
        assert!(!is_accepted(&world, &third).await, "reuse ends the grant");
    }

    /// Beyond the leeway the use of a replaced token ends the grant.
    async fn reuse_ends_the_grant(world: World) {
        let home = SignInApp::with(&world, public()).await;
        tenant_option(&world, &home, "RefreshTokenReuseLeeway", "00:00:00").await;
        let (_, first) = offline(&world, &home).await;
        let second = refresh(&world, &home, &first["refresh_token"], &[]).await.is(200).json();
        refresh(&world, &home, &first["refresh_token"], &[]).await.expect(400);
        refresh(&world, &home, &second["refresh_token"], &[]).await.expect(400);
        let records = world.all("SignInRecord").await;
        let outcomes: Vec<&Value> = records.as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
        assert_eq!(outcomes, [&json!("SignedIn"), &json!("Reused")]);
    }

    /// Concurrent uses all get the same successor, from a single rotation.
    async fn concurrent_refreshes_get_one_successor(world: World) {
        let home = SignInApp::with(&world, public()).await;
        let (_, first) = offline(&world, &home).await;
        let answers = join_all((0..12).map(|_| refresh(&world, &home, &first["refresh_token"], &[]))).await;
        let mut got: Vec<String> =
            answers.into_iter().map(|answer| answer.is(200).json()["refresh_token"].to_string()).collect();
        got.dedup();
        assert_eq!(got.len(), 1);
    }

    /// A token is valid for its own app, at its own issuer, and cannot be forged.
    async fn a_refresh_token_is_bound_to_its_app_and_issuer(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, tokens) = offline(&world, &home).await;
        let token = &tokens["refresh_token"];
        let text = token.as_str().unwrap();
        let flipped = if text.ends_with('A') { "E" } else { "A" };
        for wrong in [format!("{}{flipped}", &text[..text.len() - 1]), "x".to_owned(), text[..28].to_owned()] {
            refresh(&world, &home, &json!(wrong), &[]).await.expect(400);
        }
        let other = world.make("ClientApp", json!({ "name": "Other", "isPublic": true })).await;
        let form = format!("grant_type=refresh_token&client_id={}&refresh_token={text}", id(&other));
        let refused = world.anonymous.ask_for_token(&form).await.is(400).json();
        assert_eq!(refused["error"], json!("invalid_grant"));
        let form = format!(
            "grant_type=refresh_token&client_id={}&client_secret={}&refresh_token={text}", id(&home.app), home.secret
        );
        let path = format!("/t/{}/connect/token", home.tenant);
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let other_issuer = world.anonymous.send(http::Method::POST, &path, &headers, form.into_bytes()).await;
        assert_eq!(other_issuer.is(400).json()["error"], json!("invalid_grant"), "another issuer's");
        refresh(&world, &home, token, &[]).await.expect(200);
    }

    /// Events that end sessions and grants permanently (section 13), even if they are undone.
    ///
    /// - Effect of `User.isUserActive`: A user who is not active cannot sign in, and loses all sessions and tokens.
    async fn locking_a_person_out_ends_sessions_and_grants(world: World) {
        let home = SignInApp::new(&world).await;
        let one = world.path(&format!("/User/{}", id(&home.user)));
        let state = format!("{one}/state");
        let undone = [
            (json!({ "isUserActive": false }), json!({ "isUserActive": true })),
            (json!({ "isUserLocked": true }), json!({ "isUserLocked": false })),
        ];
        for (out, back) in undone {
            let (mut browser, tokens) = offline(&world, &home).await;
            world.admin.post(&state, out.clone()).await.expect(200);
            world.admin.post(&state, back).await.expect(200);
            assert!(!is_accepted(&world, &tokens).await, "{out}");
            refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(400);
            let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"), "{out}");
        }
    }

    async fn a_password_reset_ends_sessions_and_grants(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, tokens) = offline(&world, &home).await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&home.user)));
        world.admin.post(&reset, json!({ "newPassword": "five quiet brown owls" })).await.expect(200);
        assert!(!is_accepted(&world, &tokens).await);
        refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(400);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
    }

    /// Deleted and restored from the quarantine: the sessions have ended nevertheless.
    async fn deletion_of_a_user_ends_sessions_and_grants(world: World) {
        let home = SignInApp::new(&world).await;
        world.set_option("UserDeletionQuarantineEnabled", "true").await;
        let (_, tokens) = offline(&world, &home).await;
        let one = world.path(&format!("/User/{}", id(&home.user)));
        world.admin.delete(&one).await.expect(204);
        assert!(!is_accepted(&world, &tokens).await);
        world.admin.post(&format!("{one}/restore-deletion"), json!(null)).await.expect(200);
        assert!(!is_accepted(&world, &tokens).await);
        refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(400);
    }

    /// The current settings apply: an inactive app, or one restricted to others, gets no tokens.
    async fn a_refresh_applies_the_current_settings_of_the_app(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, tokens) = offline(&world, &home).await;
        let path = format!("/ClientApp/{}", id(&home.app));
        for (member, off) in [("isRestricted", true), ("allowUserLogin", false), ("enabled", false)] {
            change(&world, &path, json!({ member: off })).await;
            let refused = refresh(&world, &home, &tokens["refresh_token"], &[]).await;
            assert!(refused.status == 400 || refused.status == 401, "{member}: {}", refused.status);
            change(&world, &path, json!({ member: !off })).await;
            refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(200);
        }
    }

    /// A refresh token is valid 14 days from its last use, and at most 90 days in all.
    async fn refresh_tokens_expire(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, tokens) = offline(&world, &home).await;
        refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(200);
        let past = "UPDATE sign_in_grant SET used_on = used_on - 1210000000";
        world.sql(vec![(past, vec![])]).await;
        refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(400);
        let back = "UPDATE sign_in_grant SET used_on = used_on + 1210000000, started_on = started_on - 7776000001";
        world.sql(vec![(back, vec![])]).await;
        refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(400);
    }

    /// A use that replaces no token is written every five minutes at most, so most refreshes write nothing.
    async fn a_use_without_rotation_is_written_every_five_minutes(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, tokens) = offline(&world, &home).await;
        // the last use, and how long the grant is retained
        let grant = async || {
            let text = "SELECT max(used_on), max(expires_on) FROM sign_in_grant";
            let read = world.app.store.run("Test", Mode::Quick, None, move |tx| {
                tx.one(text, &[], |row| Ok((row.int(0)?, row.int(1)?)))
            });
            read.await.unwrap().unwrap()
        };
        let again = async || refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(200);
        // retention ends at a full hour: an hour that ends during the test makes no use due
        let retain_longer = async || {
            world.sql(vec![("UPDATE sign_in_grant SET expires_on = expires_on + 3600000", vec![])]).await;
        };
        retain_longer().await;
        let issued = grant().await;
        again().await;
        assert_eq!(grant().await, issued);
        world.sql(vec![("UPDATE sign_in_grant SET used_on = used_on - 300000", vec![])]).await;
        again().await;
        let written = grant().await;
        assert!(written.0 >= issued.0, "{written:?} {issued:?}");
        retain_longer().await;
        let used = grant().await;
        again().await;
        assert_eq!(grant().await, used);
        // tokens do not outlive their grant
        world.sql(vec![("UPDATE sign_in_grant SET expires_on = expires_on - 7200000", vec![])]).await;
        again().await;
        assert!(grant().await.1 >= written.1, "{written:?}");
    }

    /// RefreshTokenLifetime counts from the last use, and RefreshTokenAbsoluteLifetime from the sign-in.
    ///
    /// - Effect of `Tenant options.RefreshTokenAbsoluteLifetime`: Refresh tokens of a sign-in last no longer than this, however they are
    ///   used.
    /// - Effect of `Tenant options.RefreshTokenLifetime`: A refresh token is valid for this time from its last use.
    async fn refresh_tokens_follow_the_lifetimes_of_the_tenant(world: World) {
        const MINUTE: i64 = 60_000;
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "RefreshTokenLifetime", "02:00:00").await;
        tenant_option(&world, &home, "RefreshTokenAbsoluteLifetime", "05:00:00").await;
        let unused = "UPDATE sign_in_grant SET used_on = used_on - ?1";
        let older = "UPDATE sign_in_grant SET started_on = started_on - ?1";
        for (text, steps) in [(unused, [(119, 200), (119, 200), (121, 400)]), (older, [(200, 200), (99, 200), (2, 400)])] {
            let (_, tokens) = offline(&world, &home).await;
            for (minutes, status) in steps {
                world.sql(vec![(text, vec![Bound::Int(minutes * MINUTE)])]).await;
                refresh(&world, &home, &tokens["refresh_token"], &[]).await.expect(status);
            }
        }
    }

    /// RFC 7009: the revocation of a refresh token ends the grant. RFC 7662: only its own app can introspect it.
    async fn a_refresh_token_can_be_introspected_and_revoked(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, tokens) = offline(&world, &home).await;
        let other = world.make("ClientApp", json!({ "name": "Other" })).await;
        let secret = world.make("ClientAppSecret", json!({ "clientAppId": other["id"], "name": "s" })).await;
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let send = async |path: &str, token: &Value, (client, secret): (&str, &str)| {
            let form = format!("token={}&client_id={client}&client_secret={secret}", token.as_str().unwrap());
            world.anonymous.send(http::Method::POST, path, &headers, form.into_bytes()).await
        };
        let (token, access) = (&tokens["refresh_token"], &tokens["access_token"]);
        let own = (id(&home.app), home.secret.as_str());
        let foreign = (id(&other), secret["secret"].as_str().unwrap());
        let introspected = send("/connect/introspect", token, own).await.is(200).json();
        assert_eq!((&introspected["active"], &introspected["scope"]), (&json!(true), &json!(OFFLINE)));
        assert_eq!(send("/connect/introspect", access, own).await.is(200).json()["active"], json!(true));
        for token in [token, access] {
            let introspected = send("/connect/introspect", token, foreign).await.is(200).json();
            assert_eq!(introspected, json!({ "active": false }));
            send("/connect/revoke", token, foreign).await.expect(400);
        }
        send("/connect/revoke", token, own).await.expect(200);
        assert!(!is_accepted(&world, &tokens).await);
        refresh(&world, &home, token, &[]).await.expect(400);
        for token in [token, access] {
            assert_eq!(send("/connect/introspect", token, own).await.is(200).json(), json!({ "active": false }));
        }
        send("/connect/revoke", token, own).await.expect(200);
    }
}
