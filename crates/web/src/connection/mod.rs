//! One connection: HTTP/1.1 or HTTP/2, supervised while it lasts.

pub mod activity;
pub mod connections;
mod line_ends;
pub mod request_body;
pub mod shutdown;

use std::{
    convert::Infallible,
    io,
    mem::MaybeUninit,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::{
    activity::{ActiveRequest, Activity, Verdict},
    connections::Connections,
    line_ends::LineEnds,
    shutdown::ShutdownStage,
};
use crate::message::answer::{AnswerBody, Interrupted, leave_body_out};

/// The longest head, and the buffer of an answer that is not read, in bytes.
const BUFFER: usize = 64 << 10;
/// Concurrent requests on an HTTP/2 connection.
const STREAMS: u32 = 100;
/// HTTP/2 flow control windows: of one body, and of all bodies of a connection, in bytes.
const WINDOWS: (u32, u32) = (256 << 10, 1 << 20);

/// The HTTP builder for connections: the memory of each is bounded.
pub fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // `Activity` watches the times: the library's timeouts cover neither idle connections nor a stop
    builder.http1().header_read_timeout(None).max_buf_size(BUFFER);
    builder
        .http2()
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(BUFFER).unwrap_or(u32::MAX))
        .max_send_buf_size(BUFFER)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1);
    builder
}

/// Serves a connection until it ends or must be ended.
pub async fn serve_connection<I, F>(
    builder: &Builder<TokioExecutor>,
    io: I,
    connections: &Arc<Connections>,
    activity: &Arc<Activity>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = Response<AnswerBody>> + Send + 'static,
{
    let (activity_of_io, line_ends) = (Arc::clone(activity), LineEnds::default());
    let io = TokioIo::new(ObservedStream { io, activity: activity_of_io, is_shut: false, line_ends });
    let (connections, tracked) = (Arc::clone(connections), Arc::clone(activity));
    let service = service_fn(move |request: Request<Incoming>| {
        let (connections, version) = (Arc::clone(&connections), request.version());
        let is_head = request.method() == Method::HEAD;
        let active = tracked.begin_request(version);
        let answer = answer(request);
        async move {
            let mut response = answer.await;
            if connections.stage() != ShutdownStage::Open && version != Version::HTTP_2 {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            // the library omits the body of an answer to HEAD over HTTP/1.1 alone
            if is_head && version == Version::HTTP_2 {
                leave_body_out(&mut response);
            }
            active.begin();
            Ok::<_, Infallible>(response.map(|body| TrackedBody { body, active }))
        }
    });
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut timer = Activity::timer();
    loop {
        let verdict = tokio::select! {
            biased;
            outcome = connection.as_mut() => {
                if let Err(error) = outcome {
                    tracing::debug!(error, "connection ended");
                }
                return;
            }
            verdict = std::future::poll_fn(|context| activity.poll(&mut timer, context)) => verdict,
        };
        match verdict {
            Verdict::GoAway => connection.as_mut().graceful_shutdown(),
            Verdict::End(reason) => {
                tracing::debug!(reason, "connection ended by this side");
                return;
            }
        }
    }
}

/// A connection's stream; reports traffic to its `Activity`.
struct ObservedStream<I> {
    io: I,
    activity: Arc<Activity>,
    is_shut: bool,
    line_ends: LineEnds,
}

impl<I: AsyncRead + Unpin> AsyncRead for ObservedStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(rest) = self.line_ends.replacement() {
            buffer.put_slice(rest.get(..buffer.remaining()).unwrap_or(rest));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(self.poll_io(context, buffer))?;
        if let Some(new) = buffer.filled_mut().get_mut(before..) {
            self.line_ends.watch(new);
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + Unpin> ObservedStream<I> {
    fn poll_io(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.activity.read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> ObservedStream<I> {
    fn note<T>(&self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.activity.wrote(outcome.is_ready());
        outcome
    }

    fn note_bytes(&self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &outcome {
            self.activity.took(*bytes);
        }
        self.note(outcome)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ObservedStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write(context, bytes);
        self.note_bytes(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.note_bytes(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.io).poll_flush(context);
        self.note(outcome)
    }

    /// Closes this side and reads on for a while: closing a socket with unread input resets the connection,
    /// and the peer may lose the answer.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            ready!(Pin::new(&mut self.io).poll_shutdown(context))?;
            self.is_shut = true;
            self.activity.shut();
        }
        let mut bytes = [MaybeUninit::uninit(); 8192];
        loop {
            let mut buffer = ReadBuf::uninit(&mut bytes);
            let outcome = ready!(self.poll_io(context, &mut buffer));
            if outcome.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// An answer's body; reports to `Activity` when the connection takes a chunk.
struct TrackedBody {
    body: AnswerBody,
    active: ActiveRequest,
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Interrupted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.active.part(frame.is_ready());
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
