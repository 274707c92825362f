//! The device authorization endpoint (RFC 8628, section 3.1).

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_auth::{AuthenticatedClient, EndpointRequest, OAuthError, authenticate};
use chancery_oauth::{Scope, Use, check_use, parse_targets};
use chancery_record::{Timestamp, Value};
use chancery_resource::{StateTable, StoreError, Tx, random, settings::TenantOption};
use chancery_store::Mode;
use serde_json::json;
use uuid::Uuid;

use crate::{
    client_app::{
        Application,
        audience::{as_registered, audience},
    },
    device_polls::INTERVAL,
    grant::device_code::{digest, user_code, user_digest, with_dash},
    provider::Provider,
};

/// The maximum of waiting devices of a client app.
const MAX_OPEN: i64 = 1_000;
/// The maximum of devices of all client apps whose codes have not expired. Unauthenticated callers can send requests
/// in the name of a public client app.
const MAX_OPEN_OF_ALL: i64 = 20_000;

impl Provider<'_> {
    /// Responds to a device with its codes.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn authorize_device(self, request: &EndpointRequest) -> Result<String, OAuthError> {
        request.check_single()?;
        let scope = request.one("scope").map(Scope::parse).transpose()?;
        let resources = parse_targets(request.all("resource"))?;
        let AuthenticatedClient { app, used, epoch } =
            authenticate(self.store, self.tokens, request, Vec::new(), false).await?;
        let unauthorized =
            OAuthError::new(400, "unauthorized_client", "The client app may not let devices in.");
        let issuing = request.issuer.tenant_id();
        let application = self.applications.find_at(self.store, app.id, epoch).await?;
        let serves = |application: &Arc<Application>| {
            let mut tenants = application.tenants.iter();
            application.allows_devices
                && application.allow_user_login
                && tenants.any(|tenant| application.serving(tenant.facts.id, issuing).is_some())
        };
        let application = application.filter(serves).ok_or(unauthorized)?;
        check_use(&application.unsupported_settings, Use::Authorization)?;
        application.check_served()?;
        let scope = application.grantable(scope.as_ref())?;
        let lifetime = application
            .tenants
            .iter()
            .find(|tenant| application.serving(tenant.facts.id, issuing).is_some())
            .map_or(0, |tenant| tenant.options.get(TenantOption::DEVICE_CODE_LIFETIME));
        let (code, user_code) = (BASE64_URL_SAFE_NO_PAD.encode(random::<32>()), user_code());
        let master = self.context.master.clone();
        let (digest, user) = (digest(&master, &code), user_digest(&master, issuing, &user_code));
        let now = request.now;
        let waiting = self.store.run("AuthorizeDevice", Mode::Write, None, move |tx| {
            if let Some(used) = &used
                && !used.claim(tx)?
            {
                return Ok(Err(OAuthError::new(400, "invalid_grant", "The assertion was used before.")));
            }
            let resources = as_registered(tx, &resources)?;
            if let Err(refused) = audience(tx, &application, &resources)? {
                return Ok(Err(refused.into()));
            }
            if open(tx, application.id, now)? >= MAX_OPEN || open_of_all(tx, now)? >= MAX_OPEN_OF_ALL {
                return Ok(Err(OAuthError::new(400, "slow_down", "Too many devices wait already.")));
            }
            let insert = StateTable::DeviceAuthorization.insert(
                "(digest, user_code, client_app_id, issuing_tenant_id, scope, resources, status, expires_on) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'Pending', ?7)",
            );
            let parameters = vec![
                digest.clone().into(),
                user.clone().into(),
                application.id.into(),
                issuing.map_or(Value::Null, Value::Id),
                scope.to_string().into(),
                resources.join(" ").into(),
                now.plus(lifetime).0.into(),
            ];
            tx.queue(&insert, parameters)?;
            Ok::<_, StoreError>(Ok(()))
        });
        waiting.await??;
        let address = request.issuer.endpoint("/device");
        let shown = with_dash(&user_code);
        let body = json!({
            "device_code": code,
            "user_code": shown,
            "verification_uri": address,
            "verification_uri_complete": format!("{address}?user_code={shown}"),
            "expires_in": lifetime / 1000,
            "interval": INTERVAL,
        });
        Ok(body.to_string())
    }
}

/// Counts the waiting devices of a client app, up to the limit.
fn open(tx: &mut Tx<'_>, application: Uuid, now: Timestamp) -> Result<i64, StoreError> {
    let text = format!(
        "SELECT count(*) FROM (SELECT 1 FROM device_authorization WHERE client_app_id = ?1 \
         AND status = 'Pending' AND expires_on > ?2 LIMIT {MAX_OPEN}) w"
    );
    Ok(tx.one(&text, &[application.into(), now.0.into()], |row| row.int(0))?.unwrap_or_default())
}

/// Counts the devices of all client apps, up to the limit.
fn open_of_all(tx: &mut Tx<'_>, now: Timestamp) -> Result<i64, StoreError> {
    let text = format!(
        "SELECT count(*) FROM (SELECT 1 FROM device_authorization WHERE expires_on > ?1 \
         LIMIT {MAX_OPEN_OF_ALL}) w"
    );
    Ok(tx.one(&text, &[now.0.into()], |row| row.int(0))?.unwrap_or_default())
}
