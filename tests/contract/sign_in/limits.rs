//! What one address may try on pages (`CHANCERY_FAILED_SIGN_INS`), and whose address that is (`CHANCERY_TRUSTED_PROXIES`).

use chancery_testkit::{Client, Database, Engine, Process};
use serde_json::json;

use super::{Home, PASSWORD, browser::Browser, parameter};

/// Types passwords from an address that a proxy names, until no more are taken; how many were.
async fn guess(server: &Process, home: &Home, from: &str, at_most: usize) -> usize {
    let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
    let page = browser.open(&home.request(&[])).await;
    let csrf = page.field("csrf");
    for tried in 0..at_most {
        let name = format!("nobody-{tried}");
        // a form that proves nothing takes nothing back
        let empty = [("csrf", csrf.as_str()), ("username", name.as_str())];
        browser.post(&page.action(), &empty, &[("x-forwarded-for", from)]).await;
        let fields = [("csrf", csrf.as_str()), ("username", name.as_str()), ("password", "guessed")];
        let answer = browser.post(&page.action(), &fields, &[("x-forwarded-for", from)]).await;
        if answer.status == 429 {
            assert!(answer.answer.header("retry-after").is_some() && answer.html.contains("Too many"));
            return tried;
        }
    }
    at_most
}

/// Wrong ones count for the address that the proxy names, and for no other; right ones are free.
#[tokio::test]
async fn failed_sign_ins_count_for_whom_a_trusted_proxy_names() {
    let database = Database::create(Engine::Sqlite);
    let settings = [("CHANCERY_FAILED_SIGN_INS", "6"), ("CHANCERY_TRUSTED_PROXIES", "127.0.0.0/8")];
    let server = Process::start(&database, &settings).await;
    let home = Home::made_by(&server.admin, json!({})).await;
    assert_eq!(guess(&server, &home, "198.51.100.7", 20).await, 6);
    assert_eq!(
        guess(&server, &home, "127.0.0.1, 198.51.100.7", 20).await,
        0,
        "what a caller writes itself is nothing"
    );
    assert_eq!(guess(&server, &home, "198.51.100.8", 3).await, 3);
    for _ in 0..10 {
        let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
        let page = browser.open(&home.request(&[])).await;
        let fields =
            [("csrf", page.field("csrf")), ("username", "ann".into()), ("password", PASSWORD.into())];
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let next = browser.post(&page.action(), &fields, &[("x-forwarded-for", "198.51.100.9")]).await;
        assert!(parameter(&browser.go_on(&next).await, "code").is_some(), "an office can sign in");
    }
}

/// Nobody else is believed, and pages of who is not signed in have their bound.
#[tokio::test]
async fn without_a_trusted_proxy_who_connects_is_the_caller() {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[("CHANCERY_FAILED_SIGN_INS", "6")]).await;
    let home = Home::made_by(&server.admin, json!({})).await;
    assert_eq!(guess(&server, &home, "198.51.100.7", 20).await, 6);
    assert_eq!(guess(&server, &home, "198.51.100.8", 20).await, 0);
    let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
    let mut shown = 0;
    while browser.open("/device").await.status == 200 {
        shown += 1;
        assert!(shown < 100, "pages are bounded");
    }
    assert!(shown > 20, "{shown}");
}
