//! By which methods somebody signed in: the authentication methods references.

use crate::{Acr, Method, acr_of};

/// The words of `amr` (RFC 8176; `fed` and `tap` are our own) for these methods, each once, sorted.
pub fn amr_of(methods: impl IntoIterator<Item = Method>) -> Vec<&'static str> {
    let methods: Vec<Method> = methods.into_iter().collect();
    let mut words: Vec<&str> = methods.iter().flat_map(|method| words_of(*method)).copied().collect();
    if acr_of(methods) >= Some(Acr::Mfa) {
        words.push("mfa");
    }
    words.sort_unstable();
    words.dedup();
    words
}

const fn words_of(method: Method) -> &'static [&'static str] {
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
