//! Connections: accepted up to a bound, with or without TLS, and let go in order at the end.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use chancery_auth::ClientCertificate;
use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};

use crate::{App, client_certificate::ClientTrust};

/// How long a client may take to send the head of a request, and how long a connection may idle
/// before it.
const HEAD_TIME: Duration = Duration::from_secs(75);
/// How long a TLS handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// How long requests that run are waited for at the end.
const STOP_TIME: Duration = Duration::from_secs(30);

/// A certificate chain and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authorities of client certificates. Where there is a file, clients are asked for one.
    pub client_authorities: Option<PathBuf>,
}

/// An address that is listened on.
pub struct Listener {
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
    /// Judges certificates of clients, where they are asked for.
    trust: Option<Arc<ClientTrust>>,
    metrics_only: bool,
}

impl Listener {
    /// Listens; with TLS if there are files for it.
    ///
    /// # Errors
    /// The address is taken, or the files are not what they should be.
    pub async fn bind(address: SocketAddr, tls: Option<&TlsFiles>) -> io::Result<Self> {
        let authorities = tls.and_then(|files| files.client_authorities.as_ref());
        let trust = authorities.map(|path| ClientTrust::read(path)).transpose()?;
        let tls = tls.map(|files| acceptor(files, trust.as_ref())).transpose()?;
        Ok(Self { tcp: TcpListener::bind(address).await?, tls, trust, metrics_only: false })
    }

    /// The same address, for the metrics alone, to anybody who reaches it.
    #[must_use]
    pub fn for_metrics(self) -> Self {
        Self { metrics_only: true, ..self }
    }

    /// The address, with the port that was chosen.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// `http` or `https`
    pub const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
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

/// The address that a request comes from.
#[derive(Clone, Copy)]
pub struct Peer(pub std::net::IpAddr);

/// A connection.
enum Either {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Either {
    /// The certificate that the client showed, where it was asked for one.
    fn certificate(&self, trust: Option<&ClientTrust>) -> Option<ClientCertificate> {
        match self {
            Self::Plain(_) => None,
            Self::Secure(tls) => trust?.judge(tls.get_ref().1.peer_certificates()?),
        }
    }
}

/// Serves until `stop` is done, then finishes what runs.
pub async fn serve(app: Arc<App>, listener: Listener, stop: impl Future<Output = ()> + Send) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).pipeline_flush(true);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(256).keep_alive_interval(Some(HEAD_TIME));
    let places = Arc::new(Semaphore::new(app.limits.connections));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    let metrics_only = listener.metrics_only;
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.tcp.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let Ok((tcp, peer)) = accepted else {
            // out of file descriptors: others must end first
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = tcp.set_nodelay(true);
        let (app, tls, builder, watcher) =
            (Arc::clone(&app), listener.tls.clone(), builder.clone(), graceful.watcher());
        let trust = listener.trust.clone();
        tokio::spawn(async move {
            let _place = place;
            let stream = match tls {
                None => Either::Plain(tcp),
                Some(tls) => match handshake(&tls, tcp).await {
                    Some(stream) => Either::Secure(stream),
                    None => return,
                },
            };
            let certificate = stream.certificate(trust.as_deref());
            let service = service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(Peer(peer.ip()));
                if let Some(certificate) = &certificate {
                    request.extensions_mut().insert(certificate.clone());
                }
                let app = Arc::clone(&app);
                async move {
                    let answer = if metrics_only {
                        app.handle_metrics(&request).await
                    } else {
                        app.handle(request).await
                    };
                    Ok::<_, std::convert::Infallible>(answer)
                }
            });
            let outcome = match stream {
                Either::Plain(tcp) => {
                    watcher.watch(builder.serve_connection(TokioIo::new(tcp), service)).await
                }
                Either::Secure(tls) => {
                    watcher.watch(builder.serve_connection(TokioIo::new(*tls), service)).await
                }
            };
            if let Err(error) = outcome {
                tracing::debug!(error, "connection ended");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(STOP_TIME, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests still ran when their time was up");
    }
}

async fn handshake(tls: &TlsAcceptor, tcp: TcpStream) -> Option<Box<TlsStream<TcpStream>>> {
    let done = tokio::time::timeout(HANDSHAKE_TIME, tls.accept(tcp)).await;
    done.ok()?.inspect_err(|error| tracing::debug!(%error, "TLS handshake failed")).ok().map(Box::new)
}
