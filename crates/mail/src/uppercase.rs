//! A connection to a mail server that converts the first replies to upper case: the library recognizes an offer of TLS in no other case,
//! and would send in the clear.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// The greeting, and the answer to `EHLO`. Later replies may be encrypted, and stay unchanged.
const REPLIES: usize = 2;

/// The connection.
#[derive(Debug)]
pub struct UppercaseReplies {
    stream: TcpStream,
    /// Replies that are still converted.
    left: usize,
    /// The column of the next byte in its line.
    column: usize,
    /// Whether the line ends its reply.
    is_last: bool,
}

impl UppercaseReplies {
    pub const fn new(stream: TcpStream) -> Self {
        Self { stream, left: REPLIES, column: 0, is_last: false }
    }

    fn raise(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.left == 0 {
                return;
            }
            byte.make_ascii_uppercase();
            if *byte == b'\n' {
                self.left -= usize::from(self.is_last);
                self.column = 0;
                continue;
            }
            if self.column == 3 {
                // a line that others follow has a hyphen after its code (RFC 5321, section 4.2.1)
                self.is_last = *byte != b'-';
            }
            self.column += 1;
        }
    }
}

impl AsyncTokioStream for UppercaseReplies {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for UppercaseReplies {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if let Some(new) = buffer.filled_mut().get_mut(before..) {
            self.raise(new);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UppercaseReplies {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
