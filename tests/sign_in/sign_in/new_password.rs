//! The page for a password that must be changed.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{
    PASSWORD, SignInApp,
    browser::{Browser, Page},
    parameter,
};
use crate::id;

const INITIAL: &str = "given to her on paper";
const NEW: &str = "five quiet brown owls";

/// Gives Ann an initial password.
async fn set_initial_password(world: &World, home: &SignInApp) {
    let path = world.path(&format!("/User/{}/password/initial", id(&home.user)));
    world.admin.post(&path, json!({ "password": INITIAL })).await.expect(200);
}

async fn change(browser: &mut Browser, page: &Page, [current, new, repeated]: [&str; 3]) -> Page {
    let csrf = page.field("csrf");
    let fields = [
        ("csrf", csrf.as_str()),
        ("current_password", current),
        ("new_password", new),
        ("repeated_password", repeated),
    ];
    browser.post(&page.action(), &fields, &[]).await
}

/// Ann has entered her password, and the page asks for a new one.
async fn change_page(world: &World, home: &SignInApp, password: &str) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    let page = browser.type_password(&page, "ann", password).await;
    assert!(page.html.contains("Change your password"), "{}", page.html);
    assert!(browser.cookies.keys().all(|name| !name.ends_with("session")), "nobody is signed in yet");
    (browser, page)
}

on_both_engines! {
    /// Section 15: an initial password is changed before the sign-in completes; then it is not accepted any more.
    async fn an_initial_password_is_changed_first(world: World) {
        let home = SignInApp::new(&world).await;
        set_initial_password(&world, &home).await;
        let (mut browser, page) = change_page(&world, &home, INITIAL).await;
        assert!(page.html.contains("autocomplete=\"new-password\"") && page.html.contains("at least"), "{}", page.html);
        let next = change(&mut browser, &page, [INITIAL, NEW, NEW]).await;
        let answer = browser.continue_to_app(&next).await;
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
        let user = world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json();
        assert_eq!((&user["isInitialPassword"], &user["isPasswordChangeRequired"]), (&json!(false), &json!(false)));
        let mut other = Browser::new(&world);
        let page = other.open(&home.request(&[])).await;
        let wrong = other.type_password(&page, "ann", INITIAL).await;
        assert!(wrong.html.contains("is not right"), "{}", wrong.html);
        let entry = world.audit(1).await[0].clone();
        assert_eq!((&entry["user"], &entry["area"]), (&home.user["id"], &json!("User")));
    }

    /// Mistakes are shown at their field, and change nothing.
    async fn mistakes_are_shown_at_their_field(world: World) {
        let home = SignInApp::new(&world).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        set_initial_password(&world, &home).await;
        let (mut browser, mut page) = change_page(&world, &home, INITIAL).await;
        for (typed, text) in [
            (["", "", ""], "Enter your password."),
            ([INITIAL, NEW, "another one"], "The two entries differ."),
            (["not this one", NEW, NEW], "The current password is not right."),
            ([INITIAL, "password1", "password1"], "is easy to guess"),
            ([INITIAL, "short", "short"], "does not meet the rules"),
        ] {
            page = change(&mut browser, &page, typed).await;
            assert!(page.html.contains(text) && page.html.contains("aria-invalid"), "{typed:?} {}", page.html);
        }
        let user = world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json();
        assert_eq!(user["failedUserLoginAttempts"], json!(1), "the wrong one alone counts");
        let next = change(&mut browser, &page, [INITIAL, NEW, NEW]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }

    /// An expired password can be changed if the user may; otherwise the refusal reveals nothing else.
    ///
    /// - Effect of `User.canChangePasswordOnExpiration`: A user with an expired password may set a new one while signing in.
    async fn an_expired_password_is_changed_if_permitted(world: World) {
        let home = SignInApp::new(&world).await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let set = async |members: serde_json::Value| {
            let now = world.admin.get(&path).await.is(200).json();
            let mut body = json!({ "concurrencyToken": now["concurrencyToken"] });
            body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            world.admin.patch(&path, body).await.expect(202);
        };
        set(json!({ "passwordExpiration": "2020-01-01T00:00:00Z" })).await;
        let (_, page) = change_page(&world, &home, PASSWORD).await;
        assert!(page.html.contains("has expired"), "{}", page.html);
        set(json!({ "canChangePasswordOnExpiration": false })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let refused = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(refused.html.contains("is not right"), "{}", refused.html);
    }

    /// Other sessions end, and the page cannot be skipped.
    async fn a_password_change_ends_other_sessions(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut other_browser, _) = home.sign_in(&world).await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let expired = json!({
            "passwordExpiration": "2020-01-01T00:00:00Z",
            "concurrencyToken": world.admin.get(&path).await.is(200).json()["concurrencyToken"],
        });
        world.admin.patch(&path, expired).await.expect(202);
        let silent = other_browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("interaction_required"));
        let (mut browser, page) = change_page(&world, &home, PASSWORD).await;
        let next = change(&mut browser, &page, [PASSWORD, NEW, NEW]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        let silent = other_browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "here the session goes on: {silent}");
    }
}
