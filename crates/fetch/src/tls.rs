//! TLS of outgoing connections.

use std::sync::{Arc, LazyLock};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        client::Resumption,
        crypto::aws_lc_rs::default_provider,
        pki_types::{CertificateDer, ServerName},
    },
};
use url::Host;

use crate::Failure;

/// The system's root certificates, read once, as they are hundreds of files.
static SYSTEM: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    // a file that cannot be read adds no root
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
});

/// The configuration without further roots, built once, as it holds all roots.
static SYSTEM_CONFIG: LazyLock<Option<Arc<ClientConfig>>> =
    LazyLock::new(|| config_with_roots(SYSTEM.clone()).ok());

fn config_with_roots(roots: RootCertStore) -> Result<Arc<ClientConfig>, Failure> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| Failure::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // a resumed session would not show its certificate again
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Performs the TLS handshake with the host on a connection.
pub(crate) async fn secure(
    tcp: TcpStream,
    host: &Host<&str>,
    extra: &[Vec<u8>],
) -> Result<TlsStream<TcpStream>, Failure> {
    let name = match host {
        Host::Domain(name) => ServerName::try_from((*name).to_owned()).map_err(|_| Failure::Tls)?,
        Host::Ipv4(address) => ServerName::IpAddress((*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress((*address).into()),
    };
    let config = if extra.is_empty() {
        SYSTEM_CONFIG.clone().ok_or(Failure::Tls)?
    } else {
        let mut roots = SYSTEM.clone();
        roots.add_parsable_certificates(extra.iter().map(|root| CertificateDer::from(root.as_slice())));
        config_with_roots(roots)?
    };
    TlsConnector::from(config).connect(name, tcp).await.map_err(|_| Failure::Tls)
}
