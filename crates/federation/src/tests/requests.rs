//! Requests to a provider.

use chancery_certificate::PrivateKey;
use chancery_oauth::{AssertionKeys, Challenge, Expected, Jwk, PublicKey, verify_assertion};
use chancery_record::{Secret, Timestamp};

use super::{client, discovery, failing};
use crate::{
    ClientAuthMethod, Demands, ProviderKind, RequestParameters, SigningKey, authorization_url, check_request,
    choose_client_auth, token_request,
};

fn fields(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

#[test]
fn the_authorization_request_has_state_nonce_and_challenge() {
    let demands = Demands {
        login: true,
        max_age: Some(60),
        since: None,
        login_hint: Some("ada@example.com".to_owned()),
        acr_values: vec!["mfa".to_owned(), "phr".to_owned()],
    };
    let request = RequestParameters { state: "s", nonce: "n", verifier: "v", demands: &demands };
    let address = authorization_url(&discovery(), &client(ProviderKind::OpenIdConnect), request);
    let (before, query) = address.split_once('?').unwrap();
    assert_eq!(before, "https://provider.example/authorize");
    let challenge = Challenge::of("v").to_string();
    let expected = [
        ("p", "1"),
        ("response_type", "code"),
        ("client_id", "chancery"),
        ("redirect_uri", "https://id.example/external/1/callback"),
        ("scope", "openid profile email"),
        ("state", "s"),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("nonce", "n"),
        ("prompt", "login"),
        ("max_age", "60"),
        ("login_hint", "ada@example.com"),
        ("acr_values", "mfa phr"),
        ("resource", "https://api.example/"),
    ];
    assert_eq!(fields(query), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn scopes_resources_and_callback_are_reported() {
    let mut client = client(ProviderKind::OpenIdConnect);
    client.scopes.push("calendar".to_owned());
    let checks = check_request(&client);
    assert_eq!(failing(&checks), [""; 0]);
    assert!(
        checks[0].detail.ends_with("calendar and the resources https://api.example/."),
        "{}",
        checks[0].detail
    );
    for own in ["http://LocalHost:8080/callback", "http://[::1]:1/callback"] {
        client.redirect_uri = own.to_owned();
        assert_eq!(failing(&check_request(&client)), [""; 0], "{own}");
    }
    client.redirect_uri = "http://id.example/callback".to_owned();
    assert_eq!(failing(&check_request(&client)), ["callback"]);
}

#[test]
fn the_secret_is_sent_by_a_method_of_the_provider() {
    let client = client(ProviderKind::OpenIdConnect);
    let mut discovery = discovery();
    for (methods, has_key, method, option) in [
        (&["client_secret_basic", "client_secret_post"][..], false, ClientAuthMethod::Basic, None),
        (&["client_secret_post"], false, ClientAuthMethod::Post, None),
        (&["private_key_jwt"], true, ClientAuthMethod::PrivateKey, None),
        (&["private_key_jwt"], false, ClientAuthMethod::Basic, Some("certStores")),
        (&["client_secret_basic"], true, ClientAuthMethod::PrivateKey, Some("certStores")),
        (&["tls_client_auth"], false, ClientAuthMethod::Basic, Some("ClientSecret")),
    ] {
        discovery.auth_methods = methods.iter().map(|name| (*name).to_owned()).collect();
        let (check, chosen) = choose_client_auth(&discovery, has_key);
        assert_eq!((chosen, check.option, check.passed), (method, option, option.is_none()), "{methods:?}");
    }
    let secret = Secret::new("a:b c");
    let basic = token_request(&discovery, &client, ClientAuthMethod::Basic, &secret, "c", "v");
    // chancery:a%3Ab+c
    assert_eq!(basic.authorization.as_deref(), Some("Basic Y2hhbmNlcnk6YSUzQWIrYw=="));
    assert!(!basic.form.contains("client_secret") && !format!("{basic:?}").contains("a%3A"));
    let post = token_request(&discovery, &client, ClientAuthMethod::Post, &secret, "c", "v");
    assert!(post.authorization.is_none() && post.form.contains("client_secret=a%3Ab+c"));
    for request in [basic, post] {
        assert!(request.form.starts_with("grant_type=authorization_code&code=c&redirect_uri="));
        assert!(request.form.contains("code_verifier=v&resource=https%3A%2F%2Fapi.example%2F"));
    }
}

/// This server itself would accept the assertion from a client.
#[test]
fn an_assertion_is_signed_with_the_key_of_a_certificate() {
    let client = client(ProviderKind::OpenIdConnect);
    let mut discovery = discovery();
    let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
    let der = aws_lc_rs::encoding::AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&pair).unwrap();
    let key = PrivateKey::read(der.as_ref(), None).unwrap();
    let spki: aws_lc_rs::encoding::PublicKeyX509Der<'_> =
        aws_lc_rs::encoding::AsDer::as_der(aws_lc_rs::signature::KeyPair::public_key(&pair)).unwrap();
    let public = Jwk::of(PublicKey::from_spki(spki.as_ref()).unwrap());
    let signing = SigningKey { key, x5t: "t".to_owned() };
    for algorithms in [&[][..], &["RS256", "PS256"], &["PS256"]] {
        discovery.signing_algorithms = algorithms.iter().map(|name| (*name).to_owned()).collect();
        let assertion = signing.assertion(&discovery, &client, "one", 1_000).unwrap();
        let expected = Expected {
            client_ids: &["chancery"],
            audiences: &["https://provider.example/token"],
            one_audience: true,
            now: Timestamp(1_000_000),
            max_lifetime: 300,
            leeway: 0,
        };
        let keys = [public.clone()];
        let verified = verify_assertion(&assertion, AssertionKeys::Public(&keys), &expected).unwrap();
        let algorithm = if algorithms == ["PS256"] { "PS256" } else { "RS256" };
        assert_eq!((verified.jti.as_str(), verified.algorithm.name()), ("one", algorithm));
    }
    discovery.signing_algorithms = vec!["ES256".to_owned()];
    let refused = signing.assertion(&discovery, &client, "one", 1_000).unwrap_err();
    assert_eq!((refused.name, refused.option), ("clientAuthentication", Some("certStores")));
}
