//! Lifetimes that a tenant sets: of sessions and ID tokens.

use chancery_record::Value as Bound;
use chancery_testkit::{World, on_both_engines};

use super::{PASSWORD, SignInApp, browser::Browser, claims, parameter, tenant_option};

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;

/// Backdates all sessions by this many milliseconds.
async fn age_sessions(world: &World, milliseconds: i64) {
    let text = "UPDATE sign_in_session SET started_on = started_on - ?1, used_on = used_on - ?1, \
        expires_on = expires_on - ?1";
    world.sql(vec![(text, vec![Bound::Int(milliseconds)])]).await;
}

/// Whether the browser's session, which this uses, makes a password unnecessary.
async fn is_signed_in(home: &SignInApp, browser: &mut Browser) -> bool {
    let left = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
    let error = parameter(&left, "error");
    assert!(error.is_none() || error.as_deref() == Some("login_required"), "{left}");
    error.is_none()
}

/// A browser whose user chose to stay signed in.
async fn stay_signed_in(world: &World, home: &SignInApp) -> Browser {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    let typed = [("username", "ann"), ("password", PASSWORD), ("remember", "true")];
    let next = browser.submit(&page, &typed).await;
    browser.continue_to_app(&next).await;
    browser
}

on_both_engines! {
    /// SessionLifetime counts from the last use.
    ///
    /// - Effect of `Tenant options.SessionLifetime`: A session of a person who chose to stay signed in lasts for this time from its last
    ///   use.
    async fn a_persistent_session_lasts_from_its_last_use(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "SessionLifetime", "02:00:00").await;
        let mut browser = stay_signed_in(&world, &home).await;
        for (age, lasts) in [(119, true), (119, true), (121, false)] {
            age_sessions(&world, age * MINUTE).await;
            assert_eq!(is_signed_in(&home, &mut browser).await, lasts, "{age} minutes after its last use");
        }
    }

    /// SessionSliding false: SessionLifetime counts from the sign-in.
    ///
    /// - Effect of `Tenant options.SessionSliding`: Each use prolongs such a session; without it SessionLifetime counts from the sign-in.
    async fn a_session_without_sliding_ends_in_use(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "SessionLifetime", "02:00:00").await;
        tenant_option(&world, &home, "SessionSliding", "false").await;
        let mut browser = stay_signed_in(&world, &home).await;
        for (age, lasts) in [(119, true), (2, false)] {
            age_sessions(&world, age * MINUTE).await;
            assert_eq!(is_signed_in(&home, &mut browser).await, lasts);
        }
    }

    /// SessionAbsoluteLifetime ends a session, however it is used.
    ///
    /// - Effect of `Tenant options.SessionAbsoluteLifetime`: No session lasts longer than this, however it is used.
    async fn a_session_lasts_no_longer_than_its_absolute_lifetime(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "SessionLifetime", "02:00:00").await;
        tenant_option(&world, &home, "BrowserSessionLifetime", "02:00:00").await;
        tenant_option(&world, &home, "SessionAbsoluteLifetime", "03:00:00").await;
        let mut browser = stay_signed_in(&world, &home).await;
        for (age, lasts) in [(119, true), (59, true), (3, false)] {
            age_sessions(&world, age * MINUTE).await;
            assert_eq!(is_signed_in(&home, &mut browser).await, lasts);
        }
    }

    /// BrowserSessionLifetime applies to sessions that end with the browser, from their last use.
    ///
    /// - Effect of `Tenant options.BrowserSessionLifetime`: A session that ends with the browser lasts for this time from its last use.
    async fn browser_sessions_have_their_own_lifetime(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "BrowserSessionLifetime", "00:30:00").await;
        let (mut browser, _) = home.sign_in(&world).await;
        for (age, lasts) in [(29, true), (29, true), (31, false)] {
            age_sessions(&world, age * MINUTE).await;
            assert_eq!(is_signed_in(&home, &mut browser).await, lasts, "{age} minutes after its last use");
        }
    }

    /// The last use is written often enough that even the shortest session slides.
    async fn a_one_minute_session_slides_while_in_use(world: World) {
        let home = SignInApp::new(&world).await;
        for option in ["SessionLifetime", "BrowserSessionLifetime"] {
            tenant_option(&world, &home, option, "00:01:00").await;
        }
        for is_persistent in [true, false] {
            let mut browser =
                if is_persistent { stay_signed_in(&world, &home).await } else { home.sign_in(&world).await.0 };
            for (age, lasts) in [(30, true), (30, true), (30, true), (61, false)] {
                age_sessions(&world, age * SECOND).await;
                assert_eq!(is_signed_in(&home, &mut browser).await, lasts, "{age} seconds after its last use");
            }
        }
    }

    /// AuthorizationCodeLifetime
    ///
    /// - Effect of `Tenant options.AuthorizationCodeLifetime`: An authorization code can be redeemed for this time.
    async fn authorization_codes_follow_the_lifetime_of_the_tenant(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "AuthorizationCodeLifetime", "00:02:00").await;
        for (age, status) in [(60, 200), (121, 400)] {
            let (_, answer) = home.sign_in(&world).await;
            let older = "UPDATE authorization_code SET expires_on = expires_on - ?1";
            world.sql(vec![(older, vec![Bound::Int(age * SECOND)])]).await;
            home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(status);
        }
    }

    /// IdentityTokenLifetime
    ///
    /// - Effect of `Tenant options.IdentityTokenLifetime`: ID tokens are valid for this time.
    async fn id_tokens_follow_the_lifetime_of_the_tenant(world: World) {
        let home = SignInApp::new(&world).await;
        for (lifetime, seconds) in [("00:03:00", 180), ("01:30:00", 5400)] {
            tenant_option(&world, &home, "IdentityTokenLifetime", lifetime).await;
            let (_, answer) = home.sign_in(&world).await;
            let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
            let id_claims = claims(&tokens["id_token"]);
            assert_eq!(id_claims["exp"].as_i64().unwrap() - id_claims["iat"].as_i64().unwrap(), seconds);
        }
    }
}
