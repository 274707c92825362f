//! Why a document was not fetched.

/// Why a document was not fetched. The text is for an administrator, and contains nothing of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The URL is malformed or too long, has a user or a password, or has no host.
    Url,
    /// The URL's scheme is not one that the policy allows.
    Scheme,
    /// The host has no address.
    Name,
    /// The host has no address that the policy allows.
    Address,
    /// No address answers.
    Connect,
    /// The host's certificate is not trusted or not its own, or it does not speak TLS.
    Tls,
    /// The answer was not 200.
    Status(u16),
    /// The answer is larger than the limit.
    TooLarge,
    /// Fetching took longer than the limit.
    TimedOut,
    /// The answer broke off or is not HTTP.
    Broken,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Url => "the URL cannot be used",
            Self::Scheme => "the URL must begin with https://",
            Self::Name => "the host has no address",
            Self::Address => {
                "the host is not on the public internet: CHANCERY_PRIVATE_DESTINATIONS names networks to allow"
            }
            Self::Connect => "the host cannot be reached",
            Self::Tls => "no trusted TLS connection can be made to the host",
            Self::Status(status) => return write!(formatter, "the host answered {status} instead of 200"),
            Self::TooLarge => "the answer is too large",
            Self::TimedOut => "the host took too long",
            Self::Broken => "the host's answer broke off",
        })
    }
}

impl std::error::Error for Failure {}
