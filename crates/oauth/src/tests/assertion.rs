//! Client assertions: valid ones, and ones that break one rule each.

use chancery_record::{Secret, Timestamp};
use serde_json::{Value, json};

use super::{CLIENT, ISSUER, NOW, TOKEN_ENDPOINT, claims, expected, signer, to_jwk, with};
use crate::{
    Algorithm, AssertionKeys, ErrorCode, Expected, Jwk, VerifiedAssertion,
    claims::{from_base64, to_base64},
    unverified_client_id, verify_assertion,
};

fn header() -> Value {
    json!({ "typ": "JWT" })
}

fn p256() -> Jwk {
    to_jwk(&signer::P256.jwk())
}

fn verify_with(token: &str, expected: &Expected<'_>) -> Result<VerifiedAssertion, &'static str> {
    verify_assertion(token, AssertionKeys::Public(&[p256()]), expected).map_err(|refusal| {
        assert_eq!(refusal.code, ErrorCode::InvalidClient);
        refusal.detail
    })
}

fn verify(header: &Value, claims: &Value) -> Result<VerifiedAssertion, &'static str> {
    verify_with(&signer::P256.sign(Algorithm::Es256, header, claims), &expected())
}

#[test]
fn assertions_of_each_asymmetric_algorithm_verify() {
    for (algorithm, signer) in signer::asymmetric() {
        let token = signer.sign(algorithm, &header(), &claims());
        let verified =
            verify_assertion(&token, AssertionKeys::Public(&[to_jwk(&signer.jwk())]), &expected()).unwrap();
        let expires_on = Timestamp((NOW + 360) * 1000);
        assert_eq!(
            verified,
            VerifiedAssertion { client_id: CLIENT.into(), jti: "one".into(), expires_on, algorithm }
        );
        assert_eq!(unverified_client_id(&token).unwrap(), CLIENT);
    }
}

#[test]
fn secrets_must_be_at_least_as_long_as_the_hash() {
    for (algorithm, size) in [(Algorithm::Hs256, 32), (Algorithm::Hs384, 48), (Algorithm::Hs512, 64)] {
        let verify = |length: usize, others: &[usize]| {
            let token = signer::Signer::Secret(signer::secret(length)).sign(algorithm, &header(), &claims());
            let secrets: Vec<_> = others.iter().map(|length| Secret::new(signer::secret(*length))).collect();
            verify_assertion(&token, AssertionKeys::Secrets(&secrets), &expected())
        };
        assert_eq!(verify(size, &[size + 1, size]).unwrap().algorithm, algorithm);
        assert!(verify(size - 1, &[size - 1]).unwrap_err().detail.contains("long enough"));
        assert!(verify(size, &[size + 1]).unwrap_err().detail.contains("not the client's"));
        assert!(verify(size, &[]).is_err());
    }
}

#[test]
fn algorithms_are_not_confused() {
    let jwk = to_jwk(&signer::RSA.jwk());
    // the public key, in every encoding that could be mistaken for a secret
    let forms =
        [signer::RSA.spki(), signer::RSA.jwk().to_string().into_bytes(), jwk.key.canonical().into_bytes()];
    for form in forms {
        for algorithm in [Algorithm::Hs256, Algorithm::Hs384, Algorithm::Hs512] {
            let token = signer::Signer::Secret(form.clone()).sign(algorithm, &header(), &claims());
            let refusal =
                verify_assertion(&token, AssertionKeys::Public(std::slice::from_ref(&jwk)), &expected());
            assert!(refusal.unwrap_err().detail.contains("private key"));
        }
    }
    for (algorithm, signer) in signer::asymmetric() {
        let token = signer.sign(algorithm, &header(), &claims());
        let secrets = [Secret::new(signer.spki())];
        let refusal = verify_assertion(&token, AssertionKeys::Secrets(&secrets), &expected()).unwrap_err();
        assert!(refusal.detail.contains("with its secret"));
        for other in Algorithm::ALL.into_iter().filter(|other| *other != algorithm) {
            let header = with(header(), "alg", json!(other.name())).to_string();
            let token = signer.sign_text(algorithm, &header, &claims().to_string());
            let key = [to_jwk(&signer.jwk())];
            assert!(
                verify_assertion(&token, AssertionKeys::Public(&key), &expected()).is_err(),
                "{algorithm:?} {other:?}"
            );
        }
    }
    for none in ["none", "None", "", "ES256K", "RS1", "es256"] {
        let text = json!({ "alg": none }).to_string();
        let token = signer::P256.sign_text(Algorithm::Es256, &text, &claims().to_string());
        assert!(verify_with(&token, &expected()).unwrap_err().contains("algorithm"), "{none}");
    }
}

