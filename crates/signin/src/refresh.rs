//! The token endpoint's grant `refresh_token` (RFC 6749, section 6; RFC 9700, section 4.14).

use std::sync::Arc;

use chancery_auth::{
    AuthenticatedClient, ClientApp, Confirmation, EndpointRequest, OAuthError, ReplayId, TokenGrant,
    authenticate, bind,
};
use chancery_oauth::{Scope, targets};
use chancery_record::Timestamp;
use chancery_resource::{
    AppContext, Context, Problem, StoreError, Tx,
    settings::{Options, TenantOption},
};
use uuid::Uuid;

use crate::{
    application::Application,
    audience::{audience, narrowed},
    claims::{self, ReleasedClaims},
    grant::Grant,
    person,
    provider::Provider,
    record::{Outcome, SignInRecord},
    redeem::{claim_all, invalid_grant, session_until},
    refresh_token::RefreshToken,
    ruled::Making,
    tokens::{Lifetimes, Tokens},
};

/// The value of `grant_type`.
pub const GRANT_TYPE: &str = "refresh_token";

const NOT_GOOD: &str =
    "The refresh token is not known here, has expired, was revoked, or is another client's.";

/// What a request shows.
struct Shown {
    token: RefreshToken,
    scope: Option<Scope>,
    resources: Vec<String>,
    issuing: Option<Uuid>,
    replay: Vec<ReplayId>,
    cnf: Confirmation,
    now: Timestamp,
}

impl Provider<'_> {
    /// Makes tokens of a refresh token.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub async fn refresh(self, request: &EndpointRequest) -> Result<TokenGrant, OAuthError> {
        request.check_single()?;
        let missing = OAuthError::new(400, "invalid_request", "refresh_token is missing.");
        let token = request.one("refresh_token").ok_or(missing)?;
        let scope = request.one("scope").map(Scope::parse).transpose()?;
        let resources = targets(request.all("resource"))?;
        let AuthenticatedClient { app, used, epoch } =
            authenticate(self.store, self.tokens, request, (Vec::new(), false)).await?;
        let (cnf, proof) = bind(self.tokens, &app, request)?;
        let shown = Shown {
            token: RefreshToken::read(token).ok_or(OAuthError::unknown_grant(NOT_GOOD))?,
            scope,
            resources,
            issuing: request.issuer.tenant_id(),
            replay: used.into_iter().chain(proof).collect(),
            cnf: cnf.clone(),
            now: request.now,
        };
        let known = self.application_of_grant(&app, NOT_GOOD).await?;
        let (context, app) = (Arc::clone(self.context), Arc::new(app));
        let asking = Arc::clone(&app);
        let refreshed = self.make_ruled("Refresh", request.now, move |tx, told| {
            refresh(tx, &context, (&known, &asking), (&shown, told))
        });
        let Some(tokens) = refreshed.await? else {
            self.counts.reused.add();
            return Err(invalid_grant(NOT_GOOD));
        };
        self.make_tokens(request, (&app, cnf), tokens, epoch).await
    }
}

/// When the last token of a grant of the client app ends that is used now.
pub fn ends_on(
    grant: &Grant,
    application: &Application,
    options: &Options<TenantOption>,
    now: Timestamp,
) -> Timestamp {
    let access_token = now.plus(options.get(TenantOption::ACCESS_TOKEN_LIFETIME));
    if application.refreshes(&grant.granted) {
        access_token.max(refresh_until(grant, options, now))
    } else {
        access_token
    }
}

/// Until when a refresh token is good whose last use was then: no longer than the grant may last in all.
fn refresh_until(grant: &Grant, options: &Options<TenantOption>, used_on: Timestamp) -> Timestamp {
    let longest = grant.started_on.plus(options.get(TenantOption::REFRESH_TOKEN_ABSOLUTE_LIFETIME));
    used_on.plus(options.get(TenantOption::REFRESH_TOKEN_LIFETIME)).min(longest)
}

/// Until when the refresh token of a grant is good; `None` once it is not. Without `offline_access` it ends with the session.
///
/// # Errors
/// Errors of the store.
pub fn good_until(
    tx: &mut Tx<'_>,
    grant: &Grant,
    (application, options): (&Application, &Options<TenantOption>),
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    if !application.refreshes(&grant.granted) {
        return Ok(None);
    }
    let until = refresh_until(grant, options, grant.used_on);
    let until = match grant.granted.session {
        Some(session) if !grant.is_offline() => {
            session_until(tx, session, now)?.map(|session| session.min(until))
        }
        _ => Some(until),
    };
    Ok(until.filter(|until| *until > now))
}

