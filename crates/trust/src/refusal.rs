//! Why a text is refused.

/// What is wrong with a text of the metadata service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It is larger than [`crate::MAX_BYTES`].
    TooLarge,
    /// It is no signed token, or what was kept cannot be read.
    Malformed,
    /// It is not signed with an algorithm that is taken.
    Algorithm,
    /// The signer's certificate does not lead to an anchor, or not at this time.
    Certificate,
    /// The signer's certificate is for another name.
    Name,
    /// The signature is not the certificate's.
    Signature,
    /// What is signed is no metadata.
    Payload,
}

/// A refused text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub kind: Kind,
    /// The same for an administrator; holds nothing of the text.
    pub detail: String,
}

impl Refusal {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.detail)
    }
}

impl std::error::Error for Refusal {}
