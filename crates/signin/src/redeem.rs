//! The token endpoint's grant `authorization_code` (RFC 6749, section 4.1.3; OpenID Connect Core 1.0, section 3.1.3).

use std::sync::Arc;

use chancery_auth::{
    AuthenticatedClient, ClientApp, Confirmation, EndpointRequest, OAuthError, ReplayId, TokenGrant,
    authenticate, bind,
};
use chancery_oauth::{Challenge, targets, verify_pkce};
use chancery_record::Timestamp;
use chancery_resource::{Context, Problem, Scope, StoreError, Tx};
use uuid::Uuid;

use crate::{
    application::Application,
    audience::{audience, narrowed},
    claims::{self, ReleasedClaims},
    code::{self, ShownCode},
    grant::Grant,
    person,
    provider::Provider,
    refresh::ends_on,
    refresh_token::RefreshToken,
    ruled::Making,
    tokens::{Lifetimes, Tokens},
};

/// The value of `grant_type`.
pub const GRANT_TYPE: &str = "authorization_code";

pub(crate) const fn invalid_grant(detail: &'static str) -> OAuthError {
    OAuthError::new(400, "invalid_grant", detail)
}

/// What a request shows besides the code.
struct Shown {
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
    /// Makes tokens of a code.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn redeem(self, request: &EndpointRequest) -> Result<TokenGrant, OAuthError> {
        request.check_single()?;
        let missing = |detail| OAuthError::new(400, "invalid_request", detail);
        let code = request.one("code").ok_or(missing("code is missing."))?.to_owned();
        let redirect_uri = request.one("redirect_uri").ok_or(missing("redirect_uri is missing."))?.to_owned();
        let resources = targets(request.all("resource"))?;
        let AuthenticatedClient { app, used, epoch } =
            authenticate(self.store, self.tokens, request, (Vec::new(), false)).await?;
        let (cnf, proof) = bind(self.tokens, &app, request)?;
        let shown = Shown {
            code,
            redirect_uri,
            verifier: request.one("code_verifier").map(str::to_owned),
            resources,
            issuing: request.issuer.tenant_id(),
            replay: used.into_iter().chain(proof).collect(),
            cnf: cnf.clone(),
            now: request.now,
        };
        let known = self.application_of_grant(&app, NOT_GOOD).await?;
        let (context, app) = (Arc::clone(self.context), Arc::new(app));
        let asking = Arc::clone(&app);
        let redeemed = self.make_ruled("RedeemCode", request.now, move |tx, told| {
            let context = Context::of_server(&context, Scope::Everything, shown.now);
            redeem(tx, &context, (&known, &asking), (&shown, told))
        });
        let tokens = redeemed.await?;
        self.make_tokens(request, (&app, cnf), tokens, epoch).await
    }

    /// The client app that asks for tokens of a person. It is refused before the code or refresh token is used up.
    ///
    /// # Errors
    /// `invalid_grant` where it is not enabled; `unauthorized_client` where it is set to what is not served.
    pub(crate) async fn application_of_grant(
        self,
        app: &ClientApp,
        not_good: &'static str,
    ) -> Result<Arc<Application>, OAuthError> {
        let known = self.applications.find(self.store, app.id).await?.ok_or(invalid_grant(not_good))?;
        known.check_served()?;
        Ok(known)
    }
}

const NOT_GOOD: &str = "The code is not known here, has expired, or is another client's.";
const USED_BEFORE: &str = "The assertion or proof was used before.";

/// Claims the ids of what is good once; whether none was used before.
pub(crate) fn claim_all(tx: &mut Tx<'_>, replay: &[ReplayId]) -> Result<Result<(), OAuthError>, StoreError> {
    for one in replay {
        if !one.claim(tx)? {
            return Ok(Err(invalid_grant(USED_BEFORE)));
        }
    }
    Ok(Ok(()))
}

