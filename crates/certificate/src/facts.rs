//! The facts that a certificate states.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chancery_record::Timestamp;
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _, time::ASN1Time};

use crate::{
    KeyKind, MAX_BYTES, Part, PublicKey, UploadRefusal,
    name::{DistinguishedName, push_hex},
};

/// The facts that a certificate states. None of them is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// SHA-1 over the certificate, as upper-case hex.
    pub thumbprint: String,
    /// SHA-256 over the certificate, as base64url: JOSE's `x5t#S256`.
    pub thumbprint_sha256: String,
    /// The time from which the certificate is valid.
    pub valid_from: Timestamp,
    /// The time until which the certificate is valid.
    pub valid_to: Timestamp,
    /// The issuer's name in the text of RFC 4514.
    pub issuer: String,
    /// The serial number, as upper-case hex without leading zeros.
    pub serial_number: String,
    /// The subject's name in the text of RFC 4514.
    pub subject: String,
    /// The kind of the public key.
    pub key: KeyKind,
    /// The public key with its algorithm, in DER; see [`PublicKey::from_spki`].
    pub subject_public_key_info: Vec<u8>,
}

/// Reads the facts of a certificate in DER.
pub fn facts_of(der: &[u8]) -> Result<Facts, UploadRefusal> {
    facts(der, &parse(der)?)
}

/// Parses a certificate in DER, without trailing bytes.
pub fn parse(der: &[u8]) -> Result<X509Certificate<'_>, UploadRefusal> {
    if der.len() > MAX_BYTES {
        return Err(UploadRefusal::TooLarge);
    }
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        _ => Err(UploadRefusal::Broken(Part::Certificate)),
    }
}

pub fn facts(der: &[u8], certificate: &X509Certificate<'_>) -> Result<Facts, UploadRefusal> {
    let broken = UploadRefusal::Broken(Part::Certificate);
    let name = |raw| DistinguishedName::from_der(raw).map(|name| name.to_text()).ok_or(broken);
    let spki = certificate.public_key().raw;
    Ok(Facts {
        thumbprint: hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, der).as_ref()),
        thumbprint_sha256: URL_SAFE_NO_PAD.encode(digest(&SHA256, der)),
        valid_from: timestamp(certificate.validity().not_before),
        valid_to: timestamp(certificate.validity().not_after),
        issuer: name(certificate.issuer().as_raw())?,
        serial_number: serial_number(certificate.raw_serial()),
        subject: name(certificate.subject().as_raw())?,
        key: PublicKey::from_spki(spki).map_or(KeyKind::Other, |key| key.kind()),
        subject_public_key_info: spki.to_vec(),
    })
}

/// The timestamp of a moment, or the nearest one that RFC 3339 can write: years 0001 to 9999.
fn timestamp(time: ASN1Time) -> Timestamp {
    let milliseconds = time.timestamp().saturating_mul(1000);
    Timestamp(milliseconds.clamp(-62_135_596_800_000, 253_402_300_799_999))
}

fn serial_number(bytes: &[u8]) -> String {
    match crate::der::without_zeros(bytes) {
        [] => "00".to_owned(),
        bytes => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        push_hex(*byte, &mut text);
    }
    text
}
