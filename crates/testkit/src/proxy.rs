//! A proxy between a server and its PostgreSQL that fails on demand: it cuts a connection at a chosen
//! point of a commit, goes silent, or speaks TLS for a database that cannot.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

/// The point at which a connection is cut that commits a transaction with the marker in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before anything that is sent with the commit arrives.
    Everything,
    /// Before the `COMMIT` itself arrives, after all that is sent with it.
    Commit,
    /// After the commit arrived and this many bytes of the answers returned.
    Answers(usize),
    /// After the commit arrived and all of the answers but the last byte returned.
    LastByte,
}

/// PostgreSQL's `SSLRequest`, with which a client asks whether the server speaks TLS.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// The text of a `COMMIT` message.
const COMMIT: &[u8] = b"COMMIT\0";
/// The most bytes of one read.
const CHUNK: usize = 64 << 10;

/// A proxy in front of PostgreSQL. It ends with the test.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: SocketAddr,
    /// The next cut: the marker, the point, and whether new connections are refused afterwards.
    armed: Mutex<Option<(String, Cut, bool)>>,
    /// Whether the proxy holds all bytes back.
    silent: watch::Sender<bool>,
    /// Whether new connections are refused.
    closed: watch::Sender<bool>,
    refused_connections: AtomicUsize,
}

/// How the proxy answers a request for TLS.
#[derive(Clone)]
pub enum TlsAnswer {
    /// It speaks TLS with this certificate.
    Speak(Arc<ServerConfig>),
    /// It speaks TLS from the first byte, with clients that name PostgreSQL's protocol by ALPN.
    SpeakAtOnce(Arc<ServerConfig>),
    /// It refuses TLS, as an eavesdropper would.
    Refuse,
}

impl Proxy {
    /// Starts a proxy in front of a database's server.
    pub async fn start(url: &str) -> Self {
        let (listener, shared, port) = listen(url).await;
        let accepting = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, Arc::clone(&accepting)));
            }
        });
        Self { port, shared }
    }

    /// Starts a proxy that answers requests for TLS.
    pub async fn start_with_tls(url: &str, answer: TlsAnswer) -> Self {
        let (listener, shared, port) = listen(url).await;
        let target = shared.target;
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve_tls(client, target, answer.clone()));
            }
        });
        Self { port, shared }
    }

    /// The database's URL through this proxy, with this host name.
    pub fn url(&self, database: &str, host: &str) -> String {
        let server = self.shared.target.to_string();
        database.replace(&server, &format!("{host}:{}", self.port))
    }

    /// Cuts the next connection that commits something with this marker. With `for_good`, new
    /// connections are refused afterwards until [`Proxy::open`].
    pub fn cut(&self, marker: &str, cut: Cut, for_good: bool) {
        let mut armed = self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner);
        *armed = Some((marker.to_owned(), cut, for_good));
    }

    /// Whether the cut was made.
    pub fn has_cut(&self) -> bool {
        self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Refuses new connections.
    pub fn close(&self) {
        self.shared.closed.send_replace(true);
    }

    /// The number of refused connections.
    pub fn refused_connections(&self) -> usize {
        self.shared.refused_connections.load(Ordering::Relaxed)
    }

    /// Accepts new connections again.
    pub fn open(&self) {
        self.shared.closed.send_replace(false);
    }

    /// Goes silent with the sockets open, or resumes.
    pub fn silence(&self, silent: bool) {
        self.shared.silent.send_replace(silent);
    }
}

#[expect(clippy::expect_used, reason = "a test cannot go on without it")]
async fn listen(url: &str) -> (TcpListener, Arc<Shared>, u16) {
    let server = url.split('@').nth(1).and_then(|rest| rest.split('/').next()).expect("a host");
    let target = server.parse().expect("an address of a test cluster");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let (silent, closed) = (watch::Sender::new(false), watch::Sender::new(false));
    (
        listener,
        Arc::new(Shared {
            target,
            armed: Mutex::default(),
            silent,
            closed,
            refused_connections: AtomicUsize::new(0),
        }),
        port,
    )
}

