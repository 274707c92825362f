//! The person who is signing in.

use chancery_record::Timestamp;
use uuid::Uuid;

use crate::Proof;

/// The person who is signing in, and the proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identified {
    /// The platform user.
    pub person: Uuid,
    /// The tenant.
    pub tenant: Uuid,
    /// The IdpInstance of the last first factor.
    pub instance: Uuid,
    /// When the last first factor was proven, here or at the provider.
    pub auth_time: Timestamp,
    /// When it was proven to this server.
    pub proven_at: Timestamp,
    /// The person's session in this browser. Its proofs count where it needs no new first factor.
    pub session: Option<Uuid>,
    /// The session's proofs, then this flow's: first factors of instances that are offered, and all second
    /// ones. The facts about the person determine which of the latter count.
    pub proofs: Vec<Proof>,
    /// Whether the person proved something in this flow, whether it counts or not: removing an instance exempts
    /// no person from an offer.
    pub is_proven_here: bool,
    /// The instances that are offered.
    pub offered: Vec<Uuid>,
}
