//! The server from the commands' view: discovery, and forms that are answered by JSON.

use chancery_fetch::{Failure, Limits, Networks, Policy, exchange, get};
use chancery_record::is_hidden;
use form_urlencoded::Serializer;
use serde_json::Value;

use super::lacks;
use crate::start_error::BoxError;

/// The bounds of each answer.
const LIMITS: Limits = Limits { bytes: 64 * 1024, seconds: 30 };

/// The endpoints of a server.
pub struct Endpoints {
    /// The device authorization endpoint.
    pub device: String,
    /// The token endpoint.
    pub token: String,
    /// The revocation endpoint.
    pub revocation: String,
}

/// A failed call of an endpoint.
pub enum EndpointError {
    /// It answered with an error of RFC 6749, section 5.2: its code and its text.
    Answered(String, String),
    /// It did not answer, or not as specified.
    Failed(String),
}

impl EndpointError {
    /// The error code.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Answered(code, _) => Some(code),
            Self::Failed(_) => None,
        }
    }

    /// The error as a message for people.
    pub fn message(self) -> String {
        match self {
            Self::Answered(code, text) if text.is_empty() => format!("the server refused: {}", plain(&code)),
            Self::Answered(code, text) => format!("the server refused: {} ({})", plain(&text), plain(&code)),
            Self::Failed(why) => why,
        }
    }
}

/// A text for a terminal: without control characters, and with letters that would turn or hide the text around them
/// written out.
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if is_hidden(letter) || misleads(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Whether a letter that Unicode does not call ignorable changes the appearance of others: separators of lines, and marks of
/// annotations.
const fn misleads(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}')
}

/// Calls of a server that the person named: anywhere by https, on this machine also without.
pub struct Remote(Policy);

impl Default for Remote {
    fn default() -> Self {
        Self(Policy { networks: Networks::all(), plain_loopback: true, roots: Vec::new() })
    }
}

impl Remote {
    /// Finds the endpoints of the issuer at a URL.
    pub async fn discover(&self, url: &str) -> Result<Endpoints, BoxError> {
        let address = format!("{url}/.well-known/openid-configuration");
        let document = get(&address, LIMITS, &self.0).await.map_err(|why| failed(&address, why))?;
        let document: Value =
            serde_json::from_slice(&document).map_err(|_| format!("{address}: the answer is no JSON"))?;
        let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        if text("issuer").as_deref() != Some(url) {
            let issuer = plain(&text("issuer").unwrap_or_default());
            return Err(format!("{url} is not what the server calls itself: {issuer}").into());
        }
        let endpoint = |name: &str| text(name).ok_or_else(|| lacks(name));
        Ok(Endpoints {
            device: endpoint("device_authorization_endpoint")?,
            token: endpoint("token_endpoint")?,
            revocation: endpoint("revocation_endpoint")?,
        })
    }

    /// Posts a form to an endpoint, which answers with an object.
    pub async fn post_form(&self, endpoint: &str, form: &[(&str, &str)]) -> Result<Value, EndpointError> {
        let (status, body) =
            self.post(endpoint, form).await.map_err(|why| EndpointError::Failed(failed(endpoint, why)))?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status == 200 && body.is_object() {
            return Ok(body);
        }
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        Err(match text("error") {
            Some(code) => EndpointError::Answered(code, text("error_description").unwrap_or_default()),
            None => EndpointError::Failed(failed(endpoint, Failure::Status(status))),
        })
    }

    /// Posts a form to an endpoint whose answer is only a status.
    pub async fn post_for_status(&self, endpoint: &str, form: &[(&str, &str)]) -> Result<(), BoxError> {
        match self.post(endpoint, form).await {
            Ok((200, _)) => Ok(()),
            Ok((status, _)) => Err(failed(endpoint, Failure::Status(status)).into()),
            Err(why) => Err(failed(endpoint, why).into()),
        }
    }

    async fn post(&self, endpoint: &str, form: &[(&str, &str)]) -> Result<(u16, Vec<u8>), Failure> {
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        exchange(endpoint, form, LIMITS, &self.0).await
    }
}

fn failed(address: &str, why: Failure) -> String {
    let address = plain(address);
    match why {
        // any network is allowed, so that this is the remaining cause
        Failure::Address => format!("{address}: another machine is called by https:// alone"),
        why => format!("{address}: {why}"),
    }
}
