//! The client and the redirect URI of an authorization request. They must be verified before any response by redirect (RFC
//! 6749, section 4.1.2.1).

use std::fmt;

use super::{acr::AcrValues, response::AuthorizationResponse};
use crate::{ErrorCode, ProtocolError, ResponseMode, ResponseType, parameters::Parameters};

/// The response mode and the state of a response, also of an error response.
#[derive(Clone, PartialEq, Eq)]
pub struct ResponseOptions {
    /// The requested response mode; the default if it is absent or unusable.
    pub mode: ResponseMode,
    /// The unchanged state; `None` if it is absent or invalid.
    pub state: Option<String>,
}

impl ResponseOptions {
    /// A response with the issuer of the request and the state.
    pub fn response(&self, issuer: &str) -> AuthorizationResponse {
        AuthorizationResponse::new(issuer, self.state.as_deref())
    }
}

/// The first stage of an authorization request. The caller looks up the client app and checks the redirect URI with
/// [`is_registered_redirect`](crate::is_registered_redirect); errors until then are shown on an error page.
#[derive(Clone, PartialEq, Eq)]
pub struct ResponseTarget {
    /// `client_id`
    pub client_id: String,
    /// `redirect_uri`, not yet compared with those of the client app.
    pub redirect_uri: String,
    /// The tenant in `acr_values`, if they are valid.
    pub tenant: Option<String>,
    /// The response mode and the state.
    pub options: ResponseOptions,
}

impl ResponseTarget {
    /// Reads the first stage. Errors in other parameters are reported by
    /// [`AuthorizationRequest::read`](crate::AuthorizationRequest::read).
    ///
    /// # Errors
    /// `invalid_request`, for an error page.
    pub fn read(parameters: &[(String, String)]) -> Result<Self, ProtocolError> {
        let client_id = Self::client_id(parameters)?;
        let parameters = Parameters(parameters);
        let redirect_uri = parameters.one("redirect_uri")?.ok_or(refuse("redirect_uri is missing."))?;
        let valid = |name| parameters.one(name).ok().flatten();
        let acr_values = valid("acr_values").and_then(|words| AcrValues::parse(words).ok());
        Ok(Self {
            client_id,
            redirect_uri: redirect_uri.to_owned(),
            tenant: acr_values.and_then(|values| values.tenant),
            options: ResponseOptions {
                mode: mode(valid("response_type").unwrap_or_default(), valid("response_mode")),
                state: parameters.state().ok().flatten().map(str::to_owned),
            },
        })
    }

    /// Reads only `client_id`: with a request object, other parameters are ignored.
    ///
    /// # Errors
    /// `invalid_request`, for an error page.
    pub fn client_id(parameters: &[(String, String)]) -> Result<String, ProtocolError> {
        let client_id = Parameters(parameters).one("client_id")?.ok_or(refuse("client_id is missing."))?;
        Ok(client_id.to_owned())
    }
}

/// The response mode for an error response, also to an invalid request.
fn mode(response_type: &str, requested: Option<&str>) -> ResponseMode {
    let response_type =
        ResponseType::named(response_type).unwrap_or_else(|| ResponseType::from_known_words(response_type));
    ResponseMode::read(requested, response_type).unwrap_or(ResponseMode::default_of(response_type))
}

const fn refuse(detail: &'static str) -> ProtocolError {
    ProtocolError::new(ErrorCode::InvalidRequest, detail)
}

impl fmt::Debug for ResponseOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ResponseOptions").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl fmt::Debug for ResponseTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ResponseTarget(hidden)")
    }
}
