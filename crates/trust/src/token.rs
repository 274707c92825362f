//! The signed text: a compact JSON Web Signature (RFC 7515) with its certificates.

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
        RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
        RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
    },
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_record::Timestamp;
use rustls_pki_types::CertificateDer;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Anchors, MetadataRefusal, RefusalKind, Snapshot, payload};

/// The bytes that a text may have. FIDO's had 7 MB in 2026.
pub const MAX_BYTES: usize = 32 * 1024 * 1024;
/// The bytes that a header may have: three certificates need 8 KiB.
const MAX_HEADER: usize = 64 * 1024;
const MAX_CHAIN: usize = 8;

#[derive(Deserialize)]
struct Header<'a> {
    alg: String,
    x5c: Option<Vec<String>>,
    /// The critical extensions (RFC 7515, section 4.1.11), of which none is supported.
    #[serde(borrow)]
    crit: Option<&'a RawValue>,
}

/// Verifies the text of the metadata service, and reads it.
///
/// The certificates must be in the text (`x5c`); those that it only points to (`x5u`) are not fetched. The
/// payload is read only after the signature is verified. A `nextUpdate` in the past is no reason to refuse:
/// outdated metadata is better than none. Revocation of the signer's certificates is not checked.
pub fn verify(jwt: &str, anchors: &Anchors, now: Timestamp) -> Result<Snapshot, MetadataRefusal> {
    let jwt = jwt.trim_ascii();
    if jwt.len() > MAX_BYTES {
        return Err(MetadataRefusal::new(
            RefusalKind::TooLarge,
            format!("the text is larger than {MAX_BYTES} bytes"),
        ));
    }
    let malformed = || MetadataRefusal::new(RefusalKind::Malformed, "the text is not a signed token");
    let (signed, signature) = jwt.rsplit_once('.').ok_or_else(malformed)?;
    let (header, payload) = signed.split_once('.').ok_or_else(malformed)?;
    let decoded = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed());
    if header.len() > MAX_HEADER || payload.contains('.') {
        return Err(malformed());
    }
    let header = decoded(header)?;
    let header: Header<'_> = serde_json::from_slice(&header).map_err(|_| malformed())?;
    if header.crit.is_some() {
        return Err(MetadataRefusal::new(
            RefusalKind::Malformed,
            "the text has extensions that are not known",
        ));
    }
    let algorithm = algorithm(&header.alg).ok_or_else(|| {
        MetadataRefusal::new(RefusalKind::Algorithm, "the text is not signed with an algorithm that is taken")
    })?;
    let chain = chain(header.x5c.unwrap_or_default())?;
    let key = anchors.key_of(&chain, now)?;
    UnparsedPublicKey::new(algorithm, key).verify(signed.as_bytes(), &decoded(signature)?).map_err(|_| {
        MetadataRefusal::new(RefusalKind::Signature, "the signature is not the certificate's")
    })?;
    let payload = decoded(payload)?;
    payload::read(&payload, &sha256_hex(&payload))
}

/// The accepted algorithms: those with a key pair.
fn algorithm(name: &str) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match name {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        "ES256" => &ECDSA_P256_SHA256_FIXED,
        "ES384" => &ECDSA_P384_SHA384_FIXED,
        _ => return None,
    })
}

fn chain(x5c: Vec<String>) -> Result<Vec<CertificateDer<'static>>, MetadataRefusal> {
    if x5c.len() > MAX_CHAIN {
        return Err(MetadataRefusal::new(
            RefusalKind::Certificate,
            "there are too many certificates with the signature",
        ));
    }
    let read = x5c.into_iter().map(|text| BASE64_STANDARD.decode(text).map(CertificateDer::from));
    read.collect::<Result<_, _>>().map_err(|_| {
        MetadataRefusal::new(RefusalKind::Certificate, "a certificate with the signature cannot be read")
    })
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    let sum = digest(&SHA256, bytes);
    let digits = sum.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
