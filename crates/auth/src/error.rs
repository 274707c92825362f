//! Error responses of the OAuth endpoints (RFC 6749, section 5.2).

use chancery_oauth::FEDERATED_IDENTITIES;
use serde_json::json;

/// An error response of an OAuth endpoint.
#[derive(Clone, Debug)]
pub struct OAuthError {
    /// The HTTP status.
    pub status: u16,
    /// The error code, such as `invalid_client`.
    pub error: &'static str,
    /// The text for people, with the remedy.
    pub description: &'static str,
    /// Whether an unknown code or token was presented, which may be a guess.
    pub is_unknown_credential: bool,
    /// Why the store cannot serve it, for the log.
    pub cause: Option<chancery_store::Error>,
}

impl OAuthError {
    /// An error response with this status.
    pub const fn new(status: u16, error: &'static str, description: &'static str) -> Self {
        Self { status, error, description, is_unknown_credential: false, cause: None }
    }

    /// `invalid_grant`: the code or token is not known here.
    pub fn unknown_grant(description: &'static str) -> Self {
        Self { is_unknown_credential: true, ..Self::new(400, "invalid_grant", description) }
    }

    /// The response body in JSON.
    pub fn body(&self) -> String {
        json!({ "error": self.error, "error_description": self.description }).to_string()
    }
}

/// `invalid_request`: the request is malformed.
pub const fn invalid(description: &'static str) -> OAuthError {
    OAuthError::new(400, "invalid_request", description)
}

/// Client authentication failed. One response for every reason, so that none reveals which clients exist.
pub const INVALID_CLIENT: OAuthError = OAuthError::new(
    401,
    "invalid_client",
    "Unknown client, another method than it is set to, a wrong, expired or used proof, or it may not get tokens.",
);

const UNAVAILABLE: OAuthError =
    OAuthError::new(503, "temporarily_unavailable", "The storage cannot serve this now.");

/// The assertion is not issued by the client itself. This depends on the assertion only, not on the client.
pub const FOREIGN_ASSERTION: OAuthError = OAuthError::new(401, "invalid_client", FEDERATED_IDENTITIES.detail);

impl From<chancery_store::Error> for OAuthError {
    fn from(error: chancery_store::Error) -> Self {
        if let chancery_store::Error::Internal(_) = &error {
            tracing::error!(%error, "an OAuth endpoint failed");
            return Self::new(500, "server_error", "The server failed. What is wrong is in its log.");
        }
        Self { cause: Some(error), ..UNAVAILABLE }
    }
}

impl From<chancery_resource::Problem> for OAuthError {
    fn from(problem: chancery_resource::Problem) -> Self {
        if problem.status() == 503 {
            return Self { cause: problem.cause, ..UNAVAILABLE };
        }
        tracing::error!(detail = problem.detail, cause = ?problem.cause, "an OAuth endpoint failed");
        Self::new(500, "server_error", "The server failed. What is wrong is in its log.")
    }
}

impl From<chancery_oauth::ProtocolError> for OAuthError {
    fn from(refusal: chancery_oauth::ProtocolError) -> Self {
        Self::new(refusal.code.status(), refusal.code.name(), refusal.detail)
    }
}
