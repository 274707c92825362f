//! Pages without a pending sign-in explain what happened, and link back to the app.

use chancery_testkit::on_both_engines;
use http::Method;
use serde_json::json;

use super::{
    BASE, PASSWORD, SignInApp,
    browser::{Browser, Page},
    change, first, parameter,
};
use crate::id;

/// Asserts that a page contains this text, and links back to the app.
fn assert_links_to_app(page: &Page, words: &str) {
    assert_eq!(page.status, 400, "{}", page.html);
    assert!(
        page.html.contains(words) && page.html.contains("href=\"https://app.example/\""),
        "{words}: {}",
        page.html
    );
    assert!(!page.html.contains("took too long"), "{}", page.html);
}

on_both_engines! {
    /// A browser stores a limited number of sign-ins: the oldest tabs still link to the app.
    async fn the_first_of_five_tabs_links_to_the_app(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let mut tabs = Vec::new();
        for _ in 0..5 {
            tabs.push(browser.open(&home.request(&[])).await);
        }
        assert!(parameter(&browser.sign_in(&tabs[4], "ann", PASSWORD).await, "code").is_some());
        let mut expired_tabs = Vec::new();
        for tab in &tabs[..4] {
            let page = browser.type_password(tab, "ann", PASSWORD).await;
            if page.status == 200 {
                assert!(browser.continue_to_app(&page).await.contains("code="));
                continue;
            }
            assert_links_to_app(&page, "no longer open in this browser");
            assert_links_to_app(&browser.open(&tab.address).await, "no longer open in this browser");
            expired_tabs.push(tab);
        }
        assert_eq!(expired_tabs.len(), 2);
        // to the app's own URI, if it has one
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "clientUri": "https://home.example/start" })).await;
        let page = browser.open(&expired_tabs[0].address).await;
        assert!(page.html.contains("href=\"https://home.example/start\""), "{}", page.html);
        // an unknown app is not linked
        let unknown_app = expired_tabs[0].address.replace(id(&home.app), "01997c1e-4d5f-7aa0-8b1e-6f2f0a0c5d11");
        let page = browser.open(&unknown_app).await;
        assert!(page.status == 400 && !page.html.contains("https://home.example"), "{}", page.html);
    }

    async fn a_pending_page_after_a_sign_out_links_to_its_app(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let page = browser.open(&home.request(&[("prompt", "login")])).await;
        let confirmation = browser.open("/connect/endsession").await;
        browser.submit(&confirmation, &[("decision", "allow")]).await;
        assert_links_to_app(&browser.type_password(&page, "ann", PASSWORD).await, "you have signed out since");
    }

    async fn a_browser_without_cookies_gets_an_explanation(world: World) {
        let home = SignInApp::new(&world).await;
        let page = Browser::new(&world).open(&home.request(&[])).await;
        let mut other = Browser::new(&world);
        assert_links_to_app(&other.open(&page.address).await, "does not store cookies");
        other.cookies.clear();
        assert_links_to_app(&other.type_password(&page, "ann", PASSWORD).await, "does not store cookies");
    }

    async fn going_back_after_a_sign_in_shows_that_it_is_done(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        browser.sign_in(&page, "ann", PASSWORD).await;
        assert_links_to_app(&browser.open(&page.address).await, "already complete");
        assert_links_to_app(&browser.type_password(&page, "ann", PASSWORD).await, "already complete");
        // the console is on this server
        let mut browser = Browser::new(&world);
        let page = browser.open("/console").await;
        browser.cookies.retain(|name, _| name == "chancery-browser");
        let page = browser.open(&page.address).await;
        assert!(page.html.contains("href=\"/console\""), "{}", page.html);
    }

    /// Errors at pages are shown as pages to browsers, and as JSON to programs.
    async fn browsers_get_error_pages_and_programs_json(world: World) {
        let home = SignInApp::new(&world).await;
        let tenant = first(&world, "/Tenant").await;
        let page = Browser::new(&world).open(&home.request(&[])).await;
        let accepted = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        let form = ("content-type", "application/x-www-form-urlencoded");
        let long = format!("a={}", "x".repeat(70_000));
        let none = "01997c1e-4d5f-7aa0-8b1e-6f2f0a0c5d11";
        for (method, path, body, status) in [
            (Method::GET, format!("{}&login_hint=Ren%E9", home.request(&[])), "", 400),
            (Method::GET, format!("/t/{none}{}", home.request(&[])), "", 404),
            (Method::GET, format!("/t/{none}/signin/password?flow=x"), "", 404),
            (Method::GET, "/signin/%ff".to_owned(), "", 400),
            (Method::GET, "/device?a=%ff".to_owned(), "", 400),
            (Method::GET, format!("/t/{}/password/reset?a=%ff", id(&tenant)), "", 400),
            (Method::GET, "/external/x/callback".to_owned(), "", 404),
            (Method::POST, page.address.clone(), long.as_str(), 413),
            (Method::POST, "/connect/endsession".to_owned(), "a=%ff", 400),
            (Method::POST, "/device".to_owned(), "a=%ff", 400),
        ] {
            let request = async |headers: &[(&str, &str)]| {
                world.anonymous.send(method.clone(), &path, headers, body.as_bytes().to_vec()).await
            };
            let shown = request(&[accepted, form]).await;
            assert_eq!(shown.status, status, "{path}");
            let html = String::from_utf8_lossy(&shown.bytes);
            assert_eq!(shown.header("content-type"), Some("text/html; charset=utf-8"), "{path}: {html}");
            assert!(html.contains("class=\"card\"") && shown.header("content-security-policy").is_some(), "{path}: {html}");
            let response = request(&[form]).await;
            assert_eq!((response.status.as_u16(), response.header("content-type")), (status, Some("application/problem+json")), "{path}");
        }
        // other paths answer with problems
        let answer = world.anonymous.send(Method::GET, &format!("{BASE}/Tenant"), &[accepted], Vec::new()).await;
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
}
