//! Introspection (RFC 7662; signed responses, RFC 9701) and revocation (RFC 7009) of access tokens.

use std::sync::Arc;

use chancery_oauth::{Use, check_use};
use chancery_record::Value;
use chancery_store::{Error, Mode, StateTable, Store, Tx};
use serde_json::{Value as Json, json};

use crate::{
    Caller, Claims, ClientApp, OAuthError, Rights, SecurityContext, TokenService,
    authenticate::{AuthenticatedClient, authenticate, cached_client, record_use},
    error::{INVALID_CLIENT, invalid},
    presented::EndpointRequest,
    rights_lookup::{IntrospectionAccess, read_access},
    token_service::OpenedToken,
};

/// The `typ` of a signed response (RFC 9701, section 5).
const SIGNED: &str = "token-introspection+jwt";

/// A response of the introspection endpoint.
pub struct Introspection {
    /// JSON, or a JWT.
    pub body: String,
    /// Whether it is a JWT (RFC 9701).
    pub is_signed: bool,
}

impl Introspection {
    /// The response to a client app: signed by the key of ID tokens of this epoch, if the client app accepts or requires that.
    ///
    /// # Errors
    /// Errors of the store; a key that cannot sign.
    pub async fn new(
        store: &Store,
        token_service: &TokenService,
        request: &EndpointRequest,
        app: &ClientApp,
        claims_shown: Json,
        epoch: i64,
    ) -> Result<Self, OAuthError> {
        if !request.accepts_signed && !app.needs_signed_introspection {
            return Ok(Self { body: claims_shown.to_string(), is_signed: false });
        }
        let claims = json!({
            "iss": request.issuer.url,
            "aud": app.id,
            "iat": request.now.0.div_euclid(1000),
            "token_introspection": claims_shown,
        });
        let signing =
            token_service.sign_id_token(store, SIGNED, |_: &str| claims, &request.issuer, request.now, epoch);
        Ok(Self { body: signing.await?, is_signed: true })
    }
}

/// Introspects a token. Its claims are returned to the client that it was issued to, to owners of a resource that it is
/// meant for, and to administrators of everything. All others get that it is not active.
///
/// # Errors
/// [`OAuthError`], which the endpoint answers.
pub async fn introspect(
    store: &Store,
    token_service: &TokenService,
    rights: &Rights,
    request: &EndpointRequest,
) -> Result<Introspection, OAuthError> {
    request.check_single()?;
    if let Some(response) = introspect_by_cached_client(store, token_service, rights, request).await? {
        return Ok(response);
    }
    let AuthenticatedClient { app, used, .. } =
        authenticate(store, token_service, request, Vec::new(), false).await?;
    if app.is_public {
        return Err(INVALID_CLIENT);
    }
    check_use(&app.unsupported_settings, Use::Introspection)?;
    let token = request.one("token").ok_or(invalid("token is missing."))?;
    if let Some(used) = used
        && !used.claim_alone(store).await?
    {
        return Err(INVALID_CLIENT);
    }
    let (context, access) =
        rights.load_introspected(store, token_service, token, app.id, request.now).await?;
    respond(store, token_service, request, &app, context, access).await
}

