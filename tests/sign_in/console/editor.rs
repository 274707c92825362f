//! Views are edited with a preview, and are not visible to users before they are published.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{Browser, administrator, assign, encode, hidden, person, post, sign_in};
use crate::id;

const TRY: &str = "/console/CustomView/try";
const SAVE: &str = "/console/CustomView/%2Fviews%2Fglobal%2FSignIn";
const FRAME: &str = "/console/CustomView/preview";

on_both_engines! {
    /// A new view starts as a built-in one, is previewed as entered, and exists once it is published.
    async fn a_view_is_created_from_a_built_in_one(world: World) {
        let mut browser = administrator(&world).await;
        let list = browser.open("/console/CustomView").await;
        assert!(list.html.contains(&format!("href=\"{TRY}\"")), "{}", list.html);
        let page = browser.open(&format!("{TRY}?template=Consent")).await;
        assert!(page.status == 200 && page.html.contains("value=\"/views/global/Consent\""), "{}", page.html);
        let policy = page.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-src 'self'") && policy.contains("script-src 'self'"), "{policy}");
        let typed = [("location", "/views/global/Consent"), ("content", "<title>x</title><h1>tried {{ application.name }}</h1>"), ("language", "De"), ("state", "Consent|nowhere")];
        // an unknown state of the page is reported
        let shown = post(&world, &mut browser, &page, FRAME, &typed).await;
        assert!(shown.html.contains("names no state of the page Consent"), "{}", shown.html);
        let shown = post(&world, &mut browser, &page, FRAME, &typed[..3]).await;
        assert!(shown.html.contains("<head><title>x</title></head><body><h1>tried "), "{}", shown.html);
        let policy = shown.answer.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "sandbox", "form-action 'none'", "frame-ancestors 'self'"] {
            assert!(policy.contains(part), "{part}: {policy}");
        }
        assert!(!policy.contains("script-src") && !policy.contains("allow-"), "{policy}");
        assert_eq!(world.all("CustomView").await, json!([]), "nothing is published yet");
        let created = post(&world, &mut browser, &page, "/console/CustomView/new", &typed[..2]).await;
        assert!(created.status == 200 && created.html.contains("/views/global/Consent"), "{}", created.html);
        assert_eq!(world.all("CustomView").await[0]["content"], typed[1].1);
    }

    /// An error is shown with its line, in the frame and as text; a form of another site shows nothing.
    async fn a_template_error_shows_its_line(world: World) {
        let mut browser = administrator(&world).await;
        world.make("CustomView", json!({ "location": "/views/global/SignIn", "content": "<p>one</p>" })).await;
        let of = format!("?of={}", encode("/views/global/SignIn"));
        let page = browser.open(&format!("{TRY}{of}")).await;
        assert!(page.html.contains("&lt;p&gt;one&lt;/p&gt;") || page.html.contains("&lt;p&gt;one&lt;&#x2f;p&gt;"), "{}", page.html);
        let frame = browser.open(&format!("{FRAME}{of}")).await;
        assert!(frame.html.contains("<body><p>one</p></body>"), "{}", frame.html);
        let wrong = "<p>one</p>\n<p>two {{ nothing.there }}</p>\n<script>three</script>";
        let fields = [("content", wrong)];
        let response = post(&world, &mut browser, &page, &format!("{FRAME}{of}"), &fields).await;
        assert!(response.status == 200 && response.html.contains("data-line=\"2\"") && response.html.contains("<mark>&lt;p&gt;two"), "{}", response.html);
        assert!(response.html.contains("&lt;script&gt;three") && !response.html.contains("<script>three"), "{}", response.html);
        let policy = response.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'self'"), "{policy}");
        let foreign = browser.post(&format!("{FRAME}{of}"), &fields, &[]).await;
        assert!(foreign.status == 403, "{}", foreign.html);
        // an invalid view is not published
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let saved = post(&world, &mut browser, &page, SAVE, &[("content", "{% if %}"), ("base", &base), ("concurrencyToken", &token)]).await;
        assert!(saved.status == 400 && saved.html.contains("line 1"), "{} {}", saved.status, saved.html);
        assert_eq!(world.all("CustomView").await[0]["content"], "<p>one</p>");
    }

    /// The audit trail links to the previous version, which is published like any other.
    async fn the_audit_trail_links_to_the_previous_version(world: World) {
        let mut browser = administrator(&world).await;
        let created = world.make("CustomView", json!({ "location": "/views/global/SignIn", "content": "<p>first</p>" })).await;
        let path = format!("{}/CustomView/views/global/SignIn", "/api/management/v2");
        let change = json!({ "content": "<p>second</p>", "concurrencyToken": created["concurrencyToken"] });
        world.admin.patch(&path, change).await.expect(202);
        let entries = world.all("CustomAuditTrail?sortOrder=descending&count=1").await;
        let entry = entries[0]["id"].as_i64().unwrap().to_string();
        let shown = browser.open(&format!("/console/CustomAuditTrail/{entry}")).await;
        let way = format!("{TRY}?entry={entry}&of=%2Fviews%2Fglobal%2FSignIn");
        assert!(shown.html.replace("&amp;", "&").contains(&way), "{way} {}", shown.html);
        let page = browser.open(&way).await;
        assert!(page.html.contains("p&gt;first") && !page.html.contains("p&gt;second&lt;/p&gt;</textarea>"), "{}", page.html);
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let back = post(&world, &mut browser, &page, SAVE, &[("content", "<p>first</p>"), ("base", &base), ("concurrencyToken", &token)]).await;
        assert_eq!(back.status, 200, "{}", back.html);
        assert_eq!(world.all("CustomView").await[0]["content"], "<p>first</p>");
    }

    /// A tenant's brand is previewed on its sign-in page before it is saved.
    async fn a_brand_is_previewed_before_it_is_saved(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = world.all("Tenant").await[0].clone();
        let here = format!("/console/Tenant/{}", id(&tenant));
        let page = browser.open(&format!("{here}/settings")).await;
        assert!(page.html.contains(&format!("<iframe name=\"preview\" title=\"Preview\" src=\"{here}/brand\"")), "{}", page.html);
        let policy = page.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-src 'self'"), "{policy}");
        let typed = [("BrandName", "Harbour & Sons"), ("BrandColour", "#884400"), ("PageLinks", "Imprint https://example.com/imprint")];
        let shown = post(&world, &mut browser, &page, &format!("{here}/brand"), &typed).await;
        assert_eq!(shown.status, 200, "{}", shown.html);
        for part in ["Harbour &amp; Sons", "#884400", "https://example.com/imprint"] {
            assert!(shown.html.replace("&#x2f;", "/").contains(part), "{part}: {}", shown.html);
        }
        assert!(!shown.html.contains("Privacy"), "no links of the sample: {}", shown.html);
        let stored = browser.open(&format!("{here}/brand")).await;
        assert!(!stored.html.contains("Harbour &amp; Sons"), "nothing is saved: {}", stored.html);
        world.make("CustomView", json!({ "location": format!("/views/tenant/{}/SignIn", id(&tenant)), "content": "<p>{{ brand.name }}'s own</p>" })).await;
        let own = post(&world, &mut browser, &page, &format!("{here}/brand"), &typed).await;
        assert!(own.html.contains("<body><p>Harbour &amp; Sons's own</p></body>"), "{}", own.html);
        let unknown = browser.open("/console/Tenant/00000000-0000-0000-0000-000000000001/brand").await;
        assert!(unknown.html.contains("names no Tenant"), "{}", unknown.html);
    }

    /// A view that no page shows is reported: no page has its name, and no other view includes it.
    async fn a_view_that_no_page_shows_is_reported(world: World) {
        let mut browser = administrator(&world).await;
        let put = async |name: &str, content: &str| {
            let location = format!("/views/global/{name}");
            world.make("CustomView", json!({ "location": location, "content": content })).await
        };
        let is_reported = async |browser: &mut Browser, name: &str| {
            let page = browser.open(&format!("/console/CustomView/{}", encode(&format!("/views/global/{name}")))).await;
            assert_eq!(page.status, 200, "{}", page.html);
            page.html.contains("none of its pages has this name. Other pages can include it.")
        };
        put("HarbourFooter", "<p>HarbourFooter</p>").await;
        put("Confirm", "<p>HarbourFooter</p>").await;
        put("Field", "<p>field</p>").await;
        put("a/SignIn", "<p>no page of the sign-in</p>").await;
        for (name, expected) in [("HarbourFooter", true), ("a/SignIn", true), ("Confirm", false), ("Field", false)] {
            assert_eq!(is_reported(&mut browser, name).await, expected, "{name}");
        }
        let mut sign_in = put("SignIn", "<p>one</p>{% include \"HarbourFooter\" %}").await;
        assert!(!is_reported(&mut browser, "HarbourFooter").await);
        for content in ["{% include \"/views/global/HarbourFooter\" %}", "{% set part = \"HarbourFooter\" %}{% include part %}"] {
            let change = json!({ "content": content, "concurrencyToken": sign_in["concurrencyToken"] });
            sign_in = world.admin.patch("/api/management/v2/CustomView/views/global/SignIn", change).await.is(202).json();
            assert!(!is_reported(&mut browser, "HarbourFooter").await, "{content}");
        }
    }

    /// Users without permission are not offered the editor, and are refused.
    async fn the_editor_is_refused_without_permission(world: World) {
        let ann = person(&world, "ann").await;
        assign(&world, &ann, "AuditTrailReader", json!({})).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "ann").await;
        for path in [TRY, FRAME] {
            assert_eq!(browser.open(path).await.status, 403, "{path}");
        }
    }
}
