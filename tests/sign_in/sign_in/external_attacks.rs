//! Attacks on a sign-in at a provider: codes that were issued in another flow, and redirects of the server's requests.

use chancery_testkit::on_both_engines;

use super::{
    SignInApp,
    browser::Browser,
    external::{connect, has_failed, people, set_up, sign_in_with},
    link, parameter,
};
use crate::provider_trial::{
    allow_loopback,
    stub_provider::{Behaviour, StubProvider},
};

on_both_engines! {
    [allow_loopback]
    /// Code injection (RFC 9700, section 4.5): a code that was issued in another flow is refused: by a provider with PKCE;
    /// without PKCE the ID token has the nonce of the other flow, and the server refuses that.
    async fn a_code_of_another_flow_is_refused(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let go = async || {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            let provider_url = browser.open(&link(&page, "Continue with Partner")).await.left.unwrap();
            (browser, provider_url)
        };
        for (count, ignores_pkce) in [false, true].into_iter().enumerate() {
            provider.behave(Behaviour { ignores_pkce, ..Behaviour::default() });
            let ((mut attacker, own), (mut victim, theirs)) = (go().await, go().await);
            let back = parameter(&own, "redirect_uri").unwrap();
            // the stand-in returns the ID token of the last authorization request: the victim's
            let (injected, right) = (provider.sign_in(&own), provider.sign_in(&theirs));
            let before = provider.connections();
            let page = attacker.open(&format!("{back}?{injected}")).await;
            assert!(has_failed(&page), "{}", page.html);
            assert!(provider.connections() > before, "the provider was asked for tokens");
            assert_eq!(people(&world, &instance).await.len(), count);
            let silent = attacker.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
            // the code of the victim's own flow signs in
            let page = victim.open(&format!("{back}?{right}")).await;
            assert!(parameter(&victim.continue_to_app(&page).await, "code").is_some());
        }
    }

    /// Open redirect through errors of a provider: no parameter of a callback leads the browser elsewhere, or is shown.
    async fn an_error_of_a_provider_leads_nowhere(world: World) {
        let (home, _, _) = set_up(&world).await;
        let planted = "error=x&error_uri=https%3A%2F%2Fevil.example%2F&redirect_uri=https%3A%2F%2Fevil.example%2F\
            &post_logout_redirect_uri=https%3A%2F%2Fevil.example%2F&error_description=%3Cscript%3Ealert(1)%3C%2Fscript%3Eevil.example";
        for has_state in [true, false] {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            let provider_url = browser.open(&link(&page, "Continue with Partner")).await.left.unwrap();
            let (state, back) = (parameter(&provider_url, "state").unwrap(), parameter(&provider_url, "redirect_uri").unwrap());
            // without the state of this browser there is nothing to go on with
            let state = if has_state { state } else { format!("{}x", &state[..state.len() - 1]) };
            let page = browser.open(&format!("{back}?{planted}&state={state}")).await;
            assert_eq!(page.left, None, "{has_state}");
            assert_eq!((page.answer.header("location"), page.answer.header("refresh")), (None, None), "{has_state}");
            // links to the same page in another language repeat its query
            let mut parts = page.html.split("href=\"/external/");
            let first = parts.next().unwrap_or_default();
            let shown: String = std::iter::once(first).chain(parts.map(|part| part.split_once('"').unwrap().1)).collect();
            assert!(!shown.contains("evil.example") && !shown.contains("alert(1)"), "{shown}");
            assert_eq!((has_failed(&page), page.status == 400), (has_state, !has_state), "{}", page.html);
        }
    }

    /// A redirect from an endpoint of the provider is not followed, even to an address that the server may call.
    async fn no_redirect_of_a_provider_is_followed(world: World) {
        let home = SignInApp::new(&world).await;
        let inner = StubProvider::start().await;
        let discovery = "/.well-known/openid-configuration";
        for (number, path) in [discovery, "/token", "/keys", "/userinfo"].into_iter().enumerate() {
            for status in [302, 307] {
                let (name, provider) = (format!("Partner {number}{status}"), StubProvider::start().await);
                let instance = connect(&world, &home, &name, &provider).await;
                let redirects = Some((path, status, format!("{}{path}", inner.issuer)));
                provider.behave(Behaviour { redirects, ..Behaviour::default() });
                let mut browser = Browser::new(&world);
                let page = browser.open(&home.request(&[])).await;
                let button = format!("Continue with {name}");
                let page = if path == discovery {
                    browser.open(&link(&page, &button)).await
                } else {
                    sign_in_with(&mut browser, &page, &name, &provider).await
                };
                assert!(has_failed(&page) && page.html.contains(&button), "{path} {status}: {}", page.html);
                assert!(people(&world, &instance).await.is_empty(), "{path} {status}");
            }
        }
        assert_eq!(inner.connections(), 0);
        // without the redirect the same responses sign in
        let provider = StubProvider::start().await;
        connect(&world, &home, "Upright", &provider).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Upright", &provider).await;
        assert!(parameter(&browser.continue_to_app(&page).await, "code").is_some());
    }
}
