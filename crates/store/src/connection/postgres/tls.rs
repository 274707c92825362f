//! TLS to the database.

use std::{path::PathBuf, sync::Arc};

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs::default_provider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
};

/// The use of TLS with a server.
#[derive(Clone)]
pub struct Tls {
    pub check: Check,
    pub roots: Roots,
    /// The files of our client certificate and its key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Whether the handshake begins at once, without an SSLRequest.
    pub direct: bool,
}

/// The verified properties of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing: anyone in between can read and modify the traffic.
    Nothing,
    /// The chain to a trusted root.
    Chain,
    /// The chain to a trusted root, and the host's name.
    ChainAndName,
}

/// The trusted roots.
#[derive(Clone)]
pub enum Roots {
    System,
    File(PathBuf),
}

impl Tls {
    /// Whether any property of the certificate is verified.
    pub fn is_checked(&self) -> bool {
        self.check != Check::Nothing
    }

    /// Reads the files, for each connection again: certificates are renewed while the server runs.
    pub fn connector(&self) -> Result<MakeRustlsConnect, String> {
        let provider = Arc::new(default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.check {
            Check::Nothing => Arc::new(Lenient { provider: Arc::clone(&provider), chain: None }),
            Check::Chain => {
                let chain = Some(self.verifier(&provider)?);
                Arc::new(Lenient { provider: Arc::clone(&provider), chain })
            }
            Check::ChainAndName => self.verifier(&provider)?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("sslkey {}: {error}", key.display()))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| format!("sslcert: {error}"))?
            }
        };
        if self.direct {
            config.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(MakeRustlsConnect::new(config))
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Roots::System => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            Roots::File(path) => {
                for root in certificates(path)? {
                    roots.add(root).map_err(|error| format!("sslrootcert {}: {error}", path.display()))?;
                }
            }
        }
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        builder.build().map_err(|error| format!("sslrootcert: {error}"))
    }
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
    let read = read.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error))?;
    if read.is_empty() { Err(wrong(&"there is no certificate in it")) } else { Ok(read) }
}

/// A verifier that checks less of a certificate than usual, and that the server has its key.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    /// Verifies the chain; a wrong name is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // the name is verified last, after everything else
        match chain.verify_server_cert(certificate, between, name, status, now) {
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
