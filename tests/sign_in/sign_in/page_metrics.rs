//! The metrics of pages and token requests: the method under which a post counts as an attempt, the label of its page, and
//! that of a grant type.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{
    CALLBACK, SignInApp,
    browser::Browser,
    device,
    passkey::{use_passkey, with_passkey},
    second_factor::{require_factor, typed},
    tenant_option,
};
use crate::{authenticator::Authenticator, id};

/// Whether the metrics have exactly these lines of attempts and of posts.
async fn has_counted(world: &World, attempts: &[(&str, &str, u32)], posts: &[(&str, &str, u32)]) {
    let metrics = world.admin.get("/metrics").await.is(200);
    let text = String::from_utf8_lossy(&metrics.bytes).into_owned();
    let lines = |name: &str| {
        let mut lines: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let expected = |name: &str, label: &str, counts: &[(&str, &str, u32)]| {
        let mut lines: Vec<String> = counts
            .iter()
            .map(|(of, outcome, count)| format!("{name}{{{label}=\"{of}\",outcome=\"{outcome}\"}} {count}"))
            .collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    assert_eq!(lines("chancery_sign_ins_total"), expected("chancery_sign_ins_total", "method", attempts));
    assert_eq!(lines("chancery_flows_total"), expected("chancery_flows_total", "step", posts));
}

on_both_engines! {
    /// A wrong code counts under the name of the page.
    async fn a_wrong_code_of_a_mail_counts_as_a_confirmation(world: World) {
        let home = SignInApp::new(&world).await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let now = world.admin.get(&path).await.is(200).json();
        let body = json!({ "emailAddressConfirmed": false, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, body).await.expect(202);
        tenant_option(&world, &home, "EmailConfirmationRequired", "true").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        browser.submit(&page, &[("code", "1234567")]).await;
        browser.submit(&page, &[("resend", "1")]).await;
        let attempts = [("password", "right", 1), ("confirm", "wrong", 1)];
        has_counted(&world, &attempts, &[("password", "next", 1), ("confirm", "again", 2)]).await;
    }

    /// Terms count as a confirmation does.
    async fn accepted_terms_count_as_a_confirmation(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "TermsVersion", "1").await;
        tenant_option(&world, &home, "TermsUrl", "https://northwind.example/terms").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        browser.submit(&page, &[("version", &page.field("version")), ("decision", "accept")]).await;
        let attempts = [("password", "right", 1), ("confirm", "right", 1)];
        has_counted(&world, &attempts, &[("password", "next", 1), ("terms", "complete", 1)]).await;
    }

    /// Answers count under the name of the page, a choice there as a confirmation does.
    async fn a_choice_on_the_questionnaire_counts_as_a_confirmation(world: World) {
        let home = SignInApp::new(&world).await;
        let members = json!({ "tenantId": home.tenant, "key": "hobby", "label": "Your hobby?", "isRequired": false });
        world.make("UserQuestionnaireItem", members.clone()).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        // the sign-in continues: the choice is right
        browser.submit(&page, &[("choice", "later")]).await;
        let mut members = members;
        members["key"] = "team".into();
        let item = world.make("UserQuestionnaireItem", members).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        browser.submit(&page, &[(&format!("item-{}", id(&item)), "Sales")]).await;
        let attempts = [("password", "right", 2), ("confirm", "right", 1), ("questionnaire", "right", 1)];
        has_counted(&world, &attempts, &[("password", "next", 2), ("questionnaire", "complete", 2)]).await;
    }

    /// The same method counts a passkey on the page of the password, of a second factor, and of its registration.
    async fn a_passkey_counts_as_one_on_three_pages(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        require_factor(&world, &home, "totp").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let page = browser.submit(&page, &[("credential", "{}")]).await;
        assert!(page.html.contains("Use the passkey"), "{}", page.html);
        use_passkey(&mut browser, &page, &authenticator, &home.user).await;
        let mut other = Browser::new(&world);
        let page = other.open(&home.request(&[])).await;
        let page = use_passkey(&mut other, &page, &Authenticator::new(7), &home.user).await;
        assert!(page.html.contains("The passkey was not accepted"), "{}", page.html);
        world.set_option("PasskeyEnrolment", "Offer").await;
        let page = use_passkey(&mut other, &page, &authenticator, &home.user).await;
        let page = other.submit(&page, &[("credential", "{}")]).await;
        other.submit(&page, &[("choice", "later")]).await;
        let attempts = [("password", "right", 1), ("passkey", "wrong", 3), ("passkey", "right", 3)];
        let posts = [
            ("password", "next", 2), ("password", "again", 1),
            ("secondfactor", "again", 1), ("secondfactor", "complete", 1),
            ("passkey", "again", 1), ("passkey", "complete", 1),
        ];
        has_counted(&world, &attempts, &posts).await;
    }

    /// The page of a device has no label of its own, and its post is no attempt.
    async fn a_device_is_counted_among_the_other_pages(world: World) {
        let home = device::home(&world, json!({})).await;
        let authorized = device::authorize_device(&world, &home).await;
        let (mut browser, page) = device::enter_code(&world, &authorized).await;
        device::submit(&mut browser, &page, &[("decision", "allow")]).await;
        let posts = [("password", "next", 1), ("other", "next", 1)];
        has_counted(&world, &[("password", "right", 1)], &posts).await;
    }

    /// Those of grant types that no sign-in leads to are counted together.
    async fn token_requests_are_counted_by_grant_type(world: World) {
        let home = device::home(&world, json!({})).await;
        let authorized = device::authorize_device(&world, &home).await;
        device::poll(&world, &home, &authorized).await.expect(400);
        let code = [("grant_type", "authorization_code"), ("code", "x"), ("redirect_uri", CALLBACK)];
        let refresh_token = [("grant_type", "refresh_token"), ("refresh_token", "x")];
        for form in [&code[..], &refresh_token, &[("grant_type", "password")]] {
            device::send(&world, &home, "/connect/token", form).await.expect(400);
        }
        let metrics = world.admin.get("/metrics").await.is(200);
        let text = String::from_utf8_lossy(&metrics.bytes).into_owned();
        for (grant, outcome) in [
            ("device_code", "authorization_pending"),
            ("authorization_code", "invalid_grant"),
            ("refresh_token", "invalid_grant"),
            ("other", "unsupported_grant_type"),
        ] {
            let line = format!("chancery_tokens_total{{grant=\"{grant}\",outcome=\"{outcome}\"}} 1\n");
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}
