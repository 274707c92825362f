//! The grant types of the token endpoint.

pub mod authorization_code;
mod client_credentials;
pub mod device_code;
pub mod refresh_token;

use std::sync::Arc;

use chancery_auth::{ClientApp, OAuthError, ReplayId};
use chancery_resource::{StoreError, Tx};

use crate::{client_app::Application, provider::Provider};

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
        (app, epoch): (&ClientApp, i64),
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
