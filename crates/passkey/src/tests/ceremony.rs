//! Ceremonies that succeed, and the effect of policies on them.

use serde_json::json;

use super::{
    Authenticator, authenticate, finish_authentication, finish_registration, policy, register, user,
};
use crate::{
    Attestation, Credential, RefusalKind, User, UserVerification, credential_id_of, start_authentication,
    start_registration,
    tests::authenticator::{BACKED_UP, ELIGIBLE, PRESENT, VERIFIED},
    user_handle_of,
};

#[test]
fn the_options_of_a_registration_are_the_policys() {
    let (options, _) = start_registration(&policy(), &user(), &[vec![1, 2]]).unwrap();
    assert_eq!(options["rp"], json!({"id": "example.org", "name": "Example"}));
    assert_eq!(
        options["user"],
        json!({"id": "AAAAAAAAAAAAAAAAAAAABw", "name": "ada", "displayName": "Ada Byron"})
    );
    assert_eq!(options["excludeCredentials"], json!([{"type": "public-key", "id": "AQI"}]));
    assert_eq!(
        options["authenticatorSelection"],
        json!({"residentKey": "required", "requireResidentKey": true, "userVerification": "required"})
    );
    let algorithms = json!([{"type": "public-key", "alg": -7}, {"type": "public-key", "alg": -257}]);
    assert_eq!((&options["pubKeyCredParams"], &options["attestation"]), (&algorithms, &json!("none")));
    assert!(options["challenge"].as_str().unwrap().len() >= 43, "256 bits");
    for (attestation, word) in [
        (Attestation::Indirect, "indirect"),
        (Attestation::Direct, "direct"),
        (Attestation::Enterprise, "enterprise"),
    ] {
        let mut policy = policy();
        policy.attestation = attestation;
        policy.user_verification = UserVerification::Discouraged;
        let nameless = User { display_name: String::new(), ..user() };
        let (options, _) = start_registration(&policy, &nameless, &[]).unwrap();
        assert_eq!((&options["attestation"], &options["user"]["displayName"]), (&json!(word), &json!("ada")));
        assert_eq!(options["authenticatorSelection"]["userVerification"], "discouraged");
    }
}

#[test]
fn the_options_of_an_authentication_list_the_allowed_credentials() {
    let credential = register(&policy(), &Authenticator::new()).unwrap();
    let (options, _) = start_authentication(&policy(), Some(&[credential])).unwrap();
    assert_eq!(
        options["allowCredentials"],
        json!([{"type": "public-key", "id": "AQIDBA", "transports": ["smart-card", "usb"]}])
    );
    assert_eq!((&options["rpId"], &options["userVerification"]), (&json!("example.org"), &json!("required")));
    let (options, _) = start_authentication(&policy(), None).unwrap();
    assert_eq!(options["allowCredentials"], json!([]));
}

#[test]
fn no_two_challenges_are_equal() {
    let challenge = || start_authentication(&policy(), None).unwrap().0["challenge"].clone();
    assert_ne!(challenge(), challenge());
}

#[test]
fn a_credential_is_registered_stored_and_used() {
    for mut device in [Authenticator::new(), Authenticator::of_rsa()] {
        for attests in [false, true] {
            device.attests = attests;
            device.sign_count = 1;
            device.flags = PRESENT | VERIFIED | ELIGIBLE;
            let registered = register(&policy(), &device).unwrap();
            let stored = Credential::from_bytes(&registered.to_bytes()).unwrap();
            assert_eq!(
                (stored.id.as_slice(), stored.user, stored.aaguid, stored.sign_count),
                ([1, 2, 3, 4].as_slice(), user().id, [9; 16], 1)
            );
            assert!(stored.is_backup_eligible && !stored.is_backed_up && stored.user_verified);
            assert_eq!(stored.transports, ["smart-card", "usb"]);
            assert!(stored.attestation_chain.is_empty());
            device.sign_count = 2;
            device.flags |= BACKED_UP;
            let used = authenticate(&policy(), &device, &stored).unwrap();
            assert_eq!((used.sign_count, used.backed_up, used.user_verified), (2, true, true));
        }
    }
}

#[test]
fn an_authenticator_without_a_counter_is_used_again_and_again() {
    let mut device = Authenticator::new();
    device.sign_count = 0;
    let credential = register(&policy(), &device).unwrap();
    for _ in 0..2 {
        assert_eq!(authenticate(&policy(), &device, &credential).unwrap().sign_count, 0);
    }
}

