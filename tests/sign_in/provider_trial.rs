//! Trials of a provider: its mistakes are reported, once, to the initiator, and nobody is signed in by a trial.

pub mod stub_provider;

use std::path::Path;

use chancery_testkit::{Answer, Client, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use self::stub_provider::{Behaviour, StubProvider};
use crate::{
    id,
    instance::{create_instance, set_option},
};

const BASE: &str = "/api/management/v2";

/// The server may call this machine, by its usual address only.
pub fn allow_loopback(_: &Path) -> Vec<String> {
    ["--private-destinations", "127.0.0.1/32"].map(str::to_owned).to_vec()
}

/// The server has no outbound traffic.
fn without_outbound_traffic(_: &Path) -> Vec<String> {
    ["--outbound", "off"].map(str::to_owned).to_vec()
}

/// An instance of type OpenIdConnect at a provider, and its path.
pub async fn instance(world: &World, provider: &StubProvider) -> (Value, String) {
    let created = create_instance(world, "Partner", "OpenIdConnect").await;
    for (name, value) in
        [("Authority", provider.issuer.as_str()), ("ClientId", "us"), ("ClientSecret", "quiet")]
    {
        set_option(world, &created, name, value).await;
    }
    let path = format!("{BASE}/IdpInstance/{}/trial", id(&created));
    (created, path)
}

async fn begin(caller: &Client, path: &str) -> Answer {
    caller.send(Method::POST, path, &[], Vec::new()).await
}

/// Begins, and signs in at the provider; returns the query of the callback.
async fn go(caller: &Client, path: &str, provider: &StubProvider) -> String {
    let begun = begin(caller, path).await.is(200).json();
    provider.sign_in(begun["url"].as_str().unwrap_or_else(|| panic!("{begun}")))
}

async fn complete(caller: &Client, path: &str, query: &str) -> Answer {
    caller.post(&format!("{path}/answer"), json!({ "query": query })).await
}

/// The names of the checks that failed, each with its option.
fn failing(result: &Value) -> Vec<(String, Value)> {
    let checks = result["checks"].as_array().unwrap().iter().filter(|check| check["passed"] == false);
    checks.map(|check| (check["name"].as_str().unwrap().to_owned(), check["option"].clone())).collect()
}

/// Tries the provider as it behaves now; returns the failed checks.
async fn tried(
    world: &World,
    path: &str,
    provider: &StubProvider,
    behaviour: Behaviour,
) -> Vec<(String, Value)> {
    provider.behave(behaviour);
    let query = go(&world.admin, path, provider).await;
    let result = complete(&world.admin, path, &query).await.is(200).json();
    assert_eq!(result["passed"], json!(failing(&result).is_empty()), "{result}");
    failing(&result)
}

on_both_engines! {
    [allow_loopback]
    async fn a_correct_provider_passes(world: World) {
        let provider = StubProvider::start().await;
        let (created, path) = instance(&world, &provider).await;
        set_option(&world, &created, "AdditionalScopes", "email, groups").await;
        set_option(&world, &created, "RequestResources", "https://api.example/").await;
        let before = world.audit(1_000).await.len();
        let begun = begin(&world.admin, &path).await.is(200).json();
        let callback = format!("{}/external/{}/callback", world.base, id(&created));
        assert_eq!((failing(&begun), &begun["callback"]), (vec![], &json!(callback)), "{begun}");
        let query = provider.sign_in(begun["url"].as_str().unwrap());
        assert_eq!((provider.request_parameter("scope"), provider.request_parameter("client_id")), ("openid profile email groups".to_owned(), "us".to_owned()));
        assert_eq!((provider.request_parameter("redirect_uri"), provider.request_parameter("resource")), (callback, "https://api.example/".to_owned()));

        // the browser is redirected to the console, and nowhere else
        let back = world.anonymous.get(&format!("/external/{}/callback?{query}", id(&created))).await.is(303);
        assert_eq!(back.header("location"), Some(format!("/console/IdpInstance/{}/trial?{query}", id(&created)).as_str()));
        for (name, status) in [("nobody", 404), ("%2f%2fevil.example", 404), ("..%2f..", 404)] {
            world.anonymous.get(&format!("/external/{name}/callback?{query}")).await.expect(status);
        }
        world.anonymous.post(&format!("/external/{}/callback?{query}", id(&created)), json!({})).await.expect(405);

        let result = complete(&world.admin, &path, &query).await.is(200).json();
        assert_eq!((failing(&result), &result["passed"]), (vec![], &json!(true)), "{result}");
        let claims = result["claims"].as_array().unwrap();
        for (name, value, source) in [("sub", "ada", "IdToken"), ("groups", "[\"staff\"]", "IdToken"), ("email", "ada@example.com", "UserInfo")] {
            assert!(claims.contains(&json!({ "type": name, "value": value, "source": source })), "{name}: {result}");
        }
        // nobody was signed in or created, and nothing was written that is audited
        assert_eq!(world.audit(1_000).await.len(), before);
        assert_eq!(world.all("ApplicationUser").await, json!([]));
        assert_eq!(world.all("SignInSession").await, json!([]));
        // values that distinguish nothing are not shown
        assert!(!result.to_string().contains("quiet") && !result.to_string().contains("the code"), "{result}");
    }

    async fn an_answer_is_accepted_once_and_from_its_initiator(world: World) {
        let provider = StubProvider::start().await;
        let (created, path) = instance(&world, &provider).await;
        let other = world.client("other", &[("SubscriptionAdmin", None, None)]).await;
        let tenant = world.all("Tenant").await[0].clone();
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let link = format!("{BASE}/IdpInstance/{}/tenants", id(&created));
        world.admin.post(&link, json!({ "relatedIds": [tenant["id"]] })).await.expect(202);
        begin(&low, &path).await.problem(403, "forbidden");
        complete(&low, &path, "state=x").await.problem(403, "forbidden");
        let query = go(&world.admin, &path, &provider).await;
        for (caller, query) in [(&other, query.as_str()), (&world.admin, "code=c"), (&world.admin, ""), (&world.admin, "state=AAAA&code=c")] {
            complete(caller, &path, query).await.problem(400, "invalid-request");
        }
        // nor at another instance
        let other_instance = create_instance(&world, "Other", "OpenIdConnect").await;
        for (name, value) in [("Authority", provider.issuer.as_str()), ("ClientId", "us"), ("ClientSecret", "quiet")] {
            set_option(&world, &other_instance, name, value).await;
        }
        let at_other = format!("{BASE}/IdpInstance/{}/trial", id(&other_instance));
        complete(&world.admin, &at_other, &query).await.problem(400, "invalid-request");
        assert_eq!(complete(&world.admin, &path, &query).await.is(200).json()["passed"], json!(true));
        complete(&world.admin, &path, &query).await.problem(400, "invalid-request");
        // an instance of another subscription is none
        let far = world.other_subscription("far").await;
        let far = world.client_in(&far, "far", &[("SubscriptionAdmin", None, None)]).await;
        begin(&far, &path).await.problem(404, "not-found");
        // by its name, too
        let named = format!("{BASE}/IdpInstance/{}/trial", created["name"].as_str().unwrap());
        let query = go(&other, &named, &provider).await;
        assert_eq!(complete(&other, &named, &query).await.is(200).json()["passed"], json!(true));
    }

    async fn user_stores_and_unset_instances_are_refused(world: World) {
        let created = create_instance(&world, "A-store", "UserStore").await;
        let problem = begin(&world.admin, &format!("{BASE}/IdpInstance/{}/trial", id(&created))).await.problem(409, "conflict");
        assert!(problem["detail"].as_str().unwrap().contains("UserStore"), "{problem}");
        for kind in ["OpenIdConnect", "AdfsOAuth", "Microsoft", "Google", "Facebook", "Twitter"] {
            for set in ["", "ClientId", "ClientSecret"] {
                let unset = create_instance(&world, &format!("Unset {kind} {set}"), kind).await;
                if !set.is_empty() {
                    set_option(&world, &unset, set, "something").await;
                }
                let refused = begin(&world.admin, &format!("{BASE}/IdpInstance/{}/trial", id(&unset))).await;
                let problem = refused.problem(409, "conflict");
                assert!(problem["detail"].as_str().unwrap().contains("options that are empty"), "{problem}");
            }
        }
    }

    /// Mistakes that are found before a sign-in.
    async fn the_metadata_of_a_provider_is_validated(world: World) {
        let provider = StubProvider::start().await;
        let (created, path) = instance(&world, &provider).await;
        for (document, name, option) in [
            (json!({ "issuer": "https://other.example" }), "issuer", json!("Authority")),
            (json!({ "token_endpoint": "http://other.example/token" }), "endpoints", json!("Authority")),
            (json!({ "jwks_uri": null }), "endpoints", json!("Authority")),
            (json!({ "code_challenge_methods_supported": ["plain"] }), "pkce", Value::Null),
            (json!({ "response_types_supported": ["id_token"] }), "codeFlow", Value::Null),
            (json!({ "scopes_supported": ["profile"] }), "scopes", json!("Authority")),
            (json!({ "token_endpoint_auth_methods_supported": ["tls_client_auth"] }), "clientAuthentication", json!("ClientSecret")),
        ] {
            provider.behave(Behaviour { document, ..Behaviour::default() });
            let begun = begin(&world.admin, &path).await.is(200).json();
            assert_eq!(failing(&begun), [(name.to_owned(), option)], "{begun}");
            assert_eq!(begun["url"].is_null(), matches!(name, "endpoints" | "scopes"), "{begun}");
        }
        provider.behave(Behaviour::default());
        for (option, wrong) in [
            ("CallbackPath", "//evil.example"), ("CallbackPath", "/connect/token"), ("Authority", "ftp://a.example"),
            ("AdditionalScopes", "a\"b"), ("RequestResources", "nowhere"), ("RequestResources", "https://api.example/#part"),
            ("ScimUniqueIdentifierValues", "one; two"),
        ] {
            set_option(&world, &created, option, wrong).await;
            begin(&world.admin, &path).await.problem(409, "conflict");
            let right = if option == "Authority" { provider.issuer.as_str() } else { "" };
            set_option(&world, &created, option, right).await;
        }
        // the second does not answer, and the third is in a network that the operator did not permit
        let (silent, inner) = (StubProvider::start().await, StubProvider::start_out_of_reach().await);
        silent.behave(Behaviour { is_down: true, ..Behaviour::default() });
        for authority in ["http://127.0.0.1:1", &silent.secure_url(""), &inner.secure_url(""), &inner.issuer] {
            set_option(&world, &created, "Authority", authority).await;
            let begun = begin(&world.admin, &path).await.is(200).json();
            assert_eq!((failing(&begun), &begun["url"]), (vec![("discovery".to_owned(), json!("Authority"))], &Value::Null), "{authority}");
        }
        assert!(silent.connections() > 0);
        assert_eq!(inner.connections(), 0);
    }

    /// A custom callback path redirects to the console with the state of a trial alone.
    async fn a_callback_path_of_its_own_leads_on(world: World) {
        let provider = StubProvider::start().await;
        let (created, path) = instance(&world, &provider).await;
        set_option(&world, &created, "CallbackPath", "/signin-oidc").await;
        let query = go(&world.admin, &path, &provider).await;
        assert_eq!(provider.request_parameter("redirect_uri"), format!("{}/signin-oidc", world.base));
        let back = world.anonymous.get(&format!("/signin-oidc?{query}")).await.is(303);
        assert_eq!(back.header("location"), Some(format!("/console/IdpInstance/{}/trial?{query}", id(&created)).as_str()));
        for other in [format!("/other?{query}"), "/signin-oidc".to_owned(), "/signin-oidc?state=AAAA".to_owned()] {
            world.anonymous.get(&other).await.expect(404);
        }
        assert_eq!(complete(&world.admin, &path, &query).await.is(200).json()["passed"], json!(true));
    }

    async fn every_wrong_answer_is_reported(world: World) {
        let provider = StubProvider::start().await;
        let (_, path) = instance(&world, &provider).await;
        for (is_changed, name, option) in [
            (("iss=http", "iss=https"), "answerIssuer", json!("Authority")),
            (("&iss=", "&nobody="), "answerIssuer", Value::Null),
            (("code=", "nothing="), "answer", Value::Null),
            (("code=the+code", "error=access_denied"), "answer", Value::Null),
            (("code=the+code", "error=invalid_scope"), "answer", json!("AdditionalScopes")),
            (("code=the", "code=x&code=the"), "answer", Value::Null),
            (("code=the+code", "code=another"), "tokens", json!("CallbackPath")),
        ] {
            let query = go(&world.admin, &path, &provider).await.replacen(is_changed.0, is_changed.1, 1);
            let result = complete(&world.admin, &path, &query).await.is(200).json();
            assert_eq!(failing(&result), [(name.to_owned(), option)], "{query}: {result}");
            assert_eq!((&result["passed"], &result["claims"]), (&json!(false), &json!([])));
        }
        for (status, body, option) in [
            (401, json!({ "error": "invalid_client" }), json!("ClientSecret")),
            (400, json!({ "error": "unauthorized_client" }), json!("ClientId")),
            (500, json!("no JSON"), json!("Authority")),
            (200, json!({ "access_token": "a", "token_type": "Bearer" }), Value::Null),
        ] {
            let behaviour = Behaviour { tokens: Some((status, body)), ..Behaviour::default() };
            assert_eq!(tried(&world, &path, &provider, behaviour).await, [("tokens".to_owned(), option)]);
        }
    }

    async fn every_wrong_token_is_reported(world: World) {
        let provider = StubProvider::start().await;
        let (created, path) = instance(&world, &provider).await;
        let none = Behaviour::default;
        assert_eq!(tried(&world, &path, &provider, none()).await, []);
        for (claims, name, option) in [
            (json!({ "iss": "https://other.example" }), "tokenIssuer", json!("Authority")),
            (json!({ "aud": "them" }), "audience", json!("ClientId")),
            (json!({ "aud": ["us", "them"] }), "authorizedParty", json!("ClientId")),
            (json!({ "azp": "them" }), "authorizedParty", json!("ClientId")),
            (json!({ "exp": 1 }), "expiry", Value::Null),
            (json!({ "iat": 1 }), "issuedAt", Value::Null),
            (json!({ "iat": 9_999_999_999_i64 }), "issuedAt", Value::Null),
            (json!({ "nonce": "another" }), "nonce", Value::Null),
            (json!({ "at_hash": "another" }), "accessTokenHash", Value::Null),
        ] {
            let failed = tried(&world, &path, &provider, Behaviour { claims, ..none() }).await;
            assert_eq!(failed, [(name.to_owned(), option)]);
        }
        for (behaviour, name) in [
            (Behaviour { header: json!({ "alg": "none" }), ..none() }, "algorithm"),
            (Behaviour { header: json!({ "alg": "HS256" }), ..none() }, "algorithm"),
            (Behaviour { header: json!({ "kid": "unknown" }), ..none() }, "key"),
            (Behaviour { key_use: Some("enc"), ..none() }, "key"),
            (Behaviour { signs_by_another: true, ..none() }, "signature"),
            (Behaviour { user_info: json!({ "sub": "eve" }), ..none() }, "userinfo"),
        ] {
            assert_eq!(tried(&world, &path, &provider, behaviour).await, [(name.to_owned(), Value::Null)]);
        }
        let all = Behaviour { claims: json!({ "iss": "a", "aud": "b", "exp": 1, "nonce": "c" }), ..none() };
        let failed: Vec<_> = tried(&world, &path, &provider, all).await.into_iter().map(|(name, _)| name).collect();
        assert_eq!(failed, ["tokenIssuer", "audience", "expiry", "nonce"], "all of them at once");
        set_option(&world, &created, "ScimUniqueIdentifierValues", "one, two").await;
        let failed = tried(&world, &path, &provider, Behaviour { claims: json!({ "tid": "three" }), ..none() }).await;
        assert_eq!(failed, [("tenant".to_owned(), json!("ScimUniqueIdentifierValues"))]);
        assert_eq!(tried(&world, &path, &provider, Behaviour { claims: json!({ "tid": "two" }), ..none() }).await, []);
    }

    /// One linked certificate authenticates the server, and one decrypts its tokens.
    ///
    /// - Effect of `CertStore.idpInstances`: A trial of these providers verifies and decrypts tokens with the certificate.
    async fn linked_certificates_sign_and_open(world: World) {
        let provider = StubProvider::start().await;
        let (created, path) = instance(&world, &provider).await;
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let mut public = Vec::new();
        let encrypted_to = |key: &[u8]| Behaviour { encrypted_to: Some(key.to_vec()), ..Behaviour::default() };
        for kind in ["OidcTokenSigning", "OidcTokenEncryption"] {
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = rcgen::CertificateParams::new(vec!["a.example".into()]).unwrap().self_signed(&key).unwrap();
            if kind == "OidcTokenEncryption" {
                // first without it
                let failed = tried(&world, &path, &provider, encrypted_to(key.public_key_raw())).await;
                assert_eq!(failed, [("encryption".to_owned(), json!("certStores"))]);
            }
            let input = json!({ "format": "Pem", "data": certificate.pem(), "privateKey": key.serialize_pem() });
            let body = json!({ "name": kind, "certType": kind, "subscriptionId": subscription, "certificateInput": input });
            let store = world.make("CertStore", body).await;
            if kind == "OidcTokenEncryption" {
                // from the other side
                let link = format!("{BASE}/CertStore/{}/idpinstances", id(&store));
                world.admin.post(&link, json!({ "relatedIds": [created["id"]] })).await.expect(202);
            } else {
                public = key.public_key_raw().to_vec();
                let asserted = || Behaviour { asserted_by: Some(public.clone()), ..Behaviour::default() };
                let link = format!("{BASE}/IdpInstance/{}/certstores", id(&created));
                world.admin.post(&link, json!({ "relatedIds": [store["id"]] })).await.expect(202);
                assert_eq!(tried(&world, &path, &provider, asserted()).await, []);
                let basic_only = json!({ "token_endpoint_auth_methods_supported": ["client_secret_basic"] });
                let failed = tried(&world, &path, &provider, Behaviour { document: basic_only, ..asserted() }).await;
                assert_eq!(failed, [("clientAuthentication".to_owned(), json!("certStores"))]);
                world.admin.delete_with(&link, json!({ "relatedIds": [store["id"]] })).await.expect(202);
            }
            if kind == "OidcTokenEncryption" {
                assert_eq!(tried(&world, &path, &provider, encrypted_to(key.public_key_raw())).await, []);
                let failed = tried(&world, &path, &provider, encrypted_to(&public)).await;
                assert_eq!(failed, [("encryption".to_owned(), json!("certStores"))]);
            }
        }
    }
}

on_both_engines! {
    [without_outbound_traffic]
    /// A linked certificate of a type that sign-ins at the provider do not use does not count.
    async fn a_linked_certificate_of_another_type_is_reported(world: World) {
        let created = create_instance(&world, "Partner", "OpenIdConnect").await;
        for (name, value) in [("Authority", "https://provider.example"), ("ClientId", "us"), ("ClientSecret", "quiet")] {
            set_option(&world, &created, name, value).await;
        }
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let unreached = ("discovery".to_owned(), json!("Authority"));
        for kind in ["AdfsOAuthTokenSigning", "OidcTokenSigning"] {
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = rcgen::CertificateParams::new(vec!["a.example".into()]).unwrap().self_signed(&key).unwrap();
            let input = json!({ "format": "Pem", "data": certificate.pem(), "privateKey": key.serialize_pem() });
            let body = json!({ "name": kind, "certType": kind, "subscriptionId": subscription, "certificateInput": input });
            let store = world.make("CertStore", body).await;
            let link = format!("{BASE}/IdpInstance/{}/certstores", id(&created));
            world.admin.put(&link, json!({ "relatedIds": [store["id"]] })).await.expect(202);
            let begun = begin(&world.admin, &format!("{BASE}/IdpInstance/{}/trial", id(&created))).await.is(200).json();
            let mut expected = vec![("certificates".to_owned(), json!("certStores")), unreached.clone()];
            expected.retain(|(name, _)| name != "certificates" || kind != "OidcTokenSigning");
            assert_eq!(failing(&begun), expected, "{kind}: {begun}");
        }
    }

    /// The options of Microsoft and Google: a trial needs their credentials, and requests their scopes and callback path. The
    /// providers' answers are not tested here.
    async fn the_options_of_known_providers_count(world: World) {
        for kind in ["Microsoft", "Google"] {
            let created = create_instance(&world, kind, kind).await;
            let path = format!("{BASE}/IdpInstance/{}/trial", id(&created));
            for (name, value) in [("ClientId", "us"), ("ClientSecret", "quiet")] {
                begin(&world.admin, &path).await.problem(409, "conflict");
                set_option(&world, &created, name, value).await;
            }
            let begun = begin(&world.admin, &path).await.is(200).json();
            assert_eq!(begun["callback"], format!("{}/external/{}/callback", world.base, id(&created)));
            let unreached = ("discovery".to_owned(), json!("Authority"));
            assert_eq!(failing(&begun), std::slice::from_ref(&unreached));
            set_option(&world, &created, "CallbackPath", &format!("/signin-{kind}")).await;
            set_option(&world, &created, "AdditionalScopes", "email, calendar").await;
            let begun = begin(&world.admin, &path).await.is(200).json();
            assert_eq!(begun["callback"], format!("{}/signin-{kind}", world.base));
            assert_eq!(failing(&begun), [unreached]);
            let request_check = begun["checks"].as_array().unwrap().iter().find(|check| check["name"] == "request").unwrap();
            assert_eq!(request_check["detail"], "It asks for the scopes openid profile email calendar.");
        }
    }
}
