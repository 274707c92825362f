//! The methods of a sign-in: the authentication methods references.

use crate::{Acr, Method, acr_of};

/// The values of `amr` (RFC 8176; `fed` and `tap` are our own) for these methods, each once, sorted.
pub fn amr_of(methods: impl IntoIterator<Item = Method>) -> Vec<&'static str> {
    let methods: Vec<Method> = methods.into_iter().collect();
    let mut values: Vec<&str> = methods.iter().flat_map(|method| values_of(*method)).copied().collect();
    if acr_of(methods) >= Some(Acr::Mfa) {
        values.push("mfa");
    }
    values.sort_unstable();
    values.dedup();
    values
}

const fn values_of(method: Method) -> &'static [&'static str] {
    match method {
        Method::Password => &["pwd"],
        Method::AccessPass => &["tap"],
        Method::Passkey { user_verified: true, hardware: true } => &["hwk", "user"],
        Method::Passkey { user_verified: true, hardware: false } => &["swk", "user"],
        Method::Passkey { user_verified: false, hardware: true } => &["hwk"],
        Method::Passkey { user_verified: false, hardware: false } => &["swk"],
        Method::External { .. } => &["fed"],
        Method::Totp | Method::EmailCode | Method::RecoveryCode => &["otp"],
        Method::SmsCode => &["sms"],
    }
}