/// Introspects a token for a client app whose secret was verified before: the rights are read with the epoch, which proves that
/// the cached client app is still current. `None`: it is not, or an error has to be reported by the current one.
async fn introspect_by_cached_client(
    store: &Store,
    token_service: &TokenService,
    rights: &Rights,
    request: &EndpointRequest,
) -> Result<Option<Introspection>, OAuthError> {
    let Some((app, epoch)) = cached_client(token_service, request)? else { return Ok(None) };
    let is_served = !app.is_public && check_use(&app.unsupported_settings, Use::Introspection).is_ok();
    let Some(token) = request.one("token").filter(|_| is_served) else { return Ok(None) };
    let recalled = rights.recall(Some(token), None).filter(|context| context.epoch == epoch);
    let (context, access) = match recalled {
        Some(context) => match access_by_cache(store, &context, &app).await {
            Ok(access) => (context, access),
            Err(Error::Stale) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        None => rights.load_introspected(store, token_service, token, app.id, request.now).await?,
    };
    if context.epoch != epoch {
        return Ok(None);
    }
    record_use(token_service, &app, request.now);
    Ok(Some(respond(store, token_service, request, &app, context, access).await?))
}

/// Why a client app may introspect a cached token, read at the epoch of both.
async fn access_by_cache(
    store: &Store,
    context: &SecurityContext,
    app: &ClientApp,
) -> Result<IntrospectionAccess, Error> {
    match &context.claims {
        Some(claims) if claims.client_id != app.id => {
            read_access(store, app.id, claims.aud.clone(), context.epoch).await
        }
        _ if store.epoch().await? == context.epoch => Ok(IntrospectionAccess::default()),
        _ => Err(Error::Stale),
    }
}

/// The response to a client app: the claims of an active token that the client app may know.
async fn respond(
    store: &Store,
    token_service: &TokenService,
    request: &EndpointRequest,
    app: &ClientApp,
    context: SecurityContext,
    access: IntrospectionAccess,
) -> Result<Introspection, OAuthError> {
    let epoch = context.epoch;
    let is_valid = |claims: &Arc<Claims>| claims.is_current(request.now) && claims.iss == request.issuer.url;
    let claims = context.claims.filter(is_valid);
    let caller = context.caller.filter(|caller| caller.enabled);
    let known = claims.zip(caller).filter(|(claims, caller)| {
        claims.client_id == app.id
            || access.is_system_admin
            || (access.owns_resource && caller.subscription == app.subscription)
    });
    let body = match known {
        Some((claims, caller)) => active(&claims, &caller)?,
        None => json!({ "active": false }),
    };
    Introspection::new(store, token_service, request, app, body, epoch).await
}

/// The claims of an active token, with the login name of its person (RFC 7662, section 2.2).
fn active(claims: &Claims, caller: &Caller) -> Result<Json, OAuthError> {
    let mut body = serde_json::to_value(claims)
        .map_err(|_| OAuthError::new(500, "server_error", "The token cannot be shown."))?;
    if let Some(members) = body.as_object_mut() {
        members.extend(caller.login_name.iter().map(|name| ("username".to_owned(), json!(name))));
        members.insert("active".into(), json!(true));
        members.insert("token_type".into(), json!(claims.token_type()));
    }
    Ok(body)
}

/// Revokes a token that was issued to the client, by whichever issuer, and the tokens exchanged for it. This
/// takes effect at once, on every process. A token that is invalid already is not an error (RFC 7009, section
/// 2.2).
///
/// # Errors
/// [`OAuthError`], which the endpoint answers.
pub async fn revoke(
    store: &Store,
    token_service: &TokenService,
    rights: &Rights,
    request: &EndpointRequest,
) -> Result<(), OAuthError> {
    request.check_single()?;
    let AuthenticatedClient { app, used, .. } =
        authenticate(store, token_service, request, Vec::new(), false).await?;
    let token = request.one("token").ok_or(invalid("token is missing."))?;
    if let Some(used) = used
        && !used.claim_alone(store).await?
    {
        return Err(INVALID_CLIENT);
    }
    let context = rights.load(store, token_service, Some(token), None, request.now).await?;
    let Some(claims) = context.claims.filter(|claims| claims.is_current(request.now)) else { return Ok(()) };
    if claims.client_id != app.id {
        return Err(OAuthError::new(400, "invalid_grant", "The token was issued to another client."));
    }
    let reference = match token_service.open(store, token, true, request.now).await? {
        Some(OpenedToken::Reference(digest)) => Some(digest),
        _ => None,
    };
    store
        .run("RevokeToken", Mode::Write, None, move |tx| revoke_in(tx, reference.as_deref(), &claims))
        .await?;
    Ok(())
}

fn revoke_in(tx: &mut Tx<'_>, reference: Option<&[u8]>, claims: &Arc<Claims>) -> Result<(), Error> {
    if let Some(digest) = reference {
        tx.queue(
            &StateTable::ReferenceToken.delete("WHERE digest = ?1"),
            vec![Value::Bytes(digest.to_vec())],
        )?;
    }
    // tokens exchanged for this one expire no later, and name its id
    tx.queue(
        &StateTable::RevokedToken.insert("(jti, expires_on) VALUES (?1, ?2) ON CONFLICT (jti) DO NOTHING"),
        vec![claims.jti.as_str().into(), Value::Int(claims.exp.saturating_mul(1000))],
    )?;
    // a person's token is looked up each time: no process continues to use a cached one
    if claims.gid.is_some() { Ok(()) } else { tx.advance_epoch() }
}
