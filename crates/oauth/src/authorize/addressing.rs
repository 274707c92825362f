//! Who asks, and where an answer would go: what is read of an authorization request before anything may be
//! answered by redirect (RFC 6749, section 4.1.2.1).

use std::fmt;

use super::{acr::AcrValues, answer::Answer};
use crate::{Code, Refusal, ResponseMode, ResponseType, parameters::Parameters};

/// How the client is answered, whether its request is granted or refused.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The response mode asked for; the default where none was, or none that can be used.
    pub mode: ResponseMode,
    /// The state, as it was; `None` where there was none, or none that may come back.
    pub state: Option<String>,
}

impl Reply {
    /// The answer to the request, with what every answer has; `issuer` is the issuer that was asked.
    pub fn answer(&self, issuer: &str) -> Answer {
        Answer::new(issuer, self.state.as_deref())
    }
}

/// The first stage of an authorization request. The caller looks the client app up and compares the redirect URI
/// with its own by [`is_registered_redirect`](crate::is_registered_redirect); what is wrong until then is told on
/// an error page.
#[derive(Clone, PartialEq, Eq)]
pub struct Addressing {
    /// The id of the client app that asks.
    pub client_id: String,
    /// Where the answer is to go. It is not yet known to be the client app's.
    pub redirect_uri: String,
    /// The tenant that `acr_values` names, as far as it can be read.
    pub tenant: Option<String>,
    /// How the client is answered.
    pub reply: Reply,
}

impl Addressing {
    /// Reads the first stage. What is wrong with other parameters is found by
    /// [`AuthorizationRequest::read`](crate::AuthorizationRequest::read).
    ///
    /// # Errors
    /// `invalid_request`, for an error page.
    pub fn read(parameters: &[(String, String)]) -> Result<Self, Refusal> {
        let client_id = Self::client_id(parameters)?;
        let parameters = Parameters(parameters);
        let redirect_uri = parameters.one("redirect_uri")?.ok_or(refuse("redirect_uri is missing."))?;
        let readable = |name| parameters.one(name).ok().flatten();
        let acr_values = readable("acr_values").and_then(|words| AcrValues::parse(words).ok());
        Ok(Self {
            client_id,
            redirect_uri: redirect_uri.to_owned(),
            tenant: acr_values.and_then(|values| values.tenant),
            reply: Reply {
                mode: mode(readable("response_type").unwrap_or_default(), readable("response_mode")),
                state: parameters.state().ok().flatten().map(str::to_owned),
            },
        })
    }

    /// Reads `client_id` alone: beside a request object only it counts.
    ///
    /// # Errors
    /// `invalid_request`, for an error page.
    pub fn client_id(parameters: &[(String, String)]) -> Result<String, Refusal> {
        let client_id = Parameters(parameters).one("client_id")?.ok_or(refuse("client_id is missing."))?;
        Ok(client_id.to_owned())
    }
}

/// The response mode of an answer that may be a refusal, whatever can be read of what was asked for.
fn mode(response_type: &str, asked: Option<&str>) -> ResponseMode {
    let response_type =
        ResponseType::named(response_type).unwrap_or_else(|| ResponseType::resembling(response_type));
    ResponseMode::read(asked, response_type).unwrap_or(ResponseMode::default_of(response_type))
}

const fn refuse(detail: &'static str) -> Refusal {
    Refusal::new(Code::InvalidRequest, detail)
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reply").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl fmt::Debug for Addressing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Addressing(hidden)")
    }
}
