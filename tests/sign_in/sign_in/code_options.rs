//! Options of second factors: parameters of authenticator codes, length and lifetime of sent codes.

use aws_lc_rs::hmac;
use chancery_mail::sink::{Sink, SinkConfig};
use chancery_record::Value as Bound;
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    SignInApp,
    browser::{Browser, Page},
    change, claims, parameter, relate,
    second_factor::{between, code_by, code_of, factor_option, require_factor, typed},
};
use crate::{id, resources::type_id, signing::calling_this_machine};

/// Authentication methods in the ID token after a sign-in from this page.
async fn methods(world: &World, home: &SignInApp, browser: &mut Browser, next: &Page) -> Value {
    let code = parameter(&browser.continue_to_app(next).await, "code").unwrap();
    let tokens = home.redeem(world, &code, &[]).await.is(200).json();
    claims(&tokens["id_token"])["amr"].clone()
}

/// Backdates all sent codes by this many milliseconds.
pub async fn age_codes(world: &World, milliseconds: i64) {
    let text = "UPDATE one_time_code SET valid_until = valid_until - ?1";
    world.sql(vec![(text, vec![Bound::Int(milliseconds)])]).await;
}

/// The code in a text: all of its digits.
pub fn digits_in(text: &str) -> String {
    let is_code = |word: &&str| word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    text.split_whitespace().find(is_code).unwrap_or_else(|| panic!("no code in {text}")).to_owned()
}

