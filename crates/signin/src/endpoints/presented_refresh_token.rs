//! The refresh token that a client app presents for introspection or revocation.

use chancery_auth::{AuthenticatedClient, ClientApp, EndpointRequest, OAuthError, authenticate};
use chancery_resource::StoreError;
use chancery_store::Mode;

use crate::{
    grant::{Grant, refresh_token::RefreshToken},
    provider::Provider,
};

/// Whether a request has a possible refresh token, which differs in form from access tokens.
pub fn shows_refresh_token(request: &EndpointRequest) -> bool {
    request.one("token").and_then(RefreshToken::read).is_some()
}

impl Provider<'_> {
    /// The requesting client app, the epoch at which it authenticated, and the active grant whose current refresh token it presents.
    pub(super) async fn find_refresh_token(
        self,
        request: &EndpointRequest,
    ) -> Result<(ClientApp, i64, Option<Grant>), OAuthError> {
        request.check_single()?;
        let AuthenticatedClient { app, used, epoch } =
            authenticate(self.store, self.tokens, request, Vec::new(), false).await?;
        if let Some(used) = used
            && !used.claim_alone(self.store).await?
        {
            return Err(OAuthError::new(401, "invalid_client", "The assertion was used before."));
        }
        let Some(token) = request.one("token").and_then(RefreshToken::read) else {
            return Ok((app, epoch, None));
        };
        let master = self.context.master.clone();
        let stored = self.store.run("FindGrant", Mode::Quick, None, move |tx| {
            let stored = Grant::find(tx, &master, token.grant)?;
            Ok::<_, StoreError>(
                stored.filter(|grant| token.is_of(&master, grant) && token.generation == grant.generation),
            )
        });
        Ok((app, epoch, stored.await?))
    }
}
