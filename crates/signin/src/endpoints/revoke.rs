//! The revocation of refresh tokens (RFC 7009).

use std::sync::Arc;

use chancery_auth::{EndpointRequest, OAuthError};
use chancery_resource::{Context, Scope};
use chancery_store::Mode;

use crate::provider::Provider;

impl Provider<'_> {
    /// Revokes a refresh token: its grant ends, with all its tokens. An invalid one is no error.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn revoke_refresh_token(self, request: &EndpointRequest) -> Result<(), OAuthError> {
        let (app, _, stored) = self.find_refresh_token(request).await?;
        let Some(grant) = stored else { return Ok(()) };
        if grant.application != app.id {
            return Err(OAuthError::new(400, "invalid_grant", "The token was issued to another client."));
        }
        let now = request.now;
        let app = Arc::clone(self.context);
        let ending = self.store.run("RevokeGrant", Mode::Write, None, move |tx| {
            grant.end(&Context::of_server(&app, Scope::Everything, now), tx)
        });
        Ok(ending.await?)
    }
}
