//! Second factors: authenticators, recovery codes, codes by mail and SMS, and remembered browsers.

use aws_lc_rs::hmac;
use chancery_mail::sink::{Sink, SinkConfig};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, PASSWORD, SignInApp,
    browser::{Browser, Page},
    change, claims, encode, first, link, parameter, relate, tenant_option,
};
use crate::{
    id,
    resources::type_id,
    signing::{calling_this_machine, now},
};

/// The secret of an authenticator, in base32.
fn from_base32(text: &str) -> Vec<u8> {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b' ') {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|one| *one == letter).unwrap();
        held = (held << 5) | u32::try_from(value).unwrap();
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).unwrap());
        }
    }
    bytes
}

/// The current code, or that of the next step of 30 seconds (RFC 6238): both are valid when they are submitted, even if a step ends
/// meanwhile.
pub fn code_of(secret: &str, on: i64) -> String {
    code_by(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, (30_000, 6), secret, on)
}

/// The same with another hash, period in milliseconds and number of digits.
pub fn code_by(hash: hmac::Algorithm, (period, digits): (i64, usize), secret: &str, on: i64) -> String {
    let key = hmac::Key::new(hash, &from_base32(secret));
    let tag = hmac::sign(&key, &(now() / period + on).to_be_bytes());
    let from = usize::from(tag.as_ref().last().unwrap() & 15);
    let number = u32::from_be_bytes(tag.as_ref()[from..from + 4].try_into().unwrap()) & 0x7fff_ffff;
    let text = format!("{number:010}");
    text[text.len() - digits..].to_owned()
}

/// Creates a second factor of this type, and makes the home's app require it.
pub async fn require_factor(world: &World, home: &SignInApp, kind: &str) -> Value {
    let factor = make_factor(world, home, kind).await;
    world
        .admin
        .post(
            &format!("{BASE}/ClientApp/{}/mfainstances", id(&home.app)),
            json!({ "relatedIds": [id(&factor)] }),
        )
        .await
        .expect(202);
    factor
}

/// Creates a second factor of this type in the home's tenant.
pub async fn make_factor(world: &World, home: &SignInApp, kind: &str) -> Value {
    let body = json!({ "name": format!("Factor {kind}"), "idpTypeId": type_id(world, kind).await });
    let factor = world.make("MfaInstance", body).await;
    relate(world, &format!("/MfaInstance/{}/tenants", id(&factor)), &[home.tenant.as_str()]).await;
    factor
}

/// Sets an option of a second factor.
pub async fn factor_option(world: &World, factor: &Value, name: &str, value: &str) {
    let filter = format!("applyToMfaInstanceId eq \"{}\" and name eq \"{name}\"", id(factor));
    let option = first(world, &format!("/Option?filter={}", encode(&filter))).await;
    change(world, &format!("/Option/{}", id(&option)), json!({ "value": value })).await;
}

/// Ann has entered her password; returns the next page.
pub async fn typed(world: &World, home: &SignInApp, more: &[(&str, &str)]) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(more)).await;
    let page = browser.type_password(&page, "ann", PASSWORD).await;
    (browser, page)
}

pub fn between<'a>(html: &'a str, begin: &str, end: &str) -> &'a str {
    let from = html.find(begin).unwrap_or_else(|| panic!("no {begin} in {html}")) + begin.len();
    html[from..].split(end).next().unwrap()
}

/// Enrols an authenticator; returns Ann's secret, her recovery codes and the code of the enrolment.
pub async fn enrol(world: &World, home: &SignInApp) -> (String, Vec<String>, String) {
    let (mut browser, page) = typed(world, home, &[]).await;
    let secret = between(&page.html, "class=\"secret\"><code>", "<").to_owned();
    let used = code_of(&secret, 0);
    let shown = browser.submit(&page, &[("code", &used)]).await;
    let codes: Vec<String> = shown
        .html
        .split("<li><code>")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap().to_owned())
        .collect();
    assert_eq!(codes.len(), 10, "{}", shown.html);
    let next = browser.submit(&shown, &[]).await;
    let answer = browser.continue_to_app(&next).await;
    home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
    (secret, codes, used)
}

