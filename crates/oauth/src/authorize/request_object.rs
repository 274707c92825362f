//! Request objects: the parameters `request` and `request_uri` (RFC 9101, section 5; RFC 9126, section 4).

use crate::{ErrorCode, ProtocolError, REQUEST_URIS, parameters::Parameters};

/// A request object by value or by reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestObject {
    /// `request`: a JWT in the request.
    Value(String),
    /// `request_uri`: a URI, or a pushed request.
    Reference(String),
}

impl RequestObject {
    /// The request object of a request, if it has one. Then other parameters of the request are ignored, except for
    /// `client_id`.
    ///
    /// # Errors
    /// `invalid_request`: there are two.
    pub fn find(parameters: &[(String, String)]) -> Result<Option<Self>, ProtocolError> {
        let parameters = Parameters(parameters);
        match (parameters.one("request")?, parameters.one("request_uri")?) {
            (None, None) => Ok(None),
            (Some(object), None) => Ok(Some(Self::Value(object.to_owned()))),
            (None, Some(uri)) => Ok(Some(Self::Reference(uri.to_owned()))),
            (Some(_), Some(_)) => Err(ProtocolError::new(
                ErrorCode::InvalidRequest,
                "request and request_uri are not sent together.",
            )),
        }
    }

    /// The error for an unsupported request object, and for one within a request object or a pushed request (RFC 9101,
    /// section 4; RFC 9126, section 2.1).
    pub const fn refusal(&self) -> ProtocolError {
        match self {
            Self::Value(_) => {
                ProtocolError::new(ErrorCode::RequestNotSupported, "No request object is taken here.")
            }
            Self::Reference(_) => ProtocolError::new(ErrorCode::RequestUriNotSupported, REQUEST_URIS.detail),
        }
    }
}
