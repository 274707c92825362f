//! Introspection (RFC 7662; signed responses, RFC 9701) and revocation (RFC 7009) of access tokens.

use std::sync::Arc;

use chancery_oauth::{Use, check_use};
use chancery_record::Value;
use chancery_store::{Error, Mode, StateTable, Store, Tx};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{
    Claims, ClientApp, OAuthError, Rights, TokenService,
    authenticate::{AuthenticatedClient, authenticate},
    error::{INVALID_CLIENT, invalid},
    presented::EndpointRequest,
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
    /// The response to a client app: signed by the key of ID tokens, if the client app accepts or requires that.
    ///
    /// # Errors
    /// Errors of the store; a key that cannot sign.
    pub async fn new(
        store: &Store,
        token_service: &TokenService,
        (request, app): (&EndpointRequest, &ClientApp),
        claims_shown: Json,
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
            token_service.sign_id_token(store, (SIGNED, |_: &str| claims), &request.issuer, request.now);
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
    let AuthenticatedClient { app, used, .. } =
        authenticate(store, token_service, request, (Vec::new(), false)).await?;
    if app.is_public {
        return Err(INVALID_CLIENT);
    }
    check_use(&app.unserved, Use::Introspection)?;
    let token = request.one("token").ok_or(invalid("token is missing."))?;
    if let Some(used) = used
        && !used.claim_alone(store).await?
    {
        return Err(INVALID_CLIENT);
    }
    let claims_shown = claims_for(store, (token_service, rights), (request, &app), token).await?;
    Introspection::new(store, token_service, (request, &app), claims_shown).await
}

/// The claims of a token that a client app gets.
async fn claims_for(
    store: &Store,
    (token_service, rights): (&TokenService, &Rights),
    (request, app): (&EndpointRequest, &ClientApp),
    token: &str,
) -> Result<Json, OAuthError> {
    let inactive = json!({ "active": false });
    let context = rights.load(store, token_service, Some(token), None, request.now).await?;
    let is_valid = |claims: &Arc<Claims>| claims.is_current(request.now) && claims.iss == request.issuer.url;
    let claims = context.claims.filter(is_valid);
    let caller = context.caller.filter(|caller| caller.enabled);
    let (Some(claims), Some(caller)) = (claims, caller) else { return Ok(inactive) };
    let (requester, holder) = (app.id, caller.subscription);
    let may_know = claims.client_id == requester || {
        let audience = claims.aud.clone();
        let is_neighbour = app.subscription == holder;
        store
            .run("MayIntrospect", Mode::Quick, None, move |tx| {
                Ok::<_, Error>(
                    (is_neighbour && owns_one(tx, requester, &audience)?) || administers_all(tx, requester)?,
                )
            })
            .await?
    };
    if !may_know {
        return Ok(inactive);
    }
    let mut body = serde_json::to_value(claims.as_ref())
        .map_err(|_| OAuthError::new(500, "server_error", "The token cannot be shown."))?;
    let person = claims.gid.map(|_| claims.sub);
    let username = match person {
        Some(person) => {
            store.run("ReadUsername", Mode::Quick, None, move |tx| username_of(tx, person)).await?
        }
        None => None,
    };
    if let Some(members) = body.as_object_mut() {
        members.extend(username.map(|name| ("username".to_owned(), json!(name))));
        members.insert("active".into(), json!(true));
        members.insert("token_type".into(), json!(claims.token_type()));
    }
    Ok(body)
}

/// The login name of a person (RFC 7662, section 2.2), by the oldest of the identities in user stores.
fn username_of(tx: &mut Tx<'_>, person: Uuid) -> Result<Option<String>, Error> {
    let text = "SELECT o.rid, i.subject FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.is_user_store_identity \
        JOIN idp_instance o ON o.id = i.idp_instance_id \
        WHERE u.id = ?1 AND i.lifecycle_status = 'Active' ORDER BY i.rid LIMIT 1";
    let identity = tx.one(text, &[person.into()], |row| Ok((row.int(0)?, row.text(1)?.to_owned())))?;
    let Some((store, Ok(user))) = identity.map(|(store, subject)| (store, Uuid::try_parse(&subject))) else {
        return Ok(None);
    };
    let text = "SELECT login_name FROM user_account WHERE store = ?1 AND id = ?2";
    tx.one(text, &[store.into(), user.into()], |row| Ok(row.text(0)?.to_owned()))
}

fn owns_one(tx: &mut Tx<'_>, client: Uuid, audience: &[String]) -> Result<bool, Error> {
    let names: Vec<String> = (2..2 + audience.len()).map(|number| format!("?{number}")).collect();
    if names.is_empty() {
        return Ok(false);
    }
    let text = format!(
        "SELECT 1 FROM client_app_resource r JOIN client_app a ON a.id = r.client_app_id \
         JOIN resource_owner o ON o.key = r.key AND o.subscription_id = a.subscription_id \
         WHERE r.client_app_id = ?1 AND r.key IN ({}) LIMIT 1",
        names.join(", ")
    );
    let mut parameters = vec![Value::Id(client)];
    parameters.extend(audience.iter().map(|name| Value::Text(name.clone())));
    Ok(tx.one(&text, &parameters, |_| Ok(()))?.is_some())
}

fn administers_all(tx: &mut Tx<'_>, client: Uuid) -> Result<bool, Error> {
    let text = "SELECT 1 FROM client_app_role WHERE client_app_id = ?1 AND role_type = 'SystemAdmin'";
    Ok(tx.one(text, &[Value::Id(client)], |_| Ok(()))?.is_some())
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
        authenticate(store, token_service, request, (Vec::new(), false)).await?;
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
    let reference = match token_service.open(store, token, request.now).await? {
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
