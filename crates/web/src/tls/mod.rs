//! TLS of the listener, reloadable.

mod client_certificate;
mod files;

use std::{
    io,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use chancery_auth::ClientCertificate;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, ServerConfig},
    server::TlsStream,
};

use self::{client_certificate::ClientTrust, files::wrong};

/// A certificate chain and its key, as files in PEM or DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authorities of client certificates. Where there is a file, clients are requested to send a certificate.
    pub client_authorities: Option<PathBuf>,
}

/// The content of the files.
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
            stream.get_ref().1.peer_certificates().and_then(|chain| self.trust.as_ref()?.check_chain(chain));
        Ok((stream, certificate))
    }
}

fn acceptor(files: &TlsFiles, trust: Option<&Arc<ClientTrust>>) -> io::Result<TlsAcceptor> {
    let (chain, key) = (files::chain(&files.certificate)?, files::key(&files.key)?);
    let builder = ServerConfig::builder();
    let builder = match trust {
        Some(trust) => builder.with_client_cert_verifier(Arc::clone(trust) as _),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            let own = files.certificate.display();
            wrong(&files.key, &format!("the private key is not that of the first certificate in {own}"))
        }
        error => wrong(&files.key, &format!("the private key cannot be used: {error}")),
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Tls, TlsFiles};

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let sample = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls/samples").join(name);
        let files = |key: &str| TlsFiles {
            certificate: sample("certificate.pem"),
            key: sample(key),
            client_authorities: None,
        };
        assert!(Tls::read(&files("key.pem")).is_ok());
        let message =
            Tls::read(&files("other-key.pem")).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains("other-key.pem: the private key is not that of"), "{message}");
    }
}
