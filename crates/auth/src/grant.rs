//! The token endpoint: client credentials (RFC 6749, section 4.4) and token exchange (RFC 8693).

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use chancery_oauth::{
    Actor, ActorTokens, GRANT_TYPE as EXCHANGE, NoncePolicy, Request, Scope, TokenType, Use, act_claim,
    actors_of, check_use, is_same_resource, parse_exchange, verify_proof,
};
use chancery_record::{Value, read_json};
use chancery_resource::{PLATFORM, Sql};
use chancery_store::{Error, Mode, Store};
use serde_json::json;
use uuid::Uuid;

use crate::{
    Claims, Confirmation, OAuthError, Rights, TokenService,
    authenticate::{AuthenticatedClient, authenticate},
    client::ClientApp,
    error::{INVALID_CLIENT, invalid},
    presented::{EndpointRequest, certificate_thumbprint},
    replay::ReplayId,
};

const CLIENT_CREDENTIALS: &str = "client_credentials";
/// The grant types for tokens of a client app itself.
pub const GRANTS: [&str; 2] = [CLIENT_CREDENTIALS, EXCHANGE];
/// The most resources of one request, and the bytes of the longest name of one.
const MAX_RESOURCES: usize = 32;
const MAX_RESOURCE: usize = 2048;

/// A successful response of the token endpoint.
pub struct TokenGrant {
    /// The body, in JSON (RFC 6749, section 5.1).
    pub body: String,
    /// The nonce for the client's next DPoP proof.
    pub nonce: Option<String>,
}

/// The requested grant.
enum GrantRequest {
    /// A token for the client itself.
    Own { resources: Vec<String>, scope: Option<Scope> },
    /// A token exchanged for another.
    Exchange(chancery_oauth::TokenExchangeRequest),
}

/// A granted token, before it is bound, signed and stored.
struct GrantedToken {
    sub: Uuid,
    aud: Vec<String>,
    scope: Option<String>,
    act: Option<serde_json::Value>,
    exp: i64,
    /// The token that the new one is exchanged for.
    subject: Option<Arc<Claims>>,
}

/// A granted token with its claims, before it is signed and stored.
pub struct PendingToken {
    app: ClientApp,
    epoch: i64,
    claims: Claims,
    is_exchanged: bool,
    /// The ids of the assertion and of the DPoP proof, which can be used once.
    replay_ids: (Option<ReplayId>, Option<ReplayId>),
}

/// Validates a token request.
///
/// # Errors
/// [`OAuthError`], which the endpoint answers.
pub async fn grant(
    store: &Store,
    token_service: &TokenService,
    rights: &Rights,
    request: &EndpointRequest,
) -> Result<PendingToken, OAuthError> {
    request.check_single()?;
    request.presented()?;
    let requested = read_request(request)?;
    let (resources, scopes) = match &requested {
        GrantRequest::Own { resources, scope } => (resources.clone(), scope.is_some()),
        GrantRequest::Exchange(_) => (Vec::new(), true),
    };
    let AuthenticatedClient { app, used, epoch } =
        authenticate(store, token_service, request, resources, scopes).await?;
    if app.is_public {
        let detail = "A public client app has no credentials, and gets no tokens of its own.";
        return Err(OAuthError::new(400, "unauthorized_client", detail));
    }
    let (cnf, proof) = bind(token_service, &app, request)?;
    let granted = match requested {
        GrantRequest::Own { resources, scope } => grant_own(&app, &resources, scope, request)?,
        GrantRequest::Exchange(exchange) => {
            grant_exchange(store, token_service, rights, &app, &exchange, request).await?
        }
    };
    let bound = granted.subject.as_ref().and_then(|subject| subject.cnf.as_ref());
    let cnf = bound.map_or_else(|| Ok(cnf.clone()), |bound| inherit_binding(&cnf, bound))?;
    let issued = request.now.0.div_euclid(1000);
    // a person's token keeps the person's grant, and the claims about the sign-in
    let person = granted.subject.as_deref().filter(|subject| subject.gid.is_some());
    let claims = Claims {
        iss: request.issuer.url.clone(),
        sub: granted.sub,
        client_id: app.id,
        aud: granted.aud,
        iat: issued,
        exp: granted.exp,
        jti: String::new(),
        scope: granted.scope,
        cnf: (cnf != Confirmation::default()).then_some(cnf),
        act: granted.act,
        gid: person.and_then(|subject| subject.gid),
        tid: person.map_or_else(|| request.issuer.tenant_id(), |subject| subject.tid),
        auth_time: person.and_then(|subject| subject.auth_time),
        acr: person.and_then(|subject| subject.acr.clone()),
        amr: person.map_or_else(Vec::new, |subject| subject.amr.clone()),
        from_jti: granted.subject.as_deref().map_or_else(Vec::new, lineage),
        rule_claims: BTreeMap::new(),
    };
    let is_exchanged = granted.subject.is_some();
    Ok(PendingToken { app, epoch, claims, is_exchanged, replay_ids: (used, proof) })
}

