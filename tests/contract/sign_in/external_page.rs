//! What the sign-in page shows of identity providers, and what happens while one of them does not answer.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{
    BASE, Home,
    browser::{Browser, Page},
    change,
    external::set_up,
};
use crate::{
    id, pointers,
    provider_trial::of_this_machine,
};

/// The sign-in page in a new browser.
async fn sign_in_page(world: &World, home: &Home) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    (browser, page)
}

on_both_engines! {
    [of_this_machine]
    async fn the_button_of_an_identity_provider_has_its_picture(world: World) {
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
        let made = world.make("CustomAsset", asset).await;
        let page = shown().await;
        let address = "/content/assets/global/the%20partner%3F.svg";
        assert!(page.html.replace("&#x2f;", "/").contains(&format!("<img class=\"icon\" src=\"{address}\" alt=\"\">")), "{}", page.html);
        let policy = page.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("img-src 'self' data:;"), "{policy}");
        assert_eq!(world.anonymous.get(address).await.is(200).header("content-type"), Some("image/svg+xml"));
        // what is no picture is not shown as one
        let other = json!({ "mimetype": "text/plain", "data": BASE64_STANDARD.encode("a"), "concurrencyToken": made["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/CustomAsset/assets/global/the%20partner%3F.svg"), other).await.expect(202);
        assert!(has_stock(&shown().await));
        // nor is anything that is elsewhere
        let instance = world.admin.get(&path).await.is(200).json();
        assert_eq!(instance["icon"], location);
        for odd in ["https://partner.example/a.png", "data:image/png;base64,AA==", "google.png", "//partner.example/a.png", "/a/../b"] {
            let body = json!({ "icon": odd, "concurrencyToken": instance["concurrencyToken"] });
            let problem = world.admin.patch(&path, body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/icon"], "{odd}");
        }
        // a text that version 1 stored stays, and is no picture
        world.sql(vec![("UPDATE idp_instance SET icon = 'google.png' WHERE icon IS NOT NULL", vec![])]).await;
        let body = json!({ "icon": "google.png", "position": 3, "concurrencyToken": instance["concurrencyToken"] });
        world.admin.patch(&path, body).await.expect(202);
        assert!(has_stock(&shown().await));
    }
}