/// Uses a refresh token. `None`: it was replaced before, and its grant has ended. What is refused inside is committed.
fn refresh(
    tx: &mut Tx<'_>,
    context: &Arc<AppContext>,
    (application, app): (&Application, &ClientApp),
    (shown, told): (&Shown, Option<&Arc<ReleasedClaims>>),
) -> Result<Result<Making<Option<Tokens>>, OAuthError>, Problem> {
    let (master, now) = (&context.master, shown.now);
    let not_good = || Ok(Err(invalid_grant(NOT_GOOD)));
    let found = Grant::find(tx, master, shown.token.grant)?;
    let is_theirs = |grant: &Grant| {
        shown.token.is_of(master, grant)
            && grant.application == app.id
            && grant.granted.issuing == shown.issuing
    };
    let Some(mut grant) = found.filter(is_theirs) else {
        return Ok(Err(OAuthError::unknown_grant(NOT_GOOD)));
    };
    let granted = grant.granted.clone();
    let tenant =
        application.serving(granted.tenant, granted.issuing).filter(|_| application.allow_user_login);
    let Some(tenant) = tenant else { return not_good() };
    if good_until(tx, &grant, (application, &tenant.options), now)?.is_none() {
        return not_good();
    }
    if granted.cnf.as_ref().is_some_and(|bound| *bound != shown.cnf) {
        return Ok(Err(invalid_grant("The refresh token is bound to a key or certificate: show that one.")));
    }
    let used = judge(&grant, &shown.token, &tenant.options, now);
    let scope = scope_of(application, &granted.scope, shown.scope.as_ref());
    if let (Use::Good, Ok(scope), None) = (&used, &scope, told)
        && let Some(rules) = claims::pending(tx, application, (&granted, scope), now)?
    {
        return Ok(Ok(Making::Rules(rules)));
    }
    if let Err(refused) = claim_all(tx, &shown.replay)? {
        return Ok(Err(refused));
    }
    if let Use::Reused = used {
        let context = Context::of_server(context, chancery_resource::Scope::Everything, now);
        grant.end(&context, tx)?;
        note_reuse(&context, tx, &grant, tenant.subscription)?;
        return Ok(Ok(Making::Done(None)));
    }
    let of = (granted.person, granted.instance);
    let Ok(admitted) = person::admit(tx, application, of, granted.tenant, now)? else {
        return Ok(Err(invalid_grant("The person is no longer admitted.")));
    };
    let scope = match scope {
        Ok(scope) => scope,
        Err(refused) => return Ok(Err(refused)),
    };
    let aud = match audience(tx, application, &granted.resources)?
        .and_then(|all| narrowed(all, &shown.resources))
    {
        Ok(aud) => aud,
        Err(refused) => return Ok(Err(refused.into())),
    };
    let rotates = app.is_public && granted.cnf.is_none() && shown.token.generation == grant.generation;
    let until = ends_on(&grant, application, &tenant.options, now);
    if !grant.advance(tx, (rotates, until), now)? {
        return not_good();
    }
    let told = claims::told(tx, application, (&granted, &scope), (&admitted, told))?;
    Ok(Ok(Making::Done(Some(Tokens {
        grant: grant.id,
        refresh_token: Some(RefreshToken::of(master, &grant)),
        granted,
        told,
        scope,
        aud,
        nonce: None,
        lifetimes: Lifetimes::of(&tenant.options),
    }))))
}

/// What showing a refresh token comes to.
enum Use {
    /// It is good.
    Good,
    /// It was replaced before: it may have been stolen.
    Reused,
}

/// The token of before is good for a moment more, and gets the same successor: two tabs, or an answer that was lost,
/// harm nobody.
fn judge(grant: &Grant, token: &RefreshToken, options: &Options<TenantOption>, now: Timestamp) -> Use {
    let leeway = options.get(TenantOption::REFRESH_TOKEN_REUSE_LEEWAY);
    // a request that came before the rotation, or by another clock, is no earlier than it: without leeway it is reuse
    let is_within = grant.rotated_on.is_some_and(|on| (now.0 - on.0).max(0) < leeway);
    let is_good =
        token.generation == grant.generation || (token.generation + 1 == grant.generation && is_within);
    if is_good { Use::Good } else { Use::Reused }
}

/// The scope of the new tokens: what was granted and the client app may still have, or the part that is asked for.
fn scope_of(application: &Application, granted: &str, asked: Option<&Scope>) -> Result<String, OAuthError> {
    let granted = Scope::parse(granted).unwrap_or_default();
    let granted = application.grantable(Some(&granted)).unwrap_or_default();
    match asked {
        None => Ok(granted.to_string()),
        Some(asked) if asked.words().all(|word| granted.has(word)) => Ok(asked.to_string()),
        Some(_) => Err(OAuthError::new(400, "invalid_scope", "The scope is more than was granted.")),
    }
}

/// Records and announces that a refresh token was shown again.
fn note_reuse(context: &Context, tx: &mut Tx<'_>, grant: &Grant, subscription: Uuid) -> Result<(), Problem> {
    grant.event("grant.reused", Some(subscription)).announce(context, tx)?;
    let record = SignInRecord {
        outcome: Outcome::Reused,
        tenant: grant.granted.tenant,
        application: Some(grant.application),
        instance: Some(grant.granted.instance),
        person: grant.granted.person,
        methods: &[],
        acr: None,
        session: grant.granted.session,
        origin: None,
    };
    record.write(context, tx)
}
