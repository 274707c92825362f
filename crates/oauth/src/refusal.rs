//! Why a request is refused, by the standards' error codes.

/// The error code that the client is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A parameter is missing, repeated or malformed (RFC 6749, section 5.2).
    InvalidRequest,
    /// Client authentication failed (RFC 6749, section 5.2).
    InvalidClient,
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
}

impl Code {
    /// The code's name in an answer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::InvalidDpopProof => "invalid_dpop_proof",
            Self::UseDpopNonce => "use_dpop_nonce",
        }
    }

    /// The HTTP status at the token endpoint (RFC 6749, section 5.2). A protected resource answers
    /// the two codes of DPoP with 401 (RFC 9449, section 7.1).
    pub const fn status(self) -> u16 {
        if matches!(self, Self::InvalidClient) { 401 } else { 400 }
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
    pub(crate) const fn new(code: Code, detail: &'static str) -> Self {
        Self { code, detail }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.code.name(), self.detail)
    }
}

impl std::error::Error for Refusal {}
