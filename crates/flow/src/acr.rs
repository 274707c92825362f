//! The strength of a sign-in: the authentication context class reference.

use serde::{Deserialize, Serialize};

use crate::{FactorKind, Method};

/// The authentication context class reference (`acr`), ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Acr {
    /// One factor.
    Sfa,
    /// Two factors of different kinds, a passkey that verified its user, or a provider whose second factor is
    /// trusted.
    Mfa,
    /// A passkey that verified its user: phishing-resistant.
    Phr,
    /// The same with keys in hardware.
    Phrh,
}

impl Acr {
    /// All of them, ascending.
    pub const ALL: [Self; 4] = [Self::Sfa, Self::Mfa, Self::Phr, Self::Phrh];

    /// The value of the claim.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sfa => "sfa",
            Self::Mfa => "mfa",
            Self::Phr => "phr",
            Self::Phrh => "phrh",
        }
    }

    /// The class with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|acr| acr.name() == name)
    }
}

/// The class that these methods reach together; `None` without any method.
pub fn acr_of(methods: impl IntoIterator<Item = Method>) -> Option<Acr> {
    let (mut reached, mut kinds) = (None, Vec::new());
    for method in methods {
        reached = reached.max(Some(acr_of_method(method)));
        kinds.push(method.kind());
    }
    let has_two_kinds = kinds.contains(&FactorKind::Knowledge) && kinds.contains(&FactorKind::Possession);
    if has_two_kinds { reached.max(Some(Acr::Mfa)) } else { reached }
}

const fn acr_of_method(method: Method) -> Acr {
    match method {
        Method::Passkey { user_verified: true, hardware: true } => Acr::Phrh,
        Method::Passkey { user_verified: true, hardware: false } => Acr::Phr,
        Method::External { second_factor: true, .. } => Acr::Mfa,
        _ => Acr::Sfa,
    }
}
