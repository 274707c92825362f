//! The token endpoint's grant `authorization_code` (RFC 6749, section 4.1.3; OpenID Connect Core 1.0, section 3.1.3).

use std::sync::Arc;

use chancery_auth::{
    AuthenticatedClient, ClientApp, Confirmation, EndpointRequest, OAuthError, ReplayId, TokenGrant,
    authenticate, bind,
};
use chancery_oauth::{Challenge, parse_targets, verify_pkce};
use chancery_record::Timestamp;
use chancery_resource::{Context, Problem, Scope, Tx};
use uuid::Uuid;

use super::{GrantType, claim_all, invalid_grant};
use crate::{
    claims::{self, Issuance, ReleasedClaims},
    client_app::{
        Application,
        audience::{audience, narrowed},
    },
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

/// The parameters of a token request.
struct Presented {
    code: String,
    redirect_uri: String,
    verifier: Option<String>,
    resources: Vec<String>,
    issuing: Option<Uuid>,
    replay: Vec<ReplayId>,
    cnf: Confirmation,
    now: Timestamp,
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
        let AuthenticatedClient { app, used, epoch } =
            authenticate(self.store, self.tokens, request, (Vec::new(), false)).await?;
        let (cnf, proof) = bind(self.tokens, &app, request)?;
        let presented = Presented {
            code,
            redirect_uri,
            verifier: request.one("code_verifier").map(str::to_owned),
            resources,
            issuing: request.issuer.tenant_id(),
            replay: used.into_iter().chain(proof).collect(),
            cnf: cnf.clone(),
            now: request.now,
        };
        let application = self.application_of_grant(&app, epoch, INVALID_CODE).await?;
        let (context, app) = (Arc::clone(self.context), Arc::new(app));
        let client = Arc::clone(&app);
        let redeemed = self.issue_with_rules("RedeemCode", request.now, move |tx, released| {
            let context = Context::of_server(&context, Scope::Everything, presented.now);
            redeem(tx, &context, &application, &client, &presented, released)
        });
        let tokens = redeemed.await?;
        self.issue_tokens(request, &app, cnf, tokens, epoch).await
    }
}

const INVALID_CODE: &str = "The code is not known here, has expired, or is another client's.";
/// Exchanges a code for a grant. Inner errors are committed: a wrong presentation counts, and a second use ends the
/// grant.
fn redeem(
    tx: &mut Tx<'_>,
    context: &Context,
    application: &Application,
    app: &ClientApp,
    presented: &Presented,
    released: Option<&Arc<ReleasedClaims>>,
) -> Result<Result<Issuance<Tokens>, OAuthError>, Problem> {
    let master = &context.app.master;
    let stored = authorization_code::find(tx, master, &presented.code, presented.now)?;
    let Some(stored) = stored.filter(|stored| stored.application == app.id) else {
        return Ok(Err(OAuthError::unknown_grant(INVALID_CODE)));
    };
    if let Err(refused) = check(&stored, presented) {
        stored.miss(tx)?;
        return Ok(Err(invalid_grant(refused)));
    }
    if released.is_none() && !stored.is_used() {
        let granted = &stored.contents.granted;
        if let Some(rules) = claims::pending(tx, application, granted, &granted.scope, presented.now)? {
            return Ok(Ok(Issuance::Rules(rules)));
        }
    }
    if let Err(refused) = claim_all(tx, &presented.replay)? {
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
        Some(session) => is_session_active(tx, session, presented.now)?,
        None => true,
    };
    let admitted =
        person::admit(tx, application, (granted.person, granted.instance), granted.tenant, presented.now)?;
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
    if app.is_public && presented.cnf != Confirmation::default() {
        granted.cnf = Some(presented.cnf.clone());
    }
    let lifetimes = Lifetimes::of(&tenant.options);
    let grant = Grant::new(stored.grant, app.id, granted, presented.now);
    let until = grant_expiry(&grant, application, &tenant.options, presented.now);
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
fn check(stored: &StoredCode, presented: &Presented) -> Result<(), &'static str> {
    let contents = &stored.contents;
    if contents.redirect_uri != presented.redirect_uri {
        return Err("redirect_uri is another one than in the authorization request.");
    }
    if contents.granted.issuing != presented.issuing {
        return Err("The code is another issuer's.");
    }
    if contents.dpop_jkt.is_some() && contents.dpop_jkt != presented.cnf.jkt {
        return Err("The code is bound to a key: send a proof by it.");
    }
    let challenge = contents.challenge.as_deref().and_then(Challenge::read);
    verify_pkce(challenge.as_ref(), presented.verifier.as_deref()).map_err(|refusal| refusal.detail)
}
