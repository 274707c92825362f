//! Sign-in at providers of each type: Google, Microsoft, AD FS, Facebook and Twitter, with stand-ins on this machine.

use std::sync::Arc;

use aws_lc_rs::{rand::SystemRandom, signature};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, PASSWORD, SignInApp,
    browser::Browser,
    change, claims,
    external::{has_failed, people, sign_in_with},
    link, parameter, relate,
};
use crate::{
    id,
    instance::{create_instance, set_option},
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider, base64},
    },
};

/// A certificate for the tests of AD FS, and its private key.
struct Signer {
    pem: String,
    key: signature::RsaKeyPair,
}

impl Signer {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
        let created =
            rcgen::CertificateParams::new(vec!["adfs.example".into()]).unwrap().self_signed(&key).unwrap();
        let pem = created.pem();
        Self { pem, key: signature::RsaKeyPair::from_pkcs8(&key.serialize_der()).unwrap() }
    }

    /// An access token with these claims.
    fn token(&self, claims: &Value) -> String {
        let header = json!({ "typ": "JWT", "alg": "RS256", "x5t": "any" });
        let signed = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        let mut signature_bytes = vec![0; self.key.public_modulus_len()];
        let random = SystemRandom::new();
        self.key
            .sign(&signature::RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature_bytes)
            .unwrap();
        format!("{signed}.{}", base64(signature_bytes))
    }
}

/// Creates an instance of this type for the stand-in, linked to the app and its tenant.
async fn connect(world: &World, home: &SignInApp, kind: &str, options: &[(&str, &str)]) -> Value {
    let created = create_instance(world, "Partner", kind).await;
    for (option, value) in [("ClientId", "us"), ("ClientSecret", "quiet")].iter().chain(options) {
        set_option(world, &created, option, value).await;
    }
    for (relation, related) in [("tenants", home.tenant.as_str()), ("clientapps", id(&home.app))] {
        relate(world, &format!("/IdpInstance/{}/{relation}", id(&created)), &[related]).await;
    }
    created
}

/// Signs in at the provider in a new browser; returns the claims of the ID token for the app, or the error on the page.
async fn try_sign_in(
    world: &World,
    home: &SignInApp,
    provider: &StubProvider,
    more: &[(&str, &str)],
) -> Result<Value, String> {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(more)).await;
    let page = sign_in_with(&mut browser, &page, "Partner", provider).await;
    if has_failed(&page) {
        return Err(page.html);
    }
    let answer = browser.continue_to_app(&page).await;
    let tokens = home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
    Ok(claims(&tokens["id_token"]))
}

/// The stored subject of a person of a provider.
async fn subject(world: &World, instance: &Value) -> Value {
    let users = people(world, instance).await;
    assert_eq!(users.len(), 1, "{users:?}");
    users[0]["identities"][0]["subject"].clone()
}

