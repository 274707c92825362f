//! Answers with one fault each: each is refused with its kind.

use serde_json::{Value, json};

use super::{
    Authenticator, authenticate, finish_authentication, finish_registration, policy, register, user,
};
use crate::{
    Credential, RefusalKind,
    answer::to_base64,
    start_authentication, start_registration,
    tests::authenticator::{BACKED_UP, ELIGIBLE, PRESENT, VERIFIED},
};

type Lie = (&'static str, RefusalKind, fn(&mut Authenticator));

/// The faults that both ceremonies refuse.
fn lies() -> Vec<Lie> {
    fn set_client_member(device: &mut Authenticator, name: &str, value: Value) {
        device.client.insert(name.to_owned(), value);
    }
    vec![
        ("challenge", RefusalKind::Challenge, |device| {
            set_client_member(device, "challenge", json!(to_base64(&[5; 32])));
        }),
        ("no challenge", RefusalKind::Malformed, |device| {
            set_client_member(device, "challenge", Value::Null);
        }),
        ("origin", RefusalKind::Origin, |device| {
            set_client_member(device, "origin", json!("https://evil.example"));
        }),
        ("sub-domain", RefusalKind::Origin, |device| {
            set_client_member(device, "origin", json!("https://a.example.org"));
        }),
        ("port", RefusalKind::Origin, |device| {
            set_client_member(device, "origin", json!("https://example.org:444"));
        }),
        ("scheme", RefusalKind::Origin, |device| {
            set_client_member(device, "origin", json!("http://example.org"));
        }),
        ("path", RefusalKind::Origin, |device| {
            set_client_member(device, "origin", json!("https://example.org/path"));
        }),
        ("user", RefusalKind::Origin, |device| {
            set_client_member(device, "origin", json!("https://me@example.org"));
        }),
        ("cross origin", RefusalKind::Origin, |device| set_client_member(device, "crossOrigin", json!(true))),
        ("top origin", RefusalKind::Origin, |device| {
            set_client_member(device, "topOrigin", json!("https://example.org"));
        }),
        ("type", RefusalKind::Type, |device| set_client_member(device, "type", json!("payment.get"))),
        ("relying party", RefusalKind::RelyingParty, |device| {
            device.relying_party = "evil.example".to_owned();
        }),
        ("sub-domain as relying party", RefusalKind::RelyingParty, |device| {
            device.relying_party = "a.example.org".to_owned();
        }),
        ("presence", RefusalKind::UserPresence, |device| device.flags &= !PRESENT),
        ("verification", RefusalKind::UserVerification, |device| device.flags &= !VERIFIED),
        ("backed up without being eligible", RefusalKind::Backup, |device| device.flags |= BACKED_UP),
        ("credential id", RefusalKind::UnknownCredential, |device| device.id.push(0)),
    ]
}

#[test]
fn registrations_with_a_fault_are_refused() {
    for (what, kind, lie) in lies() {
        let mut device = Authenticator::new();
        lie(&mut device);
        let got = register(&policy(), &device).map(|_| ()).map_err(|refusal| refusal.kind);
        let expected = if what == "credential id" { Ok(()) } else { Err(kind) };
        assert_eq!(got, expected, "{what}");
    }
}

#[test]
fn authentications_with_a_fault_are_refused() {
    let mut device = Authenticator::new();
    let credential = register(&policy(), &device).unwrap();
    device.sign_count = 2;
    authenticate(&policy(), &device, &credential).unwrap();
    let honest = |device: &mut Authenticator| {
        device.client.clear();
        device.id = credential.id.clone();
        device.relying_party = "example.org".to_owned();
        device.flags = PRESENT | VERIFIED;
    };
    for (what, kind, lie) in lies() {
        honest(&mut device);
        lie(&mut device);
        let refused = authenticate(&policy(), &device, &credential).unwrap_err();
        assert_eq!(refused.kind, kind, "{what}: {refused}");
    }
    honest(&mut device);
    device.flags |= ELIGIBLE;
    assert_eq!(authenticate(&policy(), &device, &credential).unwrap_err().kind, RefusalKind::Backup);
    honest(&mut device);
    for (stored, reported) in [(2, 2), (3, 2), (1, 0), (u32::MAX, u32::MAX)] {
        device.sign_count = reported;
        let credential = Credential { sign_count: stored, ..credential.clone() };
        assert_eq!(authenticate(&policy(), &device, &credential).unwrap_err().kind, RefusalKind::SignCount);
    }
    device.sign_count = 2;
    device.user_handle = Some(vec![8; 16]);
    assert_eq!(authenticate(&policy(), &device, &credential).unwrap_err().kind, RefusalKind::UserHandle);
}

#[test]
fn a_credential_that_was_eligible_stays_so() {
    let mut device = Authenticator::new();
    device.flags |= ELIGIBLE;
    let credential = register(&policy(), &device).unwrap();
    (device.flags, device.sign_count) = (PRESENT | VERIFIED, 2);
    assert_eq!(authenticate(&policy(), &device, &credential).unwrap_err().kind, RefusalKind::Backup);
}

#[test]
fn any_flipped_bit_of_signed_data_breaks_the_signature() {
    let mut device = Authenticator::new();
    let credential = register(&policy(), &device).unwrap();
    device.sign_count = 2;
    let (options, state) = start_authentication(&policy(), None).unwrap();
    let answer = device.get(&options);
    for (member, at, expected) in [
        ("signature", 10, RefusalKind::Signature),
        ("signature", 0, RefusalKind::Signature),
        // the counter is signed, too
        ("authenticatorData", 33, RefusalKind::Signature),
        ("authenticatorData", 0, RefusalKind::RelyingParty),
    ] {
        let mut answer = answer.clone();
        let text = answer["response"][member].as_str().unwrap();
        let mut bytes = crate::answer::from_base64(text).unwrap();
        bytes[at] ^= 1;
        answer["response"][member] = to_base64(&bytes).into();
        let refused = finish_authentication(&policy(), &state, &answer, &credential).unwrap_err();
        assert_eq!(refused.kind, expected, "{member} {at}");
    }
    finish_authentication(&policy(), &state, &answer, &credential).unwrap();
}

#[test]
fn another_credential_with_the_same_id_is_refused() {
    let credential = register(&policy(), &Authenticator::new()).unwrap();
    let other = Authenticator { sign_count: 2, ..Authenticator::new() };
    assert_eq!(authenticate(&policy(), &other, &credential).unwrap_err().kind, RefusalKind::Signature);
}

#[test]
fn a_self_attestation_must_be_signed_by_the_credential() {
    let device = Authenticator { attests: true, ..Authenticator::new() };
    let (options, state) = start_registration(&policy(), &user(), &[]).unwrap();
    let mut answer = device.create(&options);
    let mut object =
        crate::answer::from_base64(answer["response"]["attestationObject"].as_str().unwrap()).unwrap();
    let end = object.len() - 1;
    object[end] ^= 1;
    answer["response"]["attestationObject"] = to_base64(&object).into();
    assert!(finish_registration(&policy(), &state, &answer).is_err());
    let mut answer = device.create(&options);
    let signed = json!({"type": "webauthn.create", "challenge": options["challenge"],
        "origin": "https://other.example.org"});
    answer["response"]["clientDataJSON"] = to_base64(signed.to_string().as_bytes()).into();
    let refused = finish_registration(&policy(), &state, &answer).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Attestation, "{refused}");
}

