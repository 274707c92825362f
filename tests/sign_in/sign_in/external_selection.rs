//! External identity providers that a sign-in page offers, and second factors that an instance requires.

use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{
    SignInApp,
    browser::Browser,
    change,
    external::{connect, set_up, sign_in_with, tokens},
    link, relate,
    second_factor::make_factor,
};
use crate::{
    id,
    provider_trial::{allow_loopback, stub_provider::StubProvider},
};

/// The names on the buttons, from top to bottom.
async fn offered(world: &World, home: &SignInApp) -> Vec<String> {
    let page = Browser::new(world).open(&home.request(&[])).await;
    let names = page.html.split("Continue with ").skip(1);
    names.map(|rest| rest.split('<').next().unwrap().to_owned()).collect()
}

on_both_engines! {
    [allow_loopback]
    async fn providers_linked_to_tenant_and_app_are_offered_in_order(world: World) {
        let (home, provider, partner) = set_up(&world).await;
        let second = StubProvider::start().await;
        let other = connect(&world, &home, "Other", &second).await;
        let at = |instance: &serde_json::Value, rest: &str| format!("/IdpInstance/{}{rest}", id(instance));
        assert_eq!(offered(&world, &home).await, ["Other", "Partner"], "by name");
        change(&world, &at(&other, ""), json!({ "position": 7 })).await;
        change(&world, &at(&partner, ""), json!({ "position": 3 })).await;
        assert_eq!(offered(&world, &home).await, ["Partner", "Other"], "by position");
        for (relation, related) in [("tenants", home.tenant.as_str()), ("clientapps", id(&home.app))] {
            relate(&world, &at(&other, &format!("/{relation}")), &[]).await;
            assert_eq!(offered(&world, &home).await, ["Partner"], "{relation}");
            relate(&world, &at(&other, &format!("/{relation}")), &[related]).await;
        }
        change(&world, &at(&other, ""), json!({ "isActive": false })).await;
        assert_eq!(offered(&world, &home).await, ["Partner"]);
        change(&world, &at(&partner, ""), json!({ "name": "Harbour" })).await;
        assert_eq!(offered(&world, &home).await, ["Harbour"]);
        // a button of an older page does not work any more
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        relate(&world, &at(&partner, "/tenants"), &[]).await;
        let gone = browser.open(&link(&page, "Continue with Harbour")).await;
        assert!(gone.left.is_none(), "{:?}", gone.left);
        assert_eq!(provider.connections(), 0);
    }

    async fn an_instance_requires_its_second_factors(world: World) {
        let (home, provider, partner) = set_up(&world).await;
        let factor = make_factor(&world, &home, "totp").await;
        tokens(&world, &home, &provider, &[]).await;
        let factors = format!("/IdpInstance/{}/mfainstances", id(&partner));
        relate(&world, &factors, &[id(&factor)]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("otpauth://totp/"), "{}", page.html);
        relate(&world, &factors, &[]).await;
        tokens(&world, &home, &provider, &[]).await;
    }
}
