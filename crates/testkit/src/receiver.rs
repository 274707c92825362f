//! A receiver of webhooks on this machine: it stores the received requests, and answers as a test configures it.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// A received request.
#[derive(Clone, Debug)]
pub struct Received {
    /// The request line and the headers, in lower case names.
    pub head: String,
    /// The body.
    pub body: serde_json::Value,
    /// The body as text.
    pub text: String,
}

impl Received {
    /// A header.
    pub fn header(&self, name: &str) -> &str {
        let of = |line: &'_ str| -> bool {
            line.split_once(": ").is_some_and(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        let line = self.head.lines().find(|line| of(line)).unwrap_or_default();
        line.split_once(": ").map_or("", |(_, value)| value)
    }

    /// The type of the event.
    pub fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default()
    }

    /// The subject of the event.
    pub fn subject(&self) -> &str {
        self.body["subject"].as_str().unwrap_or_default()
    }
}

type Answers = Arc<Mutex<String>>;
type Responder = Arc<Mutex<Option<Box<dyn Fn(&Received) -> Option<String> + Send>>>>;

/// A receiver of webhooks.
pub struct Receiver {
    /// Its URL.
    pub url: String,
    got: watch::Receiver<Vec<Received>>,
    answers: Answers,
    responder: Responder,
    connections: Arc<AtomicUsize>,
}

impl Receiver {
    /// Starts a receiver that answers 200.
    #[expect(clippy::expect_used, reason = "a test cannot go on without it")]
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}/hook", listener.local_addr().expect("it has an address"));
        let (sender, got) = watch::channel(Vec::new());
        let answers: Answers = Arc::new(Mutex::new("200 OK".to_owned()));
        let responder: Responder = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let count = Arc::clone(&connections);
        let (all, shared_responder) = (Arc::clone(&answers), Arc::clone(&responder));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, answers, responder) =
                    (sender.clone(), Arc::clone(&all), Arc::clone(&shared_responder));
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move { serve(stream, &sender, &answers, &responder).await });
            }
        });
        Self { url, got, answers, responder, connections }
    }

    /// Sets the answer from now on: a status line, and perhaps headers.
    pub fn answer(&self, status: &str) {
        status.clone_into(&mut self.answers.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Answers a request by this function; as usual where it returns nothing.
    pub fn respond_with(&self, responder: impl Fn(&Received) -> Option<String> + Send + 'static) {
        *self.responder.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(responder));
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.got.borrow().clone()
    }

    /// Waits until this holds for the requests.
    pub async fn until(&mut self, holds: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let wait = self.got.wait_for(|got| holds(got));
        let is_there = matches!(tokio::time::timeout(crate::PATIENCE, wait).await, Ok(Ok(_)));
        let got = self.received();
        assert!(is_there, "the receiver got {:?} alone", got.iter().map(Received::kind).collect::<Vec<_>>());
        got
    }
}

/// Answers each request of a connection; where its answer says so, the connection ends.
async fn serve(
    mut stream: TcpStream,
    sender: &watch::Sender<Vec<Received>>,
    answers: &Answers,
    responder: &Responder,
) -> Option<()> {
    let mut read = Vec::new();
    loop {
        let received = receive(&mut stream, &mut read).await?;
        let response = responder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .and_then(|responder| responder(&received));
        let status =
            response.unwrap_or_else(|| answers.lock().unwrap_or_else(PoisonError::into_inner).clone());
        sender.send_modify(|got| got.push(received));
        if status == "nothing" {
            std::future::pending::<()>().await;
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

/// The next request of a connection.
async fn receive(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<Received> {
    let (head, begin, end) = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(read.get(..end)?).replace("\r\n", "\n");
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            break (head, end + 4, end + 4 + length.unwrap_or(0_usize));
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    };
    while read.len() < end {
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8_lossy(read.get(begin..end)?).into_owned();
    read.drain(..end);
    Some(Received { head, body: serde_json::from_str(&text).unwrap_or_default(), text })
}
