//! Client certificates of the TLS handshake (RFC 8705). Any is accepted: the handshake proves possession of
//! its key, whether it chains to a trusted authority is recorded, and the client app's configuration says
//! which client app owns it.

use std::{io, path::Path, sync::Arc};

use chancery_auth::ClientCertificate;
use tokio_rustls::rustls::{
    self, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, aws_lc_rs::default_provider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use super::files;

/// Requests certificates from clients, and verifies them.
#[derive(Debug)]
pub struct ClientTrust {
    provider: Arc<CryptoProvider>,
    /// The verifier of trusted authorities; `None` where none is trusted.
    authorities: Option<Arc<dyn ClientCertVerifier>>,
}

impl ClientTrust {
    /// Reads the authorities from a file, PEM or one in DER. A file without any trusts none: then only certificates that
    /// client apps registered themselves count.
    pub fn read(path: &Path) -> io::Result<Arc<Self>> {
        let wrong = |error: &dyn std::fmt::Display| files::wrong(path, error);
        let provider = Arc::new(default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in files::certificates(path)? {
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        let authorities = if roots.is_empty() {
            None
        } else {
            let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Some(builder.build().map_err(|error| wrong(&error))?)
        };
        Ok(Arc::new(Self { provider, authorities }))
    }

    /// The certificate of a connection, and whether it chains to a trusted authority.
    pub fn check_chain(&self, chain: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
        let (own, others) = chain.split_first()?;
        let is_trusted = self
            .authorities
            .as_ref()
            .is_some_and(|authorities| authorities.verify_client_cert(own, others, UnixTime::now()).is_ok());
        Some(ClientCertificate { der: own.to_vec(), is_trusted })
    }
}

impl ClientCertVerifier for ClientTrust {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
