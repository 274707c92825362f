//! Why a request is refused, by the standards' error codes.

/// The error code that the client is answered: by the token endpoint, or in the answer to an authorization
/// request (RFC 6749, sections 5.2 and 4.1.2.1; OpenID Connect Core 1.0, section 3.1.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A parameter is missing, repeated or malformed (RFC 6749, section 5.2).
    InvalidRequest,
    /// Client authentication failed (RFC 6749, section 5.2).
    InvalidClient,
    /// The code, verifier or token is not valid, or of another client (RFC 6749, section 5.2).
    InvalidGrant,
    /// The client may not ask for this (RFC 6749, sections 4.1.2.1 and 5.2).
    UnauthorizedClient,
    /// The grant type is not supported (RFC 6749, section 5.2).
    UnsupportedGrantType,
    /// The scope is malformed or not the client's (RFC 6749, section 5.2).
    InvalidScope,
    /// The resource or audience is unknown or malformed (RFC 8707, section 2; RFC 8693, section 2.2.2).
    InvalidTarget,
    /// The DPoP proof is not valid (RFC 9449, section 5).
    InvalidDpopProof,
    /// The DPoP proof must hold a nonce of this server (RFC 9449, section 8).
    UseDpopNonce,
    /// The response type is not supported (RFC 6749, section 4.1.2.1).
    UnsupportedResponseType,
    /// The person or this server refused (RFC 6749, section 4.1.2.1).
    AccessDenied,
    /// The server failed (RFC 6749, section 4.1.2.1).
    ServerError,
    /// The server cannot answer now (RFC 6749, section 4.1.2.1).
    TemporarilyUnavailable,
    /// A page is needed, and none may be shown (OpenID Connect Core 1.0, section 3.1.2.6).
    InteractionRequired,
    /// A sign-in is needed, and no page may be shown (OpenID Connect Core 1.0, section 3.1.2.6).
    LoginRequired,
    /// A choice between sessions is needed, and no page may be shown (OpenID Connect Core 1.0, section 3.1.2.6).
    AccountSelectionRequired,
    /// Consent is needed, and no page may be shown (OpenID Connect Core 1.0, section 3.1.2.6).
    ConsentRequired,
    /// The request object cannot be had from its address (RFC 9101, section 7).
    InvalidRequestUri,
    /// The request object is not valid (RFC 9101, section 7).
    InvalidRequestObject,
    /// Request objects are not supported (RFC 9101, section 7).
    RequestNotSupported,
    /// Request objects by their address are not supported (RFC 9101, section 7).
    RequestUriNotSupported,
    /// The authentication that was demanded is not reached (RFC 9470, section 5; OpenID Connect Core Error
    /// Code unmet_authentication_requirements 1.0, section 2).
    UnmetAuthenticationRequirements,
    /// A protected resource demands another authentication of the person (RFC 9470, section 3).
    InsufficientUserAuthentication,
}

impl Code {
    /// The code's name in an answer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::InvalidDpopProof => "invalid_dpop_proof",
            Self::UseDpopNonce => "use_dpop_nonce",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::AccessDenied => "access_denied",
            Self::ServerError => "server_error",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::InteractionRequired => "interaction_required",
            Self::LoginRequired => "login_required",
            Self::AccountSelectionRequired => "account_selection_required",
            Self::ConsentRequired => "consent_required",
            Self::InvalidRequestUri => "invalid_request_uri",
            Self::InvalidRequestObject => "invalid_request_object",
            Self::RequestNotSupported => "request_not_supported",
            Self::RequestUriNotSupported => "request_uri_not_supported",
            Self::UnmetAuthenticationRequirements => "unmet_authentication_requirements",
            Self::InsufficientUserAuthentication => "insufficient_user_authentication",
        }
    }

    /// The HTTP status at the token endpoint (RFC 6749, section 5.2). A protected resource answers
    /// the two codes of DPoP with 401 (RFC 9449, section 7.1), and the one of RFC 9470, too. What is answered by
    /// redirect has no status of its own.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidClient => 401,
            Self::ServerError => 500,
            Self::TemporarilyUnavailable => 503,
            _ => 400,
        }
    }
}

/// A refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error code.
    pub code: Code,
    /// The text for people. It is fixed: nothing that was sent can get into an answer or a log.
    pub detail: &'static str,
}

impl Refusal {
    /// A refusal by a fixed text: printable ASCII without quotes and backslashes, as `error_description` asks
    /// for (RFC 6749, section 4.1.2.1).
    pub const fn new(code: Code, detail: &'static str) -> Self {
        Self { code, detail }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.code.name(), self.detail)
    }
}

impl std::error::Error for Refusal {}
