//! The round trips to PostgreSQL of requests about people who signed in.

use chancery_testkit::{Engine, on_both_engines};
use http::Method;

use super::{CALLBACK, SignInApp, form, parameter};
use crate::{
    cost::{cost, two_connections},
    id,
};

/// How often a request is sent.
const TIMES: usize = 8;

on_both_engines! {
    [two_connections]

    async fn requests_about_people_take_few_round_trips(world: World) {
        if world.engine == Engine::Sqlite {
            return;
        }
        let home = SignInApp::new(&world).await;
        let (browser, answer) = home.sign_in(&world).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let token = tokens["access_token"].as_str().unwrap();
        let fields = [("token", token), ("client_id", id(&home.app)), ("client_secret", home.secret.as_str())];
        let body = form(fields.into_iter()).into_bytes();
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let introspect = async |()| {
            world.anonymous.send(Method::POST, "/connect/introspect", &headers, body.clone()).await.expect(200);
        };
        let introspection = cost(&world, TIMES, async |_| (), introspect).await;
        let person = world.anonymous.with_token(token);
        let userinfo = cost(&world, TIMES, async |_| (), async |()| person.get("/connect/userinfo").await.expect(200)).await;
        let browser = tokio::sync::Mutex::new(browser);
        let request = home.request(&[]);
        let code = cost(&world, TIMES, async |_| (), async |()| {
            assert!(browser.lock().await.open(&request).await.left.unwrap().starts_with(CALLBACK));
        }).await;
        let new_code = async |_| parameter(&browser.lock().await.open(&request).await.left.unwrap(), "code").unwrap();
        let redeem = cost(&world, TIMES, new_code, async |code| home.redeem(&world, &code, &[]).await.expect(200)).await;
        let offline = home.request(&[("scope", "openid profile offline_access")]);
        let offline_code = parameter(&browser.lock().await.open(&offline).await.left.unwrap(), "code").unwrap();
        let tokens = home.redeem(&world, &offline_code, &[]).await.is(200).json();
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
            ("client_id", id(&home.app)),
            ("client_secret", home.secret.as_str()),
        ];
        let body = form(fields.into_iter());
        let refresh = async |()| world.anonymous.ask_for_token(&body).await.expect(200);
        let refresh = cost(&world, TIMES, async |_| (), refresh).await;
        assert_eq!(
            [("introspection", introspection), ("userinfo", userinfo), ("code", code), ("redeem", redeem), ("refresh", refresh)],
            // introspection: the epoch, what revokes the token, the grant, the identities; then the user. The others have the
            // same parts, and each look-up that depends on another is a round trip
            [("introspection", (5, 2)), ("userinfo", (10, 6)), ("code", (9, 6)), ("redeem", (14, 7)), ("refresh", (9, 6))],
        );
    }
}
