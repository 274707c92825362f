//! The public key of a certificate: SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7).

use pkcs1::RsaPublicKeyRef;
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef, der::Decode as _};

use crate::{Curve, KeyFault, PublicKey};

const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ELLIPTIC_CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const CURVES: [(ObjectIdentifier, Curve); 3] = [
    (ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"), Curve::P256),
    (ObjectIdentifier::new_unwrap("1.3.132.0.34"), Curve::P384),
    (ObjectIdentifier::new_unwrap("1.3.132.0.35"), Curve::P521),
];
const BROKEN: KeyFault = KeyFault::Malformed("the certificate's key cannot be read");

impl PublicKey {
    /// The key of a certificate, from the DER of its SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`KeyFault`]: the key is malformed, weak or of an unsupported kind.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyFault> {
        let info = SubjectPublicKeyInfoRef::from_der(der).map_err(|_| BROKEN)?;
        let key = info.subject_public_key.as_bytes().ok_or(BROKEN)?;
        if info.algorithm == pkcs1::ALGORITHM_ID {
            let rsa = RsaPublicKeyRef::from_der(key).map_err(|_| BROKEN)?;
            return Self::rsa(rsa.modulus.as_bytes().to_vec(), rsa.public_exponent.as_bytes().to_vec());
        }
        match info.algorithm.oids() {
            Ok((ED25519, None)) => Self::ed25519(key.to_vec()),
            Ok((ELLIPTIC_CURVE, Some(name))) => {
                let curve = CURVES.iter().find(|(known, _)| *known == name);
                let (_, curve) = curve.ok_or(KeyFault::Unsupported)?;
                Self::ec_point(*curve, key.to_vec())
            }
            _ => Err(KeyFault::Unsupported),
        }
    }
}
