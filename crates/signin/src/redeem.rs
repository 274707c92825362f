//! The token endpoint's grant `authorization_code` (RFC 6749, section 4.1.3; OpenID Connect Core 1.0, section 3.1.3).

use aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_auth::{
    AuthenticatedClient, Claims, ClientApp, Confirmation, EndpointRequest, OAuthError, ReplayId, TokenGrant,
    authenticate, bind,
};
use chancery_oauth::{Challenge, OPENID, verify_pkce};
use chancery_record::Timestamp;
use chancery_resource::{StateTable, StoreError, Tx};
use chancery_store::Mode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    code::{self, CodeContents, ShownCode},
    person,
    provider::Provider,
};

/// The value of `grant_type`.
pub const GRANT_TYPE: &str = "authorization_code";

/// A code that became a grant.
struct Redeemed {
    grant: Uuid,
    contents: CodeContents,
    lifetimes: Lifetimes,
}

/// How long tokens last, in seconds.
#[derive(Clone, Copy)]
struct Lifetimes {
    access_token: i64,
    id_token: i64,
}

fn invalid_grant(detail: &'static str) -> OAuthError {
    OAuthError::new(400, "invalid_grant", detail)
}

/// What a request shows besides the code.
struct Shown {
    code: String,
    redirect_uri: String,
    verifier: Option<String>,
    tenant: Option<Uuid>,
    replay: Vec<ReplayId>,
    jkt: Option<String>,
    now: Timestamp,
}

impl Provider<'_> {
    /// Makes tokens of a code.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn redeem(self, request: &EndpointRequest) -> Result<TokenGrant, OAuthError> {
        request.check_single()?;
        let once = ["code", "redirect_uri", "code_verifier"];
        if once.iter().any(|name| request.form.iter().filter(|(key, _)| key == name).count() > 1) {
            return Err(OAuthError::new(400, "invalid_request", "A parameter is there twice."));
        }
        let missing = |detail| OAuthError::new(400, "invalid_request", detail);
        let code = request.one("code").ok_or_else(|| missing("code is missing."))?.to_owned();
        let redirect_uri =
            request.one("redirect_uri").ok_or_else(|| missing("redirect_uri is missing."))?.to_owned();
        let AuthenticatedClient { app, used, epoch } =
            authenticate(self.store, self.tokens, request, (Vec::new(), false)).await?;
        let (cnf, proof) = bind(self.tokens, &app, request)?;
        let shown = Shown {
            code,
            redirect_uri,
            verifier: request.one("code_verifier").map(str::to_owned),
            tenant: request.issuer.tenant_id(),
            replay: used.into_iter().chain(proof).collect(),
            jkt: cnf.jkt.clone(),
            now: request.now,
        };
        let known = self.applications.find(self.store, app.id).await?.ok_or(invalid_grant(NOT_GOOD))?;
        let (master, id) = (self.context.master.clone(), app.id);
        let redeemed = self.store.run("RedeemCode", Mode::Write, None, move |tx| {
            let found = code::find(tx, &master, &shown.code, shown.now)?;
            let Some(found) = found.filter(|found| found.application == id) else { return Ok(Err(NOT_GOOD)) };
            if let Err(refused) = check(&found, &shown) {
                found.miss(tx)?;
                return Ok(Err(refused));
            }
            for replay in &shown.replay {
                if !replay.claim(tx)? {
                    return Ok(Err("The assertion or proof was used before."));
                }
            }
            if !found.claim(tx, shown.now)? {
                return Ok(Err("The code was used before."));
            }
            let contents = found.contents;
            let Some(tenant) = known.tenant(contents.tenant) else { return Ok(Err(NOT_GOOD)) };
            let is_good = is_session_good(tx, contents.session, shown.now)?
                && person::refusal(tx, &known, contents.person, contents.instance, shown.now)?.is_none();
            if !is_good {
                return Ok(Err("The person's session has ended, or the person is no longer admitted."));
            }
            let lifetimes = Lifetimes {
                access_token: tenant.options.span("AccessTokenLifetime") / 1000,
                id_token: tenant.options.span("IdentityTokenLifetime") / 1000,
            };
            let until = shown.now.plus(lifetimes.access_token * 1000);
            insert_grant(tx, (found.grant, id), &contents, (shown.now, until))?;
            Ok::<_, StoreError>(Ok(Redeemed { grant: found.grant, contents, lifetimes }))
        });
        let redeemed = redeemed.await?.map_err(invalid_grant)?;
        self.tokens_of(request, &app, (redeemed, cnf), epoch).await
    }

    async fn tokens_of(
        self,
        request: &EndpointRequest,
        app: &ClientApp,
        (redeemed, cnf): (Redeemed, Confirmation),
        epoch: i64,
    ) -> Result<TokenGrant, OAuthError> {
        let Redeemed { grant, contents, lifetimes } = redeemed;
        let issued = request.now.0.div_euclid(1000);
        let mut claims = Claims {
            iss: request.issuer.url.clone(),
            sub: contents.person,
            client_id: app.id,
            aud: vec![app.id.to_string()],
            iat: issued,
            exp: issued + lifetimes.access_token,
            jti: String::new(),
            scope: Some(contents.scope.clone()).filter(|scope| !scope.is_empty()),
            cnf: (cnf != Confirmation::default()).then_some(cnf),
            act: None,
            gid: Some(grant),
            tid: request.issuer.tenant_id(),
            from_jti: Vec::new(),
        };
        let token =
            self.tokens.issue(self.store, &mut claims, app, (&request.issuer, request.now), epoch).await?;
        let mut body = json!({
            "access_token": token,
            "token_type": claims.token_type(),
            "expires_in": lifetimes.access_token,
        });
        let members =
            body.as_object_mut().ok_or_else(|| StoreError::Internal("an answer is no object".into()))?;
        members.extend(claims.scope.as_ref().map(|scope| ("scope".to_owned(), json!(scope))));
        if contents.scope.split(' ').any(|word| word == OPENID) {
            let sid = self.session_for(contents.session, app.id);
            let about = IdToken { contents: &contents, sid, token: &token, lifetime: lifetimes.id_token };
            let claims = |algorithm: &str| about.claims(request, app.id, algorithm);
            let signed = self.tokens.sign_id_token(self.store, claims, &request.issuer, request.now).await?;
            members.insert("id_token".to_owned(), json!(signed));
        }
        let nonce = app.configuration.needs_nonce.then(|| self.tokens.nonces.make(request.now));
        Ok(TokenGrant { body: body.to_string(), nonce })
    }
}

