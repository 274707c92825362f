//! Testing an identity provider in the console, without script.

use std::path::Path;

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{administrator, hidden, post, unescaped};
use crate::{
    id,
    instance::create_instance,
    provider_trial::{
        allow_loopback, instance,
        stub_provider::{Behaviour, StubProvider},
    },
};

fn words(folder: &Path) -> Vec<String> {
    allow_loopback(folder)
}

/// The first link to the external provider.
pub fn external_link(html: &str, issuer: &str) -> String {
    let begin = format!("href=\"{}", issuer.replace('/', "&#x2f;"));
    let from = html.find(&begin).or_else(|| html.find(&format!("href=\"{issuer}")));
    let from = from.unwrap_or_else(|| panic!("no way out in {html}")) + "href=\"".len();
    unescaped(&html[from..].split('"').next().unwrap().replace("&#x2f;", "/"))
}

on_both_engines! {
    [words]
    async fn a_provider_is_tested_in_a_browser(world: World) {
        let provider = StubProvider::start().await;
        let (instance_row, _) = instance(&world, &provider).await;
        let mut browser = administrator(&world).await;
        let item = format!("/console/IdpInstance/{}", id(&instance_row));
        let here = format!("{item}/trial");
        let shown = browser.open(&item).await;
        assert!(shown.html.contains(&here) && !shown.html.contains("StartIdpInstanceTrial"), "{}", shown.html);

        let page = browser.open(&here).await;
        assert!(page.html.contains("Nobody is signed in here by the test"), "{}", page.html);
        let begun = post(&world, &mut browser, &page, &here, &[]).await;
        assert!(begun.html.contains("All checks passed"), "{}", begun.html);
        let query = provider.sign_in(&external_link(&begun.html, &provider.issuer));
        // back through the callback; opening the page does not use the response up
        let back = browser.open(&format!("/external/{}/callback?{query}", id(&instance_row))).await;
        assert!(back.address.contains(&here) && back.html.contains("Show the result"), "{}: {}", back.address, back.html);
        let again = browser.open(&format!("{here}?{query}")).await;
        let returned = hidden(&again, "query").replace("&#x2f;", "/");
        assert_eq!(returned, query);
        let response = post(&world, &mut browser, &again, &here, &[("query", &returned)]).await;
        for text in ["All checks passed", "Received claims", "ada@example.com", "groups (IdToken)"] {
            assert!(response.html.contains(text), "{text}: {}", response.html);
        }
        let over = post(&world, &mut browser, &again, &here, &[("query", &returned)]).await;
        assert_eq!(over.status, 400, "{}", over.html);
        // a form of another site is refused
        let forged = browser.post(&here, &[("query", &returned)], &[("origin", "https://evil.example")]).await;
        assert_eq!(forged.status, 403);
    }

    /// A failed check links to its remedy.
    async fn a_failed_provider_check_links_to_its_option(world: World) {
        let provider = StubProvider::start().await;
        let (instance_row, _) = instance(&world, &provider).await;
        let mut browser = administrator(&world).await;
        let item = format!("/console/IdpInstance/{}", id(&instance_row));
        let here = format!("{item}/trial");
        let page = browser.open(&here).await;
        provider.behave(Behaviour { claims: json!({ "aud": "them" }), ..Behaviour::default() });
        let begun = post(&world, &mut browser, &page, &here, &[]).await;
        let query = provider.sign_in(&external_link(&begun.html, &provider.issuer));
        let response = post(&world, &mut browser, &page, &here, &[("query", &query)]).await;
        assert!(response.html.contains("Some checks failed") && response.html.contains(&format!("{item}/settings#f-ClientId")), "{}", response.html);
        let settings = browser.open(&format!("{item}/settings")).await;
        assert!(settings.html.contains("id=\"f-ClientId\""), "{}", settings.html);
        // the page of a certificate
        provider.behave(Behaviour { document: json!({ "token_endpoint_auth_methods_supported": ["private_key_jwt"] }), ..Behaviour::default() });
        let begun = post(&world, &mut browser, &page, &here, &[]).await;
        assert!(begun.html.contains(&format!("{item}/relation/certStores")), "{}", begun.html);
        assert_eq!(browser.open(&format!("{item}/relation/certStores")).await.status, 200);
        // an unreachable provider is reported
        provider.behave(Behaviour { document: json!({ "jwks_uri": null }), ..Behaviour::default() });
        let begun = post(&world, &mut browser, &page, &here, &[]).await;
        assert!(begun.html.contains("and start again"), "{}", begun.html);
        // other kinds have no button
        let store = create_instance(&world, "Staff", "UserStore").await;
        let shown = browser.open(&format!("/console/IdpInstance/{}", id(&store))).await;
        assert!(!shown.html.contains("/trial\""), "{}", shown.html);
    }
}
