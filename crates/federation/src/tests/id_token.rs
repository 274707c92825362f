//! ID tokens: a valid one, and one for each fault.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    encoding::{AsDer as _, Pkcs8V1Der},
    hmac,
    rsa::{KeySize, OAEP_SHA256_MGF1SHA256, OaepPublicEncryptingKey, PrivateDecryptingKey},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_certificate::{Algorithm, PrivateKey};
use chancery_jwe::DecryptionKey;
use chancery_oauth::half_hash;
use chancery_record::{Secret, Timestamp};
use serde_json::{Value, json};

use super::{ISSUER, client, failing};
use crate::{Check, Client, Demands, Expected, ProviderKind, check_id_token, check_keys};

const NOW: i64 = 1_800_000_000;

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn key() -> PrivateKey {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    PrivateKey::read(pair.to_pkcs8v1().unwrap().as_ref(), None).unwrap()
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "sub": "ada", "aud": "chancery", "exp": NOW + 300, "iat": NOW, "nonce": "n",
        "at_hash": half_hash("access", "ES256"),
    })
}

fn sign(key: &PrivateKey, header: &Value, claims: &Value) -> String {
    let signed = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
    let signature = key.sign(Algorithm::Es256, signed.as_bytes()).unwrap();
    format!("{signed}.{}", base64(signature))
}

fn header() -> Value {
    json!({ "alg": "ES256", "kid": "k" })
}

fn jwk(key: &PrivateKey, purpose: &str) -> Value {
    let mut jwk = key.public_jwk("k");
    jwk["use"] = json!(purpose);
    jwk
}

fn validate(token: &str, client: &Client, issuer: &str, keys: &Value) -> (Vec<Check>, bool) {
    validate_with_keys(token, client, issuer, keys, &[])
}

fn validate_with_keys(
    token: &str,
    client: &Client,
    issuer: &str,
    keys: &Value,
    decryption_keys: &[DecryptionKey],
) -> (Vec<Check>, bool) {
    validate_with_demands(token, client, issuer, keys, decryption_keys, &Demands::default())
}

fn validate_with_demands(
    token: &str,
    client: &Client,
    issuer: &str,
    keys: &Value,
    decryption_keys: &[DecryptionKey],
    demands: &Demands,
) -> (Vec<Check>, bool) {
    let (_, keys) = check_keys(json!({ "keys": keys }).to_string().as_bytes());
    let expected = Expected {
        client,
        issuer,
        keys: &keys,
        decryption_keys,
        nonce: "n",
        access_token: "access",
        demands,
        now: Timestamp(NOW * 1000),
    };
    let (checks, claims) = check_id_token(token, &expected);
    (checks, claims.is_some())
}

/// OpenID Connect Core 1.0, section 3.1.3.7, rule 13.
#[test]
fn the_sign_in_must_be_as_recent_as_demanded() {
    let (key, client) = (key(), client(ProviderKind::OpenIdConnect));
    let keys = json!([jwk(&key, "sig")]);
    let is_refused = |demands: &Demands, auth_time: Value| {
        let mut claims = claims();
        claims["auth_time"] = auth_time;
        let token = sign(&key, &header(), &claims);
        !failing(&validate_with_demands(&token, &client, ISSUER, &keys, &[], demands).0).is_empty()
    };
    let within = |seconds| Demands { max_age: Some(seconds), ..Demands::default() };
    for (demands, auth_time, refused) in [
        (within(600), json!(NOW - 600), false),
        (within(600), json!(NOW - 659), false),
        (within(600), json!(NOW - 661), true),
        (within(0), json!(NOW - 30), false),
        (within(0), json!(NOW - 3600), true),
        (within(600), Value::Null, true),
        (within(600), json!("now"), true),
        (Demands::default(), json!(0), false),
    ] {
        assert_eq!(is_refused(&demands, auth_time.clone()), refused, "{demands:?} {auth_time}");
    }
}