impl PendingToken {
    /// The grant and the claims of a person's token, to which claim rules may add.
    pub fn of_person(&mut self) -> Option<(Uuid, &mut Claims)> {
        self.claims.gid.map(|grant| (grant, &mut self.claims))
    }

    /// Signs the token, or stores it as a reference.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn issue(
        self,
        store: &Store,
        token_service: &TokenService,
        request: &EndpointRequest,
    ) -> Result<TokenGrant, OAuthError> {
        let Self { app, epoch, mut claims, is_exchanged, replay_ids } = self;
        claims.authenticate(&token_service.master);
        let claims = Arc::new(claims);
        let (token, reference_digest) = if app.gets_references {
            let (token, digest) = token_service.make_reference();
            (token, Some(digest))
        } else {
            let certificates = token_service.certificates_since(store, epoch).await?;
            (token_service.sign(store, &claims, &certificates, &request.issuer, request.now).await?, None)
        };
        finish(store, replay_ids.0, replay_ids.1, reference_digest, Arc::clone(&claims)).await?;
        let mut body = json!({
            "access_token": token,
            "token_type": claims.token_type(),
            "expires_in": claims.exp - claims.iat,
        });
        if let Some(members) = body.as_object_mut() {
            members.extend(claims.scope.as_ref().map(|scope| ("scope".to_owned(), json!(scope))));
            if is_exchanged {
                members.insert("issued_token_type".into(), json!(TokenType::AccessToken.name()));
            }
        }
        let nonce = app.configuration.needs_nonce.then(|| token_service.nonces.issue(request.now));
        Ok(TokenGrant { body: body.to_string(), nonce })
    }
}

fn read_request(request: &EndpointRequest) -> Result<GrantRequest, OAuthError> {
    match request.one("grant_type") {
        Some(CLIENT_CREDENTIALS) => {
            let resources: Vec<String> = request.all("resource").map(str::to_owned).collect();
            let is_readable = |name: &String| name.len() <= MAX_RESOURCE;
            if resources.len() > MAX_RESOURCES || !resources.iter().all(is_readable) {
                let detail = "A resource is too long, or there are too many.";
                return Err(OAuthError::new(400, "invalid_target", detail));
            }
            Ok(GrantRequest::Own { resources, scope: request.one("scope").map(Scope::parse).transpose()? })
        }
        Some(EXCHANGE) => Ok(GrantRequest::Exchange(parse_exchange(&request.form, ActorTokens::Refused)?)),
        Some(_) => Err(OAuthError::new(400, "unsupported_grant_type", "The grant type is not served.")),
        None => Err(invalid("grant_type is missing.")),
    }
}

