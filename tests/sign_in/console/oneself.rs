//! The account page.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, Browser, administrator, assign, person, post, sign_in};
use crate::id;

const HERE: &str = "/console/me";

on_both_engines! {
    /// The user's other sessions are listed and ended here: one, or all. The present one continues.
    async fn a_user_ends_the_own_other_sessions(world: World) {
        let mut browser = administrator(&world).await;
        let mut others = Vec::new();
        for _ in 0..3 {
            let mut other = Browser::new(&world);
            sign_in(&mut other, "/console", "ada").await;
            others.push(other);
        }
        let page = browser.open(HERE).await;
        assert!(page.status == 200 && page.html.contains("Where you are signed in"), "{}", page.html);
        let marks: Vec<&str> = page.html.split("name=\"session\" value=\"").skip(1)
            .map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(marks.len(), 4, "three others, and all of them: {marks:?}");
        assert_eq!(page.html.matches("This browser").count(), 1);

        let next = post(&world, &mut browser, &page, "/console/me/session", &[("session", marks[0])]).await;
        assert!(next.status == 200 && next.html.contains("Ended"), "{}", next.html);
        let mut still = 0;
        for other in &mut others {
            still += usize::from(other.open("/console/Tenant").await.html.contains("<h1>Tenants"));
        }
        assert_eq!(still, 2, "one of them has ended");

        let next = post(&world, &mut browser, &next, "/console/me/session", &[("session", "others")]).await;
        assert!(!next.html.contains("name=\"session\""), "nobody else is left: {}", next.html);
        for other in &mut others {
            let page = other.open("/console/Tenant").await;
            assert!(page.html.contains("name=\"password\""), "{}", page.html);
        }
        browser.open("/console/Tenant").await.answer.expect(200);
    }

    /// Sessions of other users are neither shown nor ended; nor is the present one, which is ended by signing out.
    async fn sessions_of_other_users_are_neither_shown_nor_ended(world: World) {
        let mut browser = administrator(&world).await;
        let helper = person(&world, "grace").await;
        assign(&world, &helper, "SystemAdmin", json!({})).await;
        let mut grace = Browser::new(&world);
        let page = sign_in(&mut grace, HERE, "grace").await;
        assert!(!page.html.contains("name=\"session\""), "{}", page.html);
        let sessions = world.admin.get(&format!("{BASE}/SignInSession")).await.is(200).json();
        for session in sessions.as_array().unwrap() {
            let session = id(session);
            let page = grace.open(HERE).await;
            let next = post(&world, &mut grace, &page, "/console/me/session", &[("session", session)]).await;
            assert!(next.status == 404 || next.html.contains("Nothing was changed"), "{}", next.html);
        }
        let page = grace.open(HERE).await;
        post(&world, &mut grace, &page, "/console/me/session", &[("session", "made up")]).await.answer.expect(404);
        browser.open("/console/Tenant").await.answer.expect(200);
        grace.open("/console/Tenant").await.answer.expect(200);
    }

    /// Time zone and keyboard preferences are stored with the person, and the menu, whose form lacks them, leaves them
    /// unchanged.
    async fn time_zone_and_shortcut_preferences_are_stored(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open(HERE).await;
        assert!(!page.html.contains("data-zone") && !page.html.contains("data-keys"));
        let fields = [
            ("back", HERE), ("lang", "en"), ("zone", "Europe/Vienna"), ("theme", "dark"), ("density", ""), ("single_keys", "off"),
        ];
        let next = post(&world, &mut browser, &page, HERE, &fields).await;
        assert!(next.html.contains("Saved") && next.html.contains("data-zone=\"Europe/Vienna\""), "{}", next.html);
        assert!(next.html.contains("<body data-keys=\"off\">"), "{}", next.html);
        let menu = [("back", "/console"), ("lang", "de"), ("theme", ""), ("density", "compact")];
        let next = post(&world, &mut browser, &next, HERE, &menu).await;
        assert!(next.html.contains("data-zone=\"Europe/Vienna\"") && next.html.contains("data-keys=\"off\""), "{}", next.html);
        let invalid = [("back", HERE), ("zone", "Mars/Olympus"), ("single_keys", "<b>")];
        let next = post(&world, &mut browser, &next, HERE, &invalid).await;
        assert!(!next.html.contains("data-zone") && !next.html.contains("data-keys"), "{}", next.html);
    }
}
