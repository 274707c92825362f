//! The trust anchors of the metadata service: root certificates and the signer's name.

use std::time::Duration;

use chancery_record::Timestamp;
use rustls_pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime, pem::PemObject as _};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, Error, KeyUsage, anchor_from_trusted_cert};

use crate::{MetadataRefusal, RefusalKind};

/// GlobalSign Root CA - R3, which FIDO's certificates chained to until August 2026. SHA-256
/// `cbb522d7b7f127ad6a0113865bdf1cd4102e7d0759af635a7cf4720dc963c53b`.
const R3: &[u8] = include_bytes!("../data/globalsign-root-r3.der");
/// GlobalSign Root R46, which they have chained to since. SHA-256
/// `4fa3126d8d3a11d1c4855a4f807cbad6cf919d3a5a88b03bea2c6372d93c40c9`.
const R46: &[u8] = include_bytes!("../data/globalsign-root-r46.der");
/// The name of FIDO's signing certificate. The roots also certify many web sites: without the name, anyone
/// with a certificate for their own site could sign.
const NAME: &str = "mds.fidoalliance.org";

/// The roots that the signer's certificate must chain to, and the name that it must be for.
#[derive(Clone, Debug)]
pub struct Anchors {
    roots: Vec<TrustAnchor<'static>>,
    name: String,
}

impl Anchors {
    /// FIDO's own anchors.
    pub fn pinned() -> Self {
        let roots = [R3, R46].into_iter().filter_map(|root| anchor(root).ok());
        Self { roots: roots.collect(), name: NAME.to_owned() }
    }

    /// An anchor of one root (DER or PEM) and the signer's name: a test's, or a private mirror's.
    pub fn of(root: &[u8], name: &str) -> Result<Self, MetadataRefusal> {
        let refused = |error: &dyn std::fmt::Display| {
            MetadataRefusal::new(RefusalKind::Certificate, format!("the root is no certificate: {error}"))
        };
        let root = root.strip_prefix("\u{feff}".as_bytes()).unwrap_or(root);
        let root = if root.windows(11).any(|part| part == b"-----BEGIN ") {
            CertificateDer::from_pem_slice(root).map_err(|error| refused(&error))?
        } else {
            CertificateDer::from(root)
        };
        let root = anchor(&root).map_err(|error| refused(&error))?;
        Ok(Self { roots: vec![root], name: name.to_owned() })
    }

    /// Checks that a chain, the signer's certificate first, ends in one of the roots at this time, and is for
    /// the name. Returns the signer's public key (DER).
    pub(crate) fn key_of(
        &self,
        chain: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<Vec<u8>, MetadataRefusal> {
        let refused = |error: Error| MetadataRefusal::new(RefusalKind::Certificate, words(&error));
        let Some((leaf, others)) = chain.split_first() else {
            return Err(MetadataRefusal::new(
                RefusalKind::Certificate,
                "no certificate is given with the signature",
            ));
        };
        let leaf = EndEntityCert::try_from(leaf).map_err(refused)?;
        leaf.verify_for_usage(
            ALL_VERIFICATION_ALGS,
            &self.roots,
            others,
            unix_time(now),
            KeyUsage::server_auth(),
            None,
            None,
        )
        .map_err(refused)?;
        let name = ServerName::try_from(self.name.as_str()).map_err(|_| {
            MetadataRefusal::new(RefusalKind::Name, "the name that is expected of the signer is none")
        })?;
        leaf.verify_is_valid_for_subject_name(&name).map_err(|_| {
            MetadataRefusal::new(
                RefusalKind::Name,
                format!("the signer's certificate is not for {}", self.name),
            )
        })?;
        Ok(leaf.subject_public_key_info().to_vec())
    }
}

fn anchor(der: &[u8]) -> Result<TrustAnchor<'static>, Error> {
    anchor_from_trusted_cert(&CertificateDer::from(der)).map(|anchor| anchor.to_owned())
}

/// The time as Unix time; one before 1970 becomes 1970, when no certificate is valid either.
fn unix_time(now: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(now.0).unwrap_or(0)))
}

fn words(error: &Error) -> String {
    match error {
        Error::CertExpired { .. } => "a certificate of the signer has expired".to_owned(),
        Error::CertNotValidYet { .. } => "a certificate of the signer is not valid yet".to_owned(),
        Error::UnknownIssuer => "the signer's certificate does not lead to a root that is trusted".to_owned(),
        other => format!("the signer's certificate is not valid: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_pinned_roots_match_their_checksums() {
        assert_eq!(Anchors::pinned().roots.len(), 2);
        for (root, sum) in [
            (R3, "cbb522d7b7f127ad6a0113865bdf1cd4102e7d0759af635a7cf4720dc963c53b"),
            (R46, "4fa3126d8d3a11d1c4855a4f807cbad6cf919d3a5a88b03bea2c6372d93c40c9"),
        ] {
            assert_eq!(crate::token::sha256_hex(root), sum);
        }
    }

    #[test]
    fn an_invalid_root_is_refused() {
        for invalid in
            [&b"no certificate"[..], b"", b"-----BEGIN CERTIFICATE-----", b"-----BEGIN NOTHING-----"]
        {
            assert_eq!(Anchors::of(invalid, "a.example").unwrap_err().kind, RefusalKind::Certificate);
        }
    }

    #[test]
    fn a_root_is_read_as_der_or_as_pem() {
        use base64::{Engine as _, prelude::BASE64_STANDARD};
        let pem = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            BASE64_STANDARD.encode(R46)
        );
        assert_eq!(Anchors::of(pem.as_bytes(), NAME).unwrap().roots, Anchors::of(R46, NAME).unwrap().roots);
    }
}
