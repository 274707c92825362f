//! One connection to a sink (RFC 5321, section 4.1).

use std::{
    io,
    sync::{Arc, PoisonError},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::{Fault, ReceivedMail, Security, Shared, Step};

/// The bytes that a line may have.
const LINE: u64 = 1 << 16;
/// The bytes that a mail may have.
const CONTENT: usize = 1 << 20;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

struct Session {
    shared: Arc<Shared>,
    stream: BufReader<Box<dyn Stream>>,
    fault: Option<(Step, Fault)>,
    encrypted: bool,
    login: Option<(String, String)>,
    from: String,
    to: Vec<String>,
}

/// Serves a connection until it ends, for whatever reason.
pub async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    let fault = shared.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let from_start = shared.config.security == Security::Tls;
    let stream =
        if from_start { encrypt(&shared, Box::new(stream)).await } else { Ok(Box::new(stream) as _) };
    if let Ok(stream) = stream {
        let stream = BufReader::new(stream);
        let (login, from, to) = (None, String::new(), Vec::new());
        let mut session = Session { shared, stream, fault, encrypted: from_start, login, from, to };
        // a test sees the mails that were accepted, not why a connection ended
        let _ = session.serve_commands().await;
    }
}

async fn encrypt(shared: &Shared, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
    Ok(Box::new(shared.acceptor.accept(stream).await?))
}

impl Session {
    async fn serve_commands(&mut self) -> io::Result<()> {
        self.reply(Step::Greeting, "220 sink").await?;
        loop {
            let line = self.line().await?;
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match verb.to_ascii_uppercase().as_str() {
                "EHLO" => self.hello().await?,
                "STARTTLS" if !self.encrypted => {
                    self.write("220 go on").await?;
                    let nothing: Box<dyn Stream> = Box::new(io::Cursor::new(Vec::new()));
                    let plain = std::mem::replace(&mut self.stream, BufReader::new(nothing));
                    self.stream = BufReader::new(encrypt(&self.shared, plain.into_inner()).await?);
                    self.encrypted = true;
                }
                "AUTH" => self.auth(rest).await?,
                "MAIL" if self.shared.config.credentials.is_some() && self.login.is_none() => {
                    self.write("530 5.7.0 who are you?").await?;
                }
                "MAIL" => {
                    self.from = within(rest);
                    self.to.clear();
                    self.reply(Step::From, "250 ok").await?;
                }
                "RCPT" => {
                    self.to.push(within(rest));
                    self.reply(Step::Recipient, "250 ok").await?;
                }
                "DATA" => self.data().await?,
                "NOOP" | "RSET" => self.write("250 ok").await?,
                "QUIT" => return self.write("221 bye").await,
                _ => self.write("500 5.5.1 what?").await?,
            }
        }
    }

    async fn hello(&mut self) -> io::Result<()> {
        let mut reply = String::from("250-sink\r\n250-8BITMIME\r\n");
        if self.shared.config.security == Security::StartTls && !self.encrypted {
            reply.push_str("250-STARTTLS\r\n");
        }
        if self.shared.config.credentials.is_some() {
            reply.extend(["250-AUTH ", self.shared.config.mechanisms, "\r\n"]);
        }
        reply.push_str("250 SIZE 1048576");
        if self.shared.config.is_quiet {
            reply.make_ascii_lowercase();
        }
        self.reply(Step::Hello, &reply).await?;
        Ok(())
    }

    async fn auth(&mut self, rest: &str) -> io::Result<()> {
        let (mechanism, first) = rest.split_once(' ').unwrap_or((rest, ""));
        let (user, password) = if mechanism == "PLAIN" {
            let words = decoded(first);
            let mut words = words.split('\0').skip(1).map(str::to_owned);
            (words.next().unwrap_or_default(), words.next().unwrap_or_default())
        } else {
            let [for_user, for_password] =
                self.shared.config.prompts.map(|words| BASE64_STANDARD.encode(words));
            self.write(&format!("334 {for_user}")).await?;
            let user = decoded(&self.line().await?);
            self.write(&format!("334 {for_password}")).await?;
            (user, decoded(&self.line().await?))
        };
        if self.shared.config.credentials != Some((&user, &password)) {
            // real servers repeat their input, and no client may log it
            return self.write(&format!("535 5.7.8 no entry for {user} with {password}")).await;
        }
        if self.reply(Step::Auth, "235 welcome").await? {
            self.login = Some((mechanism.to_owned(), user));
        }
        Ok(())
    }

    async fn data(&mut self) -> io::Result<()> {
        if !self.reply(Step::Data, "354 go on").await? {
            return Ok(());
        }
        self.strike(Step::Content).await?;
        let mut content = String::new();
        loop {
            let line = self.line().await?;
            if line == "." {
                break;
            }
            content.push_str(line.strip_prefix('.').unwrap_or(&line));
            content.push_str("\r\n");
            if content.len() > CONTENT {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        if !matches!(self.fault, Some((Step::End, Fault::Reply(_)))) {
            let received = ReceivedMail {
                from: self.from.clone(),
                to: self.to.clone(),
                content: content.into_bytes(),
                encrypted: self.encrypted,
                login: self.login.clone(),
            };
            self.shared.received.send_modify(|all| all.push(received));
        }
        self.reply(Step::End, "250 taken").await?;
        Ok(())
    }

    /// Answers as usual, unless the script has a reply for this step; returns whether it was the usual
    /// answer.
    async fn reply(&mut self, step: Step, usual: &str) -> io::Result<bool> {
        if let Some((at, Fault::Reply(text))) = self.fault
            && at == step
        {
            self.write(text).await?;
            return Ok(false);
        }
        self.strike(step).await?;
        self.write(usual).await?;
        Ok(true)
    }

    /// Stalls or disconnects, if the script has that for this step.
    async fn strike(&mut self, step: Step) -> io::Result<()> {
        match self.fault {
            Some((at, Fault::Stall)) if at == step => {
                self.shared.stalled.send_modify(|stalled| *stalled += 1);
                while self.stream.read(&mut [0; 512]).await? > 0 {}
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Some((at, Fault::Drop)) if at == step => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        (&mut self.stream).take(LINE).read_line(&mut line).await?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    async fn write(&mut self, text: &str) -> io::Result<()> {
        // in one write: a second one would wait for the acknowledgement of the first
        self.stream.write_all(format!("{text}\r\n").as_bytes()).await?;
        self.stream.flush().await
    }
}

/// The text between the angle brackets of a path.
fn within(text: &str) -> String {
    let path = text.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    path.map_or_else(String::new, |(path, _)| path.to_owned())
}

fn decoded(text: &str) -> String {
    BASE64_STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}
