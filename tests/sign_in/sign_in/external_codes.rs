//! Codes by mail and SMS for external people: they are sent to addresses of trusted providers.

use chancery_mail::sink::{Sink, SinkConfig};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    SignInApp,
    browser::{Browser, Page},
    change, claims, external, parameter,
    second_factor::{factor_option, make_factor, require_factor},
};
use crate::{
    id,
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
};

/// The page after a sign-in at the provider.
async fn signed_in_page(
    world: &World,
    home: &SignInApp,
    provider: &StubProvider,
    more: &[(&str, &str)],
) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(more)).await;
    let page = external::sign_in_with(&mut browser, &page, "Partner", provider).await;
    (browser, page)
}

/// Sets the claims of the provider.
fn set_claims(provider: &StubProvider, provider_claims: &Value) {
    provider.behave(Behaviour {
        claims: provider_claims.clone(),
        user_info: provider_claims.clone(),
        ..Behaviour::default()
    });
}

fn is_refused(page: &Page) -> bool {
    page.html.contains("You cannot sign in here")
}

async fn set_trusted(world: &World, instance: &Value, is_trusted: bool) {
    let member = json!({ "treatMfaFactorClaimsAsConfirmed": is_trusted });
    change(world, &format!("/IdpInstance/{}", id(instance)), member).await;
}

on_both_engines! {
    [allow_loopback]
    async fn codes_are_mailed_to_the_address_of_a_trusted_provider(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        let factor = require_factor(&world, &home, "email").await;
        let provider_claims = json!({ "email": "ada@example.com", "email_verified": true });
        set_claims(&provider, &provider_claims);
        set_trusted(&world, &instance, true).await;
        // external people have no store whose mail server could send it
        assert!(is_refused(&signed_in_page(&world, &home, &provider, &[]).await.1));
        factor_option(&world, &factor, "MailServerConfig", &sink.config()).await;
        factor_option(&world, &factor, "EMailSenderAddress", "noreply@example.com").await;
        for (is_trusted, provider_claims) in [
            (false, provider_claims.clone()),
            (true, json!({ "email": "ada@example.com", "email_verified": false })),
            (true, json!({ "email": null, "email_verified": true })),
        ] {
            set_trusted(&world, &instance, is_trusted).await;
            set_claims(&provider, &provider_claims);
            assert!(is_refused(&signed_in_page(&world, &home, &provider, &[]).await.1), "{provider_claims}");
        }
        assert_eq!(sink.received().len(), 0);
        set_claims(&provider, &provider_claims);
        let (mut browser, page) = signed_in_page(&world, &home, &provider, &[]).await;
        assert!(page.html.contains("a…@example.com"), "{}", page.html);
        let mails = sink.wait_for(1).await;
        assert_eq!(mails[0].to, ["ada@example.com"]);
        let text = mails[0].text();
        let code = text.split_whitespace().find(|word| word.len() == 6 && word.bytes().all(|byte| byte.is_ascii_digit())).unwrap();
        let wrong = browser.submit(&page, &[("code", "1234567")]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        let next = browser.submit(&wrong, &[("code", code)]).await;
        let answer = browser.continue_to_app(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["amr"], json!(["fed", "mfa", "otp"]));
    }

    /// Addresses that an administrator or a directory wrote are not those of the provider.
    async fn codes_are_mailed_to_no_other_address(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        external::tokens(&world, &home, &provider, &[]).await;
        assert_eq!(external::people(&world, &instance).await[0]["emailAddress"], "ada@example.com");
        let factor = require_factor(&world, &home, "email").await;
        factor_option(&world, &factor, "MailServerConfig", &sink.config()).await;
        factor_option(&world, &factor, "EMailSenderAddress", "noreply@example.com").await;
        set_trusted(&world, &instance, true).await;
        world.sql(vec![("UPDATE application_user SET email_address = 'mallory@example.com', email_address_key = 'mallory@example.com'", vec![])]).await;
        set_claims(&provider, &json!({ "email": null }));
        assert!(is_refused(&signed_in_page(&world, &home, &provider, &[]).await.1));
        set_claims(&provider, &json!({ "email": "augusta@example.com" }));
        let (mut browser, page) = signed_in_page(&world, &home, &provider, &[]).await;
        assert_eq!(sink.wait_for(1).await[0].to, ["augusta@example.com"]);
        // the page retains the address
        let page = browser.open(&page.address).await;
        assert!(page.html.contains("a…@example.com"), "{}", page.html);
        assert_eq!(sink.received().len(), 1);
    }

    /// The step-up of a session uses the address of its sign-in.
    async fn step_up_uses_the_address_of_the_session(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        set_trusted(&world, &instance, true).await;
        set_claims(&provider, &json!({ "email": "ada@example.com", "email_verified": true }));
        let (mut browser, _) = external::sign_in(&world, &home, &provider, &[]).await;
        let factor = make_factor(&world, &home, "email").await;
        factor_option(&world, &factor, "MailServerConfig", &sink.config()).await;
        factor_option(&world, &factor, "EMailSenderAddress", "noreply@example.com").await;
        let page = browser.open(&home.request(&[("acr_values", "mfa")])).await;
        assert!(page.html.contains("a…@example.com"), "{}", page.html);
        assert_eq!(sink.wait_for(1).await[0].to, ["ada@example.com"]);
    }

    async fn codes_are_sent_to_the_number_of_a_trusted_provider(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let factor = require_factor(&world, &home, "sms").await;
        // the gateway is down; the page reports this together with the number
        factor_option(&world, &factor, "GatewayUrl", "https://127.0.0.1:1/send").await;
        set_trusted(&world, &instance, true).await;
        set_claims(&provider, &json!({ "phone_number": "+49 (40) 123456", "phone_number_verified": true }));
        let page = signed_in_page(&world, &home, &provider, &[]).await.1;
        assert!(page.html.contains("…56"), "{}", page.html);
        for (is_trusted, provider_claims) in [
            (false, json!({ "phone_number": "+4940123456", "phone_number_verified": true })),
            (true, json!({ "phone_number": "+4940123456", "phone_number_verified": false })),
            (true, json!({ "phone_number": "040 123456" })),
        ] {
            set_trusted(&world, &instance, is_trusted).await;
            set_claims(&provider, &provider_claims);
            assert!(is_refused(&signed_in_page(&world, &home, &provider, &[]).await.1), "{provider_claims}");
        }
    }
}
