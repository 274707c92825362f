//! Why a certificate or a key is refused.

use std::fmt::{Display, Formatter, Result};

/// The part of an upload that a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The PKCS#12 file.
    File,
    /// A certificate.
    Certificate,
    /// The private key.
    PrivateKey,
}

/// The reason why an upload is refused. The text is for people, says what to do, and contains nothing of the upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UploadRefusal {
    /// The file is larger than [`crate::MAX_BYTES`].
    TooLarge,
    /// The part is damaged, or is something else.
    Broken(Part),
    /// The PEM text is damaged at this line, counted from 1.
    BrokenPem(usize),
    /// There is no certificate.
    NoCertificate,
    /// There is no private key where one was given.
    NoPrivateKey,
    /// There are more certificates than [`crate::MAX_CERTIFICATES`].
    TooManyCertificates,
    /// There are several certificates, no private key, and nothing else that identifies one.
    AmbiguousCertificate,
    /// There is more than one private key.
    SeveralPrivateKeys,
    /// The PKCS#12 file has no MAC, so that changes to it would go unnoticed.
    NoMac,
    /// The upload is protected by a password, and none was given.
    PasswordMissing,
    /// The password does not decrypt the upload.
    WrongPassword,
    /// The password is no UTF-8, or over [`crate::MAX_PASSWORD_BYTES`].
    UnusablePassword,
    /// Decrypting the upload takes too many iterations of key derivation.
    TooMuchWork,
    /// The upload is protected in a way that is not supported.
    UnsupportedProtection,
    /// The private key is not of a supported kind.
    UnsupportedKey,
    /// The RSA key has only this many bits.
    WeakKey(u32),
    /// The private key is not the certificate's.
    KeyDoesNotFit,
    /// The key cannot sign with this algorithm.
    UnsuitedAlgorithm,
}

impl Display for UploadRefusal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let text = match self {
            Self::TooLarge => {
                "the file is larger than 1 MiB: upload only the certificate, its chain and its key"
            }
            Self::Broken(Part::File) => {
                "the file cannot be read as PKCS#12 in DER: upload it again, or export it anew with openssl pkcs12"
            }
            Self::Broken(Part::Certificate) => {
                "a certificate cannot be read as X.509 in DER: export it again, and check the format"
            }
            Self::Broken(Part::PrivateKey) => {
                "the private key cannot be read: give it as PKCS#8, SEC1 or PKCS#1, in PEM or DER"
            }
            Self::BrokenPem(line) => {
                return write!(
                    formatter,
                    "the PEM text cannot be read at line {line}: copy it whole, with its BEGIN and END lines"
                );
            }
            Self::NoCertificate => "there is no certificate in the file: add it, and check the format",
            Self::NoPrivateKey => {
                "there is no private key where one was given: give the key, or leave it out"
            }
            Self::TooManyCertificates => {
                "there are more than 16 certificates: upload only the certificate and its chain"
            }
            Self::AmbiguousCertificate => {
                "the file has several certificates and no private key: upload the one that is meant"
            }
            Self::SeveralPrivateKeys => "there is more than one private key: give only the certificate's",
            Self::NoMac => {
                "the file has no MAC, so that nobody could see that it was changed: export it with one"
            }
            Self::PasswordMissing => "it is protected by a password: give the password",
            Self::WrongPassword => "the password does not open it: check the password",
            Self::UnusablePassword => "the password must be text of at most 1,024 bytes in UTF-8",
            Self::TooMuchWork => {
                "it takes too many iterations to open, alone or with the others of the call: export it with fewer, e.g. 100,000"
            }
            Self::UnsupportedProtection => {
                "it is protected in a way that is not supported: export it with AES-256, PBKDF2 and a MAC of \
                 HMAC-SHA-256, e.g. with openssl pkcs12 or openssl pkcs8 -topk8"
            }
            Self::UnsupportedKey => {
                "the private key is not of a kind that is supported: use RSA from 2,048 to 8,192 bits, P-256, \
                 P-384, P-521 or Ed25519"
            }
            Self::WeakKey(bits) => {
                return write!(formatter, "the RSA key has {bits} bits: use one with at least 2,048");
            }
            Self::KeyDoesNotFit => {
                "the private key does not fit the certificate: give the key that the certificate was made for"
            }
            Self::UnsuitedAlgorithm => "the key cannot sign with this algorithm: choose one for its kind",
        };
        formatter.write_str(text)
    }
}

impl std::error::Error for UploadRefusal {}