/// Forwards one connection until it ends or is cut.
async fn serve(client: TcpStream, shared: Arc<Shared>) {
    if *shared.closed.borrow() {
        shared.refused_connections.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let Ok(server) = TcpStream::connect(shared.target).await else { return };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let answers = Mutex::new(None);
    let upward = async {
        let mut held = Vec::new();
        let mut is_ours = false;
        while let Some(chunk) = read(&mut from_client, &shared).await {
            held.extend_from_slice(&chunk);
            let armed = shared.armed.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some((marker, cut, for_good)) = armed else {
                write(&mut to_server, &mut held).await?;
                continue;
            };
            is_ours |= find(&held, marker.as_bytes()).is_some();
            if !is_ours {
                write(&mut to_server, &mut held).await?;
                continue;
            }
            // statements that are new to a connection are sent before the commit
            let Some(at) = find(&held, COMMIT) else {
                write(&mut to_server, &mut held).await?;
                continue;
            };
            *shared.armed.lock().unwrap_or_else(PoisonError::into_inner) = None;
            shared.closed.send_replace(for_good);
            match cut {
                Cut::Everything => return None,
                Cut::Commit => {
                    held.truncate(at - 5);
                    write(&mut to_server, &mut held).await?;
                    return None;
                }
                cut => {
                    *answers.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut);
                    write(&mut to_server, &mut held).await?;
                }
            }
        }
        Some(())
    };
    let downward = async {
        let mut held = Vec::new();
        while let Some(chunk) = read(&mut from_server, &shared).await {
            held.extend_from_slice(&chunk);
            let cut = *answers.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(cut) = cut else {
                write(&mut to_client, &mut held).await?;
                continue;
            };
            // the commit is done once its answer is there
            let Some(at) = find(&held, COMMIT) else { continue };
            held.truncate(match cut {
                Cut::Answers(bytes) => bytes.min(held.len()),
                _ => at + COMMIT.len() - 1,
            });
            write(&mut to_client, &mut held).await?;
            return None;
        }
        Some(())
    };
    tokio::select! {
        _ = upward => {}
        _ = downward => {}
    }
}

async fn read(from: &mut (impl AsyncRead + Unpin), shared: &Shared) -> Option<Vec<u8>> {
    let mut chunk = vec![0; CHUNK];
    let length = from.read(&mut chunk).await.ok().filter(|length| *length > 0)?;
    chunk.truncate(length);
    let _ = shared.silent.subscribe().wait_for(|silent| !*silent).await;
    Some(chunk)
}

async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &mut Vec<u8>) -> Option<()> {
    to.write_all(bytes).await.ok()?;
    bytes.clear();
    Some(())
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

async fn serve_tls(mut client: TcpStream, target: SocketAddr, answer: TlsAnswer) -> Option<()> {
    if let TlsAnswer::SpeakAtOnce(config) = answer {
        let mut client = TlsAcceptor::from(config).accept(client).await.ok()?;
        client.get_ref().1.alpn_protocol().filter(|protocol| *protocol == b"postgresql")?;
        let mut server = TcpStream::connect(target).await.ok()?;
        copy_bidirectional(&mut client, &mut server).await.ok()?;
        return Some(());
    }
    let mut request = [0; 8];
    client.read_exact(&mut request).await.ok()?;
    let mut server = TcpStream::connect(target).await.ok()?;
    if request != TLS_REQUEST {
        server.write_all(&request).await.ok()?;
        copy_bidirectional(&mut client, &mut server).await.ok()?;
        return Some(());
    }
    let TlsAnswer::Speak(config) = answer else {
        client.write_all(b"N").await.ok()?;
        copy_bidirectional(&mut client, &mut server).await.ok()?;
        return Some(());
    };
    client.write_all(b"S").await.ok()?;
    let mut client = TlsAcceptor::from(config).accept(client).await.ok()?;
    copy_bidirectional(&mut client, &mut server).await.ok()?;
    Some(())
}
