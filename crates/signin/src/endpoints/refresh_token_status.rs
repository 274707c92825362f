//! Refresh tokens at the endpoints of introspection (RFC 7662) and revocation (RFC 7009).

use std::sync::Arc;

use chancery_auth::{
    AuthenticatedClient, ClientApp, EndpointRequest, Introspection, OAuthError, authenticate,
};
use chancery_oauth::{Use, check_use};
use chancery_resource::{Context, Scope, StoreError};
use chancery_store::Mode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    grant::{Grant, expiry::refresh_token_expiry, refresh_token::RefreshToken},
    person,
    provider::Provider,
};

/// Whether a request has a possible refresh token, which differs in form from access tokens.
pub fn shows_refresh_token(request: &EndpointRequest) -> bool {
    request.one("token").and_then(RefreshToken::read).is_some()
}

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

    /// Introspects a refresh token for the client app to which it was issued.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn introspect_refresh_token(
        self,
        request: &EndpointRequest,
    ) -> Result<Introspection, OAuthError> {
        let (app, epoch, stored) = self.find_refresh_token(request).await?;
        check_use(&app.unsupported_settings, Use::Introspection)?;
        let response = self.introspection_response(request, (app.id, epoch), stored).await?;
        Introspection::new(self.store, self.tokens, (request, &app), (response, epoch)).await
    }

    /// The introspection response for a refresh token.
    async fn introspection_response(
        self,
        request: &EndpointRequest,
        (client, epoch): (Uuid, i64),
        stored: Option<Grant>,
    ) -> Result<Value, OAuthError> {
        let nothing = json!({ "active": false });
        let application = self.applications.find_at(self.store, client, epoch).await?;
        let is_theirs = |grant: &Grant| {
            grant.application == client && grant.granted.issuing == request.issuer.tenant_id()
        };
        let (Some(grant), Some(application)) = (stored.filter(is_theirs), application) else {
            return Ok(nothing);
        };
        let (grant, now) = (Arc::new(grant), request.now);
        let checked = Arc::clone(&grant);
        let checking = self.store.run("JudgeRefreshToken", Mode::Quick, None, move |tx| {
            let granted = &checked.granted;
            let Some(tenant) = application.serving(granted.tenant, granted.issuing) else { return Ok(None) };
            let until = refresh_token_expiry(tx, &checked, (&application, &tenant.options), now)?;
            let identity = (granted.person, granted.instance);
            let is_admitted = person::admit(tx, &application, identity, granted.tenant, now)?.is_ok();
            Ok::<_, StoreError>(until.filter(|_| is_admitted))
        });
        let Some(until) = checking.await? else { return Ok(nothing) };
        let granted = &grant.granted;
        Ok(json!({
            "active": true,
            "iss": request.issuer.url,
            "client_id": client,
            "sub": granted.person,
            "scope": granted.scope,
            "iat": grant.started_on.0.div_euclid(1000),
            "exp": until.0.div_euclid(1000),
            "gid": grant.id,
            "tid": granted.tenant,
        }))
    }

    /// The requesting client app, the epoch at which it authenticated, and the active grant whose current refresh token it presents.
    async fn find_refresh_token(
        self,
        request: &EndpointRequest,
    ) -> Result<(ClientApp, i64, Option<Grant>), OAuthError> {
        request.check_single()?;
        let AuthenticatedClient { app, used, epoch } =
            authenticate(self.store, self.tokens, request, (Vec::new(), false)).await?;
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
