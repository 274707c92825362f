//! Listening: connections are accepted within limits, with or without TLS, and ended in order at the stop.

use std::{
    io::{
        self,
        ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted},
    },
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use chancery_auth::ClientCertificate;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{rt::TokioExecutor, server::conn::auto::Builder};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout_at},
};

use super::forwarded::caller;
use crate::{
    App, Tls,
    connection::{
        activity::MOMENT,
        builder,
        connections::{Connections, Slot},
        serve_connection,
        shutdown::ShutdownStage,
    },
    message::{
        answer::AnswerBody,
        peer::{ListenerRole, Peer},
    },
};

/// How long requests in progress are waited for at the stop.
const STOP_TIME: Duration = Duration::from_secs(30);
/// Connections that may wait to be accepted when the server stops.
const BACKLOG: usize = 1024;

/// A bound address.
pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
    serves: ListenerRole,
}

impl Listener {
    /// Binds the address; with TLS if there are settings of it.
    ///
    /// # Errors
    /// The address is in use.
    pub async fn bind(address: SocketAddr, tls: Option<Arc<Tls>>) -> io::Result<Self> {
        Ok(Self { tcp: TcpListener::bind(address).await?, tls, serves: ListenerRole::All })
    }

    /// Serves only metrics at this address, without a token.
    #[must_use]
    pub fn for_metrics(self) -> Self {
        Self { serves: ListenerRole::Metrics, ..self }
    }

    /// Serves no console at this address.
    #[must_use]
    pub fn without_console(self) -> Self {
        Self { serves: ListenerRole::AllButConsole, ..self }
    }

    /// Takes the TLS of another listener, so that both are reloaded at once.
    #[must_use]
    pub fn with_tls_of(self, other: &Self) -> Self {
        Self { tls: other.tls.clone(), ..self }
    }

    /// The address, with the port that was chosen.
    ///
    /// # Errors
    /// The system cannot report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// The listener's TLS, whose files can be reloaded.
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    /// `http` or `https`.
    pub const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Serves until `stop` resolves with the time to drain, then finishes running requests.
pub async fn serve(app: Arc<App>, listener: Listener, stop: impl Future<Output = Duration> + Send) {
    let (answering, serves) = (Arc::clone(&app), listener.serves);
    let answer = move |peer: IpAddr, mut request: Request<Incoming>| {
        let address = caller(peer, request.headers(), &answering.trusted_proxies);
        request.extensions_mut().insert(Peer { address, trace: OnceLock::new(), serves });
        let app = Arc::clone(&answering);
        // boxed: the future of a request is moved several times on its way
        Box::pin(async move {
            match serves {
                ListenerRole::Metrics => app.handle_metrics(request).await,
                ListenerRole::All | ListenerRole::AllButConsole => app.handle(request).await,
            }
        })
    };
    let host = Host::new(Arc::clone(&app.connections), &listener, answer);
    let drain = tokio::select! {
        drain = stop => drain,
        () = host.receive() => Duration::ZERO,
    };
    app.connections.advance_to(ShutdownStage::Draining);
    host.receive_until(Instant::now() + drain.max(MOMENT)).await;
    drop(host);
    drop(listener);
    app.connections.advance_to(ShutdownStage::Closing);
    if !app.connections.emptied(STOP_TIME).await {
        tracing::warn!("requests still ran when their time was up");
    }
}

/// Accepts connections at an address, and answers them with the peer's address, which may be a proxy's.
pub(crate) struct Host<'a, A> {
    connections: Arc<Connections>,
    builder: Builder<TokioExecutor>,
    listener: &'a Listener,
    answer: A,
}

impl<'a, A, F> Host<'a, A>
where
    A: Fn(IpAddr, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<AnswerBody>> + Send + 'static,
{
    pub(crate) fn new(connections: Arc<Connections>, listener: &'a Listener, answer: A) -> Self {
        Self { connections, builder: builder(), listener, answer }
    }

    /// Accepts connections until this future is dropped.
    pub(crate) async fn receive(&self) {
        loop {
            self.handle_accepted(self.listener.tcp.accept().await).await;
        }
    }

    /// Accepts connections until `end`, and those in the backlog by then: clients that connected in time are answered.
    async fn receive_until(&self, end: Instant) {
        let mut late = 0;
        while late < BACKLOG
            && let Ok(accepted) = timeout_at(end, self.listener.tcp.accept()).await
        {
            self.handle_accepted(accepted).await;
            late += usize::from(Instant::now() >= end);
        }
    }

    async fn handle_accepted(&self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        let (tcp, peer) = match accepted {
            Ok(accepted) => accepted,
            // the connection was already closed by its client
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) => return,
            Err(error) => {
                if is_shortage(&error) {
                    // another connection must end first
                    self.connections.evict_one();
                }
                sleep(Duration::from_millis(50)).await;
                return;
            }
        };
        let Some(slot) = self.connections.admit(peer.ip()) else { return };
        let _ = tcp.set_nodelay(true);
        let connection = AcceptedConnection {
            connections: Arc::clone(&self.connections),
            builder: self.builder.clone(),
            address: peer.ip(),
            answer: self.answer.clone(),
            slot,
        };
        match &self.listener.tls {
            None => tokio::spawn(connection.serve(tcp, None)),
            Some(tls) => tokio::spawn(connection.handshake(Arc::clone(tls), tcp)),
        };
    }
}

/// Whether the system has no descriptor or no memory for one more connection.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    short.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// An accepted connection.
struct AcceptedConnection<A> {
    connections: Arc<Connections>,
    builder: Builder<TokioExecutor>,
    address: IpAddr,
    answer: A,
    slot: Slot,
}

impl<A, F> AcceptedConnection<A>
where
    A: Fn(IpAddr, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<AnswerBody>> + Send + 'static,
{
    async fn handshake(self, tls: Arc<Tls>, tcp: TcpStream) {
        let settings = tls.current();
        let Some(handshake) = self.slot.activity.in_time(settings.accept(tcp)).await else { return };
        match handshake {
            Ok((stream, certificate)) => {
                self.slot.activity.handshake_done();
                self.serve(stream, certificate).await;
            }
            Err(error) => tracing::debug!(%error, "TLS handshake failed"),
        }
    }

    async fn serve<I>(self, io: I, certificate: Option<ClientCertificate>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (answer, address) = (self.answer, self.address);
        let answer = move |mut request: Request<Incoming>| {
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            answer(address, request)
        };
        serve_connection(&self.builder, io, &self.connections, &self.slot.activity, answer).await;
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use rustix::io::Errno;

    use super::is_shortage;

    #[test]
    fn only_a_shortage_ends_other_connections() {
        let short = |errno: Errno| is_shortage(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!([Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].into_iter().all(short));
        assert!(![Errno::CONNABORTED, Errno::PERM, Errno::PROTO, Errno::INTR].into_iter().any(short));
    }
}
