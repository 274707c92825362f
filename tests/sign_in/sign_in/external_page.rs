//! Identity providers on the sign-in page, and the page's behaviour while one of them does not answer.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{World, on_both_engines};
use futures_util::future::join_all;
use serde_json::json;

use super::{
    BASE, PASSWORD, SignInApp,
    browser::{Browser, Page},
    change,
    external::{has_failed, set_up, sign_in_with},
    link, parameter, tenant_option,
};
use crate::{
    id, pointers,
    provider_trial::{allow_loopback, stub_provider::Behaviour},
};

/// The sign-in page in a new browser.
async fn sign_in_page(world: &World, home: &SignInApp) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    (browser, page)
}

/// Whether the page has a link to the provider.
fn has_provider_link(page: &Page) -> bool {
    page.left.is_none() && page.html.contains("Continue with Partner")
}

on_both_engines! {
    [allow_loopback]
    async fn the_button_of_an_identity_provider_shows_its_picture(world: World) {
        let (home, _, instance) = set_up(&world).await;
        let path = format!("{BASE}/IdpInstance/{}", id(&instance));
        let shown = async || sign_in_page(&world, &home).await.1;
        let has_stock = |page: &Page| page.html.contains("<svg class=\"icon\"") && !page.html.contains("<img class=\"icon\"");
        let page = shown().await;
        assert!(has_stock(&page), "{}", page.html);
        let location = "/assets/global/the partner?.svg";
        change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "icon": location })).await;
        assert!(has_stock(&shown().await), "there is no such asset yet");
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0h1v1z\"/></svg>";
        let asset = json!({ "location": location, "mimetype": "image/svg+xml", "data": BASE64_STANDARD.encode(svg) });
        let created = world.make("CustomAsset", asset).await;
        let page = shown().await;
        let address = "/content/assets/global/the%20partner%3F.svg";
        assert!(page.html.replace("&#x2f;", "/").contains(&format!("<img class=\"icon\" src=\"{address}\" alt=\"\">")), "{}", page.html);
        let policy = page.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("img-src 'self' data:;"), "{policy}");
        assert_eq!(world.anonymous.get(address).await.is(200).header("content-type"), Some("image/svg+xml"));
        // other media types are not shown as a picture
        let other = json!({
            "mimetype": "text/plain", "data": BASE64_STANDARD.encode("a"), "concurrencyToken": created["concurrencyToken"],
        });
        world.admin.patch(&format!("{BASE}/CustomAsset/assets/global/the%20partner%3F.svg"), other).await.expect(202);
        assert!(has_stock(&shown().await));
        // nor are external pictures
        let instance = world.admin.get(&path).await.is(200).json();
        assert_eq!(instance["icon"], location);
        for invalid in ["https://partner.example/a.png", "data:image/png;base64,AA==", "google.png", "//partner.example/a.png", "/a/../b"] {
            let body = json!({ "icon": invalid, "concurrencyToken": instance["concurrencyToken"] });
            let problem = world.admin.patch(&path, body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/icon"], "{invalid}");
        }
        // a text that version 1 stored remains, and is no picture
        world.sql(vec![("UPDATE idp_instance SET icon = 'google.png' WHERE icon IS NOT NULL", vec![])]).await;
        let body = json!({ "icon": "google.png", "position": 3, "concurrencyToken": instance["concurrencyToken"] });
        world.admin.patch(&path, body).await.expect(202);
        assert!(has_stock(&shown().await));
    }

    /// Properties that administrators set on an instance can be shown on its button and on pages about it, escaped.
    async fn views_can_show_properties_of_an_external_instance(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let entries = format!("{BASE}/IdpInstance/{}/IdpInstanceMetadata", id(&instance));
        world.admin.post(&entries, json!({ "key": "motto", "value": "<b>calm</b>" })).await.expect(201);
        tenant_option(&world, &home, "TermsVersion", "1").await;
        tenant_option(&world, &home, "TermsUrl", "https://northwind.example/terms").await;
        let sign_in = "{% for one in providers %}<a href=\"{{ one.url }}\">Continue with {{ one.name }}</a>{{ one.metadata.motto }}{% endfor %}";
        for (name, view) in [("SignIn", sign_in), ("Terms", "<p>{{ provider.name }}: {{ provider.metadata.motto }}</p>")] {
            let content = format!("{}{view}{}", "{% extends \"Layout\" %}{% block main %}", "{% endblock %}");
            world.make("CustomView", json!({ "location": format!("/views/tenant/{}/{name}", home.tenant), "content": content })).await;
        }
        let (mut browser, page) = sign_in_page(&world, &home).await;
        assert!(page.html.contains("</a>&lt;b&gt;calm"), "{}", page.html);
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("Partner: &lt;b&gt;calm") && !page.html.contains("<b>calm"), "{}", page.html);
    }

    /// All people who want to sign in there share one attempt, and its failure is cached.
    async fn a_hanging_provider_is_requested_once(world: World) {
        let (home, provider, _) = set_up(&world).await;
        provider.behave(Behaviour { hangs: true, ..Behaviour::default() });
        let pages = join_all((0..32).map(|_| sign_in_page(&world, &home))).await;
        let waiting = join_all(pages.into_iter().map(|(mut browser, page)| async move {
            browser.open(&link(&page, "Continue with Partner")).await
        }));
        let other = async {
            let (mut browser, page) = sign_in_page(&world, &home).await;
            browser.sign_in(&page, "ann", PASSWORD).await
        };
        let (pages, answer) = tokio::join!(waiting, other);
        assert!(parameter(&answer, "code").is_some(), "{answer}");
        for page in &pages {
            assert!(has_failed(page) && has_provider_link(page), "{}", page.html);
        }
        assert_eq!(provider.connections(), 1);
        let (mut browser, page) = sign_in_page(&world, &home).await;
        assert!(has_failed(&browser.open(&link(&page, "Continue with Partner")).await));
        assert_eq!(provider.connections(), 1, "that it failed is remembered");
    }

    /// A provider that goes down after its discovery document was read does not block the sign-in.
    async fn a_provider_that_goes_down_leads_back_to_the_choice(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let (mut browser, page) = sign_in_page(&world, &home).await;
        let (mut returning, page_of_another) = sign_in_page(&world, &home).await;
        let provider_url = returning.open(&link(&page_of_another, "Continue with Partner")).await.left.unwrap();
        let query = provider.sign_in(&provider_url);
        provider.behave(Behaviour { is_down: true, ..Behaviour::default() });
        // people who return come back to the choice
        let back = parameter(&provider_url, "redirect_uri").unwrap();
        let ended = returning.open(&format!("{back}?{query}")).await;
        assert!(has_failed(&ended) && has_provider_link(&ended), "{}", ended.html);
        // after a redirect by the cached document and a return, the page does not redirect there again
        let button = link(&page, "Continue with Partner");
        assert!(browser.open(&button).await.left.is_some(), "the document is kept");
        let again = browser.open(&page.address).await;
        assert!(has_provider_link(&again), "{}", again.html);
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        let again = browser.open(&button).await;
        assert!(has_failed(&again) && has_provider_link(&again), "{}", again.html);
        // nor is anybody else redirected, for a while
        let (mut other, page) = sign_in_page(&world, &home).await;
        let failed = other.open(&link(&page, "Continue with Partner")).await;
        assert!(has_failed(&failed) && has_provider_link(&failed), "{}", failed.html);
        browser.sign_in(&again, "ann", PASSWORD).await;
    }
}
