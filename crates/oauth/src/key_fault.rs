//! The faults of a key or a set of keys.

use std::fmt;

/// The fault of a key or a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// The text is longer than [`MAX_LENGTH`](crate::MAX_LENGTH).
    TooLong,
    /// The text is not JSON, or a member is repeated.
    NotJson,
    /// The array `keys` is missing.
    NotASet,
    /// There are more keys than [`MAX_KEYS`](crate::MAX_KEYS).
    TooMany,
    /// No key is of a supported kind.
    Empty,
    /// A member is missing or malformed; with the explanation.
    Malformed(&'static str),
    /// The key has private members: it is disclosed, so that its owner must generate a new one.
    Private,
    /// The key is symmetric.
    Symmetric,
    /// The RSA modulus has fewer than 2048 or more than 8192 bits.
    Weak,
    /// Two keys have the same `kid`.
    TwiceNamed,
    /// The kind of key or the curve is not supported.
    Unsupported,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "is longer than 256 KiB",
            Self::NotJson => "is no JSON, or has a member twice",
            Self::NotASet => "is no JWK set: there is no array keys",
            Self::TooMany => "has more than 100 keys",
            Self::Empty => "has no key that can be used: RSA, EC on P-256, P-384 or P-521, Ed25519",
            Self::Malformed(detail) => detail,
            Self::Private => {
                "holds a private key: it is not secret any more, so make a new one and send only its public part"
            }
            Self::Symmetric => "is a symmetric key: send a public one",
            Self::Weak => "is an RSA key of less than 2048 or more than 8192 bits",
            Self::TwiceNamed => "has the kid of another key of the set",
            Self::Unsupported => "is of a kind or on a curve that is not served",
        })
    }
}

/// A fault with the position of the key in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyProblem {
    /// The key's index in `keys`, from 0; none if the set itself has the fault.
    pub position: Option<usize>,
    /// The fault.
    pub fault: KeyFault,
}

impl From<KeyFault> for KeyProblem {
    fn from(fault: KeyFault) -> Self {
        Self { position: None, fault }
    }
}

impl fmt::Display for KeyProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(formatter, "/keys/{position}: {}", self.fault),
            None => self.fault.fmt(formatter),
        }
    }
}

impl std::error::Error for KeyProblem {}
