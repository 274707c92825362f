//! Texts that are refused.

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_trust::{
    Anchors, MAX_BYTES, MetadataRefusal, RefusalKind, Snapshot, SnapshotOrder, accepts, verify,
};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose};
use serde_json::{Value, json};

use crate::service::{NAME, Service, at, leaf_params, now, unsigned};

fn payload(no: i64) -> Value {
    json!({"legalHeader": "..", "no": no, "nextUpdate": "2026-07-01", "entries": []})
}

fn kind(result: Result<Snapshot, MetadataRefusal>) -> RefusalKind {
    result.unwrap_err().kind
}

#[test]
fn a_valid_signature_is_accepted() {
    let service = Service::new();
    let jwt = service.signed(&payload(7));
    let snapshot = service.verify(&jwt).unwrap();
    assert_eq!((snapshot.no, snapshot.next_update), (7, at("2026-07-01")));
    assert!(snapshot.version.starts_with("7-") && snapshot.version.len() == 14, "{}", snapshot.version);
    assert_eq!(service.verify(&format!("\n{jwt}\r\n")).unwrap(), snapshot);
    let rsa = Service::with_rsa();
    for alg in ["RS256", "PS256"] {
        let jwt = rsa.signed_under(&rsa.header(alg), payload(7).to_string().as_bytes());
        assert_eq!(rsa.verify(&jwt).unwrap().version, snapshot.version, "{alg}");
    }
}

#[test]
fn a_root_in_the_text_is_not_trusted() {
    let service = Service::new();
    let mut header = service.header("ES256");
    header["x5c"].as_array_mut().unwrap().push(BASE64_STANDARD.encode(service.root.der()).into());
    let jwt = service.signed_under(&header, payload(7).to_string().as_bytes());
    assert_eq!(service.verify(&jwt).unwrap().no, 7);
    assert_eq!(kind(verify(&jwt, &Service::new().anchors(), now())), RefusalKind::Certificate);
}

#[test]
fn another_root_is_refused() {
    let jwt = Service::new().signed(&payload(7));
    assert_eq!(kind(verify(&jwt, &Service::new().anchors(), now())), RefusalKind::Certificate);
    assert_eq!(kind(verify(&jwt, &Anchors::pinned(), now())), RefusalKind::Certificate);
}

#[test]
fn certificates_outside_their_validity_are_refused() {
    let service = Service::new();
    let jwt = service.signed(&payload(7));
    for (moment, word) in [
        ("2025-12-31T23:59:59Z", "not valid yet"),
        ("2027-01-01T00:00:01Z", "expired"),
        ("0001-01-01", "not valid yet"),
        ("9999-12-30", "expired"),
    ] {
        let refusal = verify(&jwt, &service.anchors(), at(moment)).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Certificate, "{moment}");
        assert!(refusal.to_string().contains(word), "{refusal}");
    }
}

#[test]
fn another_name_is_refused() {
    let jwt = |params: &CertificateParams| {
        let service = Service::new().certified(params);
        service.verify(&service.signed(&payload(7)))
    };
    for name in ["other.example", "a.mds.example", "example", "mds.example.evil.example", "192.0.2.1"] {
        assert_eq!(kind(jwt(&leaf_params(name))), RefusalKind::Name, "{name}");
    }
    // a common name does not count as a name
    let mut params = leaf_params("other.example");
    params.distinguished_name.push(rcgen::DnType::CommonName, NAME);
    assert_eq!(kind(jwt(&params)), RefusalKind::Name);
    assert_eq!(jwt(&leaf_params(NAME)).unwrap().no, 7);
}

#[test]
fn a_certificate_for_another_use_is_refused() {
    let mut params = leaf_params(NAME);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
    let service = Service::new().certified(&params);
    assert_eq!(kind(service.verify(&service.signed(&payload(7)))), RefusalKind::Certificate);
}

#[test]
fn another_key_or_another_payload_is_refused() {
    let service = Service::new();
    let jwt = service.signed(&payload(7));
    let (signed, signature) = jwt.rsplit_once('.').unwrap();
    let (header, _) = signed.split_once('.').unwrap();
    let other = BASE64_URL_SAFE_NO_PAD.encode(payload(8).to_string());
    assert_eq!(kind(service.verify(&format!("{header}.{other}.{signature}"))), RefusalKind::Signature);
    assert_eq!(kind(service.verify(&format!("{signed}."))), RefusalKind::Signature);
    let attacker = Service::new();
    let jwt = attacker.signed_under(&service.header("ES256"), payload(8).to_string().as_bytes());
    assert_eq!(kind(service.verify(&jwt)), RefusalKind::Signature);
    // an algorithm of another kind of key
    let jwt = service.signed_under(&service.header("ES384"), payload(8).to_string().as_bytes());
    assert_eq!(kind(service.verify(&jwt)), RefusalKind::Signature);
    let jwt = service.signed_under(&service.header("RS512"), payload(8).to_string().as_bytes());
    assert_eq!(kind(service.verify(&jwt)), RefusalKind::Signature);
}

