//! Uploaded certificates and private keys: read from PKCS#12, PEM or DER, checked, and signed with;
//! and the names of a client certificate, for clients that authenticate by TLS.
//!
//! Everything is pure: no clock, no files, no network, and bounded work for any bytes. Read are the facts
//! that a certificate states, and checked is that the private key is its own. Whether it is valid now, and
//! which authority it chains to, is the caller's to check.
//!
//! The cryptography is `aws-lc-rs`'s, but for 3DES and RC2, which old PKCS#12 files need. The container
//! itself is read here: a file may demand an unbounded number of key derivations, some of them inside
//! encrypted content. Only reading it step by step can bound them all by one budget.

mod algorithm;
mod contents;
mod der;
mod derivation;
mod encryption;
mod facts;
mod mutual_tls;
mod name;
mod pem;
mod pkcs12;
mod private_key;
mod public_key;
mod read;
mod refusal;

pub use algorithm::Algorithm;
pub use derivation::Iterations;
pub use facts::{Facts, facts_of};
pub use mutual_tls::{Names, matches_subject, names_of};
pub use name::normalised_name;
pub use pem::is_pem;
pub use private_key::PrivateKey;
pub use public_key::{KeyKind, PublicKey};
pub use read::{CertificateBundle, Format, read, read_within};
pub use refusal::{Part, UploadRefusal};

/// The bytes that an uploaded file may have.
pub const MAX_BYTES: usize = 1 << 20;
/// The certificates that an uploaded file may have.
pub const MAX_CERTIFICATES: usize = 16;
/// The bytes that a password may have.
pub const MAX_PASSWORD_BYTES: usize = 1024;

#[cfg(test)]
mod tests;
