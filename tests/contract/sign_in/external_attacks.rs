//! Attacks on a sign-in elsewhere: codes that are not of one's own flow, and providers that lead the server on.

use chancery_testkit::on_both_engines;

use super::{
    Home,
    browser::Browser,
    external::{come_by, connect, has_failed, people, set_up},
    link, parameter,
};
use crate::provider_trial::{
    of_this_machine,
    stand_in::{Behaviour, StandIn},
};

on_both_engines! {
    [of_this_machine]
    /// Code injection (RFC 9700, section 4.5): a code of somebody else's flow brings nobody in, neither at a provider that binds it by PKCE
    /// nor at one that does not, where its ID token has the other flow's nonce.
    async fn a_code_of_another_flow_is_refused(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let go = async || {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            let there = browser.open(&link(&page, "Continue with Partner")).await.left.unwrap();
            (browser, there)
        };
        for (count, ignores_pkce) in [false, true].into_iter().enumerate() {
            provider.behave(Behaviour { ignores_pkce, ..Behaviour::default() });
            let ((mut attacker, own), (mut victim, theirs)) = (go().await, go().await);
            let back = parameter(&own, "redirect_uri").unwrap();
            // the code that is good now is that of whom the provider saw last
            let (injected, right) = (provider.sign_in(&own), provider.sign_in(&theirs));
            let before = provider.connections();
            let page = attacker.open(&format!("{back}?{injected}")).await;
            assert!(has_failed(&page), "{}", page.html);
            assert!(provider.connections() > before, "the provider was asked for tokens");
            assert_eq!(people(&world, &instance).await.len(), count);
            let silent = attacker.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
            assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
            // in the flow that it is of it signs in
            let page = victim.open(&format!("{back}?{right}")).await;
            assert!(parameter(&victim.go_on(&page).await, "code").is_some());
        }
    }

    /// Whoever answers at a provider's addresses leads the server nowhere else: not even to where it may go by itself.
    async fn no_redirect_of_a_provider_is_followed(world: World) {
        let home = Home::new(&world).await;
        let inner = StandIn::start().await;
        let discovery = "/.well-known/openid-configuration";
        for (number, path) in [discovery, "/token", "/keys", "/userinfo"].into_iter().enumerate() {
            for status in [302, 307] {
                let (name, provider) = (format!("Partner {number}{status}"), StandIn::start().await);
                let instance = connect(&world, &home, &name, &provider).await;
                let redirects = Some((path, status, format!("{}{path}", inner.issuer)));
                provider.behave(Behaviour { redirects, ..Behaviour::default() });
                let mut browser = Browser::new(&world);
                let page = browser.open(&home.request(&[])).await;
                let button = format!("Continue with {name}");
                let page = if path == discovery {
                    browser.open(&link(&page, &button)).await
                } else {
                    come_by(&mut browser, &page, &name, &provider).await
                };
                assert!(has_failed(&page) && page.html.contains(&button), "{path} {status}: {}", page.html);
                assert!(people(&world, &instance).await.is_empty(), "{path} {status}");
            }
        }
        assert_eq!(inner.connections(), 0);
        // what is there would have been taken from the provider itself
        let provider = StandIn::start().await;
        connect(&world, &home, "Upright", &provider).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = come_by(&mut browser, &page, "Upright", &provider).await;
        assert!(parameter(&browser.go_on(&page).await, "code").is_some());
    }
}
