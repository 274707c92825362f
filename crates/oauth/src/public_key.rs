//! Public keys of clients: kinds, verification of signatures, and thumbprints.

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
        EcdsaVerificationAlgorithm, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
        RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
        RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
    },
};

use crate::{Algorithm, KeyFault, claims::to_base64};

/// The accepted lengths of an RSA modulus, in bits.
const MODULUS_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// The accepted lengths of an RSA exponent, in bits: the limits of `aws-lc-rs`. Usual keys have 65537.
const EXPONENT_BITS: std::ops::RangeInclusive<usize> = 2..=33;
/// The first byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

/// A curve of ECDSA (RFC 7518, section 6.2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// P-256.
    P256,
    /// P-384.
    P384,
    /// P-521.
    P521,
}

impl Curve {
    /// All supported curves.
    pub const ALL: [Self; 3] = [Self::P256, Self::P384, Self::P521];

    /// The curve's registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
        }
    }

    /// The curve with a registered name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.name() == name)
    }

    /// The length of a coordinate, in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    const fn verification(self) -> &'static EcdsaVerificationAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED,
            Self::P384 => &ECDSA_P384_SHA384_FIXED,
            Self::P521 => &ECDSA_P521_SHA512_FIXED,
        }
    }
}

/// A valid public key of a supported kind and size.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublicKey {
    /// RSA: modulus and exponent, big-endian, without leading zeros.
    #[non_exhaustive]
    Rsa {
        /// The modulus.
        n: Vec<u8>,
        /// The exponent.
        e: Vec<u8>,
    },
    /// A point on a curve.
    #[non_exhaustive]
    Ec {
        /// The curve.
        curve: Curve,
        /// The point, uncompressed: `04 x y`.
        point: Vec<u8>,
    },
    /// Ed25519 (RFC 8037, section 2).
    #[non_exhaustive]
    Ed25519 {
        /// The key's 32 bytes.
        x: Vec<u8>,
    },
}

impl PublicKey {
    pub(crate) fn rsa(n: Vec<u8>, e: Vec<u8>) -> Result<Self, KeyFault> {
        // a key must have only one encoding (RFC 7518, section 2), and so one thumbprint
        if n.first() == Some(&0) || e.first() == Some(&0) {
            return Err(KeyFault::Malformed("n and e must have no leading zeros"));
        }
        if !MODULUS_BITS.contains(&bits(&n)) {
            return Err(KeyFault::Weak);
        }
        let is_odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
        if !EXPONENT_BITS.contains(&bits(&e)) || !is_odd(&e) || !is_odd(&n) || !is_rsa(&n, &e) {
            return Err(KeyFault::Malformed("n and e are no RSA key"));
        }
        Ok(Self::Rsa { n, e })
    }

    pub(crate) fn ec(curve: Curve, x: &[u8], y: &[u8]) -> Result<Self, KeyFault> {
        if x.len() != curve.size() || y.len() != curve.size() {
            return Err(KeyFault::Malformed("x and y must have the full size of the curve"));
        }
        Self::ec_point(curve, [&[UNCOMPRESSED], x, y].concat())
    }

    pub(crate) fn ec_point(curve: Curve, point: Vec<u8>) -> Result<Self, KeyFault> {
        let is_complete = point.len() == 1 + 2 * curve.size() && point.first() == Some(&UNCOMPRESSED);
        if !is_complete || ParsedPublicKey::new(curve.verification(), &point).is_err() {
            return Err(KeyFault::Malformed("x and y are no point on the curve"));
        }
        Ok(Self::Ec { curve, point })
    }

    pub(crate) fn ed25519(x: Vec<u8>) -> Result<Self, KeyFault> {
        if ParsedPublicKey::new(&ED25519, &x).is_err() {
            return Err(KeyFault::Malformed("x is no Ed25519 key"));
        }
        Ok(Self::Ed25519 { x })
    }

    /// Whether this kind of key can verify signatures of an algorithm.
    pub const fn supports(&self, algorithm: Algorithm) -> bool {
        use Algorithm as A;
        match self {
            Self::Rsa { .. } => rsa_parameters(algorithm).is_some(),
            Self::Ec { curve, .. } => matches!(
                (curve, algorithm),
                (Curve::P256, A::Es256) | (Curve::P384, A::Es384) | (Curve::P521, A::Es512)
            ),
            Self::Ed25519 { .. } => matches!(algorithm, A::EdDsa),
        }
    }

    /// Verifies a signature, if this kind of key supports the algorithm.
    pub fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.supports(algorithm) {
            return false;
        }
        let verified = match self {
            Self::Rsa { n, e } => {
                let Some(parameters) = rsa_parameters(algorithm) else { return false };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            Self::Ec { curve, point } => {
                UnparsedPublicKey::new(curve.verification(), point).verify(message, signature)
            }
            Self::Ed25519 { x } => UnparsedPublicKey::new(&ED25519, x).verify(message, signature),
        };
        verified.is_ok()
    }

    /// The canonical JWK: the required members, ordered and written as in RFC 7638, section 3.
    pub fn canonical(&self) -> String {
        match self {
            Self::Rsa { n, e } => {
                format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, to_base64(e), to_base64(n))
            }
            Self::Ec { curve, point } => {
                let (x, y) =
                    point.get(1..).unwrap_or_default().split_at_checked(curve.size()).unwrap_or_default();
                let (name, x, y) = (curve.name(), to_base64(x), to_base64(y));
                format!(r#"{{"crv":"{name}","kty":"EC","x":"{x}","y":"{y}"}}"#)
            }
            Self::Ed25519 { x } => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, to_base64(x)),
        }
    }

    /// The SHA-256 thumbprint in base64url (RFC 7638, section 3; RFC 8037, appendix A.3): `jkt`.
    pub fn thumbprint(&self) -> String {
        to_base64(digest(&SHA256, self.canonical().as_bytes()).as_ref())
    }
}

const fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn is_rsa(n: &[u8], e: &[u8]) -> bool {
    RsaPublicKeyComponents { n, e }.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256).is_ok()
}

/// The bit length of a number without leading zero bytes.
fn bits(number: &[u8]) -> usize {
    let unused = number.first().map_or(0, |first| first.leading_zeros() as usize);
    (number.len() * 8).saturating_sub(unused)
}
