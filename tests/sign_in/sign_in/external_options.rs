//! Options of external identity providers that select the subject and the callback path.

use chancery_record::Value as Stored;
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{
    BASE,
    browser::{Browser, Page},
    external::{connect, has_failed, people, set_up, sign_in_with, tokens},
    link,
};
use crate::{
    id,
    instance::{create_instance, option, set_option},
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
};

/// The link to the provider.
fn link_of(page: &Page) -> String {
    link(page, "Continue with Partner")
}

on_both_engines! {
    [allow_loopback]
    /// With one path for each instance no provider gets the code of another one.
    async fn a_callback_path_is_unique_to_an_instance(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let other = create_instance(&world, "Other", "OpenIdConnect").await;
        set_option(&world, &instance, "CallbackPath", "/signin-oidc").await;
        let taken = async |path: &str| {
            let row = option(&world, &other, "CallbackPath").await;
            let body = json!({ "value": path, "concurrencyToken": row["concurrencyToken"] });
            world.admin.patch(&format!("{BASE}/Option/{}", id(&row)), body).await
        };
        let problem = taken("/signin-oidc").await.problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], "/value", "{problem}");
        taken("/signin-other").await.expect(202);
        tokens(&world, &home, &provider, &[]).await;
        // of two that an older release permitted the first one is used
        let both = "UPDATE option_value SET value = '/signin-other' WHERE name = 'CallbackPath' AND value = '/signin-oidc'";
        world.sql(vec![(both, vec![])]).await;
        tokens(&world, &home, &provider, &[]).await;
        let both = "UPDATE option_value SET rid = rid + 1000000 WHERE name = 'CallbackPath' AND apply_to_idp_instance_id = ?1";
        world.sql(vec![(both, vec![Stored::Id(id(&instance).parse().unwrap())])]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.open(&link(&page, "Continue with Partner")).await;
        assert!(page.left.is_none() && has_failed(&page), "{}", page.html);
    }

    /// Directories that identify people by another claim than `sub` use it together with the organisation.
    ///
    /// - Effect of `OpenIdConnect options.ScimSubjectClaim`: This claim identifies the person whom a directory provisioned by SCIM. Any
    ///   claim but `sub` needs ScimUniqueIdentifierValues.
    /// - Effect of `OpenIdConnect options.ScimUniqueIdentifierValues`: Only people of these organisations are accepted.
    async fn the_subject_claim_is_configurable(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        set_option(&world, &instance, "ScimSubjectClaim", "oid").await;
        // an administrator of any organisation there could set it
        let shown = world.admin.get(&format!("{BASE}/IdpInstance/{}", id(&instance))).await.is(200).json();
        assert_eq!(shown["hasConfigurationError"], json!(true));
        world.sql(vec![("UPDATE option_value SET has_configuration_error = FALSE", vec![])]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(has_failed(&browser.open(&link(&page, "Continue with Partner")).await));
        set_option(&world, &instance, "ScimUniqueIdentifierValues", "org-1").await;
        provider.behave(Behaviour { claims: json!({ "oid": "o-1", "tid": "org-1" }), ..Behaviour::default() });
        tokens(&world, &home, &provider, &[]).await;
        assert_eq!(people(&world, &instance).await[0]["identities"][0]["subject"], "o-1");
        for wrong in [json!({ "tid": "org-1" }), json!({ "oid": "o-1", "tid": "org-2" }), json!({ "oid": 1, "tid": "org-1" })] {
            provider.behave(Behaviour { claims: wrong.clone(), ..Behaviour::default() });
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            assert!(has_failed(&sign_in_with(&mut browser, &page, "Partner", &provider).await), "{wrong}");
        }
    }

    /// A certificate of type OidcTokenSigning replaces the secret, while it is linked and valid; one of type
    /// OidcTokenEncryption decrypts ID tokens.
    ///
    /// - Effect of `IdpInstance.certStores`: Sign-ins at the provider and trials sign and decrypt with these certificates.
    async fn certificates_sign_assertions_and_decrypt_id_tokens(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let path = format!("{BASE}/IdpInstance/{}", id(&instance));
        let has_error = async || world.admin.get(&path).await.is(200).json()["hasConfigurationError"] == json!(true);
        let shown = async || {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            (browser, page)
        };
        set_option(&world, &instance, "ClientSecret", "").await;
        assert!(has_error().await && !shown().await.1.html.contains("Continue with"));
        let refused = world.admin.post(&format!("{path}/trial"), json!({})).await.problem(409, "conflict");
        assert!(refused["detail"].as_str().unwrap().contains("OidcTokenSigning"), "{refused}");
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let signing = async |kind: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = rcgen::CertificateParams::new(vec!["a.example".into()]).unwrap().self_signed(&key).unwrap();
            let input = json!({ "format": "Pem", "data": certificate.pem(), "privateKey": key.serialize_pem() });
            let body = json!({ "name": kind, "certType": kind, "subscriptionId": subscription, "certificateInput": input });
            (world.make("CertStore", body).await, key.public_key_raw().to_vec())
        };
        let link = format!("{path}/certstores");
        let (opening, opening_key) = signing("OidcTokenEncryption").await;
        world.admin.put(&link, json!({ "relatedIds": [opening["id"]] })).await.expect(202);
        assert!(has_error().await, "a key that opens proves nothing");
        let (store, key) = signing("OidcTokenSigning").await;
        world.admin.put(&link, json!({ "relatedIds": [store["id"]] })).await.expect(202);
        assert!(!has_error().await);
        let asserted = || Behaviour { asserted_by: Some(key.clone()), ..Behaviour::default() };
        provider.behave(Behaviour { encrypted_to: Some(opening_key.clone()), ..asserted() });
        let (mut browser, page) = shown().await;
        assert!(has_failed(&sign_in_with(&mut browser, &page, "Partner", &provider).await), "nothing opens the token");
        world.admin.put(&link, json!({ "relatedIds": [store["id"], opening["id"]] })).await.expect(202);
        provider.behave(Behaviour { encrypted_to: Some(opening_key), ..asserted() });
        tokens(&world, &home, &provider, &[]).await;
        provider.behave(asserted());
        tokens(&world, &home, &provider, &[]).await;
        // also if the option does not exist any more
        let row = option(&world, &instance, "ClientSecret").await;
        world.admin.delete(&format!("{BASE}/Option/{}", id(&row))).await.expect(204);
        assert!(!has_error().await);
        tokens(&world, &home, &provider, &[]).await;
        // an expired one proves nothing, and nobody is redirected
        world.sql(vec![("UPDATE cert_store SET valid_to = 1000 WHERE cert_type = 'OidcTokenSigning'", vec![])]).await;
        let (mut browser, page) = shown().await;
        assert!(has_failed(&browser.open(&link_of(&page)).await));
        let begun = world.admin.post(&format!("{path}/trial"), json!({})).await.is(200).json();
        let failed: Vec<_> = begun["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "secret").collect();
        assert_eq!((failed.len(), &failed[0]["option"], &begun["url"]), (1, &json!("ClientSecret"), &json!(null)), "{begun}");
        world.admin.put(&link, json!({ "relatedIds": [] })).await.expect(202);
        assert!(has_error().await && !shown().await.1.html.contains("Continue with"));
    }

    /// Responses that are too large and forbidden addresses stop a sign-in; clocks may differ by a minute.
    async fn responses_of_a_provider_are_limited(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let tried = async |behaviour: Behaviour| {
            provider.behave(behaviour);
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            has_failed(&sign_in_with(&mut browser, &page, "Partner", &provider).await)
        };
        let large = "x".repeat(300 << 10);
        let tokens = json!({ "access_token": "access", "token_type": "Bearer", "id_token": large });
        assert!(tried(Behaviour { tokens: Some((200, tokens)), ..Behaviour::default() }).await);
        assert!(tried(Behaviour { user_info: json!({ "about": large }), ..Behaviour::default() }).await);
        let now = chancery_web::now().0 / 1000;
        for (ahead, fails) in [(30, false), (90, true)] {
            let claims = json!({ "iat": now + ahead });
            assert_eq!(tried(Behaviour { claims, ..Behaviour::default() }).await, fails, "{ahead}");
            let claims = json!({ "exp": now - ahead });
            assert_eq!(tried(Behaviour { claims, ..Behaviour::default() }).await, fails, "{ahead}");
        }
        // a discovery document cannot name addresses in networks that the operator did not permit
        let (silent, inner) = (StubProvider::start().await, StubProvider::start_out_of_reach().await);
        silent.behave(Behaviour { is_down: true, ..Behaviour::default() });
        for (name, target) in [("Outward", &silent), ("Inward", &inner)] {
            let second = StubProvider::start().await;
            connect(&world, &home, name, &second).await;
            second.behave(Behaviour { document: json!({ "token_endpoint": target.secure_url("/token") }), ..Behaviour::default() });
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            assert!(has_failed(&sign_in_with(&mut browser, &page, name, &second).await), "{name}");
        }
        assert!(silent.connections() > 0);
        assert_eq!(inner.connections(), 0);
        // a document that is too large is not read
        let third = StubProvider::start().await;
        connect(&world, &home, "Vast", &third).await;
        third.behave(Behaviour { document: json!({ "about": large }), ..Behaviour::default() });
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(has_failed(&browser.open(&link(&page, "Continue with Vast")).await));
    }
}
