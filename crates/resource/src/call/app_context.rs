//! What all operations of a server share.

use std::sync::atomic::AtomicU32;

use crate::{AuditSigner, CursorKey, MasterKey, Memory, MetadataSource, Service};

/// What argon2id spends on a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub iterations: u32,
    /// Lanes.
    pub parallelism: u32,
}

/// Which identities must be proven before one takes the other's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proofs {
    /// Neither.
    #[default]
    None,
    /// The one that is replaced.
    Current,
    /// The one that takes its place.
    Replacement,
    /// Both.
    Both,
}

impl Proofs {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Current, Self::Replacement, Self::Both];

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Current => "current",
            Self::Replacement => "replacement",
            Self::Both => "both",
        }
    }

    /// Whether the identity that is replaced must be proven.
    pub const fn of_current(self) -> bool {
        matches!(self, Self::Current | Self::Both)
    }

    /// Whether the identity that takes its place must be proven.
    pub const fn of_replacement(self) -> bool {
        matches!(self, Self::Replacement | Self::Both)
    }
}

/// What operations share: the keys they work with, made once at the start.
pub struct AppContext {
    /// The master key.
    pub master: MasterKey,
    /// What hashing a password costs.
    pub hashing: Hashing,
    /// All operations, by service.
    pub services: &'static [&'static Service],
    /// Whether a program of the operator's delivers reset tokens where there is no mail server.
    pub has_reset_program: bool,
    /// Whether the server asks clients for certificates, and so can be shown one.
    pub asks_for_certificates: bool,
    /// Which identities must be proven before one takes the other's place.
    pub proofs: Proofs,
    /// Signs audit entries.
    pub audit_signer: AuditSigner,
    /// Makes and opens cursors.
    pub cursors: CursorKey,
    /// Runs through the identifiers of one millisecond, so that ids made one after another are
    /// in order.
    pub counter: AtomicU32,
    /// What links to this server begin with, without a slash at the end.
    pub public_url: String,
    /// Where metadata of authenticators come from.
    pub metadata: MetadataSource,
    /// The snapshot of them that was read last.
    pub snapshot: Memory,
}