impl Provider<'_> {
    /// What a session is called to a client app (`sid`): to each app something else, so that apps cannot join what
    /// they know.
    pub(crate) fn session_for(self, session: Uuid, application: Uuid) -> String {
        let about = [session.as_bytes().as_slice(), application.as_bytes()].concat();
        let digest = self.context.master.digest("sign-in-sid", &about);
        BASE64_URL_SAFE_NO_PAD.encode(digest.get(..16).unwrap_or_default())
    }
}

const NOT_GOOD: &str = "The code is not known here, has expired, or is another client's.";

/// Whether what is shown with a code is what it was issued for.
fn check(found: &ShownCode, shown: &Shown) -> Result<(), &'static str> {
    let contents = &found.contents;
    if contents.redirect_uri != shown.redirect_uri {
        return Err("redirect_uri is another one than in the authorization request.");
    }
    if shown.tenant.is_some_and(|tenant| tenant != contents.tenant) {
        return Err("The code is another issuer's.");
    }
    if contents.dpop_jkt.is_some() && contents.dpop_jkt != shown.jkt {
        return Err("The code is bound to a key: send a proof by it.");
    }
    let challenge = contents.challenge.as_deref().and_then(Challenge::read);
    verify_pkce(challenge.as_ref(), shown.verifier.as_deref()).map_err(|refusal| refusal.detail)
}

fn is_session_good(tx: &mut Tx<'_>, session: Uuid, now: Timestamp) -> Result<bool, StoreError> {
    let text = "SELECT 1 FROM sign_in_session WHERE id = ?1 AND ended_on IS NULL AND expires_on > ?2";
    Ok(tx.one(text, &[session.into(), now.0.into()], |_| Ok(()))?.is_some())
}

fn insert_grant(
    tx: &mut Tx<'_>,
    (grant, application): (Uuid, Uuid),
    contents: &CodeContents,
    (now, until): (Timestamp, Timestamp),
) -> Result<(), StoreError> {
    let text = StateTable::SignInGrant.insert(
        "(id, session_id, tenant_id, person_id, client_app_id, scope, started_on, expires_on) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    );
    let parameters = vec![
        grant.into(),
        contents.session.into(),
        contents.tenant.into(),
        contents.person.into(),
        application.into(),
        contents.scope.as_str().into(),
        now.0.into(),
        until.0.into(),
    ];
    tx.queue(&text, parameters)
}

/// What an ID token is made from.
struct IdToken<'a> {
    contents: &'a CodeContents,
    /// `sid`
    sid: String,
    /// The access token that comes along.
    token: &'a str,
    /// In seconds.
    lifetime: i64,
}

impl IdToken<'_> {
    /// The claims (OpenID Connect Core 1.0, section 2). Claims of scopes are at the UserInfo endpoint (section 5.4).
    fn claims(&self, request: &EndpointRequest, application: Uuid, algorithm: &str) -> Value {
        let issued = request.now.0.div_euclid(1000);
        let contents = self.contents;
        let mut claims = json!({
            "iss": request.issuer.url,
            "sub": contents.person,
            "aud": application,
            "azp": application,
            "iat": issued,
            "exp": issued + self.lifetime,
            "auth_time": contents.auth_time,
            "acr": contents.acr,
            "amr": contents.amr,
            "tid": contents.tenant,
            "sid": self.sid,
            "at_hash": half_hash(self.token, algorithm),
        });
        if let (Some(nonce), Some(members)) = (&contents.nonce, claims.as_object_mut()) {
            members.insert("nonce".to_owned(), json!(nonce));
        }
        claims
    }
}

/// The left half of a token's digest, by the hash of the ID token's algorithm, in base64url (OpenID Connect Core 1.0,
/// section 3.1.3.6).
fn half_hash(token: &str, algorithm: &str) -> String {
    let hash = match algorithm {
        name if name.ends_with("256") => digest(&SHA256, token.as_bytes()),
        name if name.ends_with("384") => digest(&SHA384, token.as_bytes()),
        _ => digest(&SHA512, token.as_bytes()),
    };
    let half = hash.as_ref().split_at(hash.as_ref().len() / 2).0;
    BASE64_URL_SAFE_NO_PAD.encode(half)
}

#[cfg(test)]
mod tests {
    use super::half_hash;

    /// OpenID Connect Core 1.0, appendix A.3: the token and its `at_hash`.
    #[test]
    fn the_hash_is_that_of_the_specification() {
        let token = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y";
        assert_eq!(half_hash(token, "RS256"), "77QmUPtjPfzWtF2AnpK9RQ");
    }
}
