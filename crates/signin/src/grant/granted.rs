//! The content of a grant to a client app: the facts in its tokens.

use chancery_auth::Confirmation;
use chancery_oauth::OFFLINE_ACCESS;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::claims_request::RequestedClaims;
use crate::{client_app::Application, person::IdentityKey};

/// The content of a grant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Granted {
    /// The platform user.
    pub person: Uuid,
    /// The tenant.
    pub tenant: Uuid,
    /// The tenant whose issuer was requested; `None`: the installation. Codes and refresh tokens are valid only
    /// there.
    pub issuing: Option<Uuid>,
    /// The instance of the last first factor.
    pub instance: Uuid,
    /// The session; none for a device.
    pub session: Option<Uuid>,
    /// When the person proved a first factor, in seconds since 1970.
    pub auth_time: i64,
    /// When that was proven to this server, in ms since 1970; none in a code or a grant from before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_at: Option<i64>,
    /// `acr`
    pub acr: String,
    /// `amr`
    pub amr: Vec<String>,
    /// The scope.
    pub scope: String,
    /// The requested resources (RFC 8707); empty: those of the client app.
    pub resources: Vec<String>,
    /// The key or certificate that a public client app's refresh tokens are bound to (RFC 9449, section 5).
    pub cnf: Option<Confirmation>,
    /// The claims requested by name.
    #[serde(default)]
    pub requested: RequestedClaims,
    /// Claims of the external identity provider at the start of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_claims: Vec<(String, String)>,
}

impl Granted {
    /// The identity of the last first factor.
    pub const fn identity(&self) -> IdentityKey {
        IdentityKey { person: self.person, instance: self.instance }
    }

    /// Whether the scope has this word.
    pub fn has(&self, word: &str) -> bool {
        self.scope.split(' ').any(|one| one == word)
    }

    /// Whether the grant to this client app includes a refresh token. Without `offline_access` the grant needs a
    /// session, with which it ends.
    pub fn has_refresh_token(&self, application: &Application) -> bool {
        self.has(OFFLINE_ACCESS) || (application.refreshes_in_session && self.session.is_some())
    }
}