/// The binding of the token, and the id of the DPoP proof, which can be used once.
///
/// # Errors
/// A missing or invalid certificate or proof, as the error response.
pub fn bind(
    token_service: &TokenService,
    app: &ClientApp,
    request: &EndpointRequest,
) -> Result<(Confirmation, Option<ReplayId>), OAuthError> {
    check_use(&app.unsupported_settings, Use::AccessToken)?;
    let configuration = &app.configuration;
    let mut cnf = Confirmation::default();
    if configuration.needs_certificate {
        let presented =
            request.certificate.as_ref().and_then(|presented| certificate_thumbprint(&presented.der));
        let detail = "The client app's tokens are bound to a certificate: show one.";
        cnf.x5t = Some(presented.ok_or(invalid(detail))?);
    }
    let invalid_proof = |detail| OAuthError::new(400, "invalid_dpop_proof", detail);
    let proof = match request.proofs.as_slice() {
        [] if configuration.needs_dpop => {
            return Err(invalid_proof("The client app's tokens are bound to a key: send a DPoP proof."));
        }
        [] => return Ok((cnf, None)),
        [proof] => proof,
        _ => return Err(invalid_proof("There is more than one DPoP header.")),
    };
    let nonce = if configuration.needs_nonce {
        NoncePolicy::Required(&token_service.nonces)
    } else {
        NoncePolicy::Optional(&token_service.nonces)
    };
    let url = request.issuer.endpoint(request.path);
    let requested = Request { method: "POST", url: &url, access_token: None, nonce, now: request.now };
    let proof = verify_proof(proof, &requested)?;
    let used = ReplayId::new("dpop", &proof.jkt, &proof.jti, proof.expires_on);
    cnf.jkt = Some(proof.jkt);
    Ok((cnf, Some(used)))
}

fn grant_own(
    app: &ClientApp,
    resources: &[String],
    scope: Option<Scope>,
    request: &EndpointRequest,
) -> Result<GrantedToken, OAuthError> {
    if !app.is_allowed {
        return Err(INVALID_CLIENT);
    }
    let is_platform = |name: &String| PLATFORM.contains(&name.as_str());
    // `aud` has the registered spelling, whatever was requested
    let registered = |name: &String| {
        if is_platform(name) {
            return Some(name.clone());
        }
        let resource = app.resource(name).filter(|resource| resource.is_own || !app.filters_resources);
        resource.map(|resource| resource.name.clone())
    };
    let Some(resources) = resources.iter().map(registered).collect::<Option<Vec<String>>>() else {
        let detail = "A resource is neither the platform's nor one that the client app may ask for.";
        return Err(OAuthError::new(400, "invalid_target", detail));
    };
    let scope = match scope {
        None => None,
        Some(scope) => {
            let own = scope.filter(|word| app.scopes.iter().any(|own| own == word));
            if own.is_empty() || (app.filters_scopes && own != scope) {
                let detail = "The client app does not have this scope.";
                return Err(OAuthError::new(400, "invalid_scope", detail));
            }
            Some(own.to_string())
        }
    };
    let aud = if resources.is_empty() {
        PLATFORM.map(str::to_owned).to_vec()
    } else {
        // the platform's audiences first, each once
        let platform = PLATFORM.iter().map(|name| (*name).to_owned()).filter(|name| resources.contains(name));
        let others = resources.iter().filter(|name| !is_platform(name)).cloned();
        let mut aud = Vec::new();
        for name in platform.chain(others) {
            if !aud.contains(&name) {
                aud.push(name);
            }
        }
        aud
    };
    let exp = request.now.0.div_euclid(1000) + app.lifetime;
    Ok(GrantedToken { sub: app.id, aud, scope, act: None, exp, subject: None })
}