on_both_engines! {
    /// Digits, Period and Algorithm: codes that differ in one of the three are refused. Issuer is shown by the authenticator.
    ///
    /// - Effect of `Option.applyToMfaInstanceId`: The option is in effect for this second factor.
    /// - Effect of `totp options.Algorithm`: Codes are made with this hash.
    /// - Effect of `totp options.Digits`: Codes of the authenticator have this number of digits.
    /// - Effect of `totp options.Issuer`: Authenticators show this name; without it the tenant's.
    /// - Effect of `totp options.Period`: A new code begins after this time.
    async fn authenticator_codes_follow_the_options(world: World) {
        let home = SignInApp::new(&world).await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let factor = require_factor(&world, &home, "totp").await;
        let (_, page) = typed(&world, &home, &[]).await;
        let usual = between(&page.html, "href=\"otpauth:", "\"");
        for part in ["algorithm=SHA1&", "digits=6&", "period=30"] {
            assert!(usual.replace("&amp;", "&").contains(part), "{usual}");
        }
        for (name, value) in [("Digits", "8"), ("Period", "00:01:00"), ("Algorithm", "SHA256"), ("Issuer", "Harbour Office")] {
            factor_option(&world, &factor, name, value).await;
        }
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let address = between(&page.html, "href=\"otpauth:", "\"").replace("&amp;", "&");
        for part in ["//totp/Harbour%20Office:ann?", "issuer=Harbour%20Office&", "algorithm=SHA256&", "digits=8&", "period=60"] {
            assert!(address.contains(part), "{address}");
        }
        let secret = between(&page.html, "class=\"secret\"><code>", "<").to_owned();
        let (sha1, sha256) = (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, hmac::HMAC_SHA256);
        for (hash, shape) in [(sha256, (60_000, 6)), (sha256, (30_000, 8)), (sha1, (60_000, 8))] {
            let wrong = browser.submit(&page, &[("code", &code_by(hash, shape, &secret, 0))]).await;
            assert!(wrong.html.contains("The code is not right."), "{shape:?}: {}", wrong.html);
        }
        let shown = browser.submit(&page, &[("code", &code_by(sha256, (60_000, 8), &secret, 0))]).await;
        let next = browser.submit(&shown, &[]).await;
        assert_eq!(methods(&world, &home, &mut browser, &next).await, json!(["mfa", "otp", "pwd"]));

        let (mut browser, page) = typed(&world, &home, &[]).await;
        let wrong = browser.submit(&page, &[("code", &code_of(&secret, 1))]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        let next = browser.submit(&wrong, &[("code", &code_by(sha256, (60_000, 8), &secret, 1))]).await;
        assert_eq!(methods(&world, &home, &mut browser, &next).await, json!(["mfa", "otp", "pwd"]));
    }

    /// The page states the number of digits of a code.
    async fn the_page_states_the_length_of_a_code(world: World) {
        let home = SignInApp::new(&world).await;
        let factor = require_factor(&world, &home, "totp").await;
        for digits in ["7", "8"] {
            factor_option(&world, &factor, "Digits", digits).await;
            let (_, page) = typed(&world, &home, &[]).await;
            assert!(page.html.contains(&format!("{digits} digits")), "{}", page.html);
        }
    }

    /// Position: the factor with the lowest one is offered first, from the next page on.
    ///
    /// - Effect of `MfaInstance.position`: Second factors are offered in ascending order of their position.
    async fn the_factor_with_the_lowest_position_is_offered_first(world: World) {
        let home = SignInApp::new(&world).await;
        let mut factors = Vec::new();
        for (name, position) in [("Anchor", 2), ("Buoy", 1)] {
            let body = json!({ "name": name, "position": position, "idpTypeId": type_id(&world, "totp").await });
            let factor = world.make("MfaInstance", body).await;
            relate(&world, &format!("/MfaInstance/{}/tenants", id(&factor)), &[home.tenant.as_str()]).await;
            factor_option(&world, &factor, "Issuer", name).await;
            factors.push(factor);
        }
        let (_, page) = typed(&world, &home, &[("acr_values", "mfa")]).await;
        assert!(page.html.contains("issuer=Buoy"), "{}", page.html);
        change(&world, &format!("/MfaInstance/{}", id(&factors[0])), json!({ "position": 0 })).await;
        let (_, page) = typed(&world, &home, &[("acr_values", "mfa")]).await;
        assert!(page.html.contains("issuer=Anchor"), "{}", page.html);
    }
}

on_both_engines! {
    [calling_this_machine]
    /// CodeLength and CodeLifetime of codes that are sent by mail.
    ///
    /// - Effect of `email options.CodeLength`: Codes have this number of digits.
    /// - Effect of `email options.CodeLifetime`: A code works for this time.
    async fn mailed_codes_follow_the_length_and_lifetime_options(world: World) {
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        world.set_option("MailServerConfig", &sink.config()).await;
        world.set_option("EMailSenderAddress", "noreply@example.com").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let home = SignInApp::new(&world).await;
        let factor = require_factor(&world, &home, "email").await;
        for (name, value) in [("CodeLength", "9"), ("CodeLifetime", "00:02:00"), ("ResendInterval", "00:00:00")] {
            factor_option(&world, &factor, name, value).await;
        }
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let first = digits_in(&sink.wait_for(1).await[0].text());
        assert_eq!(first.len(), 9, "{first}");
        assert!(page.html.contains("9 digits"), "{}", page.html);
        age_codes(&world, 121_000).await;
        let late = browser.submit(&page, &[("code", &first)]).await;
        assert!(late.html.contains("The code has expired."), "{}", late.html);
        // the page sends a new code
        let second = digits_in(&sink.wait_for(2).await[1].text());
        age_codes(&world, 60_000).await;
        let next = browser.submit(&late, &[("code", &second)]).await;
        assert_eq!(methods(&world, &home, &mut browser, &next).await, json!(["mfa", "otp", "pwd"]));
    }

    /// EMailSenderAddress and MailServerConfig of a factor override those of the store.
    ///
    /// - Effect of `email options.EMailSenderAddress`: Codes come from this address; without it from the store's.
    /// - Effect of `email options.MailServerConfig`: Codes go through this mail server; without it through the store's.
    async fn a_factor_has_its_own_mail_server_and_sender(world: World) {
        let (of_store, own) = (Sink::start(SinkConfig::PLAIN).await.unwrap(), Sink::start(SinkConfig::PLAIN).await.unwrap());
        world.set_option("MailServerConfig", &of_store.config()).await;
        world.set_option("EMailSenderAddress", "store@example.com").await;
        let home = SignInApp::new(&world).await;
        let factor = require_factor(&world, &home, "email").await;
        factor_option(&world, &factor, "ResendInterval", "00:00:00").await;
        factor_option(&world, &factor, "EMailSenderAddress", "codes@example.com").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert_eq!(of_store.wait_for(1).await[0].from, "codes@example.com");
        factor_option(&world, &factor, "MailServerConfig", &own.config()).await;
        browser.submit(&page, &[("resend", "true")]).await;
        assert_eq!(own.wait_for(1).await[0].from, "codes@example.com");
        assert_eq!(of_store.received().len(), 1);
    }
}
