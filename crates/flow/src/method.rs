//! The ways to prove who one is.

use serde::{Deserialize, Serialize};

/// How something was proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Method {
    /// The password of a user store.
    Password,
    /// A temporary access pass.
    AccessPass,
    /// A passkey of a user store.
    Passkey {
        /// Whether the passkey verified its user.
        user_verified: bool,
        /// Whether it is bound to its device, and of a make that keeps keys in hardware.
        hardware: bool,
    },
    /// A sign-in at an external provider.
    External {
        /// Whether the provider says that there was a second factor. It counts while the provider is believed.
        second_factor: bool,
        /// When the person signed in there, in ms since 1970, where the provider tells.
        #[serde(default)]
        auth_time: Option<i64>,
    },
    /// A code of an authenticator (RFC 6238).
    Totp,
    /// A code that came by e-mail.
    EmailCode,
    /// A code that came by SMS.
    SmsCode,
    /// A recovery code, in place of an authenticator's.
    RecoveryCode,
}

/// What a method proves: two of different kinds are two factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FactorKind {
    /// Something that the person knows.
    Knowledge,
    /// Something that the person has.
    Possession,
}

impl Method {
    /// Whether the method tells who somebody is, and so begins a sign-in. The others only confirm it.
    pub const fn is_first(self) -> bool {
        match self {
            Self::Password | Self::AccessPass | Self::Passkey { .. } | Self::External { .. } => true,
            Self::Totp | Self::EmailCode | Self::SmsCode | Self::RecoveryCode => false,
        }
    }

    /// The kind of factor.
    pub const fn kind(self) -> FactorKind {
        match self {
            // what a provider asks for is not known here: most likely a password, so that a password of ours
            // beside it is not taken for a second factor
            Self::Password | Self::AccessPass | Self::External { .. } => FactorKind::Knowledge,
            Self::Passkey { .. } | Self::Totp | Self::EmailCode | Self::SmsCode | Self::RecoveryCode => {
                FactorKind::Possession
            }
        }
    }
}
