//! The token endpoint's grant `authorization_code` (RFC 6749, section 4.1.3; OpenID Connect Core 1.0, section 3.1.3).

use std::sync::Arc;

use chancery_auth::{Confirmation, EndpointRequest, OAuthError, TokenGrant};
use chancery_oauth::{Challenge, parse_targets, verify_pkce};
use chancery_resource::{Context, Problem, Scope, Tx};

use super::{GrantRequest, GrantType, claim_all, invalid_grant};
use crate::{
    claims::{self, Issuance, ReleasedClaims},
    client_app::audience::{audience, narrowed},
    grant::{
        Grant,
        authorization_code::{self, StoredCode},
        expiry::grant_expiry,
        refresh_token::RefreshToken,
    },
    person,
    provider::Provider,
    session::is_session_active,
    tokens::{Lifetimes, Tokens},
};

pub(super) static GRANT_TYPE: GrantType = GrantType {
    name: "authorization_code",
    label: "authorization_code",
    redeem: |provider, request| Box::pin(provider.redeem(request)),
};

const INVALID_CODE: &str = "The code is not known here, has expired, or is another client's.";

/// The parameters of a token request.
struct Presented {
    code: String,
    redirect_uri: String,
    verifier: Option<String>,
    resources: Vec<String>,
}

impl Provider<'_> {
    /// Exchanges a code for tokens.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    async fn redeem(self, request: &EndpointRequest) -> Result<TokenGrant, OAuthError> {
        request.check_single()?;
        let missing = |detail| OAuthError::new(400, "invalid_request", detail);
        let code = request.one("code").ok_or(missing("code is missing."))?.to_owned();
        let redirect_uri = request.one("redirect_uri").ok_or(missing("redirect_uri is missing."))?.to_owned();
        let resources = parse_targets(request.all("resource"))?;
        let asked = self.grant_request(request, INVALID_CODE).await?;
        let presented = Presented {
            code,
            redirect_uri,
            verifier: request.one("code_verifier").map(str::to_owned),
            resources,
        };
        let (context, asking) = (Arc::clone(self.context), Arc::clone(&asked));
        let redeemed = self.issue_with_rules("RedeemCode", request.now, move |tx, released| {
            let context = Context::of_server(&context, Scope::Everything, asking.now);
            redeem(tx, &context, &asking, &presented, released)
        });
        let tokens = redeemed.await?;
        self.issue_tokens(request, &asked.client, asked.cnf.clone(), tokens, asked.epoch).await
    }
}
/// Exchanges a code for a grant. Inner errors are committed: a wrong presentation counts, and a second use ends the
/// grant.
fn redeem(
    tx: &mut Tx<'_>,
    context: &Context,
    asked: &GrantRequest,
    presented: &Presented,
    released: Option<&Arc<ReleasedClaims>>,
) -> Result<Result<Issuance<Tokens>, OAuthError>, Problem> {
    let (master, application) = (&context.app.master, &*asked.application);
    let stored = authorization_code::find(tx, master, &presented.code, asked.now)?;
    let Some(stored) = stored.filter(|stored| stored.application == asked.client.id) else {
        return Ok(Err(OAuthError::unknown_grant(INVALID_CODE)));
    };
    if let Err(refused) = check(&stored, asked, presented) {
        stored.miss(tx)?;
        return Ok(Err(invalid_grant(refused)));
    }
    if released.is_none() && !stored.is_used() {
        let granted = &stored.contents.granted;
        if let Some(rules) = claims::pending(tx, application, granted, &granted.scope, asked.now)? {
            return Ok(Ok(Issuance::Rules(rules)));
        }
    }
    if let Err(refused) = claim_all(tx, &asked.replay)? {
        return Ok(Err(refused));
    }
    if !stored.claim(context, tx)? {
        return Ok(Err(invalid_grant("The code was used before.")));
    }
    let mut granted = stored.contents.granted;
    let tenant =
        application.serving(granted.tenant, granted.issuing).filter(|_| application.allow_user_login);
    let Some(tenant) = tenant else { return Ok(Err(invalid_grant(INVALID_CODE))) };
    let has_session = match granted.session {
        Some(session) => is_session_active(tx, session, asked.now)?,
        None => true,
    };
    let admitted = person::admit(tx, application, granted.identity(), granted.tenant, asked.now)?;
    let Some(admitted) = admitted.ok().filter(|_| has_session) else {
        let detail = "The person's session has ended, or the person is no longer admitted.";
        return Ok(Err(invalid_grant(detail)));
    };
    let aud = match audience(tx, application, &granted.resources)?
        .and_then(|all| narrowed(all, &presented.resources))
    {
        Ok(aud) => aud,
        Err(refused) => return Ok(Err(refused.into())),
    };
    if asked.client.is_public && asked.cnf != Confirmation::default() {
        granted.cnf = Some(asked.cnf.clone());
    }
    let lifetimes = Lifetimes::of(&tenant.options);
    let grant = Grant::new(stored.grant, asked.client.id, granted, asked.now);
    let until = grant_expiry(&grant, application, &tenant.options, asked.now);
    grant.insert(&context.app, tx, tenant.subscription, until)?;
    let refresh_token =
        grant.granted.has_refresh_token(application).then(|| RefreshToken::of(master, &grant));
    let granted = grant.granted;
    let released = claims::released(tx, application, &granted, &granted.scope, &admitted, released)?;
    Ok(Ok(Issuance::Done(Tokens {
        grant: grant.id,
        released,
        scope: granted.scope.clone(),
        granted,
        aud,
        nonce: stored.contents.nonce,
        refresh_token,
        lifetimes,
    })))
}

/// Checks the presented parameters against those of the code.
fn check(stored: &StoredCode, asked: &GrantRequest, presented: &Presented) -> Result<(), &'static str> {
    let contents = &stored.contents;
    if contents.redirect_uri != presented.redirect_uri {
        return Err("redirect_uri is another one than in the authorization request.");
    }
    if contents.granted.issuing != asked.issuing {
        return Err("The code is another issuer's.");
    }
    if contents.dpop_jkt.is_some() && contents.dpop_jkt != asked.cnf.jkt {
        return Err("The code is bound to a key: send a proof by it.");
    }
    let challenge = contents.challenge.as_deref().and_then(Challenge::read);
    verify_pkce(challenge.as_ref(), presented.verifier.as_deref()).map_err(|refusal| refusal.detail)
}
