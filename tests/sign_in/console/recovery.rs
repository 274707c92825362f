//! Two administrators recover a user who has lost all authenticators.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{Browser, Page, administrator, assign, person, post, sign_in};
use crate::id;

const RECOVERY: &str = "/console/store/default/recovery";

/// A browser in which another administrator uses the console.
async fn another(world: &World) -> Browser {
    let grace = person(world, "grace").await;
    assign(world, &grace, "SystemAdmin", json!({})).await;
    let mut browser = Browser::new(world);
    sign_in(&mut browser, "/console", "grace").await;
    browser
}

/// Presses the button with this target.
async fn press(world: &World, browser: &mut Browser, page: &Page, path: &str, act: &str) -> Page {
    let action = format!("{path}/{act}");
    assert!(page.html.contains(&format!("action=\"{action}\"")), "{act}: {}", page.html);
    let next = post(world, browser, page, &action, &[]).await;
    assert_eq!(next.status, 200, "{act}: {}", next.html);
    next
}

on_both_engines! {
    /// The second administrator sees the request of the first one; the access pass is shown once, at the end.
    async fn two_administrators_recover_a_user(world: World) {
        let mut first = administrator(&world).await;
        let lost = world.admin.post(&world.path("/User"), json!({ "loginName": "edsger" })).await.is(201).json();
        let user = first.open(&format!("/console/store/default/User/{}", id(&lost))).await;
        assert!(user.html.contains(&format!("{RECOVERY}/new?user={}", id(&lost))), "{}", user.html);
        let page = first.open(&format!("{RECOVERY}/new?user={}", id(&lost))).await;
        assert!(page.html.contains(&format!("value=\"{}\"", id(&lost))), "{}", page.html);
        let form = format!("{RECOVERY}/new");
        let blank = post(&world, &mut first, &page, &form, &[("userId", id(&lost)), ("method", "IdentityDocument"), ("reason", " ")]).await;
        assert!(blank.status == 400 && blank.html.contains("href=\"#f-reason\""), "{}", blank.html);
        let written = [("userId", id(&lost)), ("method", "IdentityDocument"), ("reason", "phone fell into the canal")];
        let own = post(&world, &mut first, &blank, &form, &written).await;
        let path = own.address.split('?').next().unwrap().to_owned();
        let path = path.strip_prefix(&world.base).unwrap_or(&path).to_owned();
        assert!(own.html.contains("Another administrator&#x27;s turn") || own.html.contains("Waiting for another administrator"), "{}", own.html);
        assert!(!own.html.contains(&format!("{path}/approve")), "{}", own.html);
        let slip = post(&world, &mut first, &own, &format!("{path}/approve"), &[]).await;
        assert_eq!(slip.status, 409, "{}", slip.html);
        assert!(slip.html.contains(&format!("href=\"{path}\"")), "what was refused leads back: {}", slip.html);
        let early = post(&world, &mut first, &own, &format!("{path}/pass"), &[]).await;
        assert_eq!(early.status, 409, "{}", early.html);

        let mut second = another(&world).await;
        let list = second.open(RECOVERY).await;
        assert!(list.html.contains(&format!("href=\"{path}\"")) && list.html.contains("edsger"), "{}", list.html);
        let page = second.open(&path).await;
        assert!(page.html.contains("phone fell into the canal") && page.html.contains("Ada Lovelace"), "{}", page.html);
        let approved = press(&world, &mut second, &page, &path, "approve").await;
        assert!(approved.html.contains("Ready to be completed"), "{}", approved.html);
        let completed = press(&world, &mut second, &approved, &path, "complete").await;
        let pass = press(&world, &mut second, &completed, &path, "pass").await;
        let value = pass.html.split("<li>").nth(1).map(|rest| rest.split('<').next().unwrap().to_owned()).unwrap_or_default();
        assert!(value.len() >= 8, "{}", pass.html);
        let security = world.path("/passkey-security/temporary-access-passes/redemption");
        world.admin.post(&security, json!({ "loginName": "edsger", "value": value })).await.expect(200);
        assert!(!second.open(&path).await.html.contains(&value));
    }

    async fn a_recovery_is_cancelled(world: World) {
        let mut browser = administrator(&world).await;
        let lost = world.admin.post(&world.path("/User"), json!({ "loginName": "edsger" })).await.is(201).json();
        let body = json!({ "userId": id(&lost), "method": "IdentityDocument", "reason": "lost" });
        let requested = world.admin.post(&world.path("/passkey-security/recovery-transactions"), body).await.is(201).json();
        let path = format!("{RECOVERY}/{}", id(&requested));
        let page = browser.open(&path).await;
        assert!(page.html.contains("Waiting for your approval"), "it was not hers: {}", page.html);
        let gone = press(&world, &mut browser, &page, &path, "cancel").await;
        assert!(gone.html.contains("Cancelled") && !gone.html.contains(&format!("{path}/cancel")), "{}", gone.html);
        let nowhere = browser.open(&format!("{RECOVERY}/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f")).await;
        assert_eq!(nowhere.status, 404);
    }
}
