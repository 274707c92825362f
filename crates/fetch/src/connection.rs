//! Connections to checked addresses, and a pool of idle ones.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Body as _, Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use url::Host;

use crate::{Failure, tls};

const MAX_HEAD: usize = 64 * 1024;
/// The most idle connections of one owner and host, and in all.
const MAX_IDLE: (usize, usize) = (8, 256);
/// How long an idle connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The most time to drain a response, so that its connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// A connection to a checked address. It is closed when dropped.
pub struct Connection {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
    _driving: JoinSet<()>,
}

impl Connection {
    /// Connects to the first address that accepts, with TLS if a host is given. Each gets a share of the time, so that an
    /// unresponsive one leaves time for the others.
    pub async fn open(
        addresses: &[SocketAddr],
        secure: Option<(Host<&str>, &[Vec<u8>])>,
        time: Duration,
    ) -> Result<Self, Failure> {
        let shares = u32::try_from(addresses.len()).unwrap_or(u32::MAX).saturating_add(1);
        for address in addresses {
            if let Ok(Ok(tcp)) = timeout(time / shares, TcpStream::connect(address)).await {
                let stream: Box<dyn Stream> = match &secure {
                    Some((host, roots)) => Box::new(tls::secure(tcp, host, roots).await?),
                    None => Box::new(tcp),
                };
                return Self::handshake(*address, stream).await;
            }
        }
        Err(Failure::Connect)
    }

    async fn handshake(address: SocketAddr, stream: Box<dyn Stream>) -> Result<Self, Failure> {
        let handshaken = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshaken.map_err(|_| Failure::Broken)?;
        let mut driving = JoinSet::new();
        driving.spawn(async move { drop(connection.await) });
        Ok(Self { address, sender, _driving: driving })
    }

    /// Sends a request.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        self.sender.ready().await.map_err(|_| Failure::Broken)?;
        self.sender.send_request(request).await.map_err(|_| Failure::Broken)
    }
}

/// A connection with or without TLS, as one type, so that the HTTP code is compiled once.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The owner and the destination of a connection: scheme, host and port.
pub type Key = (u128, String);

/// A pool of idle connections. Each is reused only by its owner, for the same scheme, host and port, and only while its
/// address is one that the host's name resolves to and that is allowed.
#[derive(Clone, Default)]
pub struct Connections(Arc<Mutex<Idle>>);

/// Idle connections, each with its expiry.
type Idle = HashMap<Key, Vec<(Connection, Instant)>>;

impl Connections {
    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle connection for this key, to one of these addresses.
    pub(crate) fn take(&self, key: &Key, addresses: &[SocketAddr]) -> Option<Connection> {
        let mut all = self.idle();
        let own = all.get_mut(key)?;
        while let Some((connection, until)) = own.pop() {
            let is_open = until > Instant::now() && !connection.sender.is_closed();
            if is_open && addresses.contains(&connection.address) {
                return Some(connection);
            }
        }
        None
    }

    /// Returns a connection to the pool, once the response on it was drained; a long or slow one closes it.
    pub(crate) async fn put_back(
        &self,
        key: Key,
        connection: Connection,
        mut answer: Response<Incoming>,
        limit: usize,
    ) {
        let mut read = 0;
        let drain = async {
            while !answer.body().is_end_stream() {
                match answer.frame().await {
                    Some(Ok(frame)) => read += frame.data_ref().map_or(0, Bytes::len),
                    Some(Err(_)) => return false,
                    None => break,
                }
                if read > limit {
                    return false;
                }
            }
            true
        };
        if timeout(DRAIN_TIMEOUT, drain).await == Ok(true) && !connection.sender.is_closed() {
            self.add(key, connection);
        }
    }

    fn add(&self, key: Key, connection: Connection) {
        let mut all = self.idle();
        let is_first = all.is_empty();
        if all.values().map(Vec::len).sum::<usize>() >= MAX_IDLE.1 {
            // the least recently used one is closed: its owner may be gone
            let last_used = |own: &&mut Vec<(Connection, Instant)>| own.first().map(|(_, until)| *until);
            let oldest = all.values_mut().filter(|own| !own.is_empty()).min_by_key(last_used);
            drop(oldest.map(|own| own.remove(0)));
        }
        let own = all.entry(key).or_default();
        if own.len() < MAX_IDLE.0 {
            own.push((connection, Instant::now() + IDLE_TIMEOUT));
        }
        if is_first {
            tokio::spawn(self.clone().close_unused());
        }
    }

    /// Closes expired connections, until there are none.
    async fn close_unused(self) {
        loop {
            sleep(IDLE_TIMEOUT / 4).await;
            let mut all = self.idle();
            all.retain(|_, own| {
                own.retain(|(connection, until)| *until > Instant::now() && !connection.sender.is_closed());
                !own.is_empty()
            });
            if all.is_empty() {
                return;
            }
        }
    }
}
