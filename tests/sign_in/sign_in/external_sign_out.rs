//! Signing out of a session that began at an external identity provider.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{
    BASE, CALLBACK, SignInApp,
    browser::{Browser, Page},
    change,
    external::{set_up, sign_in, sign_in_with},
    parameter, relate,
};
use crate::{
    id,
    instance::set_option,
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
};

/// Signs out on the page, at the request of the app.
async fn sign_out(home: &SignInApp, browser: &mut Browser) -> Page {
    let query = format!(
        "?client_id={}&post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fout&state=s",
        id(&home.app)
    );
    let page = browser.open(&format!("/connect/endsession{query}")).await;
    browser.submit(&page, &[("decision", "allow")]).await
}

/// Whether the browser stores that a person signed out.
fn has_signed_out(browser: &Browser) -> bool {
    browser.cookies.contains_key("chancery-signed-out")
}

/// Ends all sessions, as an administrator does.
async fn end_sessions(world: &World) {
    for session in world.all("SignInSession?filter=endedOn%20eq%20null").await.as_array().unwrap() {
        world.admin.delete(&format!("{BASE}/SignInSession/{}", id(session))).await.expect(204);
    }
}

/// Returns from the provider that the browser was redirected to at once; the response to the app.
async fn return_from(browser: &mut Browser, page: &Page, provider: &StubProvider) -> String {
    let provider_url = page.left.as_ref().unwrap_or_else(|| panic!("{}", page.html));
    let path = parameter(provider_url, "redirect_uri").unwrap();
    let query = provider.sign_in(provider_url);
    let next = browser.open(&format!("{path}?{query}")).await;
    browser.continue_to_app(&next).await
}

on_both_engines! {
    [allow_loopback]
    /// - Effect of `OpenIdConnect options.SignOutUpstream`: A person who signs out here is redirected to the provider to sign out there,
    ///   too.
    async fn a_sign_out_ends_the_provider_s_session_if_configured(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let uri = json!({ "clientAppId": id(&home.app), "uri": "https://app.example/out", "redirectUriType": "Logout" });
        world.admin.post(&format!("{BASE}/ClientAppRedirectUri"), uri).await.expect(201);
        let names_an_end = || Behaviour {
            document: json!({ "end_session_endpoint": format!("{}/end", provider.issuer) }),
            ..Behaviour::default()
        };
        provider.behave(names_an_end());
        let back = "https://app.example/out?state=s";
        let (mut browser, _) = sign_in(&world, &home, &provider, &[]).await;
        assert_eq!(sign_out(&home, &mut browser).await.redirect_target(), back, "by default the sign-out is here alone");
        set_option(&world, &instance, "SignOutUpstream", "true").await;
        let (mut browser, answer) = sign_in(&world, &home, &provider, &[]).await;
        assert!(answer.starts_with(CALLBACK));
        let provider_url = sign_out(&home, &mut browser).await.redirect_target();
        assert!(provider_url.starts_with(&format!("{}/end?", provider.issuer)), "{provider_url}");
        let sent = |name: &str| parameter(&provider_url, name).unwrap();
        assert_eq!((sent("client_id"), sent("post_logout_redirect_uri")), ("us".to_owned(), format!("{}/signin/signedout", world.base)));
        // the local session has ended, whether the browser returns or not
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        let returned = format!("/signin/signedout?state={}", sent("state"));
        assert_eq!(browser.open(&returned).await.redirect_target(), back);
        // frames notify apps before the browser is redirected
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "frontchannelLogoutUri": "https://app.example/frame" })).await;
        let (mut framed, answer) = sign_in(&world, &home, &provider, &[]).await;
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
        let page = sign_out(&home, &mut framed).await;
        assert!(page.html.contains("https://app.example/frame"), "{}", page.html);
        let leads = page.answer.header("refresh").unwrap();
        assert!(leads.starts_with(&format!("3; url={}/end?", provider.issuer)), "{leads}");
        // the state is bound to this browser
        let other = Browser::new(&world).open(&returned).await;
        assert!(other.status == 400 && other.left.is_none(), "{}", other.html);
        // a provider that is down, or without such an endpoint, does not prevent the sign-out
        let without = StubProvider::start().await;
        for authority in [without.issuer.as_str(), "http://127.0.0.1:1"] {
            let (mut browser, _) = sign_in(&world, &home, &provider, &[]).await;
            set_option(&world, &instance, "Authority", authority).await;
            assert_eq!(sign_out(&home, &mut browser).await.redirect_target(), back);
            set_option(&world, &instance, "Authority", &provider.issuer).await;
        }
    }

    /// The provider would sign the person in again without a prompt.
    async fn a_single_provider_is_not_redirected_to_after_a_sign_out(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        relate(&world, &format!("/ClientApp/{}/idpinstances", id(&home.app)), &[id(&instance)]).await;
        let mut browser = Browser::new(&world);
        // another site may open the address in a browser without a session: this is no sign-out
        browser.open("/connect/endsession").await;
        assert!(!has_signed_out(&browser), "{:?}", browser.cookies.keys());
        let page = browser.open(&home.request(&[])).await;
        assert!(parameter(&return_from(&mut browser, &page, &provider).await, "code").is_some());
        for is_shown_at_once in [false, true] {
            if is_shown_at_once {
                // a long state does not fit the address of the page, which is shown at once
                let query = format!("client_id={}&post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye&state={}", id(&home.app), "s".repeat(3_000));
                let page = browser.open(&format!("/connect/endsession?{query}")).await;
                let done = browser.submit(&page, &[("decision", "allow")]).await;
                assert!(!done.address.contains("done="), "{}", done.address);
            } else {
                sign_out(&home, &mut browser).await;
            }
            assert!(has_signed_out(&browser), "{:?}", browser.cookies.keys());
            let page = browser.open(&home.request(&[])).await;
            assert!(page.left.is_none(), "{:?}", page.left);
            let next = sign_in_with(&mut browser, &page, "Partner", &provider).await;
            assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
            assert!(!has_signed_out(&browser), "a sign-in ends it");
        }
        // a session that an administrator ended is no sign-out
        end_sessions(&world).await;
        browser.open("/connect/endsession").await;
        assert!(!has_signed_out(&browser), "{:?}", browser.cookies.keys());
        let page = browser.open(&home.request(&[])).await;
        return_from(&mut browser, &page, &provider).await;
        // a person who confirms it signs out, even if the session ended meanwhile
        let page = browser.open("/connect/endsession").await;
        end_sessions(&world).await;
        browser.submit(&page, &[("decision", "allow")]).await;
        assert!(has_signed_out(&browser), "{:?}", browser.cookies.keys());
    }
}