/// Makes a grant of a code. What is refused inside is committed: a miss counts, a second use ends the grant.
fn redeem(
    tx: &mut Tx<'_>,
    context: &Context,
    (application, app): (&Application, &ClientApp),
    (shown, told): (&Shown, Option<&Arc<ReleasedClaims>>),
) -> Result<Result<Making<Tokens>, OAuthError>, Problem> {
    let master = &context.app.master;
    let found = code::find(tx, master, &shown.code, shown.now)?;
    let Some(found) = found.filter(|found| found.application == app.id) else {
        return Ok(Err(OAuthError::unknown_grant(NOT_GOOD)));
    };
    if let Err(refused) = check(&found, shown) {
        found.miss(tx)?;
        return Ok(Err(invalid_grant(refused)));
    }
    if told.is_none() && !found.is_used() {
        let granted = &found.contents.granted;
        if let Some(rules) = claims::pending(tx, application, (granted, &granted.scope), shown.now)? {
            return Ok(Ok(Making::Rules(rules)));
        }
    }
    if let Err(refused) = claim_all(tx, &shown.replay)? {
        return Ok(Err(refused));
    }
    if !found.claim(context, tx)? {
        return Ok(Err(invalid_grant("The code was used before.")));
    }
    let mut granted = found.contents.granted;
    let tenant =
        application.serving(granted.tenant, granted.issuing).filter(|_| application.allow_user_login);
    let Some(tenant) = tenant else { return Ok(Err(invalid_grant(NOT_GOOD))) };
    let has_session = match granted.session {
        Some(session) => is_session_good(tx, session, shown.now)?,
        None => true,
    };
    let admitted =
        person::admit(tx, application, (granted.person, granted.instance), granted.tenant, shown.now)?;
    let Some(admitted) = admitted.ok().filter(|_| has_session) else {
        let detail = "The person's session has ended, or the person is no longer admitted.";
        return Ok(Err(invalid_grant(detail)));
    };
    let aud = match audience(tx, application, &granted.resources)?
        .and_then(|all| narrowed(all, &shown.resources))
    {
        Ok(aud) => aud,
        Err(refused) => return Ok(Err(refused.into())),
    };
    if app.is_public && shown.cnf != Confirmation::default() {
        granted.cnf = Some(shown.cnf.clone());
    }
    let lifetimes = Lifetimes::of(&tenant.options);
    let grant = Grant::new(found.grant, app.id, granted, shown.now);
    let until = ends_on(&grant, application, &tenant.options, shown.now);
    grant.insert(&context.app, tx, tenant.subscription, until)?;
    let refresh_token = application.refreshes(&grant.granted).then(|| RefreshToken::of(master, &grant));
    let granted = grant.granted;
    let told = claims::told(tx, application, (&granted, &granted.scope), (&admitted, told))?;
    Ok(Ok(Making::Done(Tokens {
        grant: grant.id,
        told,
        scope: granted.scope.clone(),
        granted,
        aud,
        nonce: found.contents.nonce,
        refresh_token,
        lifetimes,
    })))
}

/// Whether what is shown with a code is what it was issued for.
fn check(found: &ShownCode, shown: &Shown) -> Result<(), &'static str> {
    let contents = &found.contents;
    if contents.redirect_uri != shown.redirect_uri {
        return Err("redirect_uri is another one than in the authorization request.");
    }
    if contents.granted.issuing != shown.issuing {
        return Err("The code is another issuer's.");
    }
    if contents.dpop_jkt.is_some() && contents.dpop_jkt != shown.cnf.jkt {
        return Err("The code is bound to a key: send a proof by it.");
    }
    let challenge = contents.challenge.as_deref().and_then(Challenge::read);
    verify_pkce(challenge.as_ref(), shown.verifier.as_deref()).map_err(|refusal| refusal.detail)
}

/// Whether a session has not ended.
///
/// # Errors
/// Errors of the store.
pub fn is_session_good(tx: &mut Tx<'_>, session: Uuid, now: Timestamp) -> Result<bool, StoreError> {
    Ok(session_until(tx, session, now)?.is_some())
}

/// Until when a session lasts as it is now; `None` once it has ended.
///
/// # Errors
/// Errors of the store.
pub fn session_until(
    tx: &mut Tx<'_>,
    session: Uuid,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let text =
        "SELECT expires_on FROM sign_in_session WHERE id = ?1 AND ended_on IS NULL AND expires_on > ?2";
    tx.one(text, &[session.into(), now.0.into()], |row| Ok(Timestamp(row.int(0)?)))
}