/// Exchanges another client app's token for one for this client app (RFC 8693), with no more rights.
async fn grant_exchange(
    store: &Store,
    token_service: &TokenService,
    rights: &Rights,
    app: &ClientApp,
    exchange: &chancery_oauth::TokenExchangeRequest,
    request: &EndpointRequest,
) -> Result<GrantedToken, OAuthError> {
    let invalid_subject = invalid("subject_token is not valid here, has expired or was revoked.");
    if exchange.subject.kind == TokenType::IdToken {
        return Err(invalid("subject_token_type: access tokens can be exchanged."));
    }
    let Ok(token) = std::str::from_utf8(exchange.subject.token.expose()) else { return Err(invalid_subject) };
    let context = rights.load(store, token_service, Some(token), None, request.now).await?;
    let is_valid = |claims: &Arc<Claims>| claims.is_current(request.now) && claims.iss == request.issuer.url;
    let subject = context.claims.filter(is_valid);
    let caller = context.caller.filter(|caller| caller.enabled);
    let (Some(subject), Some(_)) = (subject, caller) else { return Err(invalid_subject) };
    if !may_exchange(store, subject.client_id, app.id).await? {
        let detail = "The client app that the token was issued to does not let this one exchange it.";
        return Err(OAuthError::new(400, "unauthorized_client", detail));
    }
    let own = if app.filters_resources {
        Some(resources_of(store, app.id, subject.aud.clone()).await?)
    } else {
        None
    };
    let is_permitted = |name: &&String| {
        PLATFORM.contains(&name.as_str()) || own.as_ref().is_none_or(|own| own.contains(name.as_str()))
    };
    let requested: Vec<&String> = exchange.resources.iter().chain(&exchange.audiences).collect();
    let is_requested = |name: &String| {
        requested.is_empty() || requested.iter().any(|requested| is_same_resource(requested, name))
    };
    let aud: Vec<String> =
        subject.aud.iter().filter(|name| is_requested(name) && is_permitted(name)).cloned().collect();
    if aud.is_empty()
        || requested.iter().any(|requested| !aud.iter().any(|name| is_same_resource(requested, name)))
    {
        let detail =
            "The subject_token is not meant for this resource, or the client app may not ask for it.";
        return Err(OAuthError::new(400, "invalid_target", detail));
    }
    let scope = exchanged_scope(app, &subject, exchange.scope.as_ref())?;
    let exp = subject.exp.min(request.now.0.div_euclid(1000) + app.lifetime);
    let act = actors(&subject, app.id)?;
    Ok(GrantedToken { sub: subject.sub, aud, scope, act, exp, subject: Some(subject) })
}

/// The binding of a token exchanged for a bound one: the same key and certificate. A client that presents a key or
/// certificate in the exchange must present that one.
fn inherit_binding(own: &Confirmation, subject: &Confirmation) -> Result<Confirmation, OAuthError> {
    let inherited = |own: &Option<String>, subject: &Option<String>| match (own, subject) {
        (Some(own), Some(subject)) if own != subject => Err(invalid(
            "subject_token is bound to another key or certificate than was shown: show that one.",
        )),
        _ => Ok(subject.clone().or_else(|| own.clone())),
    };
    Ok(Confirmation { jkt: inherited(&own.jkt, &subject.jkt)?, x5t: inherited(&own.x5t, &subject.x5t)? })
}

/// The ids of the subject token and of the tokens that it was exchanged for, the last first.
fn lineage(subject: &Claims) -> Vec<String> {
    std::iter::once(&subject.jti).chain(&subject.from_jti).cloned().collect()
}

/// The scope of an exchanged token: as requested, within what the subject token has and the client app may
/// get.
fn exchanged_scope(
    app: &ClientApp,
    subject: &Claims,
    requested: Option<&Scope>,
) -> Result<Option<String>, OAuthError> {
    let is_permitted = |word: &&str| !app.filters_scopes || app.scopes.iter().any(|own| own == word);
    let held: Vec<&str> =
        subject.scope.as_deref().unwrap_or_default().split_whitespace().filter(is_permitted).collect();
    match requested {
        None => Ok(Some(held.join(" ")).filter(|scope| !scope.is_empty())),
        Some(scope) if scope.words().all(|word| held.contains(&word)) => Ok(Some(scope.to_string())),
        Some(_) => {
            let detail = "The subject_token does not have this scope, or the client app may not.";
            Err(OAuthError::new(400, "invalid_scope", detail))
        }
    }
}

