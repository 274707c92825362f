//! Facts about the person's second factors and passkeys.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Method;

/// The second factors of the app, the instance and the person.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondFactors {
    /// Whether the app or the instance has an MfaInstance, usable or not.
    pub are_required: bool,
    /// The usable MfaInstances, by position: those of app and instance; where these have none, the tenant's. A
    /// proof by another one does not count.
    pub usable: Vec<UsableFactor>,
    /// Whether the person has an unused recovery code.
    pub has_recovery_code: bool,
    /// Whether the person may enrol an authenticator now.
    pub enrolment: Enrolment,
    /// Whether this browser is remembered for the person.
    pub is_remembered: bool,
    /// PasskeySatisfiesSecondFactor: whether a passkey that verified its user counts for both factors.
    pub does_passkey_satisfy: bool,
}

/// A usable MfaInstance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsableFactor {
    /// The instance.
    pub instance: Uuid,
    /// The channel of its codes.
    pub kind: CodeKind,
    /// Whether the person can prove it: has enrolled it, or has a confirmed address or number for its codes.
    pub is_enrolled: bool,
}

/// The channel of a second factor's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CodeKind {
    /// By an authenticator.
    Totp,
    /// By e-mail.
    Email,
    /// By SMS.
    Sms,
}

impl CodeKind {
    /// The method of a proof by such a code.
    pub const fn method(self) -> Method {
        match self {
            Self::Totp => Method::Totp,
            Self::Email => Method::EmailCode,
            Self::Sms => Method::SmsCode,
        }
    }
}

/// SecondFactorEnrolment, for this person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Enrolment {
    /// Not now: the person already has a second factor of the tenant. Otherwise someone who knows the password
    /// could enrol an additional one.
    Closed,
    /// In a sign-in.
    AtSignIn,
    /// In a sign-in with an access pass.
    AfterAccessPass,
}

/// A passkey that the person can use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PasskeyFacts {
    /// Whether it verifies its user.
    pub verifies_user: bool,
    /// Whether it is device-bound, and of a model that stores keys in hardware.
    pub is_hardware: bool,
}

impl PasskeyFacts {
    /// The method of a proof by this passkey.
    pub const fn method(self) -> Method {
        Method::Passkey { user_verified: self.verifies_user, hardware: self.is_hardware }
    }
}
