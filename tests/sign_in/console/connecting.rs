//! The page of a client app, and its registration, show the endpoints; the page shows the reasons of refused requests.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{administrator, hidden, post};
use crate::id;

/// The endpoints of the discovery document that a client app uses.
const ENDPOINTS: [&str; 9] = [
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "jwks_uri",
    "end_session_endpoint",
    "introspection_endpoint",
    "revocation_endpoint",
    "device_authorization_endpoint",
];

/// Asserts that a page contains each endpoint with a copy button.
async fn has_endpoints(world: &World, html: &str) {
    let discovery = world.anonymous.get("/.well-known/openid-configuration").await.is(200).json();
    let own = format!("{}/.well-known/openid-configuration", discovery["issuer"].as_str().unwrap());
    for address in ENDPOINTS.map(|name| discovery[name].as_str().unwrap()).into_iter().chain([own.as_str()]) {
        let part = html.split(&format!("<small><code>{address}</code>")).nth(1);
        let part = part.unwrap_or_else(|| panic!("no {address} in {html}"));
        assert!(part.split("</li>").next().unwrap().contains("data-copy"), "{address}");
    }
}

on_both_engines! {
    async fn an_app_is_shown_with_all_endpoints(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/ClientApp/new?kind=web").await;
        let new_id = hidden(&page, "id");
        let fields = [("kind", "web"), ("id", new_id.as_str()), ("name", "Portal"), ("returns", "https://app.example/back")];
        let created = post(&world, &mut browser, &page, "/console/ClientApp/new", &fields).await;
        has_endpoints(&world, &created.html).await;
        let shown = browser.open(&format!("/console/ClientApp/{new_id}")).await;
        has_endpoints(&world, &shown.html).await;
        assert!(shown.html.contains("None of its requests were refused"), "{}", shown.html);
    }

    async fn refused_requests_are_shown_on_the_page_of_the_app(world: World) {
        let app = world.make("ClientApp", json!({ "name": "Portal" })).await;
        let row = crate::sign_in::create_refusal(&world, id(&app)).await;
        let mut browser = administrator(&world).await;
        let shown = browser.open(&format!("/console/ClientApp/{}", id(&app))).await;
        assert!(shown.html.contains(&format!("href=\"/console/ClientAppRefusal/{row}\"")), "{}", shown.html);
        assert!(shown.html.contains("unknown_client"), "{}", shown.html);
        let list = browser.open(&format!("/console/ClientAppRefusal?of=clientAppId:{}", id(&app))).await;
        assert!(list.html.contains("unknown_client") && list.html.contains("Portal"), "{}", list.html);
        let one = browser.open(&format!("/console/ClientAppRefusal/{row}")).await;
        assert!(one.html.contains("https://x.example/"), "what was sent: {}", one.html);
        let other = world.make("ClientApp", json!({ "name": "other" })).await;
        let shown = browser.open(&format!("/console/ClientApp/{}", id(&other))).await;
        assert!(!shown.html.contains("unknown_client"), "{}", shown.html);
    }
}
