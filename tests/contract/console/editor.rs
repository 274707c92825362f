//! Pages that customers see are edited beside what becomes of them, and are nobody's before they are published.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{Browser, administrator, assign, encode, hidden, person, post, sign_in};
use crate::id;

const TRY: &str = "/console/CustomView/try";
const SAVE: &str = "/console/CustomView/%2Fviews%2Fglobal%2FSignIn";
const FRAME: &str = "/console/CustomView/preview";

on_both_engines! {
    /// A new page begins as a shipped one, is looked at as it was typed, and is there once it is published.
    async fn a_page_is_made_from_a_shipped_one(world: World) {
        let mut browser = administrator(&world).await;
        let list = browser.open("/console/CustomView").await;
        assert!(list.html.contains(&format!("href=\"{TRY}\"")), "{}", list.html);
        let page = browser.open(&format!("{TRY}?template=Consent")).await;
        assert!(page.status == 200 && page.html.contains("value=\"/views/global/Consent\""), "{}", page.html);
        let policy = page.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-src 'self'") && policy.contains("script-src 'self'"), "{policy}");
        let typed = [("location", "/views/global/Consent"), ("content", "<title>x</title><h1>tried {{ application.name }}</h1>"), ("language", "De"), ("state", "Consent|nowhere")];
        // a state that is none of the page's is told
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
        let made = post(&world, &mut browser, &page, "/console/CustomView/new", &typed[..2]).await;
        assert!(made.status == 200 && made.html.contains("/views/global/Consent"), "{}", made.html);
        assert_eq!(world.all("CustomView").await[0]["content"], typed[1].1);
    }

    /// An error leads to its line, in the frame and in words; a form of another site shows nothing.
    async fn an_error_has_its_place(world: World) {
        let mut browser = administrator(&world).await;
        world.make("CustomView", json!({ "location": "/views/global/SignIn", "content": "<p>one</p>" })).await;
        let of = format!("?of={}", encode("/views/global/SignIn"));
        let page = browser.open(&format!("{TRY}{of}")).await;
        assert!(page.html.contains("&lt;p&gt;one&lt;/p&gt;") || page.html.contains("&lt;p&gt;one&lt;&#x2f;p&gt;"), "{}", page.html);
        let frame = browser.open(&format!("{FRAME}{of}")).await;
        assert!(frame.html.contains("<body><p>one</p></body>"), "{}", frame.html);
        let wrong = "<p>one</p>\n<p>two {{ nothing.there }}</p>\n<script>three</script>";
        let fields = [("content", wrong)];
        let told = post(&world, &mut browser, &page, &format!("{FRAME}{of}"), &fields).await;
        assert!(told.status == 200 && told.html.contains("data-line=\"2\"") && told.html.contains("<mark>&lt;p&gt;two"), "{}", told.html);
        assert!(told.html.contains("&lt;script&gt;three") && !told.html.contains("<script>three"), "{}", told.html);
        let policy = told.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'self'"), "{policy}");
        let foreign = browser.post(&format!("{FRAME}{of}"), &fields, &[]).await;
        assert!(foreign.status == 403, "{}", foreign.html);
        // what cannot be a page is not published
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let saved = post(&world, &mut browser, &page, SAVE, &[("content", "{% if %}"), ("base", &base), ("concurrencyToken", &token)]).await;
        assert!(saved.status == 400 && saved.html.contains("line 1"), "{} {}", saved.status, saved.html);
        assert_eq!(world.all("CustomView").await[0]["content"], "<p>one</p>");
    }

    /// The trail leads back: to the text of before a change, which is published like any other.
    async fn the_trail_leads_back(world: World) {
        let mut browser = administrator(&world).await;
        let made = world.make("CustomView", json!({ "location": "/views/global/SignIn", "content": "<p>first</p>" })).await;
        let path = format!("{}/CustomView/views/global/SignIn", "/api/management/v2");
        let change = json!({ "content": "<p>second</p>", "concurrencyToken": made["concurrencyToken"] });
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

    /// A tenant's brand is seen on a page of its sign-in before it is saved.
    async fn a_brand_is_seen_before_it_is_saved(world: World) {
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
        let kept = browser.open(&format!("{here}/brand")).await;
        assert!(!kept.html.contains("Harbour &amp; Sons"), "nothing is saved: {}", kept.html);
        world.make("CustomView", json!({ "location": format!("/views/tenant/{}/SignIn", id(&tenant)), "content": "<p>{{ brand.name }}'s own</p>" })).await;
        let own = post(&world, &mut browser, &page, &format!("{here}/brand"), &typed).await;
        assert!(own.html.contains("<body><p>Harbour &amp; Sons's own</p></body>"), "{}", own.html);
        let nobody = browser.open("/console/Tenant/00000000-0000-0000-0000-000000000001/brand").await;
        assert!(nobody.html.contains("names no Tenant"), "{}", nobody.html);
    }

    /// Who may not try views is offered no editor, and is refused one.
    async fn who_may_not_is_refused(world: World) {
        let ann = person(&world, "ann").await;
        assign(&world, &ann, "AuditTrailReader", json!({})).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "ann").await;
        for path in [TRY, FRAME] {
            assert_eq!(browser.open(path).await.status, 403, "{path}");
        }
    }
}
