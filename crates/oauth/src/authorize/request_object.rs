//! A request object, or where one is: the parameters `request` and `request_uri` (RFC 9101, section 5; RFC 9126,
//! section 4).

use crate::{Code, REQUEST_URIS, Refusal, parameters::Parameters};

/// Where the parameters that count are, when they are not in the request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestObject {
    /// In a JWT in the request: `request`.
    Value(String),
    /// At an address or in a pushed request: `request_uri`.
    Reference(String),
}

impl RequestObject {
    /// Finds the request object of a request, if it has one. Of such a request only the object's own parameters
    /// count, beside `client_id`.
    ///
    /// # Errors
    /// `invalid_request` where there are two.
    pub fn find(parameters: &[(String, String)]) -> Result<Option<Self>, Refusal> {
        let parameters = Parameters(parameters);
        match (parameters.one("request")?, parameters.one("request_uri")?) {
            (None, None) => Ok(None),
            (Some(object), None) => Ok(Some(Self::Value(object.to_owned()))),
            (None, Some(address)) => Ok(Some(Self::Reference(address.to_owned()))),
            (Some(_), Some(_)) => {
                Err(Refusal::new(Code::InvalidRequest, "request and request_uri are not sent together."))
            }
        }
    }

    /// The refusal of a request object where none is taken: by a server that serves none, and within a request
    /// object or a pushed request (RFC 9101, section 4; RFC 9126, section 2.1).
    pub const fn refusal(&self) -> Refusal {
        match self {
            Self::Value(_) => Refusal::new(Code::RequestNotSupported, "No request object is taken here."),
            Self::Reference(_) => Refusal::new(Code::RequestUriNotSupported, REQUEST_URIS.detail),
        }
    }
}
