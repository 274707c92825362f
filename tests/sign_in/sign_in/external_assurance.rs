//! What a provider proves about a sign-in: its time, factors and verified addresses; and factors in addition to it.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{
    browser::Browser,
    change, claim_rules, claims,
    external::{has_failed, set_up, sign_in, sign_in_with, tokens},
    parameter, second_factor,
};
use crate::{
    id,
    provider_trial::{allow_loopback, stub_provider::Behaviour},
};

on_both_engines! {
    [allow_loopback]
    async fn demands_of_the_app_are_forwarded_and_verified(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let demanded = [("prompt", "login"), ("max_age", "60"), ("login_hint", "ada@example.com")];
        let now = chancery_web::now().0 / 1000;
        provider.behave(Behaviour { claims: json!({ "auth_time": now }), ..Behaviour::default() });
        tokens(&world, &home, &provider, &demanded).await;
        assert_eq!((provider.request_parameter("prompt"), provider.request_parameter("max_age"), provider.request_parameter("login_hint")), ("login".to_owned(), "60".to_owned(), "ada@example.com".to_owned()));
        for auth_time in [json!(now - 600), json!(null)] {
            provider.behave(Behaviour { claims: json!({ "auth_time": auth_time }), ..Behaviour::default() });
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&demanded)).await;
            assert!(has_failed(&sign_in_with(&mut browser, &page, "Partner", &provider).await), "{auth_time}");
        }
    }

    /// Addresses and numbers of a provider are not passed on as verified by this server.
    async fn contact_claims_of_a_provider_are_not_verified(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        for is_believed in [false, true] {
            change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "treatMfaFactorClaimsAsConfirmed": is_believed })).await;
            let provider_claims = json!({
                "phone_number": "+49 30 123456", "phone_number_verified": true, "email": "no address", "email_verified": true,
            });
            provider.behave(Behaviour { claims: provider_claims.clone(), user_info: provider_claims, ..Behaviour::default() });
            let issued = tokens(&world, &home, &provider, &[("scope", "openid email phone")]).await;
            let info = claim_rules::userinfo(&world, &issued).await;
            for claim in ["phone_number", "phone_number_verified", "email", "email_verified"] {
                assert!(info.get(claim).is_none(), "{claim}: {info}");
            }
        }
    }

    /// The age of a session is that of the sign-in at the provider.
    async fn auth_time_is_that_of_the_provider(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let then = chancery_web::now().0 / 1000 - 600;
        provider.behave(Behaviour { claims: json!({ "auth_time": then }), ..Behaviour::default() });
        let (mut browser, answer) = sign_in(&world, &home, &provider, &[]).await;
        let issued = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&issued["id_token"])["auth_time"], json!(then));
        for (max_age, error) in [("60", Some("login_required")), ("3600", None)] {
            let left = browser.open(&home.request(&[("prompt", "none"), ("max_age", max_age)])).await.left.unwrap();
            assert_eq!(parameter(&left, "error").as_deref(), error, "{left}");
        }
    }

    /// The `auth_time` of the provider proves a new sign-in.
    async fn a_forced_sign_in_requires_a_recent_auth_time(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let now = chancery_web::now().0 / 1000;
        for (demanded, sent) in [(vec![("prompt", "login")], "1800"), (vec![("prompt", "login"), ("max_age", "86400")], "1800")] {
            for auth_time in [json!(null), json!(now - 23 * 3600), json!(now - 1700)] {
                provider.behave(Behaviour { claims: json!({ "auth_time": auth_time }), ..Behaviour::default() });
                let mut browser = Browser::new(&world);
                let page = browser.open(&home.request(&demanded)).await;
                assert!(has_failed(&sign_in_with(&mut browser, &page, "Partner", &provider).await), "{auth_time}");
            }
            provider.behave(Behaviour { claims: json!({ "auth_time": now }), ..Behaviour::default() });
            tokens(&world, &home, &provider, &demanded).await;
            assert_eq!(provider.request_parameter("max_age"), sent);
        }
    }

    /// A second factor at the provider counts if the provider is trusted.
    ///
    /// - Effect of `IdpInstance.treatMfaFactorClaimsAsConfirmed`: Claims of an external provider about a second factor and a verified
    ///   address are accepted.
    async fn second_factors_of_a_trusted_provider_count(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let claims_there = json!({ "amr": ["pwd", "mfa"], "email_verified": true });
        provider.behave(Behaviour { claims: claims_there, ..Behaviour::default() });
        let issued = claims(&tokens(&world, &home, &provider, &[]).await["id_token"]);
        assert_eq!((&issued["acr"], &issued["email_verified"]), (&json!("sfa"), &json!(false)));
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "treatMfaFactorClaimsAsConfirmed": true })).await;
        let issued = claims(&tokens(&world, &home, &provider, &[("acr_values", "mfa")]).await["id_token"]);
        assert_eq!((&issued["acr"], &issued["amr"], &issued["email_verified"]), (&json!("mfa"), &json!(["fed", "mfa"]), &json!(true)));
        assert_eq!(provider.request_parameter("acr_values"), "mfa");
    }

    /// A required class that the provider did not prove is proven here, or refused.
    async fn a_class_that_the_provider_did_not_prove_is_proven_here_or_refused(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let come = async || {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[("acr_values", "mfa")])).await;
            let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
            (browser, page)
        };
        for (is_trusted, amr) in [(false, json!(["pwd", "mfa"])), (true, json!(["pwd"]))] {
            let trust = json!({ "treatMfaFactorClaimsAsConfirmed": is_trusted });
            change(&world, &format!("/IdpInstance/{}", id(&instance)), trust).await;
            provider.behave(Behaviour { claims: json!({ "amr": amr }), ..Behaviour::default() });
            let (mut browser, page) = come().await;
            let answer = match page.left.clone() {
                Some(left) => left,
                None => browser.continue_to_app(&page).await,
            };
            assert_eq!(parameter(&answer, "error").as_deref(), Some("unmet_authentication_requirements"), "{answer}");
        }
        second_factor::make_factor(&world, &home, "totp").await;
        let (_, page) = come().await;
        assert!(page.html.contains("otpauth://totp/"), "{}", page.html);
        provider.behave(Behaviour { claims: json!({ "amr": ["pwd", "mfa"] }), ..Behaviour::default() });
        let (mut browser, page) = come().await;
        assert!(parameter(&browser.continue_to_app(&page).await, "code").is_some());
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "treatMfaFactorClaimsAsConfirmed": false })).await;
        let (_, page) = come().await;
        assert!(page.html.contains("otpauth://totp/"), "{}", page.html);
    }

    /// A local authenticator in addition to the provider's sign-in.
    async fn external_people_enrol_local_second_factors(world: World) {
        let (home, provider, _) = set_up(&world).await;
        second_factor::require_factor(&world, &home, "totp").await;
        let come = async || {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
            (browser, page)
        };
        let (mut browser, page) = come().await;
        assert!(page.html.contains("otpauth://totp/"), "{}", page.html);
        let secret = second_factor::between(&page.html, "class=\"secret\"><code>", "<").to_owned();
        let shown = browser.submit(&page, &[("code", &second_factor::code_of(&secret, 0))]).await;
        let next = browser.submit(&shown, &[]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some(), "{}", shown.html);
        let (mut browser, page) = come().await;
        assert!(!page.html.contains("otpauth:") && page.html.contains("one-time-code"), "{}", page.html);
        let next = browser.submit(&page, &[("code", &second_factor::code_of(&secret, 1))]).await;
        let code = parameter(&browser.continue_to_app(&next).await, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["amr"], json!(["fed", "mfa", "otp"]));
        // five wrong codes lock the person, whichever code follows
        for _ in 0..5 {
            let (mut browser, page) = come().await;
            browser.submit(&page, &[("code", "000000")]).await;
        }
        let (mut browser, page) = come().await;
        let locked = browser.submit(&page, &[("code", &second_factor::code_of(&secret, 1))]).await;
        assert!(locked.html.contains("The account is locked"), "{}", locked.html);
    }
}
