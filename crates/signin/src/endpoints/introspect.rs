//! The introspection of refresh tokens (RFC 7662).

use std::sync::Arc;

use chancery_auth::{EndpointRequest, Introspection, OAuthError};
use chancery_oauth::{Use, check_use};
use chancery_resource::StoreError;
use chancery_store::Mode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    grant::{Grant, expiry::refresh_token_expiry},
    person,
    provider::Provider,
};

impl Provider<'_> {
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
        let response = self.introspection_response(request, app.id, epoch, stored).await?;
        Introspection::new(self.store, self.tokens, request, &app, response, epoch).await
    }

    /// The introspection response for a refresh token.
    async fn introspection_response(
        self,
        request: &EndpointRequest,
        client: Uuid,
        epoch: i64,
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
            let until = refresh_token_expiry(tx, &checked, &application, &tenant.options, now)?;
            let is_admitted =
                person::admit(tx, &application, granted.identity(), granted.tenant, now)?.is_ok();
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
}