#[test]
fn each_fault_of_a_claim_is_reported() {
    let (key, client) = (key(), client(ProviderKind::OpenIdConnect));
    let keys = json!([jwk(&key, "sig")]);
    let wrong = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        failing(&validate(&sign(&key, &header(), &claims), &client, ISSUER, &keys).0)
    };
    assert_eq!(wrong("acr", json!("mfa")), [""; 0]);
    assert_eq!(wrong("aud", json!(["chancery"])), [""; 0]);
    assert_eq!(wrong("azp", json!("chancery")), [""; 0]);
    assert_eq!(wrong("exp", json!(NOW - 59)), [""; 0], "clocks differ");
    for (name, value, check) in [
        ("iss", json!("https://other.example"), "tokenIssuer"),
        ("iss", Value::Null, "tokenIssuer"),
        ("aud", json!("other"), "audience"),
        ("aud", json!([]), "audience"),
        ("aud", json!(7), "audience"),
        ("azp", json!("other"), "authorizedParty"),
        ("azp", json!(7), "authorizedParty"),
        ("aud", json!(["chancery", "other"]), "authorizedParty"),
        ("sub", json!(""), "subject"),
        ("sub", json!("x".repeat(256)), "subject"),
        ("exp", json!(NOW - 60), "expiry"),
        ("exp", json!("soon"), "expiry"),
        ("iat", json!(NOW + 61), "issuedAt"),
        ("iat", json!(NOW - 601), "issuedAt"),
        ("iat", Value::Null, "issuedAt"),
        ("nonce", json!("m"), "nonce"),
        ("nonce", Value::Null, "nonce"),
        ("at_hash", json!(half_hash("another", "ES256")), "accessTokenHash"),
    ] {
        assert_eq!(wrong(name, value.clone()), [check], "{name} {value}");
    }
    let all = json!({ "iss": "x", "aud": "y", "exp": 1, "iat": 1, "nonce": "z" });
    let checks = validate(&sign(&key, &header(), &all), &client, ISSUER, &keys).0;
    assert_eq!(failing(&checks), ["tokenIssuer", "audience", "subject", "expiry", "issuedAt", "nonce"]);
}

