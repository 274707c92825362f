//! The capabilities of a mail server, and commands that depend on them. Keywords have no case, and LOGIN has prompts of its own:
//! the library handles neither.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use lettre::{
    Address,
    transport::smtp::{
        Error,
        client::AsyncSmtpConnection,
        commands::{Data, Mail, Rcpt},
        extension::{MailBodyParameter, MailParameter},
        response::Response,
    },
};

use crate::{compose::ComposedMessage, failure::Failure};

/// Codes that refuse the settings, not the mail: a password or TLS is required (RFC 4954, section 6).
const OF_SETTINGS: [u16; 4] = [530, 534, 535, 538];
/// The code of a challenge.
const CHALLENGE: u16 = 334;

/// The extensions of a server, in capitals, from its answer to `EHLO`.
pub struct Capabilities(Vec<String>);

impl Capabilities {
    /// The capabilities in an answer to `EHLO`.
    pub fn of(response: &Response) -> Self {
        Self(response.message().skip(1).map(str::to_ascii_uppercase).collect())
    }

    fn has(&self, extension: &str) -> bool {
        self.0.iter().any(|line| line.split_whitespace().next() == Some(extension))
    }

    fn logs_in_by(&self, mechanism: &str) -> bool {
        // some servers say AUTH=
        let lines = self.0.iter().filter_map(|line| line.strip_prefix("AUTH")?.strip_prefix([' ', '=']));
        lines.flat_map(str::split_whitespace).any(|known| known == mechanism)
    }

    /// Logs in, by PLAIN or LOGIN.
    pub async fn log_in(
        &self,
        connection: &mut AsyncSmtpConnection,
        user: &str,
        password: &str,
    ) -> Result<(), Failure> {
        let encode = |text: &str| BASE64_STANDARD.encode(text);
        let lines = if self.logs_in_by("PLAIN") {
            vec![format!("AUTH PLAIN {}", encode(&format!("\0{user}\0{password}")))]
        } else if self.logs_in_by("LOGIN") {
            vec!["AUTH LOGIN".to_owned(), encode(user), encode(password)]
        } else {
            let why = "the mail server offers no login by PLAIN or LOGIN, and there is a password for it";
            return Err(Failure::Transient(why.to_owned()));
        };
        let last = lines.len() - 1;
        for (index, line) in lines.into_iter().enumerate() {
            let answer = connection.command(format!("{line}\r\n")).await;
            let answer = answer.map_err(|error| Failure::transient(&error))?;
            if answer.has_code(CHALLENGE) == (index == last) {
                let why = "the mail server's answer to the login was not understood";
                return Err(Failure::Transient(why.to_owned()));
            }
        }
        Ok(())
    }

    /// Sends a mail.
    pub async fn send(
        &self,
        connection: &mut AsyncSmtpConnection,
        message: &ComposedMessage,
    ) -> Result<(), Failure> {
        let (envelope, content) = (&message.envelope, &message.content);
        let mut parameters = Vec::new();
        let is_ascii = |address: &Address| <Address as AsRef<str>>::as_ref(address).is_ascii();
        if !envelope.from().into_iter().chain(envelope.to()).all(is_ascii) {
            self.require("SMTPUTF8", "letters in an address")?;
            parameters.push(MailParameter::SmtpUtfEight);
        }
        if !content.is_ascii() {
            self.require("8BITMIME", "letters in a mail")?;
            parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        connection
            .command(Mail::new(envelope.from().cloned(), parameters))
            .await
            .map_err(|error| refused(&error))?;
        for address in envelope.to() {
            connection
                .command(Rcpt::new(address.clone(), Vec::new()))
                .await
                .map_err(|error| refused(&error))?;
        }
        connection.command(Data).await.map_err(|error| refused(&error))?;
        connection.message(content).await.map_err(|error| refused(&error))?;
        Ok(())
    }

    fn require(&self, extension: &str, what: &str) -> Result<(), Failure> {
        if self.has(extension) {
            return Ok(());
        }
        Err(Failure::Permanent(format!("the mail server does not take {what} beyond ASCII ({extension})")))
    }
}

/// The failure of a refused mail: permanent if it is about the mail, transient if it is about the settings.
fn refused(error: &Error) -> Failure {
    let is_of_settings = error.status().is_some_and(|code| OF_SETTINGS.contains(&u16::from(code)));
    if error.is_permanent() && !is_of_settings {
        Failure::permanent(error)
    } else {
        Failure::transient(error)
    }
}