#[test]
fn a_credential_is_registered_once() {
    let device = Authenticator::new();
    let (options, state) = start_registration(&policy(), &user(), std::slice::from_ref(&device.id)).unwrap();
    let refused = finish_registration(&policy(), &state, &device.create(&options)).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::AlreadyRegistered);
}

#[test]
fn the_answer_must_be_of_the_created_credential() {
    let device = Authenticator::new();
    let (options, state) = start_registration(&policy(), &user(), &[]).unwrap();
    let honest = device.create(&options);
    for (name, value, kind) in [
        ("rawId", json!("AAAA"), RefusalKind::Malformed),
        ("id", json!("AAAA"), RefusalKind::Malformed),
        ("id", json!("AQIDBA=="), RefusalKind::Malformed),
        ("type", json!("password"), RefusalKind::Type),
        ("type", Value::Null, RefusalKind::Malformed),
        ("response", json!([]), RefusalKind::Malformed),
    ] {
        let mut answer = honest.clone();
        answer[name] = value;
        assert_eq!(finish_registration(&policy(), &state, &answer).unwrap_err().kind, kind, "{name}");
    }
    let mut other = honest;
    (other["id"], other["rawId"]) = (json!("AAAA"), json!("AAAA"));
    assert_eq!(finish_registration(&policy(), &state, &other).unwrap_err().kind, RefusalKind::Malformed);
}

#[test]
fn a_state_ends_its_own_ceremony_only() {
    let device = Authenticator::new();
    let credential = register(&policy(), &device).unwrap();
    let (creation, of_registration) = start_registration(&policy(), &user(), &[]).unwrap();
    let (request, of_authentication) = start_authentication(&policy(), None).unwrap();
    let made = finish_registration(&policy(), &of_authentication, &device.create(&creation));
    assert_eq!(made.unwrap_err().kind, RefusalKind::Malformed);
    let used = finish_authentication(&policy(), &of_registration, &device.get(&request), &credential);
    assert_eq!(used.unwrap_err().kind, RefusalKind::Malformed);
    let swapped = finish_registration(&policy(), &of_registration, &device.get(&creation));
    assert_eq!(swapped.unwrap_err().kind, RefusalKind::Malformed);
}

#[test]
fn a_refusal_does_not_quote_the_input() {
    let mut device = Authenticator::new();
    device.client.insert("origin".to_owned(), json!("https://<script>.example"));
    let origin = register(&policy(), &device).unwrap_err();
    device.client.insert("origin".to_owned(), json!({"<script>": 1}));
    let broken = register(&policy(), &device).unwrap_err();
    assert!(!format!("{origin}{broken:?}").contains("script"));
}
