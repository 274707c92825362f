//! The methods to confirm an identity, to choose among.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{CodeKind, Method, Proven};

/// A method to confirm an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Choice {
    /// By a code of this MfaInstance.
    Code {
        /// The MfaInstance.
        instance: Uuid,
        /// The channel of its codes.
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
    /// Whether this proof satisfies this choice. Passkeys belong to the instances that are offered.
    pub(crate) fn is_satisfied_by(self, proven: &Proven, offered: &[Uuid]) -> bool {
        match (self, proven.method) {
            (Self::Code { instance, kind }, method) => proven.instance == instance && method == kind.method(),
            (Self::RecoveryCode { instance }, Method::RecoveryCode) => proven.instance == instance,
            (Self::Passkey, Method::Passkey { .. }) => offered.contains(&proven.instance),
            _ => false,
        }
    }
}

/// A list of at least one choice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choices {
    /// The choice that the page shows: the person's, else the first.
    pub chosen: Choice,
    /// All choices, in display order.
    pub all: Vec<Choice>,
}

impl Choices {
    /// These choices; `None` where there are none.
    pub(crate) fn new(all: Vec<Choice>, preferred: Option<Choice>) -> Option<Self> {
        let chosen = preferred.filter(|choice| all.contains(choice)).or_else(|| all.first().copied())?;
        Some(Self { chosen, all })
    }
}
