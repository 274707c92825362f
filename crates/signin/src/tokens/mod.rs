//! The tokens of a person for a client app.

pub mod backchannel_logout;
mod issuance;

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_auth::{Claims, ClientApp, Confirmation, EndpointRequest, ID_TOKEN, OAuthError, TokenGrant};
use chancery_oauth::{OPENID, half_hash};
use chancery_record::Timestamp;
use chancery_resource::{
    StoreError,
    settings::{Options, TenantOption},
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{claims::ReleasedClaims, grant::granted::Granted, provider::Provider};

/// Lifetimes of tokens, in seconds.
#[derive(Clone, Copy)]
pub struct Lifetimes {
    /// Access tokens.
    pub access_token: i64,
    /// ID tokens.
    pub id_token: i64,
}

impl Lifetimes {
    /// Those of a tenant.
    pub fn of(options: &Options<TenantOption>) -> Self {
        let seconds = |setting| options.get(setting) / 1000;
        Self {
            access_token: seconds(TenantOption::ACCESS_TOKEN_LIFETIME),
            id_token: seconds(TenantOption::IDENTITY_TOKEN_LIFETIME),
        }
    }
}

/// The input of tokens.
pub struct Tokens {
    /// The grant: `gid`.
    pub grant: Uuid,
    /// The content of the grant.
    pub granted: Granted,
    /// The scope of these tokens, which may be narrower.
    pub scope: String,
    /// The audience of the access token.
    pub aud: Vec<String>,
    /// The claims about the person.
    pub released: Arc<ReleasedClaims>,
    /// `nonce` of the authorization request.
    pub nonce: Option<String>,
    /// The refresh token, if there is one.
    pub refresh_token: Option<String>,
    /// The lifetimes.
    pub lifetimes: Lifetimes,
}

impl Tokens {
    /// The claims of the access token of the issuer at this URL; its id is not in them yet.
    pub fn access_token(&self, url: &str, application: Uuid, cnf: Confirmation, now: Timestamp) -> Claims {
        let Self { grant, granted, scope, aud, released, lifetimes, .. } = self;
        let issued = now.0.div_euclid(1000);
        Claims {
            iss: url.to_owned(),
            sub: granted.person,
            client_id: application,
            aud: aud.clone(),
            iat: issued,
            exp: issued + lifetimes.access_token,
            jti: String::new(),
            scope: Some(scope.clone()).filter(|scope| !scope.is_empty()),
            cnf: (cnf != Confirmation::default()).then_some(cnf),
            act: None,
            gid: Some(*grant),
            tid: Some(granted.tenant),
            auth_time: Some(granted.auth_time),
            acr: Some(granted.acr.clone()),
            amr: granted.amr.clone(),
            from_jti: Vec::new(),
            rule_claims: released.access_token.clone(),
        }
    }
}

impl Provider<'_> {
    /// Issues tokens. Returns the response of the token endpoint.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub(crate) async fn issue_tokens(
        self,
        request: &EndpointRequest,
        app: &ClientApp,
        cnf: Confirmation,
        tokens: Tokens,
        epoch: i64,
    ) -> Result<TokenGrant, OAuthError> {
        let mut claims = tokens.access_token(&request.issuer.url, app.id, cnf, request.now);
        let Tokens { granted, scope, released, nonce, refresh_token, lifetimes, .. } = tokens;
        let token =
            self.tokens.issue(self.store, &mut claims, app, &request.issuer, request.now, epoch).await?;
        let mut body = json!({
            "access_token": token,
            "token_type": claims.token_type(),
            "expires_in": lifetimes.access_token,
        });
        let members =
            body.as_object_mut().ok_or_else(|| StoreError::Internal("an answer is no object".into()))?;
        members.extend(claims.scope.as_ref().map(|scope| ("scope".to_owned(), json!(scope))));
        members.extend(refresh_token.map(|token| ("refresh_token".to_owned(), json!(token))));
        if scope.split(' ').any(|word| word == OPENID) {
            let sid = granted.session.map(|session| self.session_for(session, app.id));
            let about = IdToken {
                granted: &granted,
                person: Arc::unwrap_or_clone(released).id_token,
                nonce,
                sid,
                token: &token,
                lifetime: lifetimes.id_token,
            };
            let (issuer, client) = (request.issuer.url.as_str(), app.id);
            let claims = move |algorithm: &str| about.claims(issuer, client, algorithm, request.now);
            let signed = self
                .tokens
                .sign_id_token(self.store, ID_TOKEN, claims, &request.issuer, request.now, epoch)
                .await?;
            members.insert("id_token".to_owned(), json!(signed));
        }
        let nonce = app.configuration.needs_nonce.then(|| self.tokens.nonces.issue(request.now));
        Ok(TokenGrant { body: body.to_string(), nonce })
    }

    /// The `sid` of a session for a client app: each app gets another value, so that apps cannot correlate their
    /// data.
    pub(crate) fn session_for(self, session: Uuid, application: Uuid) -> String {
        let about = [session.as_bytes().as_slice(), application.as_bytes()].concat();
        let digest = self.context.master.digest("sign-in-sid", &about);
        BASE64_URL_SAFE_NO_PAD.encode(digest.get(..16).unwrap_or_default())
    }
}

/// The input of an ID token.
pub struct IdToken<'a> {
    /// The content of the grant.
    pub granted: &'a Granted,
    /// The claims of the person.
    pub person: Map<String, Value>,
    /// `nonce`
    pub nonce: Option<String>,
    /// `sid`
    pub sid: Option<String>,
    /// The access token.
    pub token: &'a str,
    /// The lifetime in seconds.
    pub lifetime: i64,
}

impl IdToken<'_> {
    /// The claims (OpenID Connect Core 1.0, section 2). The person's claims do not replace the server's own.
    pub fn claims(self, url: &str, application: Uuid, algorithm: &str, now: Timestamp) -> Value {
        let issued = now.0.div_euclid(1000);
        let granted = self.granted;
        let mut claims = json!({
            "iss": url,
            "sub": granted.person,
            "aud": application,
            "azp": application,
            "iat": issued,
            "exp": issued + self.lifetime,
            "auth_time": granted.auth_time,
            "acr": granted.acr,
            "amr": granted.amr,
            "tid": granted.tenant,
            "at_hash": half_hash(self.token, algorithm),
        });
        if let Some(members) = claims.as_object_mut() {
            for (name, value) in self.person {
                members.entry(name).or_insert(value);
            }
            let more = [("nonce", self.nonce), ("sid", self.sid)];
            members
                .extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))));
        }
        claims
    }
}