#[test]
fn each_fault_of_a_signature_is_reported() {
    let (key, other, client) = (key(), key(), client(ProviderKind::OpenIdConnect));
    let failing = |token: &str, keys: Value| failing(&validate(token, &client, ISSUER, &keys).0);
    let valid = sign(&key, &header(), &claims());
    assert_eq!(failing(&valid, json!([jwk(&key, "sig")])), [""; 0]);
    assert_eq!(failing(&valid, json!([jwk(&other, "sig")])), ["signature"]);
    assert_eq!(failing(&valid, json!([jwk(&key, "enc")])), ["key"], "of another use");
    let unknown = sign(&key, &json!({ "alg": "ES256", "kid": "other" }), &claims());
    assert_eq!(failing(&unknown, json!([jwk(&key, "sig")])), ["key"]);
    let number = sign(&key, &json!({ "alg": "ES256", "kid": 7 }), &claims());
    assert_eq!(failing(&number, json!([jwk(&key, "sig")])), ["key"]);
    let unfit = sign(&key, &json!({ "alg": "RS256", "kid": "k" }), &claims());
    assert_eq!(failing(&unfit, json!([jwk(&key, "sig")])), ["key"]);
    let unnamed = sign(&key, &json!({ "alg": "ES256" }), &claims());
    assert_eq!(failing(&unnamed, json!([jwk(&other, "enc"), key.public_jwk("own")])), [""; 0]);
    // no signature, and a MAC with the secret that the client knows, too
    let none = format!("{}.{}.", base64(r#"{"alg":"none"}"#), base64(claims().to_string()));
    assert_eq!(failing(&none, json!([jwk(&key, "sig")])), ["algorithm"]);
    let mut hashed = claims();
    hashed["at_hash"] = json!(half_hash("access", "HS256"));
    let signed = format!("{}.{}", base64(r#"{"alg":"HS256","kid":"k"}"#), base64(hashed.to_string()));
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"secret"), signed.as_bytes());
    assert_eq!(failing(&format!("{signed}.{}", base64(mac)), json!([jwk(&key, "sig")])), ["algorithm"]);
    for broken in ["", "a.b", "a.b.c", &valid[1..], &"a".repeat(100_000)] {
        let (checks, has_claims) = validate(broken, &client, ISSUER, &json!([jwk(&key, "sig")]));
        assert!(!has_claims && checks.iter().any(|check| check.name == "idToken" && !check.passed));
    }
}

/// Microsoft's issuer has the organisation that the token names, which must be an id.
#[test]
fn the_issuer_of_microsoft_follows_from_tid() {
    let (key, mut client) = (key(), client(ProviderKind::Microsoft));
    let keys = json!([jwk(&key, "sig")]);
    let issuer = client.kind.issuer(&client.authority);
    let failing_of = |client: &Client, iss: &str, tid: &str| {
        let mut claims = claims();
        (claims["iss"], claims["tid"]) = (json!(iss), json!(tid));
        failing(&validate(&sign(&key, &header(), &claims), client, &issuer, &keys).0)
    };
    let tid = "0190b5a0-0000-7000-8000-000000000001";
    let own_issuer = format!("https://login.microsoftonline.com/{tid}/v2.0");
    assert_eq!(failing_of(&client, &own_issuer, tid), [""; 0]);
    for (iss, tid) in [
        (own_issuer.as_str(), "0190b5a0-0000-7000-8000-000000000002"),
        ("https://login.microsoftonline.com/x/../y/v2.0", "x/../y"),
        (&issuer, "{tenantid}x"),
    ] {
        assert_eq!(failing_of(&client, iss, tid), ["tokenIssuer"], "{iss}");
    }
    client.tenants = vec!["0190b5a0-0000-7000-8000-000000000009".to_owned()];
    assert_eq!(failing_of(&client, &own_issuer, tid), ["tenant"]);
    client.tenants.push(tid.to_owned());
    assert_eq!(failing_of(&client, &own_issuer, tid), [""; 0]);
}

/// Each key of Microsoft names its issuer.
#[test]
fn a_key_of_microsoft_signs_only_for_its_issuer() {
    let (key, client) = (key(), client(ProviderKind::Microsoft));
    let issuer = client.kind.issuer(&client.authority);
    let tid = "0190b5a0-0000-7000-8000-000000000001";
    let mut claims = claims();
    (claims["iss"], claims["tid"]) = (json!(issuer.replace("{tenantid}", tid)), json!(tid));
    let token = sign(&key, &header(), &claims);
    for (of, wrong) in [
        (Value::Null, &[][..]),
        (json!(issuer), &[]),
        (claims["iss"].clone(), &[]),
        (json!(issuer.replace("{tenantid}", "9188040d-6c67-4c5b-b112-36a304b66dad")), &["key"]),
    ] {
        let mut jwk = jwk(&key, "sig");
        if !of.is_null() {
            jwk["issuer"] = of.clone();
        }
        assert_eq!(failing(&validate(&token, &client, &issuer, &json!([jwk])).0), wrong, "{of}");
    }
}

/// Encrypts by RSA-OAEP-256 and A256GCM.
fn encrypt(text: &str, key: &PrivateDecryptingKey) -> String {
    let header = base64(r#"{"alg":"RSA-OAEP-256","enc":"A256GCM"}"#);
    let public = OaepPublicEncryptingKey::new(key.public_key()).unwrap();
    let mut room = vec![0; public.ciphertext_size()];
    let wrapped = public.encrypt(&OAEP_SHA256_MGF1SHA256, &[7; 32], &mut room, None).unwrap();
    let content = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).unwrap());
    let mut sealed = text.as_bytes().to_vec();
    let nonce = Nonce::assume_unique_for_key([9; 12]);
    let tag = content.seal_in_place_separate_tag(nonce, Aad::from(&header), &mut sealed).unwrap();
    format!("{header}.{}.{}.{}.{}", base64(wrapped), base64([9; 12]), base64(sealed), base64(tag))
}

#[test]
fn a_token_is_decrypted_with_the_key_of_a_linked_certificate() {
    let (key, client) = (key(), client(ProviderKind::OpenIdConnect));
    let [own, other] = [(); 2].map(|()| PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap());
    let decryption_key = |key: &PrivateDecryptingKey| {
        let der: Pkcs8V1Der<'_> = key.as_der().unwrap();
        DecryptionKey::read(&Secret::new(der.as_ref())).unwrap()
    };
    let token = encrypt(&sign(&key, &header(), &claims()), &own);
    let validate = |decryption_keys: &[DecryptionKey]| {
        validate_with_keys(&token, &client, ISSUER, &json!([jwk(&key, "sig")]), decryption_keys)
    };
    let (checks, has_claims) = validate(&[decryption_key(&other), decryption_key(&own)]);
    assert!(has_claims && failing(&checks).is_empty() && checks[0].name == "encryption", "{checks:?}");
    for keys in [vec![], vec![decryption_key(&other)]] {
        let (checks, has_claims) = validate(&keys);
        assert_eq!(
            (failing(&checks), has_claims, checks[0].option),
            (vec!["encryption"], false, Some("certStores"))
        );
    }
}
