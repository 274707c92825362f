//! The grant types of the token endpoint.

mod authorization_code;
mod client_credentials;
mod device_code;
mod refresh_token;

use std::{pin::Pin, sync::Arc};

use chancery_auth::{ClientApp, EndpointRequest, OAuthError, ReplayId, TokenGrant};
use chancery_resource::{StoreError, Tx};

use crate::{client_app::Application, provider::Provider};

/// The result of a token request. It is boxed: the future of every request is as large as the largest.
type Redeemed<'a> = Pin<Box<dyn Future<Output = Result<TokenGrant, OAuthError>> + Send + 'a>>;

/// A grant type by which a person's sign-in leads to tokens.
pub struct GrantType {
    /// The value of `grant_type`.
    pub name: &'static str,
    /// Its label in the metrics.
    pub label: &'static str,
    /// Exchanges the grant for tokens.
    pub redeem: for<'a> fn(Provider<'a>, &'a EndpointRequest) -> Redeemed<'a>,
}

/// The grant types of people, in the order in which discovery lists them.
pub static GRANT_TYPES: &[&GrantType] =
    &[&authorization_code::GRANT_TYPE, &refresh_token::GRANT_TYPE, &device_code::GRANT_TYPE];

const USED_BEFORE: &str = "The assertion or proof was used before.";

/// The error `invalid_grant`.
const fn invalid_grant(detail: &'static str) -> OAuthError {
    OAuthError::new(400, "invalid_grant", detail)
}

impl Provider<'_> {
    /// The client app of a request for a person's tokens, as of the epoch at which it authenticated. It is refused before the
    /// code or refresh token is used up.
    ///
    /// # Errors
    /// `invalid_grant` if it is not enabled; `unauthorized_client` if it has unsupported settings.
    async fn application_of_grant(
        self,
        app: &ClientApp,
        epoch: i64,
        detail: &'static str,
    ) -> Result<Arc<Application>, OAuthError> {
        let application = self.applications.find_at(self.store, app.id, epoch).await?;
        let application = application.ok_or(invalid_grant(detail))?;
        application.check_served()?;
        Ok(application)
    }
}

/// Marks ids as used. The inner error: one was used before.
fn claim_all(tx: &mut Tx<'_>, replay: &[ReplayId]) -> Result<Result<(), OAuthError>, StoreError> {
    for one in replay {
        if !one.claim(tx)? {
            return Ok(Err(invalid_grant(USED_BEFORE)));
        }
    }
    Ok(Ok(()))
}
