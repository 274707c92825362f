//! Connections to addresses that were checked, and those that are kept open for what comes next.

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
/// The most connections that are kept for one owner and host, and in all.
const MOST: (usize, usize) = (8, 256);
/// How long one is kept that is not used.
const IDLE: Duration = Duration::from_secs(4);
/// How long the rest of an answer is waited for, so that its connection can be kept.
const REST: Duration = Duration::from_millis(250);

/// A connection to an address that was checked. It ends when it is dropped.
pub struct Connection {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
    _driving: JoinSet<()>,
}

impl Connection {
    /// Connects to the first address that answers, with TLS where a host is named. Each gets a share of the time, so that a
    /// silent one leaves time for the others.
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
                return Self::over(*address, stream).await;
            }
        }
        Err(Failure::Connect)
    }

    async fn over(address: SocketAddr, stream: Box<dyn Stream>) -> Result<Self, Failure> {
        let shaken = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|_| Failure::Broken)?;
        let mut driving = JoinSet::new();
        driving.spawn(async move { drop(connection.await) });
        Ok(Self { address, sender, _driving: driving })
    }

    /// Sends a request.
    pub async fn ask(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        self.sender.ready().await.map_err(|_| Failure::Broken)?;
        self.sender.send_request(request).await.map_err(|_| Failure::Broken)
    }
}

/// A connection with or without TLS: of one type, so that the code of the protocol is there once.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// For whom a connection is kept, and to where: scheme, host and port.
pub type Key = (u128, String);

/// Connections that are kept open for a moment. Each is used again by its owner alone, for the same scheme, host and port, and
/// only while its address is one that the host's name leads to and that is allowed.
#[derive(Clone, Default)]
pub struct Connections(Arc<Mutex<Kept>>);

/// Connections, each with until when it is kept.
type Kept = HashMap<Key, Vec<(Connection, Instant)>>;

impl Connections {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is kept for this, to one of these addresses.
    pub(crate) fn take(&self, key: &Key, addresses: &[SocketAddr]) -> Option<Connection> {
        let mut all = self.kept();
        let own = all.get_mut(key)?;
        while let Some((connection, until)) = own.pop() {
            let is_open = until > Instant::now() && !connection.sender.is_closed();
            if is_open && addresses.contains(&connection.address) {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection, once the answer on it was read to its end; where that is long or slow, it is closed.
    pub(crate) async fn keep(
        &self,
        key: Key,
        connection: Connection,
        (mut answer, limit): (Response<Incoming>, usize),
    ) {
        let mut read = 0;
        let rest = async {
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
        if timeout(REST, rest).await == Ok(true) && !connection.sender.is_closed() {
            self.add(key, connection);
        }
    }

    fn add(&self, key: Key, connection: Connection) {
        let mut all = self.kept();
        let is_first = all.is_empty();
        if all.values().map(Vec::len).sum::<usize>() >= MOST.1 {
            // the one that was used least lately makes room: it may be of an owner who is gone
            let used = |own: &&mut Vec<(Connection, Instant)>| own.first().map(|(_, until)| *until);
            let oldest = all.values_mut().filter(|own| !own.is_empty()).min_by_key(used);
            drop(oldest.map(|own| own.remove(0)));
        }
        let own = all.entry(key).or_default();
        if own.len() < MOST.0 {
            own.push((connection, Instant::now() + IDLE));
        }
        if is_first {
            tokio::spawn(self.clone().close_unused());
        }
    }

    /// Closes connections that were not used for a while, until there are none.
    async fn close_unused(self) {
        loop {
            sleep(IDLE / 4).await;
            let mut all = self.kept();
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
