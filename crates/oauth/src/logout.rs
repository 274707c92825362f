//! The parameters of end session (OpenID Connect RP-Initiated Logout 1.0, section 2).

use std::fmt;

use crate::{Refusal, authorize::answer::with_query, parameters::Parameters};

/// A request to sign a person out. All of it is optional.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EndSession {
    /// `id_token_hint`, not yet verified.
    pub id_token_hint: Option<String>,
    /// `client_id`
    pub client_id: Option<String>,
    /// `post_logout_redirect_uri`. It is not yet known to be the client app's: one of type Logout, byte for byte.
    pub post_logout_redirect_uri: Option<String>,
    /// `state`, up to 4,096 characters.
    pub state: Option<String>,
    /// `logout_hint`
    pub logout_hint: Option<String>,
    /// `ui_locales`, the preferred one first, without what is no language tag.
    pub ui_locales: Vec<String>,
}

impl EndSession {
    /// Reads the parameters; others are ignored.
    ///
    /// # Errors
    /// `invalid_request`, for an error page, where one is there twice, holds NUL, or the state is too long.
    pub fn read(parameters: &[(String, String)]) -> Result<Self, Refusal> {
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

    /// Where the person goes once signed out, with the state (section 3). The caller makes sure before that the
    /// address is the client app's.
    pub fn return_address(&self) -> Option<String> {
        let state: Vec<_> = self.state.iter().map(|state| ("state".to_owned(), state.clone())).collect();
        self.post_logout_redirect_uri.as_ref().map(|uri| with_query(uri, &state))
    }
}

impl fmt::Debug for EndSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EndSession(hidden)")
    }
}