/// The client app's own of these resources.
async fn resources_of(store: &Store, client: Uuid, names: Vec<String>) -> Result<HashSet<String>, Error> {
    let resources = store.run("FindResources", Mode::Quick, None, move |tx| {
        let mut own = HashSet::new();
        let mut sql = Sql::new(
            "SELECT r.key FROM client_app_resource r JOIN client_app a ON a.id = r.client_app_id \
             JOIN resource_owner o ON o.key = r.key AND o.subscription_id = a.subscription_id \
             WHERE r.client_app_id = ",
        )
        .bind(client);
        sql.add(" AND r.key IN ");
        sql.add_list(names.iter().map(|name| Value::Text(name.clone())));
        tx.query(&sql.text, &sql.parameters, |row| {
            own.insert(row.text(0)?.to_owned());
            Ok(())
        })?;
        Ok::<_, Error>(own)
    });
    resources.await
}

/// The value of `act` (RFC 8693, section 4.1): this client app, then those that acted before.
fn actors(subject: &Claims, client: Uuid) -> Result<Option<serde_json::Value>, OAuthError> {
    let before = json!({ "act": subject.act }).to_string();
    let mut actors = vec![Actor { sub: client.to_string(), iss: None }];
    if subject.act.is_some() {
        let before = read_json(before.as_bytes()).map_err(|_| invalid("act cannot be read."))?;
        actors.extend(actors_of(&before)?);
    }
    Ok(act_claim(&actors)?)
}

async fn may_exchange(store: &Store, owner: Uuid, client: Uuid) -> Result<bool, Error> {
    let text = "SELECT 1 FROM client_app a JOIN client_app_token_exchange m ON m.client_app_rid = a.rid \
        JOIN client_app b ON b.rid = m.allowed_rid WHERE a.id = ?1 AND b.id = ?2";
    let row = store.run("MayExchange", Mode::Quick, None, move |tx| {
        tx.one(text, &[Value::Id(owner), Value::Id(client)], |_| Ok(()))
    });
    Ok(row.await?.is_some())
}

const USED_PROOF: OAuthError = OAuthError::new(400, "invalid_dpop_proof", "The DPoP proof was used before.");

/// Claims the ids of the assertion and the DPoP proof, so that neither is used twice, and stores a reference token.
async fn finish(
    store: &Store,
    assertion: Option<ReplayId>,
    proof: Option<ReplayId>,
    reference: Option<Vec<u8>>,
    claims: Arc<Claims>,
) -> Result<(), OAuthError> {
    if assertion.is_none() && proof.is_none() && reference.is_none() {
        return Ok(());
    }
    let (pair, one, refusal) = match (assertion, proof) {
        (Some(assertion), Some(proof)) => (Some((assertion, proof)), None, USED_PROOF),
        (Some(assertion), None) => (None, Some(assertion), INVALID_CLIENT),
        (None, proof) => (None, proof, USED_PROOF),
    };
    let outcome = store.run("SettleToken", Mode::Write, None, move |tx| {
        if let Some((assertion, proof)) = &pair {
            if !assertion.claim(tx)? {
                return Ok(Err(INVALID_CLIENT));
            }
            if !proof.claim(tx)? {
                return Ok(Err(USED_PROOF));
            }
        }
        if let Some(digest) = &reference {
            claims.store(tx, digest)?;
        }
        match &one {
            Some(one) => one.claim_last(tx)?,
            None => tx.finish()?,
        }
        Ok(Ok(()))
    });
    match outcome.await {
        Err(Error::Unique(_)) => Err(refusal),
        outcome => outcome?,
    }
}
