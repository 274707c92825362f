//! A provider that hangs during the callbacks of many people.

use std::sync::atomic::{AtomicBool, Ordering};

use chancery_testkit::on_both_engines;
use futures_util::future::join_all;

use super::{
    PASSWORD,
    browser::Browser,
    external::{connect, has_failed, set_up, sign_in_with, tokens},
    link, parameter,
};
use crate::{
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
    until,
};

/// More people than workers and database connections.
const WAITING: usize = 64;

on_both_engines! {
    [allow_loopback]
    /// Sign-ins that wait for a hanging token endpoint hold neither a database connection nor a worker.
    async fn a_hanging_token_endpoint_blocks_nobody_else(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let second = StubProvider::start().await;
        connect(&world, &home, "Other", &second).await;
        let shown = async || {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            (browser, page)
        };
        let mut ways = Vec::new();
        for _ in 0..WAITING {
            let (mut browser, page) = shown().await;
            let provider_url = browser.open(&link(&page, "Continue with Partner")).await.left.unwrap();
            let back = format!("{}?{}", parameter(&provider_url, "redirect_uri").unwrap(), provider.sign_in(&provider_url));
            ways.push((browser, back));
        }
        provider.behave(Behaviour { hangs_at: Some("/token"), ..Behaviour::default() });
        let are_over = AtomicBool::new(false);
        let waiting = async {
            let pages = join_all(ways.iter_mut().map(|(browser, back)| browser.open(back))).await;
            are_over.store(true, Ordering::Relaxed);
            pages
        };
        let others = async {
            until("all of them wait there", async || provider.held() == WAITING).await;
            let (mut browser, page) = shown().await;
            assert!(parameter(&browser.sign_in(&page, "ann", PASSWORD).await, "code").is_some());
            let (mut browser, page) = shown().await;
            let page = sign_in_with(&mut browser, &page, "Other", &second).await;
            assert!(parameter(&browser.continue_to_app(&page).await, "code").is_some());
            world.group("made meanwhile").await;
            assert!(!are_over.load(Ordering::Relaxed), "others had to wait");
        };
        let (pages, ()) = tokio::join!(waiting, others);
        for page in &pages {
            assert!(has_failed(page) && page.left.is_none(), "{}", page.html);
            assert!(!link(page, "Continue with Partner").is_empty());
        }
        // once the endpoint answers, they can sign in from the page with the error
        provider.behave(Behaviour::default());
        let (browser, _) = &mut ways[0];
        let page = sign_in_with(browser, &pages[0], "Partner", &provider).await;
        assert!(parameter(&browser.continue_to_app(&page).await, "code").is_some());
        tokens(&world, &home, &provider, &[]).await;
    }
}