#[test]
fn accepted_variations_of_claims_and_header() {
    for (name, value) in [
        ("aud", json!(TOKEN_ENDPOINT)),
        ("aud", json!(["https://other.example", ISSUER])),
        ("iat", Value::Null),
        ("nbf", Value::Null),
        ("exp", json!(NOW - 59)),
        ("exp", json!(NOW + 3660)),
        ("nbf", json!(NOW + 60)),
        ("iat", json!(NOW + 60)),
        ("other", json!({ "any": [1.5] })),
    ] {
        let claims = with(claims(), name, value.clone());
        // an expired assertion needs an earlier iat
        let changed =
            if name == "exp" { with(with(claims, "iat", Value::Null), "nbf", Value::Null) } else { claims };
        assert_eq!(verify(&header(), &changed).map(|_| ()), Ok(()), "{name} {value}");
    }
    for typ in [json!("jwt"), json!("client-authentication+jwt"), json!("application/JWT"), Value::Null] {
        assert!(verify(&with(header(), "typ", typ.clone()), &claims()).is_ok(), "{typ}");
    }
    let named = with(with(claims(), "sub", json!("invoice printer")), "iss", json!("invoice printer"));
    assert_eq!(verify(&header(), &named).unwrap().client_id, "invoice printer");
}

#[test]
fn each_violation_of_the_claims_is_rejected() {
    let long = "x".repeat(257);
    for (name, value, detail) in [
        ("iss", json!("somebody"), "iss and sub"),
        ("iss", Value::Null, "iss and sub"),
        ("sub", json!("somebody"), "iss and sub"),
        ("sub", Value::Null, "sub is missing"),
        ("sub", json!(1), "sub is missing"),
        ("sub", json!(long), "sub is missing"),
        ("aud", Value::Null, "aud"),
        ("aud", json!("https://other.example"), "aud"),
        ("aud", json!("https://id.example.org/"), "aud"),
        ("aud", json!([]), "aud"),
        ("aud", json!([["https://id.example.org"]]), "aud"),
        ("aud", json!({ "a": ISSUER }), "aud"),
        ("exp", Value::Null, "exp is missing"),
        ("exp", json!(NOW - 60), "expired"),
        ("exp", json!(NOW + 3661), "too far ahead"),
        ("exp", json!(i64::MAX), "whole seconds"),
        ("exp", json!(-1), "whole seconds"),
        ("exp", json!("1800000300"), "whole seconds"),
        ("exp", json!(1_800_000_300.5), "whole seconds"),
        ("nbf", json!(NOW + 61), "not valid yet"),
        ("nbf", json!("soon"), "whole seconds"),
        ("iat", json!(NOW + 61), "in the future"),
        ("iat", json!(NOW - 3661), "too long ago"),
        ("iat", json!([]), "whole seconds"),
        ("jti", Value::Null, "jti"),
        ("jti", json!(""), "jti"),
        ("jti", json!(long), "jti"),
        ("jti", json!(7), "jti"),
    ] {
        let error = verify(&header(), &with(claims(), name, value.clone())).unwrap_err();
        assert!(error.contains(detail), "{name} {value}: {error}");
    }
    let other = with(with(claims(), "sub", json!("other")), "iss", json!("other"));
    assert!(verify(&header(), &other).unwrap_err().contains("another client"));
    for (name, value) in [("nbf", NOW + 50), ("iat", NOW + 50)] {
        let ended = with(with(claims(), "exp", json!(NOW + 40)), name, json!(value));
        assert!(verify(&header(), &ended).is_err(), "{name} after exp");
    }
}

#[test]
fn one_audience_must_be_a_text() {
    let strict = Expected { one_audience: true, audiences: &[ISSUER], ..expected() };
    for (audience, is_accepted) in [
        (json!(ISSUER), true),
        (json!([ISSUER]), false),
        (json!([ISSUER, "https://other.example"]), false),
        (json!(TOKEN_ENDPOINT), false),
    ] {
        let token = signer::P256.sign(Algorithm::Es256, &header(), &with(claims(), "aud", audience.clone()));
        assert_eq!(verify_with(&token, &strict).is_ok(), is_accepted, "{audience}");
    }
}

