//! The code, and the tokens that it becomes.

use chancery_testkit::on_both_engines;
use futures_util::future::join_all;
use serde_json::json;

use super::{CALLBACK, Home, PASSWORD, browser::Browser, claims, parameter};
use crate::id;

on_both_engines! {
    /// Step 1: a person signs in to an app, which gets tokens and learns who it is.
    async fn a_person_signs_in(world: World) {
        let home = Home::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        assert!(answer.starts_with(&format!("{CALLBACK}?")), "{answer}");
        assert_eq!(parameter(&answer, "state").as_deref(), Some("s-1"));
        assert_eq!(parameter(&answer, "iss").as_deref(), Some(world.base.as_str()), "RFC 9207");
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        assert_eq!((&tokens["token_type"], &tokens["scope"]), (&json!("Bearer"), &json!("openid profile email")));
        let about = claims(&tokens["id_token"]);
        assert_eq!((&about["iss"], &about["aud"]), (&json!(world.base), &home.app["id"]));
        assert_eq!((&about["nonce"], &about["acr"], &about["amr"]), (&json!("n-1"), &json!("sfa"), &json!(["pwd"])));
        assert_eq!(about["tid"], json!(home.tenant));
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        let told = bearer.get("/connect/userinfo").await.is(200).json();
        assert_eq!(told["sub"], about["sub"]);
        assert_ne!(told["sub"], home.user["id"], "the person's id, not the store user's");
        assert_eq!(
            (&told["name"], &told["preferred_username"], &told["email"], &told["email_verified"]),
            (&json!("Ann Archer"), &json!("ann"), &json!("ann@example.com"), &json!(true))
        );
    }

    /// RFC 6749, section 4.1.2: a code is good once; shown again, what it gave ends.
    async fn a_code_is_good_once(world: World) {
        let home = Home::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(200);
        let again = home.redeem(&world, &code, &[]).await.is(400).json();
        assert_eq!(again["error"], json!("invalid_grant"));
        bearer.get("/connect/userinfo").await.expect(401);
    }

    /// A code shown wrongly stays, five times.
    async fn a_code_is_for_who_asked_for_it(world: World) {
        let home = Home::new(&world).await;
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

    async fn a_code_shown_wrongly_too_often_is_gone(world: World) {
        let home = Home::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        for _ in 0..5 {
            home.redeem(&world, &code, &[("code_verifier", "")]).await.expect(400);
        }
        home.redeem(&world, &code, &[]).await.expect(400);
    }

    async fn another_app_gets_nothing_for_a_code(world: World) {
        let home = Home::new(&world).await;
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

    /// A public app proves itself by PKCE alone.
    async fn a_public_app_gets_tokens(world: World) {
        let home = Home::with(&world, json!({ "isPublic": true })).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        home.redeem(&world, &code, &[("code_verifier", "")]).await.expect(400);
        home.redeem(&world, &code, &[]).await.expect(200);
    }

    /// A person's token has no rights at the services, and ends with the person.
    async fn a_person_s_token_is_for_the_app_alone(world: World) {
        let home = Home::new(&world).await;
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

    /// OpenID Connect Core 1.0, section 5.3.1: the token comes in the header or, by POST, in the form.
    async fn userinfo_takes_a_token_by_post(world: World) {
        let home = Home::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let token = tokens["access_token"].as_str().unwrap();
        let post = async |client: &chancery_testkit::Client, form: String| {
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            client.send(http::Method::POST, "/connect/userinfo", &headers, form.into_bytes()).await
        };
        let told = post(&world.anonymous.with_token(token), String::new()).await.is(200).json();
        assert_eq!(post(&world.anonymous, format!("access_token={token}")).await.is(200).json(), told);
        post(&world.anonymous, String::new()).await.expect(401);
        world.admin.get("/connect/userinfo").await.expect(401);
    }

    /// Without `openid` it is plain OAuth; a nonce is the app's choice.
    async fn openid_and_nonce_are_the_app_s_choice(world: World) {
        let home = Home::new(&world).await;
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

    /// However many show a code at once, one gets tokens.
    async fn of_many_at_once_one_gets_tokens(world: World) {
        let home = Home::new(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let code = parameter(&answer, "code").unwrap();
        let answers = join_all((0..12).map(|_| home.redeem(&world, &code, &[]))).await;
        let got = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(got, 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    }
}