on_both_engines! {
    [allow_loopback]
    /// - Effect of `IdpType.factoryType`: Instances of the type work as this kind.
    async fn a_person_signs_in_by_google(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let home = SignInApp::new(&world).await;
        let instance = connect(&world, &home, "Google", &[]).await;
        provider.behave(Behaviour { claims: json!({ "given_name": "Ada" }), ..Behaviour::default() });
        let id_claims = try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        assert_eq!((&id_claims["given_name"], &id_claims["amr"]), (&json!("Ada"), &json!(["fed"])));
        assert_eq!(provider.request_parameter("scope"), "openid profile email");
        // Google offers a choice of accounts, and has no auth_time
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("prompt", "login")])).await;
        assert!(has_failed(&browser.open(&link(&page, "Continue with Partner")).await));
        assert_eq!(subject(&world, &instance).await, "ada");
    }

    /// The issuer of Microsoft contains the organisation of the token.
    async fn a_person_signs_in_by_microsoft_at_the_issuer_of_the_organisation(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let home = SignInApp::new(&world).await;
        let instance = connect(&world, &home, "Microsoft", &[]).await;
        let of = |issued_by: &str, tid: &str| Behaviour {
            document: json!({
                "issuer": format!("{}/{{tenantid}}/v2.0", provider.issuer),
                "authorization_response_iss_parameter_supported": false,
            }),
            claims: json!({ "iss": format!("{}/{issued_by}/v2.0", provider.issuer), "tid": tid }),
            ..Behaviour::default()
        };
        let (ours, other) = ("5b1c0b04-3a86-4a59-9a40-33c14bb3c8de", "9d6d2c0e-1d1f-4d4f-8d0b-4a4f5a1d2e3f");
        provider.behave(of(ours, ours));
        try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        assert_eq!(subject(&world, &instance).await, "ada");
        // one organisation cannot issue tokens for another, and a malformed tid is refused
        for (issued_by, tid) in [(ours, other), ("..", ".."), ("{tenantid}", "{tenantid}x")] {
            provider.behave(of(issued_by, tid));
            assert!(try_sign_in(&world, &home, &provider, &[]).await.is_err(), "{issued_by} {tid}");
        }
    }

    async fn a_person_signs_in_by_facebook_with_a_proof_of_the_secret(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let home = SignInApp::new(&world).await;
        let instance = connect(&world, &home, "Facebook", &[]).await;
        // a picture that would run a script is left out
        let profile = json!({ "picture": { "data": { "url": "javascript:alert(1)" } } });
        provider.behave(Behaviour { profile, ..Behaviour::default() });
        let id_claims = try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        assert_eq!((&people(&world, &instance).await[0]["picture"], &id_claims["picture"]), (&json!(null), &json!(null)));
        provider.behave(Behaviour::default());
        let id_claims = try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        assert_eq!((&id_claims["given_name"], &id_claims["family_name"]), (&json!("Ada"), &json!("Lovelace")));
        assert_eq!((&id_claims["acr"], &id_claims["email_verified"]), (&json!("sfa"), &json!(false)));
        assert_eq!(provider.request_parameter("scope"), "public_profile email");
        assert_eq!(subject(&world, &instance).await, "1017");
        let person = people(&world, &instance).await[0].clone();
        assert_eq!(person["picture"], json!("https://pictures.example/ada"));
        // a profile without an id identifies nobody
        provider.behave(Behaviour { profile: json!({ "id": "" }), ..Behaviour::default() });
        assert!(try_sign_in(&world, &home, &provider, &[]).await.is_err());
    }

    async fn a_person_signs_in_by_twitter(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let home = SignInApp::new(&world).await;
        let instance = connect(&world, &home, "Twitter", &[("AdditionalScopes", "users.email")]).await;
        let id_claims = try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        assert_eq!(id_claims["amr"], json!(["fed"]));
        assert_eq!(provider.request_parameter("scope"), "users.read tweet.read users.email");
        assert_eq!(subject(&world, &instance).await, "1017");
    }

    /// Only ID tokens contain the time of a sign-in.
    async fn a_provider_without_auth_time_cannot_serve_a_forced_sign_in(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let home = SignInApp::new(&world).await;
        connect(&world, &home, "Facebook", &[]).await;
        for demanded in [("prompt", "login"), ("max_age", "600")] {
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[demanded])).await;
            let page = browser.open(&link(&page, "Continue with Partner")).await;
            assert!(page.left.is_none() && has_failed(&page), "{}", page.html);
            browser.sign_in(&page, "ann", PASSWORD).await;
        }
        // nor is a session accepted that began there
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        browser.continue_to_app(&page).await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "{silent}");
        let silent = browser.open(&home.request(&[("prompt", "none"), ("max_age", "86400")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("login_required"));
    }

    /// Without OpenID Connect the access token proves the sign-in; the linked certificate verifies it.
    ///
    /// - Effect of `AdfsOAuth options.RequestResources`: Sign-ins and trials ask the AD FS for an access token for this resource.
    async fn a_person_signs_in_by_ad_fs_with_an_access_token_of_a_linked_certificate(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let home = SignInApp::new(&world).await;
        let authority = format!("{}/adfs", provider.issuer);
        let (signer, other_signer) = (Signer::new(), Signer::new());
        let options = [("Authority", authority.as_str())];
        let instance = connect(&world, &home, "AdfsOAuth", &options).await;
        let input = json!({ "format": "Pem", "data": signer.pem });
        let certificate = world.make("CertStore", json!({ "name": "adfs", "certType": "AdfsOAuthTokenSigning", "certificateInput": input })).await;
        let link_path = format!("{BASE}/IdpInstance/{}/certstores", id(&instance));
        world.admin.post(&link_path, json!({ "relatedIds": [certificate["id"]] })).await.expect(202);
        // without a resource no request is sent
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(has_failed(&browser.open(&link(&page, "Continue with Partner")).await));
        set_option(&world, &instance, "RequestResources", "https://id.example/").await;
        let now = chancery_web::now().0 / 1000;
        let right = json!({
            "aud": "https://id.example/", "iss": "http://adfs.example/adfs/services/trust", "iat": now, "nbf": now,
            "exp": now + 3600, "appid": "us", "upn": "ada@corp.example", "given_name": "Ada",
        });
        let behave = |signer: &Signer, changed: Value| {
            let mut claims = right.clone();
            for (name, value) in changed.as_object().unwrap() {
                claims[name] = value.clone();
            }
            provider.behave(Behaviour { access_token: Some(signer.token(&claims)), ..Behaviour::default() });
        };
        behave(&signer, json!({}));
        let id_claims = try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        assert_eq!(id_claims["given_name"], json!("Ada"));
        assert_eq!((provider.request_parameter("resource").as_str(), provider.has_request_parameter("nonce")), ("https://id.example/", false));
        assert_eq!(subject(&world, &instance).await, "ada@corp.example");
        behave(&signer, json!({ "aud": "microsoft:identityserver:https://id.example/" }));
        try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        behave(&other_signer, json!({}));
        assert!(try_sign_in(&world, &home, &provider, &[]).await.is_err(), "another's signature");
        for wrong in [
            json!({ "aud": "https://other.example/" }),
            json!({ "aud": ["https://id.example/", "https://other.example/"] }),
            json!({ "appid": "another" }),
            json!({ "exp": now - 600 }),
            json!({ "nbf": now + 600 }),
            json!({ "upn": null }),
            json!({ "iss": null }),
        ] {
            behave(&signer, wrong.clone());
            assert!(try_sign_in(&world, &home, &provider, &[]).await.is_err(), "{wrong}");
        }
        // a sub claim identifies the person
        behave(&signer, json!({ "sub": ["S-1-5-21"] }));
        assert!(try_sign_in(&world, &home, &provider, &[]).await.is_err());
        behave(&signer, json!({ "sub": "S-1-5-21" }));
        try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        assert_eq!(people(&world, &instance).await.len(), 2);
        // an expired linked certificate does not make it an OpenID provider
        let over = "UPDATE cert_store SET valid_to = 1 WHERE cert_type = 'AdfsOAuthTokenSigning'";
        world.sql(vec![(over, vec![])]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(has_failed(&browser.open(&link(&page, "Continue with Partner")).await));
    }

    /// Without such a certificate AD FS is an OpenID provider.
    async fn a_person_signs_in_by_ad_fs_with_an_id_token(world: World) {
        let provider: Arc<StubProvider> = StubProvider::start().await;
        let home = SignInApp::new(&world).await;
        let instance = connect(&world, &home, "AdfsOAuth", &[("Authority", &provider.issuer)]).await;
        try_sign_in(&world, &home, &provider, &[]).await.unwrap();
        assert_eq!(subject(&world, &instance).await, "ada");
    }

    /// An administrator can try each type.
    async fn a_trial_reads_a_profile(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let created = create_instance(&world, "Partner", "Twitter").await;
        for (option, value) in [("ClientId", "us"), ("ClientSecret", "quiet")] {
            set_option(&world, &created, option, value).await;
        }
        let path = format!("{BASE}/IdpInstance/{}/trial", id(&created));
        let begun = world.admin.send(http::Method::POST, &path, &[], Vec::new()).await.is(200).json();
        let query = provider.sign_in(begun["url"].as_str().unwrap_or_else(|| panic!("{begun}")));
        let result = world.admin.post(&format!("{path}/answer"), json!({ "query": query })).await.is(200).json();
        assert_eq!(result["passed"], json!(true), "{result}");
        let claims = result["claims"].as_array().unwrap();
        assert!(claims.contains(&json!({ "type": "preferred_username", "value": "ada", "source": "Profile" })), "{result}");
    }

    /// Each option of each type: its effect on requests, and the refusal without it.
    ///
    /// - Effect of `AdfsOAuth options.AdditionalScopes`: Sign-ins and trials request these scopes from the provider in addition.
    /// - Effect of `AdfsOAuth options.Authority`: Sign-ins and trials ask the AD FS at this address.
    /// - Effect of `AdfsOAuth options.CallbackPath`: The provider sends people back to this path of the server.
    /// - Effect of `AdfsOAuth options.ClientId`: This server has this client id at the provider.
    /// - Effect of `AdfsOAuth options.ClientSecret`: This secret authenticates this server to the provider. It can be empty if a
    ///   certificate of type OidcTokenSigning is linked.
    /// - Effect of `Facebook options.AdditionalScopes`: Sign-ins and trials request these scopes from the provider in addition.
    /// - Effect of `Facebook options.CallbackPath`: The provider sends people back to this path of the server.
    /// - Effect of `Facebook options.ClientId`: This server has this client id at the provider.
    /// - Effect of `Facebook options.ClientSecret`: This secret authenticates this server to the provider.
    /// - Effect of `Google options.AdditionalScopes`: Sign-ins and trials request these scopes from the provider in addition.
    /// - Effect of `Google options.CallbackPath`: The provider sends people back to this path of the server.
    /// - Effect of `Google options.ClientId`: This server has this client id at the provider.
    /// - Effect of `Google options.ClientSecret`: This secret authenticates this server to the provider. It can be empty if a certificate
    ///   of type OidcTokenSigning is linked.
    /// - Effect of `Microsoft options.AdditionalScopes`: Sign-ins and trials request these scopes from the provider in addition.
    /// - Effect of `Microsoft options.CallbackPath`: The provider sends people back to this path of the server.
    /// - Effect of `Microsoft options.ClientId`: This server has this client id at the provider.
    /// - Effect of `Microsoft options.ClientSecret`: This secret authenticates this server to the provider. It can be empty if a
    ///   certificate of type OidcTokenSigning is linked.
    /// - Effect of `OpenIdConnect options.AdditionalScopes`: Sign-ins and trials request these scopes from the provider in addition.
    /// - Effect of `OpenIdConnect options.ClientId`: This server has this client id at the provider.
    /// - Effect of `OpenIdConnect options.ClientSecret`: This secret authenticates this server to the provider. It can be empty if a
    ///   certificate of type OidcTokenSigning is linked.
    /// - Effect of `OpenIdConnect options.RequestResources`: Sign-ins and trials ask the provider for tokens for these resources.
    /// - Effect of `Twitter options.AdditionalScopes`: Sign-ins and trials request these scopes from the provider in addition.
    /// - Effect of `Twitter options.CallbackPath`: The provider sends people back to this path of the server.
    /// - Effect of `Twitter options.ClientId`: This server has this client id at the provider.
    /// - Effect of `Twitter options.ClientSecret`: This secret authenticates this server to the provider.
    async fn options_of_each_type_take_effect(world: World) {
        let provider = StubProvider::in_place_of_the_public_ones(&world);
        let home = SignInApp::new(&world).await;
        for (kind, scopes) in [
            ("Google", "openid profile email more"),
            ("Microsoft", "openid profile email more"),
            ("Facebook", "public_profile email more"),
            ("Twitter", "users.read tweet.read more"),
            ("AdfsOAuth", "openid profile email more"),
            ("OpenIdConnect", "openid profile email more"),
        ] {
            let issuer = if kind == "Microsoft" { format!("{}/{{tenantid}}/v2.0", provider.issuer) } else { provider.issuer.clone() };
            let tid = "5b1c0b04-3a86-4a59-9a40-33c14bb3c8de";
            provider.behave(Behaviour {
                document: json!({ "issuer": issuer }),
                claims: json!({ "iss": issuer.replace("{tenantid}", tid), "tid": tid }),
                ..Behaviour::default()
            });
            let is_addressed = ["AdfsOAuth", "OpenIdConnect"].contains(&kind);
            let options: &[(&str, &str)] =
                if is_addressed { &[("Authority", &provider.issuer), ("RequestResources", "https://api.example/")] } else { &[] };
            let instance = connect(&world, &home, kind, options).await;
            set_option(&world, &instance, "CallbackPath", &format!("/signin-{kind}")).await;
            set_option(&world, &instance, "AdditionalScopes", "more").await;
            try_sign_in(&world, &home, &provider, &[]).await.unwrap();
            assert_eq!(provider.request_parameter("scope"), scopes, "{kind}");
            assert_eq!(provider.request_parameter("client_id"), "us", "{kind}");
            assert_eq!(provider.has_request_parameter("resource"), is_addressed, "{kind}");
            if is_addressed {
                assert_eq!(provider.request_parameter("resource"), "https://api.example/", "{kind}");
                set_option(&world, &instance, "Authority", "http://127.0.0.1:1").await;
                let mut browser = Browser::new(&world);
                let page = browser.open(&home.request(&[])).await;
                assert!(has_failed(&browser.open(&link(&page, "Continue with Partner")).await), "{kind}");
                set_option(&world, &instance, "Authority", &provider.issuer).await;
            }
            assert!(provider.request_parameter("redirect_uri").ends_with(&format!("/signin-{kind}")), "{kind}");
            set_option(&world, &instance, "ClientSecret", "another").await;
            assert!(try_sign_in(&world, &home, &provider, &[]).await.is_err(), "{kind}");
            relate(&world, &format!("/IdpInstance/{}/clientapps", id(&instance)), &[]).await;
            change(&world, &format!("/IdpInstance/{}", id(&instance)), json!({ "name": format!("Former {kind}") })).await;
        }
    }
}
