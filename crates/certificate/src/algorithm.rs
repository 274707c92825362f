//! The algorithms to sign by.

/// An algorithm to sign by. The names are JOSE's (RFC 7518, RFC 8037), where an ECDSA signature is r and s
/// side by side; `Es256Der` encodes it in ASN.1 instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// ECDSA with P-521 and SHA-512.
    Es512,
    /// ECDSA with P-256 and SHA-256, in ASN.1.
    Es256Der,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// Ed25519.
    EdDsa,
}
