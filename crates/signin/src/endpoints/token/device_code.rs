//! The token endpoint's grant for devices (RFC 8628, section 3.4).

use std::sync::Arc;

use chancery_application::{SignOutScope, sign_out};
use chancery_auth::{Confirmation, EndpointRequest, OAuthError, TokenGrant};
use chancery_record::Timestamp;
use chancery_resource::{Context, MasterKey, Problem, Scope, StateTable, StoreError, Tx};
use chancery_store::selectable;
use uuid::Uuid;

use super::{GrantRequest, GrantType, claim_all, invalid_grant};
use crate::{
    claims::{self, Issuance, ReleasedClaims},
    client_app::audience::audience,
    grant::{
        Grant,
        device_code::{associated_data, digest},
        expiry::grant_expiry,
        granted::Granted,
        refresh_token::RefreshToken,
    },
    person,
    provider::Provider,
    tokens::{Lifetimes, Tokens},
};

pub(super) static GRANT_TYPE: GrantType = GrantType {
    name: "urn:ietf:params:oauth:grant-type:device_code",
    label: "device_code",
    redeem: |provider, request| Box::pin(provider.redeem_device(request)),
};

const INVALID_CODE: &str = "The device code is not known here, was used, or is another client's.";
struct Presented {
    digest: Vec<u8>,
    is_early: bool,
}

impl Provider<'_> {
    /// Exchanges a device code for tokens, once a person has approved the device.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    async fn redeem_device(self, request: &EndpointRequest) -> Result<TokenGrant, OAuthError> {
        request.check_single()?;
        let missing = OAuthError::new(400, "invalid_request", "device_code is missing.");
        let code = request.one("device_code").ok_or(missing)?;
        let digest = digest(&self.context.master, code);
        let asked = self.grant_request(request, INVALID_CODE).await?;
        let presented = Presented { is_early: self.device_polls.is_early(&digest, request.now), digest };
        let (context, asking) = (Arc::clone(self.context), Arc::clone(&asked));
        let redeemed = self.issue_with_rules("RedeemDevice", request.now, move |tx, released| {
            let context = Context::of_server(&context, Scope::Everything, asking.now);
            redeem(tx, &context, &asking, &presented, released)
        });
        let tokens = redeemed.await?;
        self.issue_tokens(request, &asked.client, asked.cnf.clone(), tokens, asked.epoch).await
    }
}

selectable! {
    /// A device authorization as it is stored.
    struct DeviceRow<'r> from "FROM device_authorization WHERE digest = ?1" {
        application: Uuid = "client_app_id",
        issuing: Option<Uuid> = "issuing_tenant_id",
        status: String = "status",
        grant: Option<Uuid> = "grant_id",
        sealed: Option<&'r [u8]> = "sealed",
        expires_on: Timestamp = "expires_on",
    }
}

/// The device authorization of a device code.
struct DeviceAuthorization {
    application: Uuid,
    issuing: Option<Uuid>,
    status: String,
    grant: Option<Uuid>,
    granted: Option<Granted>,
    expires_on: Timestamp,
}

fn find(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    digest: &[u8],
) -> Result<Option<DeviceAuthorization>, StoreError> {
    tx.one(DeviceRow::SELECT, &[digest.to_vec().into()], |row| {
        let row = DeviceRow::read(row)?;
        let opened = row.sealed.and_then(|sealed| master.open(&associated_data(digest), sealed));
        Ok(DeviceAuthorization {
            application: row.application,
            issuing: row.issuing,
            status: row.status,
            grant: row.grant,
            granted: opened.and_then(|text| serde_json::from_slice(text.expose()).ok()),
            expires_on: row.expires_on,
        })
    })
}

fn redeem(
    tx: &mut Tx<'_>,
    context: &Context,
    asked: &GrantRequest,
    presented: &Presented,
    released: Option<&Arc<ReleasedClaims>>,
) -> Result<Result<Issuance<Tokens>, OAuthError>, Problem> {
    let (master, application) = (&context.app.master, &*asked.application);
    let refuse = |error, detail| Ok(Err(OAuthError::new(400, error, detail)));
    let device = find(tx, master, &presented.digest)?;
    let Some(device) =
        device.filter(|device| device.application == asked.client.id && device.issuing == asked.issuing)
    else {
        return Ok(Err(OAuthError::unknown_grant(INVALID_CODE)));
    };
    let approved = device.granted.as_ref();
    let approved = approved.filter(|_| device.status == "Approved" && device.expires_on > asked.now);
    if let (Some(granted), None) = (approved, released)
        && let Some(rules) = claims::pending(tx, application, granted, &granted.scope, asked.now)?
    {
        return Ok(Ok(Issuance::Rules(rules)));
    }
    // guesses of anonymous callers must not fill the table of used ids
    if let Err(refused) = claim_all(tx, &asked.replay)? {
        return Ok(Err(refused));
    }
    match device.status.as_str() {
        "Denied" => return refuse("access_denied", "The person turned the device away."),
        "Pending" | "Approved" if device.expires_on <= asked.now => {
            return refuse("expired_token", "The device code has expired: ask for another one.");
        }
        "Pending" if presented.is_early => return refuse("slow_down", "Ask every 5 seconds at most."),
        "Pending" => return refuse("authorization_pending", "Nobody has let the device in yet."),
        _ => {}
    }
    let text = StateTable::DeviceAuthorization
        .update("SET status = 'Used' WHERE digest = ?1 AND status = 'Approved'");
    let is_first = tx.execute(&text, &[presented.digest.clone().into()])? == 1;
    let (Some(grant), Some(mut granted)) = (device.grant, device.granted) else {
        return Ok(Err(invalid_grant(INVALID_CODE)));
    };
    if !is_first {
        // a code that is presented again may have been stolen: its grant ends
        sign_out(context, tx, SignOutScope::Grant(grant))?;
        return Ok(Err(invalid_grant(INVALID_CODE)));
    }
    let tenant = application.serving(granted.tenant, granted.issuing);
    let tenant = tenant.filter(|_| application.allow_user_login && application.allows_devices);
    let Some(tenant) = tenant else { return Ok(Err(invalid_grant(INVALID_CODE))) };
    let Ok(admitted) = person::admit(tx, application, granted.identity(), granted.tenant, asked.now)? else {
        return Ok(Err(invalid_grant("The person is no longer admitted.")));
    };
    let aud = match audience(tx, application, &granted.resources)? {
        Ok(aud) => aud,
        Err(refused) => return Ok(Err(refused.into())),
    };
    if asked.client.is_public && asked.cnf != Confirmation::default() {
        granted.cnf = Some(asked.cnf.clone());
    }
    let grant = Grant::new(grant, asked.client.id, granted, asked.now);
    let until = grant_expiry(&grant, application, &tenant.options, asked.now);
    grant.insert(&context.app, tx, tenant.subscription, until)?;
    let refresh_token =
        grant.granted.has_refresh_token(application).then(|| RefreshToken::of(master, &grant));
    let released =
        claims::released(tx, application, &grant.granted, &grant.granted.scope, &admitted, released)?;
    Ok(Ok(Issuance::Done(Tokens {
        grant: grant.id,
        released,
        scope: grant.granted.scope.clone(),
        granted: grant.granted,
        aud,
        nonce: None,
        refresh_token,
        lifetimes: Lifetimes::of(&tenant.options),
    })))
}
