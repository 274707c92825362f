//! TLS of the listener, reloadable.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use chancery_auth::ClientCertificate;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};

use crate::client_certificate::ClientTrust;

/// A certificate chain and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authorities of client certificates. Where there is a file, clients are asked for a certificate.
    pub client_authorities: Option<PathBuf>,
}

/// What the files contain.
#[derive(Clone)]
pub struct Settings {
    acceptor: TlsAcceptor,
    /// Verifies client certificates, where they are requested.
    trust: Option<Arc<ClientTrust>>,
}

/// The TLS settings of new connections.
pub struct Tls {
    files: TlsFiles,
    current: RwLock<Settings>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// The files are missing or invalid.
    pub fn read(files: &TlsFiles) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { files: files.clone(), current: RwLock::new(Settings::read(files)?) }))
    }

    /// Reads the files again, for new connections. If they are invalid, the current settings stay.
    ///
    /// # Errors
    /// The files are missing or invalid.
    pub fn read_again(&self) -> io::Result<()> {
        let settings = Settings::read(&self.files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = settings;
        Ok(())
    }

    /// The current settings.
    pub fn current(&self) -> Settings {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Settings {
    fn read(files: &TlsFiles) -> io::Result<Self> {
        let trust = files.client_authorities.as_ref().map(|path| ClientTrust::read(path)).transpose()?;
        Ok(Self { acceptor: acceptor(files, trust.as_ref())?, trust })
    }

    /// Does the TLS handshake; the connection, and the client's certificate where it presented one.
    pub async fn accept(
        &self,
        tcp: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
        let stream = self.acceptor.accept(tcp).await?;
        let certificate =
            stream.get_ref().1.peer_certificates().and_then(|chain| self.trust.as_ref()?.judge(chain));
        Ok((stream, certificate))
    }
}

fn acceptor(files: &TlsFiles, trust: Option<&Arc<ClientTrust>>) -> io::Result<TlsAcceptor> {
    let wrong = |path: &PathBuf, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(&files.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let builder = ServerConfig::builder();
    let builder = match trust {
        Some(trust) => builder.with_client_cert_verifier(Arc::clone(trust) as _),
        None => builder.with_no_client_auth(),
    };
    let mut config =
        builder.with_single_cert(chain, key).map_err(|error| wrong(&files.certificate, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
