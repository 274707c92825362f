//! The authorization response and its delivery to the client (RFC 6749, sections 4.1.2 and 4.2.2).

use std::fmt::{self, Write as _};

use form_urlencoded::Serializer;

use crate::{ProtocolError, ResponseMode, Transport};

/// The parameters of an authorization response. It always has the issuer, which prevents mix-up attacks (RFC 9207), and the
/// state of the request.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorizationResponse(Vec<(String, String)>);

/// A response in the form of its response mode.
#[derive(Clone, PartialEq, Eq)]
pub enum Delivery {
    /// A redirect to this URL, which is ASCII and so a valid header.
    Redirect(String),
    /// A page with a form that submits itself (OAuth 2.0 Form Post Response Mode 1.0).
    Form {
        /// The URL that the form is posted to.
        action: String,
        /// Names and values of the fields, not escaped.
        fields: Vec<(String, String)>,
    },
}

impl AuthorizationResponse {
    /// A response with the issuer and the state of the request.
    pub fn new(issuer: &str, state: Option<&str>) -> Self {
        let response = Self(Vec::new()).with("iss", issuer);
        match state {
            Some(state) => response.with("state", state),
            None => response,
        }
    }

    /// Adds a parameter, e.g. `code`.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds `error` and `error_description`.
    #[must_use]
    pub fn with_error(self, refusal: ProtocolError) -> Self {
        self.with("error", refusal.code.name()).with("error_description", refusal.detail)
    }

    /// Encodes the response for a response mode. `sign` is called only if the response mode is signed, and creates a JWT of
    /// the parameters (JWT Secured Authorization Response Mode 1.0, section 2).
    ///
    /// # Errors
    /// `sign` failed.
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

/// Adds parameters to the query of a URL (RFC 6749, section 3.1.2).
pub fn with_query(uri: &str, parameters: &[(String, String)]) -> String {
    let uri = to_ascii(without_fragment(uri));
    let separator = match uri.split_once('?') {
        _ if parameters.is_empty() => "",
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{uri}{separator}{}", encode(parameters))
}

/// Removes a fragment, in which a query would be lost. Valid redirect URIs have none.
fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}

fn encode(parameters: &[(String, String)]) -> String {
    let encoded = Serializer::new(String::new()).extend_pairs(parameters).finish();
    // %20 is a space for every reader, also for one that does not decode a fragment as a form
    encoded.replace('+', "%20")
}

/// Percent-encodes all other characters, as browsers do.
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

impl fmt::Debug for AuthorizationResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AuthorizationResponse(hidden)")
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Delivery(hidden)")
    }
}
