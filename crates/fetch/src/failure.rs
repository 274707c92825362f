//! Why a document was not fetched.

/// Why a document was not fetched. The text of it is for an administrator, and holds nothing of
/// what came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The URL is none, or holds a user or a password, or no host.
    Url,
    /// The URL is not of a scheme that the policy takes.
    Scheme,
    /// The host has no address.
    Name,
    /// The host has only addresses that are not called.
    Address,
    /// No address answers.
    Connect,
    /// The host is not who its certificate says, or does not speak TLS.
    Tls,
    /// The answer was not 200.
    Status(u16),
    /// The answer is larger than the limit.
    TooLarge,
    /// It took longer than the limit.
    TimedOut,
    /// The answer broke off or is no HTTP.
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