#[test]
fn algorithms_without_a_key_pair_are_refused() {
    let service = Service::new();
    for alg in ["none", "None", "", "HS256", "HS512", "EdDSA", "RS1", "es256"] {
        let header = service.header(alg);
        let jwt = service.signed_under(&header, payload(7).to_string().as_bytes());
        assert_eq!(kind(service.verify(&jwt)), RefusalKind::Algorithm, "{alg}");
        let jwt = format!("{}.", unsigned(&header, payload(7).to_string().as_bytes()));
        assert_eq!(kind(service.verify(&jwt)), RefusalKind::Algorithm, "{alg}");
    }
}

#[test]
fn missing_or_invalid_certificates_are_refused() {
    let service = Service::new();
    let full = service.header("ES256")["x5c"].clone();
    let many: Vec<_> = std::iter::repeat_n(full[0].clone(), 9).collect();
    for x5c in [json!(null), json!([]), json!(["no base64"]), json!([""]), json!(["AAAA"]), json!(many)] {
        let header = json!({"alg": "ES256", "x5c": x5c, "x5u": "https://mds.example/chain"});
        let jwt = service.signed_under(&header, payload(7).to_string().as_bytes());
        assert_eq!(kind(service.verify(&jwt)), RefusalKind::Certificate, "{header}");
    }
    // the intermediate certificate is missing
    let header = json!({"alg": "ES256", "x5c": [full[0]]});
    let jwt = service.signed_under(&header, payload(7).to_string().as_bytes());
    assert_eq!(kind(service.verify(&jwt)), RefusalKind::Certificate);
    let header = json!({"alg": "ES256"});
    let jwt = service.signed_under(&header, payload(7).to_string().as_bytes());
    assert_eq!(kind(service.verify(&jwt)), RefusalKind::Certificate);
}

#[test]
fn unknown_critical_extensions_are_refused() {
    let service = Service::new();
    let mut header = service.header("ES256");
    header["crit"] = json!(["b64"]);
    header["b64"] = json!(false);
    let jwt = service.signed_under(&header, payload(7).to_string().as_bytes());
    assert_eq!(kind(service.verify(&jwt)), RefusalKind::Malformed);
}

#[test]
fn an_invalid_token_is_refused() {
    let service = Service::new();
    let jwt = service.signed(&payload(7));
    for cut in 0..jwt.len() {
        assert!(service.verify(&jwt[..cut]).is_err(), "{cut}");
    }
    let four = format!("{jwt}.AAAA");
    for text in ["", ".", "..", "a.b", "a.b.c", "\u{e9}.\u{e9}.\u{e9}", &four, &jwt.replace('.', "..")] {
        assert_eq!(kind(service.verify(text)), RefusalKind::Malformed, "{text}");
    }
    let header = json!({"alg": "ES256", "x5c": [], "pad": "x".repeat(70_000)});
    let jwt = service.signed_under(&header, b"{}");
    assert_eq!(kind(service.verify(&jwt)), RefusalKind::Malformed);
}

#[test]
fn a_too_large_text_is_refused() {
    assert_eq!(kind(Service::new().verify(&"A".repeat(MAX_BYTES + 1))), RefusalKind::TooLarge);
}

#[test]
fn a_signed_payload_that_is_no_metadata_is_refused() {
    let service = Service::new();
    for payload in [
        "",
        "[]",
        "{",
        "{}",
        r#"{"no": 7, "nextUpdate": "2026-07-01"}"#,
        r#"{"nextUpdate": "2026-07-01", "entries": []}"#,
        r#"{"no": 7, "entries": []}"#,
        r#"{"no": "7", "nextUpdate": "2026-07-01", "entries": []}"#,
        r#"{"no": 7, "nextUpdate": "soon", "entries": []}"#,
        r#"{"no": 7, "nextUpdate": "2026-07-01", "entries": {}}"#,
        r#"{"no": 7, "no": 8, "nextUpdate": "2026-07-01", "entries": []}"#,
        &"[".repeat(100_000),
    ] {
        let jwt = service.signed_under(&service.header("ES256"), payload.as_bytes());
        assert_eq!(kind(service.verify(&jwt)), RefusalKind::Payload, "{payload}");
    }
}

#[test]
fn a_snapshot_is_accepted_only_with_a_higher_number() {
    let service = Service::new();
    let snapshot = service.verify(&service.signed(&payload(7))).unwrap();
    for (current, order) in [
        (None, SnapshotOrder::Newer),
        (Some(6), SnapshotOrder::Newer),
        (Some(-1), SnapshotOrder::Newer),
        (Some(7), SnapshotOrder::Same),
        (Some(8), SnapshotOrder::Older),
        (Some(i64::MAX), SnapshotOrder::Older),
    ] {
        assert_eq!(accepts(current, &snapshot), order, "{current:?}");
    }
}
