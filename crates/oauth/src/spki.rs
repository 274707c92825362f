//! A public key as a certificate holds it: SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7).

use crate::{Curve, KeyFault, PublicKey};

// What stands before the key itself. DER has one form for each, so it needs no parser.
const ED25519: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const P384: [u8; 23] = [
    0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81,
    0x04, 0x00, 0x22, 0x03, 0x62, 0x00,
];
const P521: [u8; 25] = [
    0x30, 0x81, 0x9b, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b,
    0x81, 0x04, 0x00, 0x23, 0x03, 0x81, 0x86, 0x00,
];
/// `rsaEncryption` with its parameters (RFC 3279, section 2.3.1).
const RSA: [u8; 15] =
    [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

impl PublicKey {
    /// The key of a certificate, from the DER of its SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// It is malformed, weak or of a kind that is not served.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyFault> {
        if let Some(x) = der.strip_prefix(&ED25519) {
            return Self::ed25519(x.to_vec());
        }
        let curves = [(Curve::P256, &P256[..]), (Curve::P384, &P384), (Curve::P521, &P521)];
        for (curve, prefix) in curves {
            if let Some(point) = der.strip_prefix(prefix) {
                return Self::ec_point(curve, point.to_vec());
            }
        }
        match element(der, SEQUENCE).and_then(|(members, _)| members.strip_prefix(&RSA)) {
            Some(bits) => {
                read_rsa(der, bits).ok_or(KeyFault::Malformed("the certificate's key cannot be read"))?
            }
            None => Err(KeyFault::Unsupported),
        }
    }
}

/// RSAPublicKey (RFC 8017, appendix A.1.1) in a string of bits: a sequence of modulus and exponent.
fn read_rsa(der: &[u8], bits: &[u8]) -> Option<Result<PublicKey, KeyFault>> {
    // nothing may follow, outside or inside
    let whole =
        |der, tag| element(der, tag).filter(|(_, rest)| rest.is_empty()).map(|(contents, _)| contents);
    whole(der, SEQUENCE)?;
    let members = whole(whole(bits, BIT_STRING)?.strip_prefix(&[0])?, SEQUENCE)?;
    let (n, rest) = element(members, INTEGER)?;
    Some(PublicKey::rsa(positive(n)?, positive(whole(rest, INTEGER)?)?))
}

/// A zero stands before a number that would be negative without it.
fn positive(number: &[u8]) -> Option<Vec<u8>> {
    let is_positive = number.first().is_some_and(|first| *first < 0x80);
    is_positive.then(|| number.strip_prefix(&[0]).unwrap_or(number).to_vec())
}

/// The contents of the element that DER begins with, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.split_first()?;
    let (short, rest) = rest.split_first()?;
    let (length, rest) = match *short {
        length @ 0..=0x7f => (usize::from(length), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        0x82 => rest
            .split_first_chunk::<2>()
            .map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?,
        _ => return None,
    };
    (*first == tag).then(|| rest.split_at_checked(length)).flatten()
}
