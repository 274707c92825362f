//! Refusals of texts of the metadata service.

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The text is larger than [`crate::MAX_BYTES`].
    TooLarge,
    /// The text is no signed token, or a stored snapshot cannot be read.
    Malformed,
    /// The text is not signed with an accepted algorithm.
    Algorithm,
    /// The signer's certificate does not chain to an anchor, or not at this time.
    Certificate,
    /// The signer's certificate is for another name.
    Name,
    /// The signature is not the certificate's.
    Signature,
    /// The signed payload is no metadata.
    Payload,
}

/// A refused text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRefusal {
    /// The kind.
    pub kind: RefusalKind,
    /// The text for an administrator; it contains nothing of the refused text.
    pub detail: String,
}

impl MetadataRefusal {
    pub(crate) fn new(kind: RefusalKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

impl std::fmt::Display for MetadataRefusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.detail)
    }
}

impl std::error::Error for MetadataRefusal {}