#[test]
fn each_violation_of_the_header_is_rejected() {
    for (name, value, detail) in [
        ("crit", json!(["exp"]), "crit"),
        ("b64", json!(true), "b64"),
        ("typ", json!("at+jwt"), "typ"),
        ("typ", json!("dpop+jwt"), "typ"),
        ("typ", json!(1), "typ"),
        ("kid", json!(1), "kid"),
    ] {
        let error = verify(&with(header(), name, value), &claims()).unwrap_err();
        assert!(error.contains(detail), "{name}: {error}");
    }
    let sign = |header: &str, claims: &str| signer::P256.sign_text(Algorithm::Es256, header, claims);
    let valid_claims = claims().to_string();
    for (token, detail) in [
        (sign(r#"{"alg":"ES256","alg":"ES256"}"#, &valid_claims), "twice"),
        (sign(r#"{"alg":"ES256"}"#, &valid_claims.replacen('{', r#"{"sub":"other","#, 1)), "twice"),
        (sign("[]", &valid_claims), "no JSON object"),
        (sign("{", &valid_claims), "no JSON object"),
        (sign("{}", &valid_claims), "algorithm"),
        (sign(r#"{"alg":256}"#, &valid_claims), "algorithm"),
        (sign(r#"{"alg":"ES256"}"#, "[]"), "no JSON object"),
        (sign(r#"{"alg":"ES256"}"#, ""), "no JSON object"),
        (sign(r#"{"alg":"ES256"}"#, &format!("{valid_claims}{}", " ".repeat(8192))), "8 KiB"),
        (String::new(), "form"),
        ("..".to_owned(), "no JSON object"),
        ("a.b".to_owned(), "form"),
    ] {
        assert!(verify_with(&token, &expected()).unwrap_err().contains(detail), "{detail} {token}");
        assert!(detail == "form" || detail == "algorithm" || unverified_client_id(&token).is_none());
    }
    let token = sign(r#"{"alg":"ES256"}"#, &valid_claims);
    assert!(verify_with(&token, &expected()).is_ok());
    for wrong in [format!("{token}="), format!("{token}."), format!(" {token}"), format!("{token}.e30")] {
        assert!(verify_with(&wrong, &expected()).unwrap_err().contains("form"), "{wrong}");
    }
}

#[test]
fn a_signature_of_another_length_is_rejected() {
    let token = signer::P256.sign(Algorithm::Es256, &header(), &claims());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = from_base64(signature).unwrap();
    let with_signature = |bytes: &[u8]| format!("{signed}.{}", to_base64(bytes));
    assert!(verify_with(&with_signature(&signature), &expected()).is_ok());
    let longer = [&signature[..], &[0]].concat();
    for wrong in [&[][..], &[0; 64], &[0xff; 64], &signature[..63], &longer] {
        assert!(verify_with(&with_signature(wrong), &expected()).unwrap_err().contains("not the client's"));
    }
}

#[test]
fn the_key_is_selected_by_kid() {
    let matching_key = with(signer::P256.jwk(), "kid", json!("good"));
    let other = with(signer::P384.jwk(), "kid", json!("other"));
    let keys = [to_jwk(&other), to_jwk(&matching_key)];
    let verify = |header: &Value, keys: &[Jwk]| {
        let token = signer::P256.sign(Algorithm::Es256, header, &claims());
        verify_assertion(&token, AssertionKeys::Public(keys), &expected()).map_err(|refusal| refusal.detail)
    };
    let named = |kid: &str| with(header(), "kid", json!(kid));
    assert!(verify(&header(), &keys).is_ok());
    assert!(verify(&named("good"), &keys).is_ok());
    assert!(verify(&named("other"), &keys).unwrap_err().contains("no usable key"));
    assert!(verify(&named("unknown"), &keys).unwrap_err().contains("no usable key"));
    assert!(verify(&named("unknown"), &[p256()]).is_ok(), "a certificate's key has no name");
    assert!(verify(&header(), &[]).unwrap_err().contains("no usable key"));
    assert!(verify(&header(), &[to_jwk(&with(matching_key.clone(), "use", json!("enc")))]).is_err());
    let many: Vec<Jwk> =
        (0..11).map(|name| to_jwk(&with(matching_key.clone(), "kid", json!(format!("{name}"))))).collect();
    assert!(verify(&header(), &many).unwrap_err().contains("kid"));
    assert!(verify(&named("7"), &many).is_ok());
}
