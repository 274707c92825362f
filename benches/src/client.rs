//! A small HTTP/1.1 client: one connection, kept open, with requests as bytes. It does little, so that it takes little
//! CPU from the server on the same machine.

use std::{net::SocketAddr, time::Instant};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::fault::{Context as _, Result, fault};

const BUFFER: usize = 64 << 10;

/// Takes the bytes of an answer's body as they come.
pub type Sink<'a> = &'a mut (dyn FnMut(&[u8]) + Send);

/// A connection.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The index in the buffer of the first unread byte.
    at: usize,
    head: Vec<u8>,
    /// The time at which the head of the last answer was complete.
    pub head_at: Instant,
}

impl Client {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context(format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(BUFFER),
            at: 0,
            head: Vec::with_capacity(512),
            head_at: Instant::now(),
        })
    }

    /// Sends a request and reads its answer; returns the status.
    pub async fn send(&mut self, request: &[u8], sink: Sink<'_>) -> Result<u16> {
        self.stream.write_all(request).await?;
        self.read_head().await?;
        self.head_at = Instant::now();
        let status = self.status()?;
        if self.header("transfer-encoding").is_some() {
            self.read_chunks(sink).await?;
        } else if let Some(length) = self.header("content-length") {
            let length = length.parse().context("content-length")?;
            self.read_exactly(length, sink).await?;
        } else if status != 204 && status != 304 {
            return Err(fault("an answer tells no length"));
        }
        Ok(status)
    }

    /// Sends a request; returns the status and the body of its answer.
    pub async fn fetch(&mut self, request: &[u8]) -> Result<(u16, Vec<u8>)> {
        let mut body = Vec::new();
        let status = self.send(request, &mut |bytes| body.extend_from_slice(bytes)).await?;
        Ok((status, body))
    }

    /// A header of the last answer.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).next()
    }

    /// All headers of one name of the last answer.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let head = std::str::from_utf8(&self.head).unwrap_or_default();
        head.lines().filter_map(move |line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn status(&self) -> Result<u16> {
        let status = self.head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
        status.and_then(|digits| digits.parse().ok()).ok_or_else(|| fault("an answer has no status"))
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    async fn fill(&mut self) -> Result<()> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        } else if self.buffer.capacity() - self.buffer.len() < 4096 {
            self.buffer.drain(..self.at);
            self.at = 0;
            self.buffer.reserve(BUFFER / 2);
        }
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(fault("the server closed the connection within an answer"));
        }
        Ok(())
    }

    async fn read_head(&mut self) -> Result<()> {
        loop {
            let end = self.unread().windows(4).position(|bytes| bytes == b"\r\n\r\n");
            if let Some(end) = end {
                self.head.clear();
                self.head.extend_from_slice(self.buffer.get(self.at..self.at + end).unwrap_or_default());
                self.at += end + 4;
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn read_exactly(&mut self, mut left: usize, sink: Sink<'_>) -> Result<()> {
        while left > 0 {
            if self.unread().is_empty() {
                self.fill().await?;
            }
            let chunk = self.unread();
            let chunk = chunk.get(..left).unwrap_or(chunk);
            sink(chunk);
            left -= chunk.len();
            self.at += chunk.len();
        }
        Ok(())
    }

    async fn read_line(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.unread().windows(2).position(|bytes| bytes == b"\r\n") {
                let line = String::from_utf8_lossy(self.unread().get(..end).unwrap_or_default()).into_owned();
                self.at += end + 2;
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    async fn read_chunks(&mut self, sink: Sink<'_>) -> Result<()> {
        loop {
            let line = self.read_line().await?;
            let length = usize::from_str_radix(line.trim(), 16).context("the length of a chunk")?;
            self.read_exactly(length, sink).await?;
            self.read_line().await?;
            if length == 0 {
                return Ok(());
            }
        }
    }
}
