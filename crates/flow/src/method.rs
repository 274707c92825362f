//! The authentication methods.

use serde::{Deserialize, Serialize};

/// The method of a proof.
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
        /// Whether it is device-bound, and of a model that stores keys in hardware.
        hardware: bool,
    },
    /// A sign-in at an external provider.
    External {
        /// Whether the provider states that there was a second factor. It counts while the provider is trusted.
        second_factor: bool,
        /// When the person signed in there, in ms since 1970, where the provider states it.
        #[serde(default)]
        auth_time: Option<i64>,
    },
    /// A code of an authenticator (RFC 6238).
    Totp,
    /// A code sent by e-mail.
    EmailCode,
    /// A code sent by SMS.
    SmsCode,
    /// A recovery code, instead of an authenticator's.
    RecoveryCode,
}

/// The kind of factor: two of different kinds are two factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FactorKind {
    /// Something that the person knows.
    Knowledge,
    /// Something that the person has.
    Possession,
}

impl Method {
    /// Whether the method identifies a person, and so can start a sign-in. The others only confirm an identity.
    pub const fn is_first(self) -> bool {
        match self {
            Self::Password | Self::AccessPass | Self::Passkey { .. } | Self::External { .. } => true,
            Self::Totp | Self::EmailCode | Self::SmsCode | Self::RecoveryCode => false,
        }
    }

    /// The kind of factor.
    pub const fn kind(self) -> FactorKind {
        match self {
            // what a provider requires is unknown here: most likely a password, so a local password besides it
            // is not counted as a second factor
            Self::Password | Self::AccessPass | Self::External { .. } => FactorKind::Knowledge,
            Self::Passkey { .. } | Self::Totp | Self::EmailCode | Self::SmsCode | Self::RecoveryCode => {
                FactorKind::Possession
            }
        }
    }
}
