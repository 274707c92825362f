//! A proof of a sign-in: the person, the method and the time.

use chancery_record::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Method, moment::Moment};

/// A proof that the caller has just verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The platform user.
    pub person: Uuid,
    /// The IdpInstance of a first factor, the MfaInstance of a second one. A recovery code has the instance of
    /// the authenticator that it replaces.
    pub instance: Uuid,
    /// How it was proven.
    pub method: Method,
    /// The passkey or second factor that was used, where there is one: sessions that used it end with it.
    pub credential: Option<Uuid>,
}

/// A proof of a flow or of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The platform user.
    pub person: Uuid,
    /// The IdpInstance of a first factor, the MfaInstance of a second one.
    pub instance: Uuid,
    /// How it was proven.
    pub method: Method,
    /// The passkey or second factor that was used, where there is one.
    pub credential: Option<Uuid>,
    /// When it was proven.
    #[serde(with = "Moment")]
    pub at: Timestamp,
}

impl Proof {
    /// When the person authenticated: a provider may have done this earlier.
    pub fn auth_time(&self) -> Timestamp {
        match self.method {
            Method::External { auth_time: Some(time), .. } => self.at.min(Timestamp(time)),
            _ => self.at,
        }
    }

    /// Whether the time of authentication is known. A provider that does not state it may have authenticated
    /// the person long before.
    pub const fn has_auth_time(&self) -> bool {
        !matches!(self.method, Method::External { auth_time: None, .. })
    }

    /// What was proven at this time.
    pub(crate) const fn new(proven: Proven, at: Timestamp) -> Self {
        let Proven { person, instance, method, credential } = proven;
        Self { person, instance, method, credential, at }
    }
}
