//! An SMTP server for tests: it retains the mails that it accepts, and refuses, stalls or disconnects by a
//! script.

mod session;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use mail_parser::MessageParser;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs::default_provider,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

use crate::MailServer;

/// Whether the sink encrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// No encryption.
    None,
    /// STARTTLS is offered.
    StartTls,
    /// TLS from the first byte.
    Tls,
}

/// The configuration of a sink.
#[derive(Clone, Copy, Debug)]
pub struct SinkConfig {
    /// The sink's encryption.
    pub security: Security,
    /// The user and password that the sink requires, if any.
    pub credentials: Option<(&'static str, &'static str)>,
    /// The mechanisms of `AUTH` that the sink offers, e.g. `PLAIN LOGIN`.
    pub mechanisms: &'static str,
    /// Whether it names its extensions in lower case.
    pub is_quiet: bool,
    /// The prompts for user and password.
    pub prompts: [&'static str; 2],
}

impl SinkConfig {
    /// Accepts every mail, without encryption and credentials.
    pub const PLAIN: Self = Self {
        security: Security::None,
        credentials: None,
        mechanisms: "PLAIN LOGIN",
        is_quiet: false,
        prompts: ["Username:", "Password:"],
    };
}

/// A point of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The server's greeting.
    Greeting,
    /// `EHLO`
    Hello,
    /// `AUTH`
    Auth,
    /// `MAIL FROM`
    From,
    /// `RCPT TO`
    Recipient,
    /// `DATA`
    Data,
    /// While the mail is transferred; it is not retained.
    Content,
    /// After the mail was transferred; it is retained unless it is refused.
    End,
}

/// The fault at a step.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// This reply, e.g. `451 4.7.1 later`.
    Reply(&'static str),
    /// Silence until the client disconnects.
    Stall,
    /// The sink disconnects.
    Drop,
}

/// A mail that a sink accepted.
#[derive(Clone, Debug)]
pub struct ReceivedMail {
    /// The sender of the envelope.
    pub from: String,
    /// The recipients of the envelope.
    pub to: Vec<String>,
    /// The mail as it was transferred, without SMTP's dot-stuffing (RFC 5321, section 4.5.2).
    pub content: Vec<u8>,
    /// Whether the connection was encrypted.
    pub encrypted: bool,
    /// The mechanism and the user of the login.
    pub login: Option<(String, String)>,
}

impl ReceivedMail {
    /// The mail's `Message-ID`.
    pub fn message_id(&self) -> String {
        self.read(|mail| mail.message_id().map(str::to_owned))
    }

    /// The mail's subject, decoded.
    pub fn subject(&self) -> String {
        self.read(|mail| mail.subject().map(str::to_owned))
    }

    /// The mail's plain text, decoded.
    pub fn text(&self) -> String {
        self.read(|mail| mail.body_text(0).map(std::borrow::Cow::into_owned))
    }

    /// The mail's HTML, decoded.
    pub fn html(&self) -> String {
        self.read(|mail| mail.body_html(0).map(std::borrow::Cow::into_owned))
    }

    fn read(&self, part: impl Fn(&mail_parser::Message<'_>) -> Option<String>) -> String {
        MessageParser::default().parse(&self.content).and_then(|mail| part(&mail)).unwrap_or_default()
    }
}

/// A running sink on a port of its own. Dropping it ends it and its connections.
pub struct Sink {
    port: u16,
    root: Vec<u8>,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    config: SinkConfig,
    acceptor: TlsAcceptor,
    /// The faults of the next connections, one for each.
    script: Mutex<VecDeque<(Step, Fault)>>,
    received: watch::Sender<Vec<ReceivedMail>>,
    stalled: watch::Sender<usize>,
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sink {
    /// Starts a sink on the current runtime.
    ///
    /// # Errors
    /// No port is free, or the certificate cannot be generated.
    pub async fn start(config: SinkConfig) -> io::Result<Self> {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let certified = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        let root = certified.cert.der().to_vec();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|tls| {
                tls.with_no_client_auth().with_single_cert(vec![certified.cert.der().clone()], key)
            })
            .map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            config,
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            script: Mutex::default(),
            received: watch::Sender::new(Vec::new()),
            stalled: watch::Sender::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let served = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(session::serve(Arc::clone(&served), stream));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { port, root, shared, task })
    }

    /// Adds a fault to the script: the first is for the next connection, the second for the one after it.
    pub fn next(&self, step: Step, fault: Fault) {
        self.shared.script.lock().unwrap_or_else(PoisonError::into_inner).push_back((step, fault));
    }

    /// The mails accepted so far.
    pub fn received(&self) -> Vec<ReceivedMail> {
        self.shared.received.borrow().clone()
    }

    /// Waits until the sink has accepted this many mails; returns them.
    pub async fn wait_for(&self, count: usize) -> Vec<ReceivedMail> {
        let mut receiver = self.shared.received.subscribe();
        receiver.wait_for(|received| received.len() >= count).await.map(|all| all.clone()).unwrap_or_default()
    }

    /// Waits until this many connections have stalled.
    pub async fn wait_for_stall(&self, count: usize) {
        let _ = self.shared.stalled.subscribe().wait_for(|stalled| *stalled >= count).await;
    }

    /// The option `MailServerConfig` for this sink, with a timeout of a second.
    pub fn config(&self) -> String {
        let credentials = self.shared.config.credentials;
        serde_json::json!({
            "MailType": "SMTP",
            "Host": "127.0.0.1",
            "Port": self.port,
            "EnableSSL": self.shared.config.security == Security::Tls,
            "UserName": credentials.map(|(user, _)| user),
            "Password": credentials.map(|(_, password)| password),
            "Timeout": 1000,
        })
        .to_string()
    }

    /// The sink's certificate, which is its own root (DER).
    pub fn root(&self) -> &[u8] {
        &self.root
    }

    /// The sink as a mail server: its certificate trusted, and loopback addresses allowed.
    ///
    /// # Errors
    /// The configuration cannot be read.
    pub fn server(&self) -> Result<MailServer, String> {
        let server = MailServer::parse(&self.config())?.within(chancery_fetch::Networks::all());
        Ok(server.trusting(self.root.clone()))
    }
}
