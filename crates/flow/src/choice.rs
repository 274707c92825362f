//! The ways to confirm who one is, to choose among.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{CodeKind, Method, Proven};

/// A way to confirm who one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Choice {
    /// By a code of this MfaInstance.
    Code {
        /// The MfaInstance.
        instance: Uuid,
        /// How its codes reach the person.
        kind: CodeKind,
    },
    /// By a passkey.
    Passkey,
    /// By a recovery code, in place of a code of this MfaInstance.
    RecoveryCode {
        /// The MfaInstance.
        instance: Uuid,
    },
}

impl Choice {
    /// Whether this was proven by this choice. Passkeys are of the instances that are offered.
    pub(crate) fn is_met_by(self, proven: &Proven, offered: &[Uuid]) -> bool {
        match (self, proven.method) {
            (Self::Code { instance, kind }, method) => proven.instance == instance && method == kind.method(),
            (Self::RecoveryCode { instance }, Method::RecoveryCode) => proven.instance == instance,
            (Self::Passkey, Method::Passkey { .. }) => offered.contains(&proven.instance),
            _ => false,
        }
    }
}

/// Choices, of which there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choices {
    /// The one that the page shows: the person's choice, else the first.
    pub chosen: Choice,
    /// All of them, in the order to be shown.
    pub all: Vec<Choice>,
}

impl Choices {
    /// These choices; `None` where there are none.
    pub(crate) fn new(all: Vec<Choice>, preferred: Option<Choice>) -> Option<Self> {
        let chosen = preferred.filter(|choice| all.contains(choice)).or_else(|| all.first().copied())?;
        Some(Self { chosen, all })
    }
}
