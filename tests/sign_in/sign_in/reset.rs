//! A forgotten password: a link by mail, and the page that it opens.

use std::time::Duration;

use chancery_record::Value as Bound;
use chancery_testkit::{Client, World, on_both_engines, with_stopped_clock};
use serde_json::{Value, json};

use super::{
    CALLBACK, PASSWORD, SignInApp,
    browser::{Browser, Page},
    change, first, parameter, relate, tenant_option,
};
use crate::{
    id,
    signing::{mails, set, set_mail_server, texts},
};

const NEW: &str = "five quiet brown owls";
const MINUTE: i64 = 60_000;

/// A home whose store can send mail.
async fn home(world: &World) -> SignInApp {
    set_mail_server(&world.admin).await;
    SignInApp::new(world).await
}

/// The URL of the page for a forgotten password.
fn page_of(tenant: &str) -> String {
    format!("/t/{tenant}/password/reset")
}

/// The URL of the sign-in page's link.
fn reset_url(page: &Page) -> Option<String> {
    let (before, _) = page.html.split_once("\">Forgot your password?</a>")?;
    Some(before.rsplit('"').next().unwrap().replace("&amp;", "&"))
}

/// Requests a link for this name.
pub async fn request_link(browser: &mut Browser, page: &Page, name: &str) -> Page {
    let csrf = page.field("csrf");
    browser.post(&page.action(), &[("csrf", &csrf), ("username", name)], &[]).await
}

