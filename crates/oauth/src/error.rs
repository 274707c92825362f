//! OAuth errors.

/// An error code of the token endpoint or an authorization response (RFC 6749, sections 5.2 and 4.1.2.1; OpenID Connect
/// Core 1.0, section 3.1.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// A parameter is missing, repeated or malformed (RFC 6749, section 5.2).
    InvalidRequest,
    /// Client authentication failed (RFC 6749, section 5.2).
    InvalidClient,
    /// The code, verifier or token is invalid, or of another client (RFC 6749, section 5.2).
    InvalidGrant,
    /// The client is not authorized for this request (RFC 6749, sections 4.1.2.1 and 5.2).
    UnauthorizedClient,
    /// The grant type is not supported (RFC 6749, section 5.2).
    UnsupportedGrantType,
    /// The scope is malformed or not granted to the client (RFC 6749, section 5.2).
    InvalidScope,
    /// The resource or audience is unknown or malformed (RFC 8707, section 2; RFC 8693, section 2.2.2).
    InvalidTarget,
    /// The DPoP proof is invalid (RFC 9449, section 5).
    InvalidDpopProof,
    /// The DPoP proof must have a nonce of this server (RFC 9449, section 8).
    UseDpopNonce,
    /// The response type is not supported (RFC 6749, section 4.1.2.1).
    UnsupportedResponseType,
    /// The user or this server denied the request (RFC 6749, section 4.1.2.1).
    AccessDenied,
    /// The server failed (RFC 6749, section 4.1.2.1).
    ServerError,
    /// The server is temporarily unavailable (RFC 6749, section 4.1.2.1).
    TemporarilyUnavailable,
    /// A page is required, and `prompt` forbids it (OpenID Connect Core 1.0, section 3.1.2.6).
    InteractionRequired,
    /// A sign-in is required, and `prompt` forbids pages (OpenID Connect Core 1.0, section 3.1.2.6).
    LoginRequired,
    /// A choice between sessions is required, and `prompt` forbids pages (OpenID Connect Core 1.0, section 3.1.2.6).
    AccountSelectionRequired,
    /// Consent is required, and `prompt` forbids pages (OpenID Connect Core 1.0, section 3.1.2.6).
    ConsentRequired,
    /// The request object cannot be read from its URI (RFC 9101, section 7).
    InvalidRequestUri,
    /// The request object is invalid (RFC 9101, section 7).
    InvalidRequestObject,
    /// Request objects are not supported (RFC 9101, section 7).
    RequestNotSupported,
    /// Request objects by URI are not supported (RFC 9101, section 7).
    RequestUriNotSupported,
    /// The demanded authentication was not met (RFC 9470, section 5; OpenID Connect Core Error Code
    /// unmet_authentication_requirements 1.0, section 2).
    UnmetAuthenticationRequirements,
    /// A protected resource demands another authentication of the user (RFC 9470, section 3).
    InsufficientUserAuthentication,
}

impl ErrorCode {
    /// The value of `error` in a response.
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

    /// The HTTP status at the token endpoint (RFC 6749, section 5.2). A protected resource returns 401 for the two codes of
    /// DPoP (RFC 9449, section 7.1) and the one of RFC 9470. A redirect has no status of its own.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidClient => 401,
            Self::ServerError => 500,
            Self::TemporarilyUnavailable => 503,
            _ => 400,
        }
    }
}

/// An error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    /// The error code.
    pub code: ErrorCode,
    /// The description for people. It is fixed, so that no input gets into a response or a log.
    pub detail: &'static str,
}

impl ProtocolError {
    /// An error with a fixed text: printable ASCII without quotes and backslashes, as `error_description` requires (RFC
    /// 6749, section 4.1.2.1).
    pub const fn new(code: ErrorCode, detail: &'static str) -> Self {
        Self { code, detail }
    }
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.code.name(), self.detail)
    }
}

impl std::error::Error for ProtocolError {}
