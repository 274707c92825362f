//! Rotation of keys and secrets of a client app.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE, administrator, post};
use crate::id;

const DAY: i64 = 24 * 3_600_000;

/// A secret of an app that was last used this many days ago.
async fn secret(world: &World, app: &Value, name: &str, days_ago: Option<i64>) -> Value {
    let created = world.make("ClientAppSecret", json!({ "clientAppId": app["id"], "name": name })).await;
    if let Some(days) = days_ago {
        let key = |row: &Value| Uuid::try_parse(id(row)).unwrap().into();
        let used_on = (chancery_web::now().0 - days * DAY).into();
        let text =
            "INSERT INTO client_credential_use (credential_id, client_app_id, used_on) VALUES (?1, ?2, ?3)";
        world.sql(vec![(text, vec![key(&created), key(app), used_on])]).await;
    }
    created
}

/// The line about a credential, starting with its tone.
fn line<'a>(html: &'a str, name: &str) -> &'a str {
    let list = html.split("<ul class=\"checks\">").nth(1).unwrap_or_else(|| panic!("no list in {html}"));
    let mut lines = list.split("</ul>").next().unwrap().split("<li class=\"").skip(1);
    lines.find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name} in {list}"))
}

on_both_engines! {
    /// Each credential is shown with its creation, last use and expiry; the newest one is first.
    async fn credentials_are_listed_by_time(world: World) {
        let mut browser = administrator(&world).await;
        let app = world.make("ClientApp", json!({ "name": "Portal" })).await;
        let here = format!("/console/ClientApp/{}/rotation", id(&app));
        let empty = browser.open(&here).await;
        assert!(empty.html.contains("ClientAppSecret/new?clientAppId"), "{}", empty.html);
        secret(&world, &app, "Winter", Some(1)).await;
        secret(&world, &app, "Spring", None).await;
        let ended = json!({ "clientAppId": app["id"], "name": "Autumn", "expiry": "2021-01-01T00:00:00Z" });
        world.make("ClientAppSecret", ended).await;
        let page = browser.open(&here).await;
        let (winter, spring, autumn) = (line(&page.html, "Winter"), line(&page.html, "Spring"), line(&page.html, "Autumn"));
        assert!(winter.starts_with("good") && winter.contains("last used") && winter.contains("<time"), "{winter}");
        assert!(winter.contains("never expires") && winter.contains(&here), "{winter}");
        assert!(spring.contains("no known use") && !spring.contains("<time"), "{spring}");
        assert!(autumn.starts_with("off") && autumn.contains("expired 2021-01-01") && !autumn.contains(&here), "{autumn}");
        assert!(page.html.find("Spring") < page.html.find("Winter"), "the newest is first");
        // created today, according to its id
        let today = chancery_web::now();
        let mut text = Vec::new();
        chancery_record::format_timestamp(today, &mut text);
        assert!(winter.contains(&format!("created {}", String::from_utf8_lossy(&text[..10]))), "{winter}");
    }

    /// Ending a credential in use shows a warning, and whether another one is in use.
    async fn ending_a_credential_in_use_shows_a_warning(world: World) {
        let mut browser = administrator(&world).await;
        let app = world.make("ClientApp", json!({ "name": "Portal" })).await;
        let here = format!("/console/ClientApp/{}/rotation", id(&app));
        let old = secret(&world, &app, "Winter", Some(1)).await;
        let end = format!("{here}/{}", id(&old));
        let page = browser.open(&end).await;
        assert!(page.html.contains("used within the last seven days.") && page.html.contains("There is no other credential"), "{}", page.html);
        let new = secret(&world, &app, "Spring", None).await;
        let page = browser.open(&end).await;
        assert!(page.html.contains("used within the last seven days.") && page.html.contains("has not used another credential"), "{}", page.html);
        secret(&world, &app, "Summer", Some(0)).await;
        let page = browser.open(&format!("{here}/{}", id(&new))).await;
        assert!(page.html.contains("None: this credential was not used") && !page.html.contains("used within"), "{}", page.html);

        let page = browser.open(&end).await;
        let next = post(&world, &mut browser, &page, &end, &[("when", "week")]).await;
        assert!(next.status == 200 && next.html.contains("Saved"), "{}", next.html);
        let stored = world.admin.get(&format!("{BASE}/ClientAppSecret/{}", id(&old))).await.is(200).json();
        let ends = chancery_record::parse_timestamp(stored["expiry"].as_str().unwrap()).unwrap();
        let left = ends.0 - chancery_web::now().0;
        assert!(left > 6 * DAY && left <= 7 * DAY, "{stored}");
        assert!(line(&next.html, "Winter").starts_with("warn"), "it ends soon: {}", next.html);
        post(&world, &mut browser, &page, &end, &[("when", "never")]).await.answer.expect(400);
    }

    /// A credential of another app is not found; a key set ends by its own member.
    async fn credentials_of_other_apps_are_not_found(world: World) {
        let mut browser = administrator(&world).await;
        let app = world.make("ClientApp", json!({ "name": "Portal" })).await;
        let other = world.make("ClientApp", json!({ "name": "Other" })).await;
        let foreign = secret(&world, &other, "Theirs", None).await;
        let here = format!("/console/ClientApp/{}/rotation", id(&app));
        browser.open(&format!("{here}/{}", id(&foreign))).await.answer.expect(404);
        browser.open(&format!("{here}/none")).await.answer.expect(404);
        let set = json!({ "clientAppId": app["id"], "name": "own", "use": "Signing", "status": "Active", "jwksUri": "https://app.example/keys" });
        let set = world.make("ClientAppKeySet", set).await;
        let end = format!("{here}/{}", id(&set));
        let page = browser.open(&end).await;
        let next = post(&world, &mut browser, &page, &end, &[("when", "day")]).await;
        assert!(next.status == 200 && next.html.contains("Saved"), "{}", next.html);
        let stored = world.admin.get(&format!("{BASE}/ClientAppKeySet/{}", id(&set))).await.is(200).json();
        assert!(stored["validTo"].is_string(), "{stored}");
    }
}
