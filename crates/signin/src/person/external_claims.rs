//! The claims of an external identity provider.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Claims about a person from an external identity provider.
#[derive(Clone, Serialize, Deserialize)]
pub struct ExternalClaims {
    /// The person.
    pub person: Uuid,
    /// The instance.
    pub instance: Uuid,
    /// Types and values of the claims.
    pub claims: Vec<(String, String)>,
}
