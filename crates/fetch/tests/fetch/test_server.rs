//! A test server that sends every client the same response.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
    time::{Duration, sleep},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs::default_provider,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

/// The behaviour after a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Disconnect,
    Stall,
    KeepAlive,
}

/// Listens on this machine until it is dropped.
pub struct TestServer {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl TestServer {
    /// Answers and disconnects.
    pub async fn plain(answer: &[u8]) -> Self {
        Self::open(answer, After::Disconnect, None).await
    }

    /// Answers each request of a connection.
    pub async fn keep_alive(answer: &[u8]) -> Self {
        Self::open(answer, After::KeepAlive, None).await
    }

    /// Answers, then stays silent and keeps the connection.
    pub async fn silent_after(answer: &[u8]) -> Self {
        Self::open(answer, After::Stall, None).await
    }

    /// Answers over TLS as `localhost`; returns the root that its certificate chains to, too.
    pub async fn tls(answer: &[u8]) -> (Self, Vec<u8>) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &root).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .unwrap();
        let server = Self::open(answer, After::Disconnect, Some(TlsAcceptor::from(Arc::new(config)))).await;
        (server, root.der().to_vec())
    }

    async fn open(answer: &[u8], after: After, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let (heard, answer) = (requests.clone(), answer.to_vec());
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (heard, answer, tls) = (heard.clone(), answer.clone(), tls.clone());
                serving.spawn(async move {
                    match tls {
                        None => serve(tcp, &answer, after, &heard).await,
                        Some(tls) => {
                            if let Ok(tls) = tls.accept(tcp).await {
                                serve(tls, &answer, after, &heard).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, requests, connections, _tasks: tasks }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The heads of the requests received.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &[u8],
    after: After,
    heard: &Mutex<Vec<String>>,
) {
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            request.push(byte);
        }
        heard.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
        let _ = stream.write_all(answer).await;
        if after != After::KeepAlive {
            break;
        }
    }
    if after == After::Stall {
        sleep(Duration::from_mins(1)).await;
    }
    let _ = stream.shutdown().await;
}
