//! The health page.

use std::{cell::RefCell, sync::Arc, time::Duration};

use chancery::{Job, Leases, supervise};
use chancery_testkit::on_both_engines;
use chancery_web::now;
use serde_json::json;

use super::{Browser, administrator, assign, person, sign_in};
use crate::until;

const HERE: &str = "/console/health";

/// The line with this text, starting with its tone.
fn line<'a>(html: &'a str, text: &str) -> &'a str {
    let before = html.split(text).next().unwrap();
    assert!(before.len() < html.len(), "no {text} in {html}");
    let from = before.rfind("<li class=\"").unwrap_or_else(|| panic!("{text} is no line: {html}")) + 11;
    html[from..].split("</li>").next().unwrap()
}

on_both_engines! {
    /// Jobs show their last success, or the reason of the failure and a link to the remedy.
    async fn each_background_job_is_shown(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console").await;
        assert!(page.html.contains("href=\"/console/health\""), "{}", page.html);
        let rest = Duration::from_millis(50);
        let jobs = vec![
            Job::new("refresh", rest, || async { Ok(()) }),
            Job::new("sign-out", rest, || async { Err("<b>on purpose</b>".into()) }),
        ];
        let leases = Arc::new(Leases::new(&world.app.store, now, &world.base));
        let doing = chancery_testkit::spawn(supervise(Arc::clone(&world.app), leases, jobs));
        // the server's own job of that name may succeed at any time
        let shown = RefCell::new(String::new());
        let has_both = async || {
            let html = browser.clone().open(HERE).await.html;
            let has = html.contains("on purpose") && line(&html, "Metadata of authenticators are fetched").starts_with("good");
            shown.replace(html);
            has
        };
        until("both are told", has_both).await;
        doing.abort();
        let html = shown.take();
        let failed = line(&html, "Client apps are notified of sign-outs");
        assert!(failed.starts_with("bad") && failed.contains("&lt;b&gt;on purpose"), "{failed}");
        assert!(failed.contains("href=\"/console/SignInSession\""), "{failed}");
        assert!(html.contains("It accepts requests, and the database answers."), "{html}");
        assert!(!page.html.contains(">job_") && !page.html.contains(">figure_"), "each has words: {}", page.html);
    }

    /// A metric that needs attention is marked, and links to the remedy.
    async fn metrics_link_to_their_remedies(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open(HERE).await;
        let well = line(&page.html, "Mails that could not be sent: 0");
        assert!(well.starts_with("good") && !well.contains("<small>"), "{well}");
        let text = "INSERT INTO mail_message (id, store, kind, state, sender, recipient, sealed_data, created_on, expires_on, \
            attempts, due_on, leased_until) SELECT ?1, o.rid, 'PasswordReset', 'Dead', 'a@b.c', 'd@e.f', ?2, 1, 1, 1, ?3, 0 \
            FROM idp_instance o WHERE o.name = 'default'";
        world.sql(vec![(text, vec![uuid::Uuid::from_u128(7).into(), vec![0_u8].into(), now().0.into()])]).await;
        let page = browser.open(HERE).await;
        let wrong = line(&page.html, "Mails that could not be sent: 1");
        assert!(wrong.starts_with("warn") && wrong.contains("href=\"/console/welcome?step=mail\""), "{wrong}");
        let end = line(&page.html, "First signing certificate that expires");
        assert!(end.starts_with("good"), "{end}");
    }

    /// Other users do not see the page.
    async fn only_system_administrators_see_the_health_page(world: World) {
        let ada = person(&world, "ada").await;
        let subscription = world.all("Subscription").await[0]["id"].clone();
        assign(&world, &ada, "SubscriptionAdmin", json!({ "applyToSubscriptionId": subscription })).await;
        let mut browser = Browser::new(&world);
        let page = sign_in(&mut browser, "/console", "ada").await;
        assert!(page.status == 200 && !page.html.contains(HERE), "{}", page.html);
        browser.open(HERE).await.answer.expect(403);
    }
}
