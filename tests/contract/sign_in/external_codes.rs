//! Codes by mail and SMS for people from elsewhere: they go where a provider says that is believed.

use chancery_mail::sink::{Sink, SinkConfig};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    Home,
    browser::{Browser, Page},
    change, claims, external, parameter,
    second_factor::{ask_for, factor_option, make_factor},
};
use crate::{
    id,
    provider_trial::{
        of_this_machine,
        stand_in::{Behaviour, StandIn},
    },
};

/// The page after a sign-in by the provider.
async fn come(world: &World, home: &Home, provider: &StandIn, more: &[(&str, &str)]) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(more)).await;
    let page = external::come_by(&mut browser, &page, "Partner", provider).await;
    (browser, page)
}

/// The provider tells these claims from now on.
fn tell(provider: &StandIn, told: &Value) {
    provider.behave(Behaviour { claims: told.clone(), user_info: told.clone(), ..Behaviour::default() });
}

fn is_refused(page: &Page) -> bool {
    page.html.contains("You cannot sign in here")
}

async fn believe(world: &World, instance: &Value, is_believed: bool) {
    let member = json!({ "treatMfaFactorClaimsAsConfirmed": is_believed });
    change(world, &format!("/IdpInstance/{}", id(instance)), member).await;
}

on_both_engines! {
    [of_this_machine]
    async fn a_code_goes_to_the_address_that_a_believed_provider_tells(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        let factor = ask_for(&world, &home, "email").await;
        let told = json!({ "email": "ada@example.com", "email_verified": true });
        tell(&provider, &told);
        believe(&world, &instance, true).await;
        // people from elsewhere have no store whose mail server could send it
        assert!(is_refused(&come(&world, &home, &provider, &[]).await.1));
        factor_option(&world, &factor, "MailServerConfig", &sink.config()).await;
        factor_option(&world, &factor, "EMailSenderAddress", "noreply@example.com").await;
        for (is_believed, told) in [
            (false, told.clone()),
            (true, json!({ "email": "ada@example.com", "email_verified": false })),
            (true, json!({ "email": null, "email_verified": true })),
        ] {
            believe(&world, &instance, is_believed).await;
            tell(&provider, &told);
            assert!(is_refused(&come(&world, &home, &provider, &[]).await.1), "{told}");
        }
        assert_eq!(sink.received().len(), 0);
        tell(&provider, &told);
        let (mut browser, page) = come(&world, &home, &provider, &[]).await;
        assert!(page.html.contains("a…@example.com"), "{}", page.html);
        let mails = sink.wait_for(1).await;
        assert_eq!(mails[0].to, ["ada@example.com"]);
        let text = mails[0].text();
        let code = text.split_whitespace().find(|word| word.len() == 6 && word.bytes().all(|byte| byte.is_ascii_digit())).unwrap();
        let wrong = browser.submit(&page, &[("code", "1234567")]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        let next = browser.submit(&wrong, &[("code", code)]).await;
        let answer = browser.go_on(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["amr"], json!(["fed", "mfa", "otp"]));
    }

    /// An address that an administrator or a directory wrote is none of the provider's.
    async fn a_code_goes_nowhere_else(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        external::tokens(&world, &home, &provider, &[]).await;
        assert_eq!(external::people(&world, &instance).await[0]["emailAddress"], "ada@example.com");
        let factor = ask_for(&world, &home, "email").await;
        factor_option(&world, &factor, "MailServerConfig", &sink.config()).await;
        factor_option(&world, &factor, "EMailSenderAddress", "noreply@example.com").await;
        believe(&world, &instance, true).await;
        world.sql(vec![("UPDATE application_user SET email_address = 'mallory@example.com', email_address_key = 'mallory@example.com'", vec![])]).await;
        tell(&provider, &json!({ "email": null }));
        assert!(is_refused(&come(&world, &home, &provider, &[]).await.1));
        tell(&provider, &json!({ "email": "augusta@example.com" }));
        let (mut browser, page) = come(&world, &home, &provider, &[]).await;
        assert_eq!(sink.wait_for(1).await[0].to, ["augusta@example.com"]);
        // the page remembers where it goes
        let page = browser.open(&page.address).await;
        assert!(page.html.contains("a…@example.com"), "{}", page.html);
        assert_eq!(sink.received().len(), 1);
    }

    /// Who has signed in already is asked by the address of that sign-in.
    async fn a_session_is_stepped_up_by_what_was_told_then(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        believe(&world, &instance, true).await;
        tell(&provider, &json!({ "email": "ada@example.com", "email_verified": true }));
        let (mut browser, _) = external::sign_in(&world, &home, &provider, &[]).await;
        let factor = make_factor(&world, &home, "email").await;
        factor_option(&world, &factor, "MailServerConfig", &sink.config()).await;
        factor_option(&world, &factor, "EMailSenderAddress", "noreply@example.com").await;
        let page = browser.open(&home.request(&[("acr_values", "mfa")])).await;
        assert!(page.html.contains("a…@example.com"), "{}", page.html);
        assert_eq!(sink.wait_for(1).await[0].to, ["ada@example.com"]);
    }

    async fn a_code_goes_to_the_number_that_a_believed_provider_tells(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let factor = ask_for(&world, &home, "sms").await;
        // the gateway is down, which the page says; it says where the code was to go, too
        factor_option(&world, &factor, "GatewayUrl", "https://127.0.0.1:1/send").await;
        believe(&world, &instance, true).await;
        tell(&provider, &json!({ "phone_number": "+49 (40) 123456", "phone_number_verified": true }));
        let page = come(&world, &home, &provider, &[]).await.1;
        assert!(page.html.contains("…56"), "{}", page.html);
        for (is_believed, told) in [
            (false, json!({ "phone_number": "+4940123456", "phone_number_verified": true })),
            (true, json!({ "phone_number": "+4940123456", "phone_number_verified": false })),
            (true, json!({ "phone_number": "040 123456" })),
        ] {
            believe(&world, &instance, is_believed).await;
            tell(&provider, &told);
            assert!(is_refused(&come(&world, &home, &provider, &[]).await.1), "{told}");
        }
    }
}
