//! How strong a sign-in is: the authentication context class reference.

use serde::{Deserialize, Serialize};

use crate::{FactorKind, Method};

/// The authentication context class reference (`acr`), ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Acr {
    /// One factor.
    Sfa,
    /// Two factors of different kinds, a passkey that verified its user, or a provider that is believed.
    Mfa,
    /// A passkey that verified its user: resists phishing.
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

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|acr| acr.name() == name)
    }
}

/// The class that these methods reach together; `None` without any.
pub fn acr_of(methods: impl IntoIterator<Item = Method>) -> Option<Acr> {
    let (mut reached, mut kinds) = (None, Vec::new());
    for method in methods {
        reached = reached.max(Some(alone(method)));
        kinds.push(method.kind());
    }
    let are_two = kinds.contains(&FactorKind::Knowledge) && kinds.contains(&FactorKind::Possession);
    if are_two { reached.max(Some(Acr::Mfa)) } else { reached }
}

const fn alone(method: Method) -> Acr {
    match method {
        Method::Passkey { user_verified: true, hardware: true } => Acr::Phrh,
        Method::Passkey { user_verified: true, hardware: false } => Acr::Phr,
        Method::External { second_factor: true, .. } => Acr::Mfa,
        _ => Acr::Sfa,
    }
}
