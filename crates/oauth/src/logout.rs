//! The logout request (OpenID Connect RP-Initiated Logout 1.0, section 2).

use std::fmt;

use crate::{ProtocolError, authorize::response::with_query, parameters::Parameters};

/// A logout request. All parameters are optional.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LogoutRequest {
    /// `id_token_hint`, not yet verified.
    pub id_token_hint: Option<String>,
    /// `client_id`
    pub client_id: Option<String>,
    /// `post_logout_redirect_uri`, not yet compared with the client app's URIs of type Logout.
    pub post_logout_redirect_uri: Option<String>,
    /// `state`, up to 4,096 characters.
    pub state: Option<String>,
    /// `logout_hint`
    pub logout_hint: Option<String>,
    /// The language tags of `ui_locales`, the preferred one first.
    pub ui_locales: Vec<String>,
}

impl LogoutRequest {
    /// Reads the parameters; others are ignored.
    ///
    /// # Errors
    /// `invalid_request`, for an error page: a parameter is repeated or contains NUL, or the state is too long.
    pub fn read(parameters: &[(String, String)]) -> Result<Self, ProtocolError> {
        let parameters = Parameters(parameters);
        let owned = |name| parameters.one(name).map(|value| value.map(str::to_owned));
        Ok(Self {
            id_token_hint: owned("id_token_hint")?,
            client_id: owned("client_id")?,
            post_logout_redirect_uri: owned("post_logout_redirect_uri")?,
            state: parameters.state()?.map(str::to_owned),
            logout_hint: owned("logout_hint")?,
            ui_locales: parameters.ui_locales()?,
        })
    }

    /// The redirect after the logout, with the state (section 3). The caller must check that the URI is the client app's.
    pub fn return_address(&self) -> Option<String> {
        let state: Vec<_> = self.state.iter().map(|state| ("state".to_owned(), state.clone())).collect();
        self.post_logout_redirect_uri.as_ref().map(|uri| with_query(uri, &state))
    }
}

impl fmt::Debug for LogoutRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LogoutRequest(hidden)")
    }
}