/// Waits until this many mails are queued.
pub async fn wait_for(world: &World, count: usize) -> Vec<Value> {
    for _ in 0..200 {
        let queued = mails(world).await;
        if queued.len() >= count {
            return queued;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("there are not {count} mails");
}

/// Backdates sent mails by this many milliseconds.
async fn age(world: &World, milliseconds: i64) {
    let text = "UPDATE password_reset_mail SET sent_on = sent_on - ?1";
    world.sql(vec![(text, vec![Bound::Int(milliseconds)])]).await;
}

/// The link in a mail, as a path of this server.
fn link(world: &World, mail: &Value) -> String {
    mail["link"].as_str().unwrap().strip_prefix(&world.base).unwrap().to_owned()
}

/// The link that Ann gets by mail.
async fn link_for_ann(world: &World, home: &SignInApp) -> String {
    let mut browser = Browser::new(world);
    let page = browser.open(&page_of(&home.tenant)).await;
    let before = mails(world).await.len();
    request_link(&mut browser, &page, "ann").await;
    link(world, wait_for(world, before + 1).await.last().unwrap())
}

/// Submits a new password on the page of a link.
async fn set_password(browser: &mut Browser, page: &Page, [new, repeated]: [&str; 2]) -> Page {
    let csrf = page.field("csrf");
    let typed = [("csrf", csrf.as_str()), ("new_password", new), ("repeated_password", repeated)];
    browser.post(&page.action(), &typed, &[]).await
}

on_both_engines! {
    /// Section 12: from the sign-in page to a new password, and back; it does not sign in.
    async fn a_forgotten_password_is_reset(world: World) {
        let home = home(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let forgotten = reset_url(&page).unwrap_or_else(|| panic!("no link: {}", page.html));
        let request = browser.open(&forgotten).await;
        assert!(request.html.contains("Reset your password") && request.html.contains("Back to sign-in"), "{}", request.html);
        let sent = request_link(&mut browser, &request, "ANN").await;
        assert!(sent.html.contains("Look into your mail"), "{}", sent.html);
        let mail = wait_for(&world, 1).await.pop().unwrap();
        assert_eq!((&mail["recipient"], &mail["token"]), (&json!("ann@example.com"), &Value::Null));
        let link = link(&world, &mail);
        assert!(link.starts_with(&page_of(&home.tenant)), "{link}");
        let set = browser.open(&link).await;
        assert!(set.html.contains("Choose a new password") && set.html.contains("<strong>ann</strong>"), "{}", set.html);
        assert!(set.html.contains("at least") && set.answer.header("referrer-policy") == Some("no-referrer"));
        let done = set_password(&mut browser, &set, [NEW, NEW]).await;
        assert!(done.html.contains("Your password is changed") && done.html.contains("Go to sign-in"), "{}", done.html);
        assert!(!done.address.contains("token") && browser.cookies.keys().all(|name| !name.ends_with("session")));
        let entry = world.audit(1).await[0].clone();
        assert_eq!((&entry["user"], &entry["area"]), (&home.user["id"], &json!("User")));
        // back in the flow the new password is accepted, and the old one is not
        let (before, _) = done.html.split_once("\">Go to sign-in</a>").unwrap();
        let page = browser.open(&before.rsplit('"').next().unwrap().replace("&amp;", "&")).await;
        let answer = browser.sign_in(&page, "ann", NEW).await;
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
        let mut other = Browser::new(&world);
        let page = other.open(&home.request(&[])).await;
        assert!(other.type_password(&page, "ann", PASSWORD).await.html.contains("is not right"));
        // the link has been used
        let over = browser.open(&link).await;
        assert!(over.html.contains("has expired or was used") && !over.address.contains("token"), "{}", over.html);
    }

    /// The responses to known and unknown names are identical, and one mail is sent in five minutes.
    async fn responses_do_not_reveal_names(world: World) {
        let home = home(&world).await;
        let bob = json!({ "loginName": "bob", "emailAddress": "bob@example.com" });
        world.admin.post(&world.path("/User"), bob).await.expect(201);
        let mut browser = Browser::new(&world);
        let page = browser.open(&page_of(&home.tenant)).await;
        let mut answers = Vec::new();
        for name in ["nobody", "ann", "ann", &"n".repeat(2_000)] {
            let sent = request_link(&mut browser, &page, name).await;
            // before it only the nonce differs
            let shown = sent.html.split_once("<main").unwrap().1.to_owned();
            answers.push((sent.status, sent.address, shown));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        request_link(&mut browser, &page, "bob").await;
        let to: Vec<Value> = wait_for(&world, 2).await.iter().map(|mail| mail["recipient"].clone()).collect();
        assert_eq!(to, [json!("ann@example.com"), json!("bob@example.com")]);
        age(&world, 4 * MINUTE).await;
        request_link(&mut browser, &page, "ann").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(mails(&world).await.len(), 2, "not yet");
        age(&world, MINUTE).await;
        request_link(&mut browser, &page, "ann").await;
        wait_for(&world, 3).await;
        // unauthenticated requests write only an attempt at an unknown name, and the user is unchanged
        let user = world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json();
        assert_eq!(user["failedUserLoginAttempts"], json!(0));
        assert!(!texts(&world, "SELECT CAST(slot AS TEXT) FROM attempt_at_nobody").await.is_empty());
        let missing = request_link(&mut browser, &page, " ").await;
        assert!(missing.html.contains("Enter your user name") && missing.html.contains("aria-invalid"), "{}", missing.html);
    }

    /// People who cannot sign in get no mail: a link does not override a decision of an administrator.
    async fn people_who_may_not_sign_in_get_no_mail(world: World) {
        let home = home(&world).await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let link = link_for_ann(&world, &home).await;
        age(&world, 5 * MINUTE).await;
        world.admin.post(&format!("{path}/state"), json!({ "isUserActive": false })).await.expect(200);
        let mut browser = Browser::new(&world);
        let page = browser.open(&page_of(&home.tenant)).await;
        request_link(&mut browser, &page, "ann").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(mails(&world).await.len(), 1);
        assert!(browser.open(&link).await.html.contains("has expired or was used"));
        world.admin.post(&format!("{path}/state"), json!({ "isUserActive": true })).await.expect(200);
        set(&world.admin, "IsDatabaseReadOnlyMode", "true").await;
        assert!(browser.open(&link).await.html.contains("has expired or was used"));
        let page = browser.open(&home.request(&[])).await;
        assert!(reset_url(&page).is_none(), "nothing can be reset");
    }

    /// Mistakes in the new password are shown at their field, and the link remains valid.
    async fn an_invalid_password_is_reported_at_its_field(world: World) {
        let home = home(&world).await;
        set(&world.admin, "PasswordHistoryCount", "2").await;
        let mut browser = Browser::new(&world);
        let mut page = browser.open(&link_for_ann(&world, &home).await).await;
        for (typed, text) in [
            (["", ""], "Enter your password."),
            ([NEW, "another one"], "The two entries differ."),
            (["password1", "password1"], "is easy to guess"),
            (["short", "short"], "does not meet the rules"),
            ([PASSWORD, PASSWORD], "used this password before"),
        ] {
            page = set_password(&mut browser, &page, typed).await;
            assert!(page.html.contains(text) && page.html.contains("aria-invalid"), "{typed:?} {}", page.html);
        }
        let done = set_password(&mut browser, &page, [NEW, NEW]).await;
        assert!(done.html.contains("Your password is changed") && !done.html.contains("Go to sign-in"), "{}", done.html);
        let again = set_password(&mut browser, &page, ["six loud white swans", "six loud white swans"]).await;
        assert!(again.html.contains("has expired or was used"), "{}", again.html);
    }

    /// An expired link, or one of another tenant, opens nothing; a form of another site does nothing.
    async fn a_link_is_valid_for_its_tenant_until_it_expires(world: World) {
        let home = home(&world).await;
        let instance = first(&world, "/IdpInstance").await;
        let tenant = first(&world, "/Tenant").await;
        let other = world.make("Tenant", json!({ "name": "Elsewhere", "subscriptionId": tenant["subscriptionId"] })).await;
        relate(&world, &format!("/Tenant/{}/idpinstances", id(&other)), &[id(&instance)]).await;
        let link = link_for_ann(&world, &home).await;
        let mut browser = Browser::new(&world);
        let other_page = browser.open(&link.replace(&home.tenant, id(&other))).await;
        assert!(other_page.html.contains("has expired or was used"), "{}", other_page.html);
        let page = browser.open(&link).await;
        let csrf = page.field("csrf");
        let typed = [("csrf", csrf.as_str()), ("new_password", NEW), ("repeated_password", NEW)];
        let foreign = browser.post(&page.action(), &typed, &[("sec-fetch-site", "cross-site")]).await;
        let forged = browser.post(&page.action(), &[("csrf", "AAAA"), typed[1], typed[2]], &[]).await;
        assert_eq!((foreign.status, forged.status), (403, 403));
        let stolen = Browser::new(&world).post(&page.action(), &typed, &[]).await;
        assert_eq!(stolen.status, 403, "another browser's");
        world.sql(vec![("UPDATE password_reset SET expires_on = 1", vec![])]).await;
        let late = browser.post(&page.action(), &typed, &[]).await;
        assert!(late.html.contains("has expired or was used"), "{}", late.html);
        for bad in ["", "AAAA", "%00"] {
            let page = browser.open(&format!("{}?token={bad}", page_of(&home.tenant))).await;
            assert!(page.html.contains("has expired or was used"), "{bad} {}", page.html);
        }
    }

    /// A tenant can disable it; the installation's issuer, which belongs to no tenant, has none.
    ///
    /// - Effect of `Tenant options.PasswordResetEnabled`: People who forgot their password can set a new one by a link in a mail.
    async fn password_reset_can_be_disabled(world: World) {
        let home = home(&world).await;
        let link = link_for_ann(&world, &home).await;
        let mut browser = Browser::new(&world);
        assert_eq!(browser.open("/password/reset").await.status, 404);
        tenant_option(&world, &home, "PasswordResetEnabled", "false").await;
        let page = browser.open(&home.request(&[])).await;
        assert!(page.html.contains("current-password") && reset_url(&page).is_none(), "{}", page.html);
        for address in [&page_of(&home.tenant), &link] {
            assert_eq!(browser.open(address).await.status, 404);
        }
        tenant_option(&world, &home, "PasswordResetEnabled", "true").await;
        set(&world.admin, "MailServerConfig", "").await;
        let page = browser.open(&home.request(&[])).await;
        assert!(reset_url(&page).is_none(), "the store cannot send mail");
    }

    /// Section 13: all sessions and grants end, also those with `offline_access`.
    async fn a_reset_ends_all_sessions_and_grants(world: World) {
        let home = home(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid offline_access")])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let mut other_browser = Browser::new(&world);
        let page = other_browser.open(&link_for_ann(&world, &home).await).await;
        set_password(&mut other_browser, &page, [NEW, NEW]).await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        let refused = home.refresh_at(&world.anonymous, tokens["refresh_token"].as_str().unwrap()).await;
        assert_eq!(refused.is(400).json()["error"], json!("invalid_grant"));
    }

    /// The link uses the store's template if there is one; a flow searches its own stores only.
    async fn links_use_the_template_and_stores_of_the_flow(world: World) {
        let home = home(&world).await;
        set(&world.admin, "PasswordResetUrlTemplate", "https://people.example/new?u={loginName}&t={token}").await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&page_of(&home.tenant)).await;
        request_link(&mut browser, &page, "ann").await;
        let mail = wait_for(&world, 1).await.pop().unwrap();
        assert!(mail["link"].as_str().unwrap().starts_with("https://people.example/new?u=ann&t="), "{mail}");
        // a store of the tenant that the app does not offer
        let other = home_without_stores(&world, &home).await;
        let page = browser.open(&other).await;
        assert!(reset_url(&page).is_none(), "{}", page.html);
    }
}

/// An authorization request of an app in the same tenant without a store.
async fn home_without_stores(world: &World, home: &SignInApp) -> String {
    let app = world.make("ClientApp", json!({ "name": "Bare" })).await;
    let tenants: [&str; 1] = [&home.tenant];
    relate(world, &format!("/ClientApp/{}/tenants", id(&app)), &tenants).await;
    let uri = json!({ "clientAppId": app["id"], "uri": CALLBACK, "redirectUriType": "Login" });
    world.make("ClientAppRedirectUri", uri).await;
    change(world, &format!("/ClientApp/{}", id(&app)), json!({ "enabled": true })).await;
    home.request(&[("client_id", id(&app))])
}

with_stopped_clock! {
    /// Requests for links, right or wrong, and wrong links count towards the limits of the address.
    ["--public-rate-limit", "12", "--failed-sign-ins", "12"]
    async fn requests_and_wrong_links_are_limited(server: World) {
        let tenant = server.admin.get("/api/management/v2/Tenant").await.is(200).json()[0].clone();
        let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
        let page = browser.open(&page_of(id(&tenant))).await;
        let limited = |page: Page| {
            assert!(page.status == 429 && page.html.contains("Too many"), "{}", page.html);
            assert!(page.answer.header("retry-after").is_some());
        };
        for _ in 0..12 {
            assert_eq!(request_link(&mut browser, &page, "nobody").await.status, 200);
        }
        limited(request_link(&mut browser, &page, "nobody").await);
        for _ in 0..4 {
            assert_eq!(browser.open(&format!("{}?token=AAAA", page_of(id(&tenant)))).await.status, 200);
        }
        limited(browser.open(&format!("{}?token=AAAA", page_of(id(&tenant)))).await);
    }
}
