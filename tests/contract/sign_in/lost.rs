//! Who gets lost among pages is told on a page what happened, and led on.

use chancery_testkit::on_both_engines;
use http::Method;
use serde_json::json;

use super::{
    BASE, Home, PASSWORD,
    browser::{Browser, Page},
    change, first, parameter,
};
use crate::id;

/// Whether a page says this, and leads back to the app.
fn leads_on(page: &Page, words: &str) {
    assert_eq!(page.status, 400, "{}", page.html);
    assert!(
        page.html.contains(words) && page.html.contains("href=\"https://app.example/\""),
        "{words}: {}",
        page.html
    );
    assert!(!page.html.contains("took too long"), "{}", page.html);
}

on_both_engines! {
    /// A browser keeps so many sign-ins at once: the tabs whose turn is over lead to the app all the same.
    async fn the_first_of_five_tabs_leads_on(world: World) {
        let home = Home::new(&world).await;
        let mut browser = Browser::new(&world);
        let mut tabs = Vec::new();
        for _ in 0..5 {
            tabs.push(browser.open(&home.request(&[])).await);
        }
        assert!(parameter(&browser.sign_in(&tabs[4], "ann", PASSWORD).await, "code").is_some());
        let mut over = Vec::new();
        for tab in &tabs[..4] {
            let page = browser.type_password(tab, "ann", PASSWORD).await;
            if page.status == 200 {
                assert!(browser.go_on(&page).await.contains("code="));
                continue;
            }
            leads_on(&page, "not open in this browser any more");
            leads_on(&browser.open(&tab.address).await, "not open in this browser any more");
            over.push(tab);
        }
        assert_eq!(over.len(), 2);
        // where the app says where it is, there
        change(&world, &format!("/ClientApp/{}", id(&home.app)), json!({ "clientUri": "https://home.example/start" })).await;
        let page = browser.open(&over[0].address).await;
        assert!(page.html.contains("href=\"https://home.example/start\""), "{}", page.html);
        // an app that does not serve here is no way back
        let elsewhere = over[0].address.replace(id(&home.app), "01997c1e-4d5f-7aa0-8b1e-6f2f0a0c5d11");
        let page = browser.open(&elsewhere).await;
        assert!(page.status == 400 && !page.html.contains("https://home.example"), "{}", page.html);
    }

    async fn another_app_s_page_after_a_sign_out_leads_on(world: World) {
        let home = Home::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        let page = browser.open(&home.request(&[("prompt", "login")])).await;
        let asked = browser.open("/connect/endsession").await;
        browser.submit(&asked, &[("decision", "allow")]).await;
        leads_on(&browser.type_password(&page, "ann", PASSWORD).await, "you have signed out since");
    }

    async fn a_browser_without_cookies_is_told_so(world: World) {
        let home = Home::new(&world).await;
        let page = Browser::new(&world).open(&home.request(&[])).await;
        let mut other = Browser::new(&world);
        leads_on(&other.open(&page.address).await, "keeps no cookies");
        other.cookies.clear();
        leads_on(&other.type_password(&page, "ann", PASSWORD).await, "keeps no cookies");
    }

    async fn back_after_a_sign_in_says_that_it_is_done(world: World) {
        let home = Home::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        browser.sign_in(&page, "ann", PASSWORD).await;
        leads_on(&browser.open(&page.address).await, "done already");
        leads_on(&browser.type_password(&page, "ann", PASSWORD).await, "done already");
        // the console is at this server
        let mut browser = Browser::new(&world);
        let page = browser.open("/console").await;
        browser.cookies.retain(|name, _| name == "chancery-browser");
        let page = browser.open(&page.address).await;
        assert!(page.html.contains("href=\"/console\""), "{}", page.html);
    }

    /// People read no JSON: what cannot be answered at a page is told on one, and in JSON to programs.
    async fn browsers_are_told_on_pages(world: World) {
        let home = Home::new(&world).await;
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
            let ask = async |headers: &[(&str, &str)]| {
                world.anonymous.send(method.clone(), &path, headers, body.as_bytes().to_vec()).await
            };
            let shown = ask(&[accepted, form]).await;
            assert_eq!(shown.status, status, "{path}");
            let html = String::from_utf8_lossy(&shown.bytes);
            assert_eq!(shown.header("content-type"), Some("text/html; charset=utf-8"), "{path}: {html}");
            assert!(html.contains("class=\"card\"") && shown.header("content-security-policy").is_some(), "{path}: {html}");
            let told = ask(&[form]).await;
            assert_eq!((told.status.as_u16(), told.header("content-type")), (status, Some("application/problem+json")), "{path}");
        }
        // what is no page stays a problem
        let answer = world.anonymous.send(Method::GET, &format!("{BASE}/Tenant"), &[accepted], Vec::new()).await;
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
}
