//! Arbitrary and damaged input is refused and never panics.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Authenticator, finish_authentication, finish_registration, policy, register, user};
use crate::{
    Credential, answer::to_base64, credential_id_of, start_authentication, start_registration, user_handle_of,
};

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~]{0,20}".prop_map(Value::from),
        Just(json!("public-key")),
        Just(json!("AQIDBA")),
    ];
    let name = prop_oneof![
        Just("id".to_owned()),
        Just("rawId".to_owned()),
        Just("type".to_owned()),
        Just("response".to_owned()),
        Just("clientDataJSON".to_owned()),
        Just("userHandle".to_owned()),
        "[a-z]{1,4}",
    ];
    leaf.prop_recursive(4, 24, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Cuts, joins and changes bytes.
fn damaged(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = bytes.len();
    let damage = (0..length, any::<u8>(), 0..length, 0..4_u8);
    proptest::collection::vec(damage, 1..4).prop_map(move |damages| {
        let mut bytes = bytes.clone();
        for (at, with, other, how) in damages {
            match how {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = with,
                2 if at < bytes.len() => bytes.insert(at, with),
                _ if at < bytes.len() && other < bytes.len() => bytes.swap(at, other),
                _ => bytes.push(with),
            }
        }
        bytes
    })
}

/// A credential, and the state and answer of a registration and of an authentication.
type Started = (Credential, [(Vec<u8>, Value); 2]);

/// A ceremony of each kind with an honest answer, created once.
fn started() -> &'static Started {
    static STARTED: std::sync::OnceLock<Started> = std::sync::OnceLock::new();
    STARTED.get_or_init(|| {
        let device = Authenticator { attests: true, ..Authenticator::new() };
        let credential = register(&policy(), &device).unwrap();
        let device = Authenticator { sign_count: 2, ..device };
        let (creation, registration) = start_registration(&policy(), &user(), &[]).unwrap();
        let (request, authentication) = start_authentication(&policy(), None).unwrap();
        let (made, used) = (device.create(&creation), device.get(&request));
        (credential, [(registration, made), (authentication, used)])
    })
}

/// One binary member of an honest answer, damaged.
fn damaged_answer() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let (_, [(_, made), (_, used)]) = started();
    let part = |answer: &Value, name: &'static str| {
        let bytes = crate::answer::from_base64(answer["response"][name].as_str().unwrap()).unwrap();
        damaged(bytes).prop_map(move |bytes| (name, bytes))
    };
    prop_oneof![
        3 => part(made, "attestationObject"),
        1 => part(made, "clientDataJSON"),
        1 => part(used, "authenticatorData"),
        1 => part(used, "signature"),
    ]
}

#[test]
fn lengths_that_are_declared_and_not_there() {
    for head in [0x5b_u8, 0x7b, 0x9b, 0xbb] {
        let declared = [&[head][..], &[0x0f; 8]].concat();
        replaced("attestationObject", &declared).unwrap();
        let nested = [vec![0x81; 10_000], declared].concat();
        replaced("attestationObject", &nested).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_json(answer in json_value()) {
        let (credential, [(registration, _), (authentication, _)]) = started();
        let _ = (credential_id_of(&answer), user_handle_of(&answer));
        prop_assert!(finish_registration(&policy(), registration, &answer).is_err());
        prop_assert!(finish_authentication(&policy(), authentication, &answer, credential).is_err());
    }

    #[test]
    fn any_bytes_as_state_and_credential(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (credential, [(_, made), (_, used)]) = started();
        prop_assert!(finish_registration(&policy(), &bytes, made).is_err());
        prop_assert!(finish_authentication(&policy(), &bytes, used, credential).is_err());
        prop_assert!(Credential::from_bytes(&bytes).is_err());
    }

    #[test]
    fn any_bytes_in_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..4_usize) {
        let name = ["attestationObject", "authenticatorData", "signature", "clientDataJSON"][at];
        replaced(name, &bytes)?;
    }

    #[test]
    fn damaged_parts((name, bytes) in damaged_answer()) {
        replaced(name, &bytes)?;
    }
}

/// Checks that an answer with a member replaced is refused; or, if the damage was none or changed only what a
/// registration without attestation may choose, that it is of the same credential.
fn replaced(name: &str, bytes: &[u8]) -> Result<(), TestCaseError> {
    let (credential, [(registration, made), (authentication, used)]) = started();
    let (mut made, mut used) = (made.clone(), used.clone());
    let honest = made["response"][name] == to_base64(bytes) || used["response"][name] == to_base64(bytes);
    made["response"][name] = to_base64(bytes).into();
    used["response"][name] = to_base64(bytes).into();
    let made = finish_registration(&policy(), registration, &made);
    prop_assert!(made.is_err() || credential.id == made.unwrap().id);
    if matches!(name, "authenticatorData" | "signature") && !honest {
        prop_assert!(finish_authentication(&policy(), authentication, &used, credential).is_err());
    }
    Ok(())
}
