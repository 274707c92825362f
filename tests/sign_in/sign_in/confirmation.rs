//! Confirmation of an e-mail address during a sign-in (`EmailConfirmationRequired`).

use chancery_mail::sink::{Sink, SinkConfig};
use chancery_testkit::{World, on_both_engines};
use serde_json::json;

use super::{SignInApp, claims, external, parameter, second_factor::typed, tenant_option};
use crate::{id, signing::calling_this_machine};

/// A home whose Ann has an unconfirmed address.
async fn unconfirmed(world: &World) -> SignInApp {
    let home = SignInApp::new(world).await;
    let path = world.path(&format!("/User/{}", id(&home.user)));
    let now = world.admin.get(&path).await.is(200).json();
    let body = json!({ "emailAddressConfirmed": false, "concurrencyToken": now["concurrencyToken"] });
    world.admin.patch(&path, body).await.expect(202);
    tenant_option(world, &home, "EmailConfirmationRequired", "true").await;
    home
}

on_both_engines! {
    [calling_this_machine]
    /// - Effect of `Tenant options.EmailConfirmationRequired`: People of user stores confirm their mail address by a code before they are
    ///   signed in.
    /// - Effect of `UserStore options.EMailSenderAddress`: Mails of the store come from this address.
    /// - Effect of `UserStore options.MailServerConfig`: Mails of the store go through this mail server.
    async fn an_address_is_confirmed_by_a_code(world: World) {
        let sink = Sink::start(SinkConfig::PLAIN).await.unwrap();
        world.set_option("MailServerConfig", &sink.config()).await;
        world.set_option("EMailSenderAddress", "noreply@example.com").await;
        let home = unconfirmed(&world).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("Confirm your email address") && page.html.contains("a…@example.com"), "{}", page.html);
        let mail = &sink.wait_for(1).await[0];
        assert_eq!(mail.from, "noreply@example.com");
        let text = mail.text();
        let code = text.split_whitespace().find(|word| word.len() == 6 && word.bytes().all(|byte| byte.is_ascii_digit())).unwrap();
        let wrong = browser.submit(&page, &[("code", "1234567")]).await;
        assert!(wrong.html.contains("The code is not right."), "{}", wrong.html);
        let next = browser.submit(&wrong, &[("code", code)]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
        let user = world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json();
        assert_eq!(user["emailAddressConfirmed"], json!(true));
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some(), "once");
    }

    /// If no mail can be sent the page says so, and the step cannot be skipped; going back leads to the app.
    async fn without_a_mail_server_the_page_says_so(world: World) {
        let home = unconfirmed(&world).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("We could not send a code"), "{}", page.html);
        let back = browser.submit(&page, &[("choice", "cancel")]).await;
        assert_eq!(parameter(&browser.continue_to_app(&back).await, "error").as_deref(), Some("access_denied"));
    }

    /// A read-only store requires no confirmation, since it could not be stored.
    async fn a_read_only_store_requires_no_confirmation(world: World) {
        let home = unconfirmed(&world).await;
        world.set_option("IsDatabaseReadOnlyMode", "true").await;
        let (mut browser, next) = typed(&world, &home, &[]).await;
        assert!(parameter(&browser.continue_to_app(&next).await, "code").is_some());
    }

    /// People of an external provider have no address that this server confirms.
    async fn people_of_an_external_provider_confirm_no_address(world: World) {
        let (home, provider, _) = external::set_up(&world).await;
        tenant_option(&world, &home, "EmailConfirmationRequired", "true").await;
        let issued = claims(&external::tokens(&world, &home, &provider, &[]).await["id_token"]);
        assert_eq!((&issued["email"], &issued["email_verified"]), (&json!("ada@example.com"), &json!(false)));
    }
}
