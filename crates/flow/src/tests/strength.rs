//! `acr` and `amr`, written independently of the code.

use crate::{Acr, Method, acr_of, amr_of, tests::PASSKEY};

const HARDWARE: Method = Method::Passkey { user_verified: true, hardware: true };
const UNVERIFIED: Method = Method::Passkey { user_verified: false, hardware: false };
const FEDERATED: Method = Method::External { second_factor: false, auth_time: None };
const FEDERATED_MFA: Method = Method::External { second_factor: true, auth_time: None };

#[test]
fn methods_have_an_acr_and_amr_values() {
    use Method::{AccessPass, EmailCode, Password, RecoveryCode, SmsCode, Totp};
    for (methods, acr, amr) in [
        (&[Password][..], "sfa", "pwd"),
        (&[AccessPass], "sfa", "tap"),
        (&[FEDERATED], "sfa", "fed"),
        (&[FEDERATED_MFA], "mfa", "fed mfa"),
        (&[UNVERIFIED], "sfa", "swk"),
        (&[PASSKEY], "phr", "mfa swk user"),
        (&[HARDWARE], "phrh", "hwk mfa user"),
        (&[Password, Totp], "mfa", "mfa otp pwd"),
        (&[Password, EmailCode], "mfa", "mfa otp pwd"),
        (&[Password, SmsCode], "mfa", "mfa pwd sms"),
        (&[Password, RecoveryCode], "mfa", "mfa otp pwd"),
        (&[Password, UNVERIFIED], "mfa", "mfa pwd swk"),
        (&[AccessPass, Totp], "mfa", "mfa otp tap"),
        (&[FEDERATED, Totp], "mfa", "fed mfa otp"),
        // two of one kind are one factor
        (&[UNVERIFIED, Totp], "sfa", "otp swk"),
        (&[Totp, SmsCode], "sfa", "otp sms"),
        (&[Password, AccessPass], "sfa", "pwd tap"),
        (&[Password, FEDERATED], "sfa", "fed pwd"),
        (&[PASSKEY, Password, Totp], "phr", "mfa otp pwd swk user"),
        (&[Password, HARDWARE], "phrh", "hwk mfa pwd user"),
    ] {
        let reached = acr_of(methods.iter().copied()).map(Acr::name);
        assert_eq!(reached, Some(acr), "{methods:?}");
        assert_eq!(amr_of(methods.iter().copied()).join(" "), amr, "{methods:?}");
    }
    assert_eq!(acr_of([]), None);
    assert!(amr_of([]).is_empty());
}

#[test]
fn classes_are_sorted_and_found_by_name() {
    assert_eq!(Acr::ALL.map(Acr::name), ["sfa", "mfa", "phr", "phrh"]);
    assert!(Acr::ALL.is_sorted());
    for acr in Acr::ALL {
        assert_eq!(Acr::named(acr.name()), Some(acr));
    }
    assert_eq!(Acr::named("urn:mfa"), None);
}
