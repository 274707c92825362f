//! Authorization codes, and the tokens that they are redeemed for.

use chancery_testkit::on_both_engines;
use futures_util::future::join_all;
use serde_json::json;

use super::{CALLBACK, PASSWORD, SignInApp, browser::Browser, claims, parameter};
use crate::id;

on_both_engines! {
    /// Step 1: a person signs in to an app, which gets tokens and identifies the person.
    ///
    /// - Effect of `User.emailAddress`: Mails go to this address, and apps with the scope `email` get it as `email`.
    /// - Effect of `User.loginName`: The user signs in with this name, and apps get it as `preferred_username`.
    async fn a_person_signs_in(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        assert!(answer.starts_with(&format!("{CALLBACK}?")), "{answer}");
        assert_eq!(parameter(&answer, "state").as_deref(), Some("s-1"));
        assert_eq!(parameter(&answer, "iss").as_deref(), Some(world.base.as_str()), "RFC 9207");
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        assert_eq!((&tokens["token_type"], &tokens["scope"]), (&json!("Bearer"), &json!("openid profile email")));
        let id_claims = claims(&tokens["id_token"]);
        assert_eq!((&id_claims["iss"], &id_claims["aud"]), (&json!(world.base), &home.app["id"]));
        assert_eq!((&id_claims["nonce"], &id_claims["acr"], &id_claims["amr"]), (&json!("n-1"), &json!("sfa"), &json!(["pwd"])));
        assert_eq!(id_claims["tid"], json!(home.tenant));
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let userinfo = bearer.get("/connect/userinfo").await.is(200).json();
        assert_eq!(userinfo["sub"], id_claims["sub"]);
        assert_ne!(userinfo["sub"], home.user["id"], "the person's id, not the store user's");
        assert_eq!(
            (&userinfo["name"], &userinfo["preferred_username"], &userinfo["email"], &userinfo["email_verified"]),
            (&json!("Ann Archer"), &json!("ann"), &json!("ann@example.com"), &json!(true))
        );
    }

    /// RFC 6749, section 4.1.2: a code is valid once; a second use revokes its tokens.
    async fn a_code_can_be_redeemed_once(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(200);
        let again = home.redeem(&world, &code, &[]).await.is(400).json();
        assert_eq!(again["error"], json!("invalid_grant"));
        bearer.get("/connect/userinfo").await.expect(401);
    }

    /// A code survives five wrong redemptions.
    async fn a_wrong_redemption_does_not_use_up_a_code(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        for wrong in [
            [("redirect_uri", "https://app.example/other")],
            [("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl")],
            [("code_verifier", "")],
        ] {
            let refused = home.redeem(&world, &code, &wrong).await.is(400).json();
            assert_eq!(refused["error"], json!("invalid_grant"), "{wrong:?}");
        }
        home.redeem(&world, "another", &[]).await.expect(400);
        home.redeem(&world, &code, &[]).await.expect(200);
    }

    async fn a_code_ends_after_too_many_wrong_redemptions(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        for _ in 0..5 {
            home.redeem(&world, &code, &[("code_verifier", "")]).await.expect(400);
        }
        home.redeem(&world, &code, &[]).await.expect(400);
    }

    async fn a_code_cannot_be_redeemed_by_another_app(world: World) {
        let home = SignInApp::new(&world).await;
        let other = world.make("ClientApp", json!({ "name": "Other" })).await;
        let tenants = format!("/api/management/v2/ClientApp/{}/tenants", id(&other));
        world.admin.put(&tenants, json!({ "relatedIds": [home.tenant] })).await.expect(202);
        let secret = world.make("ClientAppSecret", json!({ "clientAppId": other["id"], "name": "s" })).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let own = [("client_id", id(&other)), ("client_secret", secret["secret"].as_str().unwrap())];
        assert_eq!(home.redeem(&world, &code, &own).await.is(400).json()["error"], json!("invalid_grant"));
        home.redeem(&world, &code, &[]).await.expect(200);
    }

    /// A public app authenticates by PKCE alone.
    async fn a_public_app_gets_tokens_with_pkce(world: World) {
        let home = SignInApp::with(&world, json!({ "isPublic": true })).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        home.redeem(&world, &code, &[("code_verifier", "")]).await.expect(400);
        home.redeem(&world, &code, &[]).await.expect(200);
    }

    /// A person's token has no rights at the services, and ends with the person.
    async fn an_access_token_for_an_app_is_refused_at_the_services(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get(&world.path("/User")).await.expect(401);
        bearer.get("/api/management/v2/Tenant").await.expect(401);
        let one = world.path(&format!("/User/{}", id(&home.user)));
        let off = json!({ "isUserActive": false, "concurrencyToken": home.user["concurrencyToken"] });
        let now = world.admin.get(&one).await.is(200).json();
        let off = json!({ "concurrencyToken": now["concurrencyToken"], "isUserActive": off["isUserActive"] });
        world.admin.patch(&one, off).await.expect(202);
        bearer.get("/connect/userinfo").await.expect(401);
    }

    /// OpenID Connect Core 1.0, section 5.3.1: the token is sent in the header or, by POST, in the form.
    async fn userinfo_accepts_a_token_by_post(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let token = tokens["access_token"].as_str().unwrap();
        let post = async |client: &chancery_testkit::Client, form: String| {
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            client.send(http::Method::POST, "/connect/userinfo", &headers, form.into_bytes()).await
        };
        let userinfo = post(&world.anonymous.with_token(token), String::new()).await.is(200).json();
        assert_eq!(post(&world.anonymous, format!("access_token={token}")).await.is(200).json(), userinfo);
        post(&world.anonymous, String::new()).await.expect(401);
        world.admin.get("/connect/userinfo").await.expect(401);
    }

    /// Without `openid` it is plain OAuth; the nonce is optional.
    async fn openid_and_nonce_are_optional(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("nonce", ""), ("scope", "openid phone")])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert!(claims(&tokens["id_token"]).get("nonce").is_none());
        let answer = browser.open(&home.request(&[("scope", "profile")])).await.left.unwrap();
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert!(tokens.get("id_token").is_none());
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(403);
    }

    /// Of concurrent redemptions of a code one gets tokens.
    async fn concurrent_redemptions_of_a_code_give_tokens_once(world: World) {
        let home = SignInApp::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let answers = join_all((0..12).map(|_| home.redeem(&world, &code, &[]))).await;
        let got = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(got, 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    }
}
