//! Refresh tokens at the endpoints for tokens: introspection (RFC 7662) and revocation (RFC 7009).

use std::sync::Arc;

use chancery_auth::{
    AuthenticatedClient, ClientApp, EndpointRequest, Introspection, OAuthError, authenticate,
};
use chancery_oauth::{Use, check_use};
use chancery_resource::{Context, Scope, StoreError};
use chancery_store::Mode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{grant::Grant, person, provider::Provider, refresh::good_until, refresh_token::RefreshToken};

/// Whether a request shows what may be a refresh token, which has another form than access tokens.
pub fn shows_refresh_token(request: &EndpointRequest) -> bool {
    request.one("token").and_then(RefreshToken::read).is_some()
}

impl Provider<'_> {
    /// Revokes a refresh token: its grant ends, and so all tokens of it. One that is not good any more is no error.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn revoke_refresh_token(self, request: &EndpointRequest) -> Result<(), OAuthError> {
        let (app, found) = self.find_refresh_token(request).await?;
        let Some(grant) = found else { return Ok(()) };
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

    /// Introspects a refresh token, for the client app that it was issued to.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn introspect_refresh_token(
        self,
        request: &EndpointRequest,
    ) -> Result<Introspection, OAuthError> {
        let (app, found) = self.find_refresh_token(request).await?;
        check_use(&app.unserved, Use::Introspection)?;
        let told = self.tell_refresh_token(request, app.id, found).await?;
        Introspection::new(self.store, self.tokens, (request, &app), told).await
    }

    /// What a client app is told of a refresh token.
    async fn tell_refresh_token(
        self,
        request: &EndpointRequest,
        client: Uuid,
        found: Option<Grant>,
    ) -> Result<Value, OAuthError> {
        let nothing = json!({ "active": false });
        let known = self.applications.find(self.store, client).await?;
        let is_theirs = |grant: &Grant| {
            grant.application == client && grant.granted.issuing == request.issuer.tenant_id()
        };
        let (Some(grant), Some(known)) = (found.filter(is_theirs), known) else { return Ok(nothing) };
        let (grant, now) = (Arc::new(grant), request.now);
        let judged = Arc::clone(&grant);
        let judging = self.store.run("JudgeRefreshToken", Mode::Quick, None, move |tx| {
            let granted = &judged.granted;
            let Some(tenant) = known.serving(granted.tenant, granted.issuing) else { return Ok(None) };
            let until = good_until(tx, &judged, (&known, &tenant.options), now)?;
            let whose = (granted.person, granted.instance);
            let is_admitted = person::admit(tx, &known, whose, granted.tenant, now)?.is_ok();
            Ok::<_, StoreError>(until.filter(|_| is_admitted))
        });
        let Some(until) = judging.await? else { return Ok(nothing) };
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

    /// The client app that asks, and the living grant whose refresh token of now it shows.
    async fn find_refresh_token(
        self,
        request: &EndpointRequest,
    ) -> Result<(ClientApp, Option<Grant>), OAuthError> {
        request.check_single()?;
        let AuthenticatedClient { app, used, .. } =
            authenticate(self.store, self.tokens, request, (Vec::new(), false)).await?;
        if let Some(used) = used
            && !used.claim_alone(self.store).await?
        {
            return Err(OAuthError::new(401, "invalid_client", "The assertion was used before."));
        }
        let Some(token) = request.one("token").and_then(RefreshToken::read) else {
            return Ok((app, None));
        };
        let master = self.context.master.clone();
        let found = self.store.run("FindGrant", Mode::Quick, None, move |tx| {
            let found = Grant::find(tx, &master, token.grant)?;
            Ok::<_, StoreError>(
                found.filter(|grant| token.is_of(&master, grant) && token.generation == grant.generation),
            )
        });
        Ok((app, found.await?))
    }
}
