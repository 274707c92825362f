//! The setup link of the first administrator, which is valid once.

use chancery_signin::open_setup;
use chancery_store::{Error, Mode};
use chancery_testkit::{World, on_both_engines};
use futures_util::future::join_all;
use serde_json::json;

use super::{BASE, Browser, PASSWORD, assign, person, post, sign_in};
use crate::{
    authenticator::{Authenticator, allow},
    sign_in::link as way_of,
};

/// A new setup link.
async fn link(world: &World) -> String {
    world.set_option("PasskeyEnrolment", "Off").await;
    let (master, now) = (world.app.context.master.clone(), chancery_web::now());
    let opened = world.app.store.run("Link", Mode::Write, None, move |tx| open_setup(tx, &master, now));
    let code = Result::<_, Error>::unwrap(opened.await);
    format!("/console/setup/{code}")
}

fn filled(login_name: &str) -> [(&str, &str); 5] {
    [
        ("firstName", "Grace"),
        ("emailAddress", "grace@example.com"),
        ("loginName", login_name),
        ("password", PASSWORD),
        ("repeated", PASSWORD),
    ]
}

on_both_engines! {
    async fn the_setup_link_creates_one_administrator(world: World) {
        let link = link(&world).await;
        let mut browser = Browser::new(&world);
        for _ in 0..2 {
            // opening it does not use it up: previews and prefetches open it, too
            browser.open(&link).await.answer.expect(200);
        }
        let page = browser.open(&link).await;
        let next = post(&world, &mut browser, &page, &link, &filled("grace")).await;
        assert!(next.html.contains("name=\"password\""), "and on to the sign-in: {}", next.html);
        browser.open(&link).await.answer.expect(404);
        let first = sign_in(&mut browser, "/console/Customer", "grace").await;
        assert!(first.html.contains("Default"), "{}", first.html);
        let roles = world.admin.get(&format!("{BASE}/RoleAssignment")).await.is(200).json();
        assert_eq!(roles[0]["roleType"], json!("SystemAdmin"));
    }

    /// An administrator without a password gets an access pass, which leads to a passkey and to the console.
    async fn the_first_administrator_may_use_a_passkey_only(world: World) {
        let link = link(&world).await;
        let mut browser = Browser::new(&world);
        world.set_option("TemporaryAccessPassEnabled", "false").await;
        let page = browser.open(&link).await;
        assert!(!page.html.contains("f-way"), "{}", page.html);
        world.set_option("TemporaryAccessPassEnabled", "true").await;
        allow(&world).await;
        let page = browser.open(&link).await;
        assert!(page.html.contains("f-way"), "{}", page.html);
        let typed = [("loginName", "grace"), ("way", "passkey")];
        let response = post(&world, &mut browser, &page, &link, &typed).await;
        let pass = response.html.rsplit("<code>").next().unwrap().split("</code>").next().unwrap().to_owned();
        assert!(response.html.contains("access pass") && pass.len() >= 8, "{}", response.html);
        let page = browser.open("/console/welcome").await;
        let page = browser.open(&way_of(&page, "access pass")).await;
        let page = browser.submit(&page, &[("username", "grace"), ("pass", &pass)]).await;
        let passkey = Authenticator::new(5).make_passkey(&page.challenge());
        let next = browser.submit(&page, &[("credential", &passkey.to_string())]).await;
        let page = browser.open(&next.redirect_target()).await;
        assert!(page.address.ends_with("/console/welcome"), "{}: {}", page.address, page.html);
    }

    /// A setup link is valid for an hour.
    async fn the_setup_link_expires_after_an_hour(world: World) {
        let link = link(&world).await;
        let mut browser = Browser::new(&world);
        world.sql(vec![("UPDATE console_setup SET expires_on = expires_on - 3540000", vec![])]).await;
        browser.open(&link).await.answer.expect(200);
        world.sql(vec![("UPDATE console_setup SET expires_on = expires_on - 120000", vec![])]).await;
        browser.open(&link).await.answer.expect(404);
    }

    /// An unused setup link becomes invalid once there is an administrator.
    async fn the_setup_link_expires_with_the_first_administrator(world: World) {
        let link = link(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&link).await;
        let ada = person(&world, "ada").await;
        assign(&world, &ada, "SystemAdmin", json!({})).await;
        let late = post(&world, &mut browser, &page, &link, &filled("grace")).await;
        assert_eq!(late.status, 404, "{}", late.html);
        browser.open(&link).await.answer.expect(404);
    }

    /// Of concurrent requests with the link, one creates the administrator, and nothing remains of the others.
    async fn the_setup_link_is_valid_once(world: World) {
        let link = link(&world).await;
        let posts = ["one", "two", "three", "four"].map(|name| {
            let (world, link) = (&world, &link);
            async move {
                let mut browser = Browser::new(world);
                let page = browser.open(link).await;
                post(world, &mut browser, &page, link, &filled(name)).await.status
            }
        });
        let statuses = join_all(posts).await;
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        let people = world.admin.get(&world.path("/User")).await.is(200).json();
        assert_eq!(people.as_array().unwrap().len(), 1);
    }

    /// Errors are reported at their fields, and do not use the link up.
    async fn an_invalid_setup_form_does_not_use_the_link_up(world: World) {
        let link = link(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&link).await;
        let mut weak = filled("grace");
        (weak[3].1, weak[4].1) = ("short", "short");
        let response = post(&world, &mut browser, &page, &link, &weak).await;
        assert!(response.status == 400 && response.html.contains("f-password"), "{}", response.html);
        assert!(!response.html.contains("short\""), "a password is never shown again");
        let mut differing = filled("grace");
        differing[4].1 = "another lively grey heron";
        let response = post(&world, &mut browser, &page, &link, &differing).await;
        assert!(response.html.contains("is not the same"), "{}", response.html);
        let people = world.admin.get(&world.path("/User")).await.is(200).json();
        assert_eq!(people, json!([]));
        browser.open(&link).await.answer.expect(200);
    }

    /// The form is accepted from the page itself only.
    async fn the_setup_form_is_accepted_from_its_page_only(world: World) {
        let link = link(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&link).await;
        let csrf = page.field("csrf");
        let fields: Vec<_> = [("csrf", csrf.as_str())].into_iter().chain(filled("grace")).collect();
        browser.post(&link, &fields, &[("origin", "https://evil.example")]).await.answer.expect(403);
        browser.post(&link, &fields[1..], &[("origin", &world.base)]).await.answer.expect(403);
        browser.open("/console/setup/made-up").await.answer.expect(404);
    }
}