#[test]
fn without_a_login_name_the_authenticator_names_the_user() {
    let mut device = Authenticator::new();
    let credential = register(&policy(), &device).unwrap();
    device.sign_count = 2;
    let (options, state) = start_authentication(&policy(), None).unwrap();
    let answer = device.get(&options);
    assert_eq!(credential_id_of(&answer).unwrap(), credential.id);
    assert_eq!(user_handle_of(&answer).unwrap().unwrap(), user().id.as_bytes());
    finish_authentication(&policy(), &state, &answer, &credential).unwrap();
    device.user_handle = None;
    let refused = finish_authentication(&policy(), &state, &device.get(&options), &credential).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::UserHandle);
    // a login name was given: the handle may be missing, as U2F devices leave it out
    authenticate(&policy(), &device, &credential).unwrap();
}

#[test]
fn an_unknown_login_name_admits_no_answer() {
    let mut device = Authenticator::new();
    let credential = register(&policy(), &device).unwrap();
    device.sign_count = 2;
    let (options, state) = start_authentication(&policy(), Some(&[])).unwrap();
    let refused = finish_authentication(&policy(), &state, &device.get(&options), &credential).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::UnknownCredential);
}

#[test]
fn user_verification_is_checked_against_the_policies_of_start_and_finish() {
    let mut unverified = Authenticator { flags: PRESENT, ..Authenticator::new() };
    let mut lax = policy();
    for verification in [UserVerification::Preferred, UserVerification::Discouraged] {
        lax.user_verification = verification;
        unverified.sign_count = 1;
        let credential = register(&lax, &unverified).unwrap();
        assert!(!credential.user_verified);
        unverified.sign_count = 2;
        assert!(!authenticate(&lax, &unverified, &credential).unwrap().user_verified);
        assert_eq!(
            authenticate(&policy(), &unverified, &credential).unwrap_err().kind,
            RefusalKind::UserVerification
        );
    }
    let (options, state) = start_registration(&lax, &user(), &[]).unwrap();
    let refused = finish_registration(&policy(), &state, &unverified.create(&options)).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::UserVerification);
    let (options, state) = start_registration(&policy(), &user(), &[]).unwrap();
    let refused = finish_registration(&lax, &state, &unverified.create(&options)).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::UserVerification);
    // a credential that was registered with verification may do without where the policy allows
    let mut device = Authenticator::new();
    let credential = register(&policy(), &device).unwrap();
    (device.flags, device.sign_count) = (PRESENT, 2);
    lax.user_verification = UserVerification::Preferred;
    assert!(!authenticate(&lax, &device, &credential).unwrap().user_verified);
}

#[test]
fn models_are_admitted_and_blocked_by_policy() {
    let nine = "09".repeat(16);
    let mut device = Authenticator::new();
    let credential = register(&policy(), &device).unwrap();
    device.sign_count = 2;
    let mut blocking = policy();
    blocking.blocked_aaguids.push(nine.clone());
    assert_eq!(register(&blocking, &device).unwrap_err().kind, RefusalKind::Authenticator);
    assert_eq!(authenticate(&blocking, &device, &credential).unwrap_err().kind, RefusalKind::Authenticator);
    let mut others = policy();
    others.allowed_aaguids.push("0a".repeat(16));
    assert_eq!(register(&others, &device).unwrap_err().kind, RefusalKind::Authenticator);
    let mut listed = policy();
    listed.allowed_aaguids.push(nine);
    // a mere claim is not accepted, nor is self attestation
    for attestation in [Attestation::None, Attestation::Direct] {
        listed.attestation = attestation;
        for attests in [false, true] {
            device.attests = attests;
            assert_eq!(register(&listed, &device).unwrap_err().kind, RefusalKind::Attestation);
        }
    }
    device = Authenticator { boast: Some(vec![1]), ..Authenticator::new() };
    assert_eq!(register(&listed, &device).unwrap_err().kind, RefusalKind::Attestation);
    assert!(register(&policy(), &device).unwrap().attestation_chain.is_empty());
}

#[test]
fn disabled_passkeys_refuse_every_ceremony() {
    let device = Authenticator::new();
    let credential = register(&policy(), &device).unwrap();
    let (options, state) = start_authentication(&policy(), None).unwrap();
    let mut off = policy();
    off.enabled = false;
    assert_eq!(start_registration(&off, &user(), &[]).unwrap_err().kind, RefusalKind::Disabled);
    assert_eq!(start_authentication(&off, None).unwrap_err().kind, RefusalKind::Disabled);
    let refused = finish_authentication(&off, &state, &device.get(&options), &credential).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Disabled);
}
