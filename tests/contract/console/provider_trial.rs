//! Trying a provider out by the console, without script.

use std::path::Path;

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{administrator, hidden, post, unescaped};
use crate::{
    id,
    management::instance::make,
    provider_trial::{
        instance, of_this_machine,
        stand_in::{Behaviour, StandIn},
    },
};

fn words(folder: &Path) -> Vec<String> {
    of_this_machine(folder)
}

/// Where the first link leads out of the server.
pub fn way_out(html: &str, issuer: &str) -> String {
    let begin = format!("href=\"{}", issuer.replace('/', "&#x2f;"));
    let from = html.find(&begin).or_else(|| html.find(&format!("href=\"{issuer}")));
    let from = from.unwrap_or_else(|| panic!("no way out in {html}")) + "href=\"".len();
    unescaped(&html[from..].split('"').next().unwrap().replace("&#x2f;", "/"))
}

on_both_engines! {
    [words]
    async fn a_provider_is_tried_out_in_a_browser(world: World) {
        let provider = StandIn::start().await;
        let (made, _) = instance(&world, &provider).await;
        let mut browser = administrator(&world).await;
        let item = format!("/console/IdpInstance/{}", id(&made));
        let here = format!("{item}/trial");
        let shown = browser.open(&item).await;
        assert!(shown.html.contains(&here) && !shown.html.contains("StartIdpInstanceTrial"), "{}", shown.html);

        let page = browser.open(&here).await;
        assert!(page.html.contains("Nobody is signed in by it"), "{}", page.html);
        let begun = post(&world, &mut browser, &page, &here, &[]).await;
        assert!(begun.html.contains("All is right"), "{}", begun.html);
        let query = provider.sign_in(&way_out(&begun.html, &provider.issuer));
        // back by the callback; to look at the page uses nothing up
        let back = browser.open(&format!("/external/{}/callback?{query}", id(&made))).await;
        assert!(back.address.contains(&here) && back.html.contains("Show what came back"), "{}: {}", back.address, back.html);
        let again = browser.open(&format!("{here}?{query}")).await;
        let kept = hidden(&again, "query").replace("&#x2f;", "/");
        assert_eq!(kept, query);
        let told = post(&world, &mut browser, &again, &here, &[("query", &kept)]).await;
        for text in ["All is right", "Claims that came back", "ada@example.com", "groups (IdToken)"] {
            assert!(told.html.contains(text), "{text}: {}", told.html);
        }
        let over = post(&world, &mut browser, &again, &here, &[("query", &kept)]).await;
        assert_eq!(over.status, 400, "{}", over.html);
        // another site's form is none
        let forged = browser.post(&here, &[("query", &kept)], &[("origin", "https://evil.example")]).await;
        assert_eq!(forged.status, 403);
    }

    /// What failed leads to where it is set right.
    async fn what_fails_leads_to_its_option(world: World) {
        let provider = StandIn::start().await;
        let (made, _) = instance(&world, &provider).await;
        let mut browser = administrator(&world).await;
        let item = format!("/console/IdpInstance/{}", id(&made));
        let here = format!("{item}/trial");
        let page = browser.open(&here).await;
        provider.behave(Behaviour { claims: json!({ "aud": "them" }), ..Behaviour::default() });
        let begun = post(&world, &mut browser, &page, &here, &[]).await;
        let query = provider.sign_in(&way_out(&begun.html, &provider.issuer));
        let told = post(&world, &mut browser, &page, &here, &[("query", &query)]).await;
        assert!(told.html.contains("Not all is right") && told.html.contains(&format!("{item}/settings#f-ClientId")), "{}", told.html);
        let settings = browser.open(&format!("{item}/settings")).await;
        assert!(settings.html.contains("id=\"f-ClientId\""), "{}", settings.html);
        // a certificate's place
        provider.behave(Behaviour { document: json!({ "token_endpoint_auth_methods_supported": ["private_key_jwt"] }), ..Behaviour::default() });
        let begun = post(&world, &mut browser, &page, &here, &[]).await;
        assert!(begun.html.contains(&format!("{item}/relation/certStores")), "{}", begun.html);
        assert_eq!(browser.open(&format!("{item}/relation/certStores")).await.status, 200);
        // what cannot be gone to says so
        provider.behave(Behaviour { document: json!({ "jwks_uri": null }), ..Behaviour::default() });
        let begun = post(&world, &mut browser, &page, &here, &[]).await;
        assert!(begun.html.contains("and begin again"), "{}", begun.html);
        // another kind has no button
        let store = make(&world, "Staff", "UserStore").await;
        let shown = browser.open(&format!("/console/IdpInstance/{}", id(&store))).await;
        assert!(!shown.html.contains("/trial\""), "{}", shown.html);
    }
}