/// The same home, for another app.
fn home_like(home: &SignInApp) -> SignInApp {
    SignInApp {
        app: home.app.clone(),
        tenant: home.tenant.clone(),
        secret: home.secret.clone(),
        user: home.user.clone(),
    }
}

/// Another app of the home's tenant and store, without a second factor.
async fn second_app(world: &World, home: &SignInApp) -> Value {
    let instance = first(world, "/IdpInstance").await;
    let app = world.make("ClientApp", json!({ "name": "Plain", "isPublic": true })).await;
    relate(world, &format!("/ClientApp/{}/tenants", id(&app)), &[home.tenant.as_str()]).await;
    world
        .admin
        .post(
            &format!("{BASE}/IdpInstance/{}/clientapps", id(&instance)),
            json!({ "relatedIds": [id(&app)] }),
        )
        .await
        .expect(202);
    let uri = json!({ "clientAppId": app["id"], "uri": super::CALLBACK, "redirectUriType": "Login" });
    world.make("ClientAppRedirectUri", uri).await;
    app
}

/// The last sign-in record.
async fn last_record(world: &World) -> Value {
    first(world, "/SignInRecord?sortOrder=descending&count=1").await
}

on_both_engines! {
    /// Section 13: a person without one enrols it during the sign-in; from then on it is required.
    ///
    /// - Effect of `ClientApp.mfaInstances`: The app requires one of these second factors.
    async fn an_authenticator_is_enrolled_and_then_required(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("<svg class=\"qr\"") && page.html.contains("otpauth:"), "{}", page.html);
        let wrong = browser.submit(&page, &[("code", "000000")]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        assert_eq!(between(&wrong.html, "class=\"secret\"><code>", "<"), between(&page.html, "class=\"secret\"><code>", "<"));
        assert_eq!(world.all("SignInFactor").await, json!([]));

        let (secret, ..) = enrol(&world, &home).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("autocomplete=\"one-time-code\"") && !page.html.contains("class=\"secret\""), "{}", page.html);
        let next = browser.submit(&page, &[("code", &code_of(&secret, 1))]).await;
        let answer = browser.continue_to_app(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let claims = claims(&tokens["id_token"]);
        assert_eq!((&claims["acr"], &claims["amr"]), (&json!("mfa"), &json!(["mfa", "otp", "pwd"])));
        let record = last_record(&world).await;
        assert_eq!((&record["outcome"], &record["acr"]), (&json!("SignedIn"), &json!("mfa")));
    }

    /// A code is accepted once, and wrong ones count as wrong passwords do: a known password permits no unlimited guesses.
    async fn codes_are_accepted_once_and_wrong_ones_lock(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let (_, _, used) = enrol(&world, &home).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let used = browser.submit(&page, &[("code", &used)]).await;
        assert!(used.html.contains("The code is not right."), "used when it was enrolled: {}", used.html);
        let user = world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json();
        assert_eq!(user["failedTemporaryLockAttempts"], 1);
        let record = last_record(&world).await;
        assert_eq!((&record["outcome"], &record["reason"]), (&json!("Refused"), &json!("SecondFactor")));
        // the password is right each time, and does not reset the count
        for _ in 2..5 {
            let (mut browser, page) = typed(&world, &home, &[]).await;
            browser.submit(&page, &[("code", "000000")]).await;
        }
        let locked = browser.submit(&page, &[("code", "000000")]).await;
        assert!(locked.html.contains("You cannot sign in here"), "the lock ends the flow: {}", locked.html);
        let page = browser.open(&home.request(&[])).await;
        let refused = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(refused.html.contains("is not right"), "{}", refused.html);
    }

    /// A password elsewhere permits no further guesses at codes: only a right code resets the count of wrong ones.
    async fn a_right_password_does_not_reset_the_count_of_wrong_codes(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let (secret, ..) = enrol(&world, &home).await;
        let plain = SignInApp { app: second_app(&world, &home).await, ..home_like(&home) };
        let (mut browser, mut page) = typed(&world, &home, &[]).await;
        for number in 0..5 {
            page = browser.submit(&page, &[("code", "000000")]).await;
            if number == 3 {
                // a sign-in without a second factor resets the counts of the store
                let (mut other, next) = typed(&world, &plain, &[]).await;
                assert!(parameter(&other.continue_to_app(&next).await, "code").is_some());
                let user = world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json();
                assert_eq!(user["failedTemporaryLockAttempts"], 0);
            }
        }
        let locked = browser.submit(&page, &[("code", &code_of(&secret, 1))]).await;
        assert!(locked.html.contains("The account is locked"), "{}", locked.html);
        // and again after the password reset them once more
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let locked = browser.submit(&page, &[("code", &code_of(&secret, 1))]).await;
        assert!(locked.html.contains("The account is locked"), "{}", locked.html);
    }

    /// Every page of a factor links back to the app.
    async fn each_page_links_back_to_the_app(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let back = browser.submit(&page, &[("choice", "cancel")]).await;
        assert_eq!(parameter(&browser.continue_to_app(&back).await, "error").as_deref(), Some("access_denied"));
        enrol(&world, &home).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let back = browser.submit(&page, &[("choice", "cancel")]).await;
        assert_eq!(parameter(&browser.continue_to_app(&back).await, "error").as_deref(), Some("access_denied"));
    }

    /// A right code resets the counts, once the sign-in is complete.
    async fn a_completed_sign_in_resets_the_count_of_failures(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let (secret, ..) = enrol(&world, &home).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let page = browser.submit(&page, &[("code", "000000")]).await;
        let next = browser.submit(&page, &[("code", &code_of(&secret, 1))]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        let user = world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json();
        assert_eq!(user["failedTemporaryLockAttempts"], 0);
    }

    /// Each recovery code is accepted once, instead of the authenticator.
    async fn recovery_codes_are_accepted_once(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        let (_, codes, _) = enrol(&world, &home).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("I use a recovery code"), "{}", page.html);
        let choice = format!("recovery:{}", between(&page.html, "value=\"recovery:", "\""));
        let page = browser.submit(&page, &[("choice", &choice)]).await;
        let typed_code = codes[3].to_lowercase().replace('-', " ");
        let next = browser.submit(&page, &[("code", &typed_code)]).await;
        let tokens = home.redeem(&world, &parameter(&browser.continue_to_app(&next).await, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["acr"], "mfa");
        let factor = world.all("SignInFactor").await[0].clone();
        assert_eq!((&factor["recoveryCodes"], &factor["kind"]), (&json!(9), &json!("Authenticator")));
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let page = browser.submit(&page, &[("choice", &choice)]).await;
        let again = browser.submit(&page, &[("code", &codes[3])]).await;
        assert!(again.html.contains("The code is not right."), "{}", again.html);
    }

    /// A session by a recovery code ends with the authenticator that it replaced.
    async fn removing_an_authenticator_ends_recovery_code_sessions(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        let (_, codes, _) = enrol(&world, &home).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let choice = format!("recovery:{}", between(&page.html, "value=\"recovery:", "\""));
        let page = browser.submit(&page, &[("choice", &choice)]).await;
        let next = browser.submit(&page, &[("code", &codes[0])]).await;
        browser.continue_to_app(&next).await;
        let factor = world.all("SignInFactor").await[0].clone();
        world.admin.delete(&format!("{BASE}/SignInFactor/{}", id(&factor))).await.expect(204);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        let (_, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("class=\"secret\""), "no code is left: {}", page.html);
    }

    /// An administrator removes a factor: the sessions in which it was used end, and another one can be enrolled.
    async fn an_administrator_removes_a_factor(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        let (secret, ..) = enrol(&world, &home).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let next = browser.submit(&page, &[("code", &code_of(&secret, 1))]).await;
        browser.continue_to_app(&next).await;
        let factor = world.all("SignInFactor").await[0].clone();
        assert!(!factor.to_string().contains("secret") && factor["usedOn"].is_string());
        world.admin.delete(&format!("{BASE}/SignInFactor/{}", id(&factor))).await.expect(204);
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
        let (_, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("class=\"secret\""), "{}", page.html);
    }

    /// If the tenant requires it, only an administrator permits enrolment: by an access pass.
    ///
    /// - Effect of `Tenant options.SecondFactorEnrolment`: People enrol a second factor while they sign in, or only with an administrator's
    ///   access pass.
    async fn enrolment_can_require_an_access_pass(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        tenant_option(&world, &home, "SecondFactorEnrolment", "Administrator").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        let passes = world.path("/passkey-security/temporary-access-passes");
        let pass = world.admin.post(&passes, json!({ "userId": id(&home.user) })).await.is(201).json();
        let page = browser.open(&home.request(&[])).await;
        let page = browser.open(&link(&page, "access pass")).await;
        let page = browser.submit(&page, &[("username", "ann"), ("pass", pass["value"].as_str().unwrap())]).await;
        assert!(page.html.contains("class=\"secret\""), "{}", page.html);
    }

    /// Without a usable factor nobody is admitted, rather than everybody.
    ///
    /// - Effect of `MfaInstance.isActive`: A second factor that is not active cannot be used, and people who need it cannot sign in.
    async fn without_a_usable_factor_nobody_is_admitted(world: World) {
        let home = SignInApp::new(&world).await;
        let factor = require_factor(&world, &home, "totp").await;
        change(&world, &format!("/MfaInstance/{}", id(&factor)), json!({ "isActive": false })).await;
        let (_, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        let record = last_record(&world).await;
        assert_eq!((&record["outcome"], &record["reason"]), (&json!("Refused"), &json!("SecondFactorUnavailable")));
    }

    /// A requested acr class steps up the existing session.
    async fn a_session_is_stepped_up(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        make_factor(&world, &home, "totp").await;
        let demanded = &[("acr_values", "mfa")];
        let silent = browser.open(&home.request(&[("acr_values", "mfa"), ("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("interaction_required"));
        let before = browser.cookies.iter().find(|(name, _)| name.ends_with("session")).unwrap().1.clone();
        let page = browser.open(&home.request(demanded)).await;
        let secret = between(&page.html, "class=\"secret\"><code>", "<").to_owned();
        let shown = browser.submit(&page, &[("code", &code_of(&secret, 0))]).await;
        let next = browser.submit(&shown, &[]).await;
        let answer = browser.continue_to_app(&next).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["acr"], "mfa");
        let after = browser.cookies.iter().find(|(name, _)| name.ends_with("session")).unwrap().1.clone();
        assert_ne!(before, after, "the cookie changes with the proof");
        assert_eq!(last_record(&world).await["outcome"], "SteppedUp");
        assert_eq!(world.all("SignInSession").await.as_array().unwrap().len(), 1);
        let metadata = world.anonymous.get("/.well-known/openid-configuration").await.is(200).json();
        assert_eq!(metadata["acr_values_supported"], json!(["sfa", "mfa", "phr", "phrh"]));
        // phr requires a passkey
        let refused = browser.open(&home.request(&[("acr_values", "phr")])).await.left.unwrap();
        assert_eq!(parameter(&refused, "error").as_deref(), Some("unmet_authentication_requirements"));
    }

    /// RememberDeviceLifetime skips the factor in this browser, but not if the request demands it, and not after a new password.
    ///
    /// - Effect of `Tenant options.RememberDeviceLifetime`: A browser can be remembered for this time, and then needs no second factor; 0
    ///   remembers none.
    async fn a_browser_is_remembered(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        let (secret, ..) = enrol(&world, &home).await;
        tenant_option(&world, &home, "RememberDeviceLifetime", "30.00:00:00").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("Do not ask again"), "{}", page.html);
        let next = browser.submit(&page, &[("code", &code_of(&secret, 1)), ("remember", "true")]).await;
        browser.continue_to_app(&next).await;
        browser.cookies.retain(|name, _| !name.ends_with("session"));
        let page = browser.open(&home.request(&[])).await;
        let next = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some(), "spared");
        browser.cookies.retain(|name, _| !name.ends_with("session"));
        let page = browser.open(&home.request(&[("acr_values", "mfa")])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(page.html.contains("one-time-code"), "demanded: {}", page.html);
        let reset = world.path(&format!("/User/{}/password/reset", id(&home.user)));
        world.admin.post(&reset, json!({ "newPassword": "five quiet brown owls" })).await.expect(200);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.type_password(&page, "ann", "five quiet brown owls").await;
        assert!(page.html.contains("one-time-code"), "forgotten: {}", page.html);
    }

    /// Input for another step changes nothing: no URL skips a factor.
    async fn a_url_cannot_skip_a_factor(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        enrol(&world, &home).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let flow = page.action().split_once("flow=").unwrap().1.to_owned();
        for step in ["continue", "consent", "enrol", "recoverycodes", "passkey", "terms", "newpassword"] {
            let shown = browser.open(&format!("/signin/{step}?flow={flow}")).await;
            assert!(shown.address.contains("/signin/secondfactor"), "{step} {}", shown.address);
        }
        let posted = browser.submit(&page, &[("choice", "passkey")]).await;
        assert!(posted.address.contains("/signin/secondfactor"));
        assert!(browser.cookies.keys().all(|name| !name.ends_with("session")));
    }
}

on_both_engines! {
    [calling_this_machine]
    /// - Effect of `MfaInstance.idpTypeId`: The type determines how people get codes: by an authenticator, by mail or by SMS.
    /// - Effect of `email options.MaxAttempts`: After this number of wrong entries another code is needed.
    /// - Effect of `email options.ResendInterval`: Another code is sent only after this time.
    async fn a_code_is_sent_by_mail(world: World) {
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        world.set_option("MailServerConfig", &sink.config()).await;
        world.set_option("EMailSenderAddress", "noreply@example.com").await;
        let home = SignInApp::new(&world).await;
        let factor = require_factor(&world, &home, "email").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("a…@example.com"), "{}", page.html);
        let mails = sink.wait_for(1).await;
        assert_eq!(mails[0].to, ["ann@example.com"]);
        let code = |text: String| text.split_whitespace().find(|word| word.len() == 6 && word.bytes().all(|byte| byte.is_ascii_digit())).unwrap().to_owned();
        let right = code(mails[0].text());
        // showing the page sends no other code, and a request too soon sends none
        let page = browser.open(&page.address).await;
        let soon = browser.submit(&page, &[("resend", "true")]).await;
        assert!(soon.html.contains("We sent a code a short while ago"), "{}", soon.html);
        world.set_option("LoginThrottlingEnabled", "false").await;
        let wrong = browser.submit(&page, &[("code", "1234567")]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        let next = browser.submit(&wrong, &[("code", &right)]).await;
        let tokens = home.redeem(&world, &parameter(&browser.continue_to_app(&next).await, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["amr"], json!(["mfa", "otp", "pwd"]));
        assert_eq!(sink.received().len(), 1);
        // used up; after MaxAttempts another one is required
        factor_option(&world, &factor, "ResendInterval", "00:00:00").await;
        factor_option(&world, &factor, "MaxAttempts", "1").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let second = code(sink.wait_for(2).await[1].text());
        assert_ne!(right, second);
        let wrong = browser.submit(&page, &[("code", &right)]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        sink.wait_for(3).await;
        let over = browser.submit(&wrong, &[("code", &second)]).await;
        assert!(over.html.contains("The code is not right."), "another one was sent: {}", over.html);
    }

    /// Without a confirmed address no code can be sent.
    ///
    /// - Effect of `User.emailAddressConfirmed`: Codes and links go to a confirmed address only, and apps get this as `email_verified`.
    async fn codes_are_not_sent_to_unconfirmed_addresses(world: World) {
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        world.set_option("MailServerConfig", &sink.config()).await;
        world.set_option("EMailSenderAddress", "noreply@example.com").await;
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "email").await;
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let now = world.admin.get(&path).await.is(200).json();
        let body = json!({ "emailAddressConfirmed": false, "concurrencyToken": now["concurrencyToken"] });
        world.admin.patch(&path, body).await.expect(202);
        let (_, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
    }
}
