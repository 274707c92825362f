//! What reaches far wants a fresh proof, and what was typed outlives the sign-in that it takes.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{BASE, Browser, PASSWORD, administrator, hidden, post};
use crate::sign_in::browser::Page;

/// Makes every proof eleven minutes old.
pub async fn let_it_grow_old(world: &World) {
    world.sql(vec![("UPDATE console_session SET proven_on = proven_on - 660000", vec![])]).await;
}

/// Signs in again in another tab of the same browser.
async fn prove(browser: &mut Browser) {
    let page = browser.open("/console/proof").await;
    assert!(page.html.contains("name=\"password\""), "{}", page.html);
    let next = browser.type_password(&page, "ada", PASSWORD).await;
    let page = browser.open(&next.onward()).await;
    assert!(page.html.contains("It is you"), "{}", page.html);
}

/// Sends a kept form as its page has it.
async fn send(world: &World, browser: &mut Browser, kept: &Page, path: &str, names: &[&str]) -> Page {
    let values: Vec<_> = names.iter().chain(&["kept"]).map(|name| (*name, hidden(kept, name))).collect();
    let fields: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    browser.post(path, &fields, &[("origin", &world.base)]).await
}

on_both_engines! {
    async fn a_grant_wants_a_fresh_proof(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/RoleAssignment/new";
        let page = browser.open(path).await;
        assert_eq!(page.status, 200, "{}", page.html);
        let assignments = async || {
            let all = world.admin.get(&format!("{BASE}/RoleAssignment")).await.is(200).json();
            all.as_array().unwrap().clone()
        };
        let before = assignments().await;
        let person = before[0]["principalId"].as_str().unwrap().to_owned();
        let_it_grow_old(&world).await;
        let fields = [("principalType", "PlatformUser"), ("principalId", person.as_str()), ("roleType", "AuditTrailReader")];
        let kept = post(&world, &mut browser, &page, path, &fields).await;
        assert!(kept.status == 401 && kept.html.contains("Is it you?"), "{}", kept.html);
        let names = ["principalType", "principalId", "roleType"];
        let early = send(&world, &mut browser, &kept, path, &names).await;
        assert!(early.status == 401, "nobody has signed in again: {}", early.html);
        assert_eq!(assignments().await.len(), before.len());
        prove(&mut browser).await;
        let done = send(&world, &mut browser, &kept, path, &names).await;
        assert!(done.status == 200, "{}", done.html);
        assert_eq!(assignments().await.len(), before.len() + 1, "{}", done.html);
        let_it_grow_old(&world).await;
        let page = browser.open(path).await;
        assert!(page.html.contains("name=\"password\""), "a page that leads there asks first: {}", page.html);
    }

    /// What reaches far asks first: erasing, deleting for good, secrets, certificates, exports, the end of others' sessions.
    async fn what_reaches_far_asks_first(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("grace").await;
        let tenant = world.all("Tenant").await[0]["id"].as_str().unwrap().to_owned();
        let ada = world.all("ApplicationUser").await[0]["id"].as_str().unwrap().to_owned();
        let pages = [
            format!("/console/store/default/User/{}/EraseUser", user["id"].as_str().unwrap()),
            format!("/console/Tenant/{tenant}/delete"),
            format!("/console/ApplicationUser/{ada}/SignOutApplicationUser"),
            "/console/CertStore/new".to_owned(),
            "/console/ClientApp/new?kind=web".to_owned(),
            "/console/EventSubscription/new".to_owned(),
            "/console/store/default/ScimToken/new".to_owned(),
            "/console/configuration/export".to_owned(),
        ];
        let is_sign_in = |page: &Page| page.address.contains("/signin/");
        for path in &pages {
            let page = browser.open(path).await;
            assert!(page.status < 500 && !is_sign_in(&page), "{path}: {}", page.html);
        }
        let_it_grow_old(&world).await;
        for path in &pages {
            let page = browser.open(path).await;
            assert!(is_sign_in(&page), "{path}: {}", page.html);
        }
        // what is plain does not
        browser.open("/console/store/default/User/new").await.answer.expect(200);
    }

    async fn a_form_outlives_its_session(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/Customer/new";
        let page = browser.open(path).await;
        world.sql(vec![("UPDATE console_session SET seen_on = seen_on - 3600000", vec![])]).await;
        let kept = post(&world, &mut browser, &page, path, &[("name", "Kept & told")]).await;
        assert!(kept.status == 401 && kept.html.contains("Kept &amp; told"), "{}", kept.html);
        prove(&mut browser).await;
        let made = send(&world, &mut browser, &kept, path, &["name"]).await;
        assert!(made.html.contains("<h1>Kept &amp; told"), "{}", made.html);
    }

    /// A kept form is good in the browser that it was kept for, and from its own pages.
    async fn a_kept_form_is_no_way_around(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/Customer/new";
        let mut stranger = Browser::new(&world);
        let own = [("origin", world.base.as_str())];
        let kept = stranger.post(path, &[("name", "Forged")], &own).await;
        assert_eq!(kept.status, 401);
        let (name, token) = (hidden(&kept, "name"), hidden(&kept, "kept"));
        let fields = [("name", name.as_str()), ("kept", token.as_str())];
        browser.post(path, &fields, &own).await.answer.expect(403);
        let page = browser.open(path).await;
        page.answer.expect(200);
        for headers in [&[("origin", "https://evil.example")][..], &[("sec-fetch-site", "same-site")], &[]] {
            stranger.post(path, &fields, headers).await.answer.expect(401);
        }
        let all = world.admin.get(&format!("{BASE}/Customer")).await.is(200).json();
        assert_eq!(all, json!([all[0]]));
    }
}
