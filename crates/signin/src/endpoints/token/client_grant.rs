//! The token endpoint's grants for a client app itself: `client_credentials` (RFC 6749, section 4.4), and the exchange of
//! a token (RFC 8693).

use chancery_auth::{EndpointRequest, OAuthError, Rights, TokenGrant, grant};
use chancery_store::Mode;

use crate::{claims::pending_exchange, client_app::NOT_SERVING, grant::Grant, provider::Provider};

impl Provider<'_> {
    /// Issues a token to a client app: its own (`client_credentials`), or in exchange for another. A person's token
    /// contains the claims that the rules release to this client app.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn grant(self, rights: &Rights, request: &EndpointRequest) -> Result<TokenGrant, OAuthError> {
        let mut pending = grant(self.store, self.tokens, rights, request).await?;
        if let Some((gid, claims)) = pending.of_person() {
            let refused = OAuthError::new(400, "unauthorized_client", NOT_SERVING);
            let application = self.applications.find(self.store, claims.client_id).await?.ok_or(refused)?;
            application.check_served()?;
            let (master, now) = (self.context.master.clone(), request.now);
            let scope = claims.scope.clone().unwrap_or_default();
            let reading = self.store.run("ReadExchanged", Mode::Quick, None, move |tx| {
                let Some(grant) = Grant::find(tx, &master, gid)? else { return Ok(None) };
                pending_exchange(tx, &application, &grant.granted, &scope, now)
            });
            if let Some(rules) = reading.await? {
                claims.rule_claims = self.run_claim_rules(*rules, now).await?.access_token;
            }
        }
        pending.issue(self.store, self.tokens, request).await
    }
}
