//! The answer to an authorization request, and the forms in which it gets to the client (RFC 6749, sections
//! 4.1.2 and 4.2.2).

use std::fmt::{self, Write as _};

use form_urlencoded::Serializer;

use crate::{Refusal, ResponseMode, Transport};

/// The parameters of an answer. Every answer names its issuer, so that a client that asks several cannot mix them
/// up (RFC 9207), and has the state of the request.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer(Vec<(String, String)>);

/// An answer in the form in which it leaves this server.
#[derive(Clone, PartialEq, Eq)]
pub enum Delivery {
    /// A redirect to this address: ASCII, so that it can be a header.
    Redirect(String),
    /// A page with a form that posts itself (OAuth 2.0 Form Post Response Mode 1.0).
    Form {
        /// The address that the form is posted to.
        action: String,
        /// Names and values of its fields, not escaped.
        fields: Vec<(String, String)>,
    },
}

impl Answer {
    /// An answer of an issuer to a request with this state.
    pub fn new(issuer: &str, state: Option<&str>) -> Self {
        let answer = Self(Vec::new()).with("iss", issuer);
        match state {
            Some(state) => answer.with("state", state),
            None => answer,
        }
    }

    /// The same answer with one more parameter, e.g. `code`.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same answer as a refusal, with `error` and `error_description`.
    #[must_use]
    pub fn refused(self, refusal: Refusal) -> Self {
        self.with("error", refusal.code.name()).with("error_description", refusal.detail)
    }

    /// Brings the answer into the form of a response mode. `sign` makes one JWT of the parameters where the
    /// response mode is signed (JWT Secured Authorization Response Mode 1.0, section 2), and is not called else.
    ///
    /// # Errors
    /// Those of `sign`.
    pub fn deliver<E>(
        self,
        redirect_uri: &str,
        mode: ResponseMode,
        sign: impl FnOnce(&[(String, String)]) -> Result<String, E>,
    ) -> Result<Delivery, E> {
        let fields = if mode.is_signed { vec![("response".to_owned(), sign(&self.0)?)] } else { self.0 };
        Ok(match mode.transport {
            Transport::Query => Delivery::Redirect(with_query(redirect_uri, &fields)),
            Transport::Fragment => Delivery::Redirect(format!(
                "{}#{}",
                to_ascii(without_fragment(redirect_uri)),
                encode(&fields)
            )),
            Transport::FormPost => {
                Delivery::Form { action: to_ascii(without_fragment(redirect_uri)), fields }
            }
        })
    }
}

/// An address with parameters after those that its query has (RFC 6749, section 3.1.2).
pub fn with_query(uri: &str, parameters: &[(String, String)]) -> String {
    let uri = to_ascii(without_fragment(uri));
    let joint = match uri.split_once('?') {
        _ if parameters.is_empty() => "",
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{uri}{joint}{}", encode(parameters))
}

/// What is sent as a query is lost in a fragment. No redirect URI has one.
fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}

fn encode(parameters: &[(String, String)]) -> String {
    let encoded = Serializer::new(String::new()).extend_pairs(parameters).finish();
    // a space by its code is one to every reader, also to one that decodes a fragment as no form
    encoded.replace('+', "%20")
}

/// An address whose other characters are by their codes, as browsers write them, too.
fn to_ascii(uri: &str) -> String {
    let mut ascii = String::with_capacity(uri.len());
    for byte in uri.bytes() {
        if byte.is_ascii_graphic() {
            ascii.push(char::from(byte));
        } else {
            // writing to text does not fail
            let _ = write!(ascii, "%{byte:02X}");
        }
    }
    ascii
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Answer(hidden)")
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Delivery(hidden)")
    }
}
