//! The grant types of the token endpoint.

mod authorization_code;
mod client_grant;
mod device_code;
mod refresh_token;

use std::{pin::Pin, sync::Arc};

use chancery_auth::{
    AuthenticatedClient, ClientApp, Confirmation, EndpointRequest, OAuthError, ReplayId, TokenGrant,
    authenticate, bind,
};
use chancery_record::Timestamp;
use chancery_resource::{StoreError, Tx};
use uuid::Uuid;

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

/// An authenticated request for a person's tokens.
struct GrantRequest {
    /// The client app.
    client: ClientApp,
    /// The client app's settings for sign-ins, as of the epoch at which it authenticated.
    application: Arc<Application>,
    epoch: i64,
    /// The tenant whose issuer was requested.
    issuing: Option<Uuid>,
    /// The `jti` of the client assertion and of the DPoP proof. Each is accepted once.
    replay: Vec<ReplayId>,
    /// The key or certificate that the client app proved to have.
    cnf: Confirmation,
    now: Timestamp,
}

impl Provider<'_> {
    /// Authenticates the client app of a request for a person's tokens, before the code or refresh token is used up.
    ///
    /// # Errors
    /// `invalid_client`; `invalid_dpop_proof`; `invalid_grant` with `detail` if the client app is not enabled;
    /// `unauthorized_client` if it has unsupported settings.
    async fn grant_request(
        self,
        request: &EndpointRequest,
        detail: &'static str,
    ) -> Result<Arc<GrantRequest>, OAuthError> {
        let AuthenticatedClient { app: client, used, epoch } =
            authenticate(self.store, self.tokens, request, Vec::new(), false).await?;
        let (cnf, proof) = bind(self.tokens, &client, request)?;
        let application = self.applications.find_at(self.store, client.id, epoch).await?;
        let application = application.ok_or(invalid_grant(detail))?;
        application.check_served()?;
        Ok(Arc::new(GrantRequest {
            client,
            application,
            epoch,
            issuing: request.issuer.tenant_id(),
            replay: used.into_iter().chain(proof).collect(),
            cnf,
            now: request.now,
        }))
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
