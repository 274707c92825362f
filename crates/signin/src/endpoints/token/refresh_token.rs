//! The token endpoint's grant `refresh_token` (RFC 6749, section 6; RFC 9700, section 4.14).

use std::sync::Arc;

use chancery_auth::{EndpointRequest, OAuthError, TokenGrant};
use chancery_oauth::{Scope, parse_targets};
use chancery_record::Timestamp;
use chancery_resource::{
    AppContext, Context, Problem, Tx, event_type,
    settings::{Options, TenantOption},
};
use uuid::Uuid;

use super::{GrantRequest, GrantType, claim_all, invalid_grant};
use crate::{
    claims::{self, Issuance, ReleasedClaims},
    client_app::{
        Application,
        audience::{audience, narrowed},
    },
    grant::{
        Grant,
        expiry::{grant_expiry, refresh_token_expiry},
        refresh_token::RefreshToken,
    },
    person,
    provider::Provider,
    session::sign_in_record::{SignInOutcome, SignInRecord},
    tokens::{Lifetimes, Tokens},
};

pub(super) static GRANT_TYPE: GrantType = GrantType {
    name: "refresh_token",
    label: "refresh_token",
    redeem: |provider, request| Box::pin(provider.refresh(request)),
};

const INVALID_TOKEN: &str =
    "The refresh token is not known here, has expired, was revoked, or is another client's.";

/// The parameters of a token request.
struct Presented {
    token: RefreshToken,
    scope: Option<Scope>,
    resources: Vec<String>,
}

impl Provider<'_> {
    /// Exchanges a refresh token for tokens.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    async fn refresh(self, request: &EndpointRequest) -> Result<TokenGrant, OAuthError> {
        request.check_single()?;
        let missing = OAuthError::new(400, "invalid_request", "refresh_token is missing.");
        let token = request.one("refresh_token").ok_or(missing)?;
        let scope = request.one("scope").map(Scope::parse).transpose()?;
        let resources = parse_targets(request.all("resource"))?;
        let asked = self.grant_request(request, INVALID_TOKEN).await?;
        let presented = Presented {
            token: RefreshToken::read(token).ok_or_else(|| OAuthError::unknown_grant(INVALID_TOKEN))?,
            scope,
            resources,
        };
        let (context, asking) = (Arc::clone(self.context), Arc::clone(&asked));
        let refreshed = self.issue_with_rules("Refresh", request.now, move |tx, released| {
            refresh(tx, &context, &asking, &presented, released)
        });
        let Some(tokens) = refreshed.await? else {
            self.counts.reused.add();
            return Err(invalid_grant(INVALID_TOKEN));
        };
        self.issue_tokens(request, &asked.client, asked.cnf.clone(), tokens, asked.epoch).await
    }
}

/// Uses a refresh token. `None`: it was replaced before, and its grant has ended. Inner errors are committed.
fn refresh(
    tx: &mut Tx<'_>,
    context: &Arc<AppContext>,
    asked: &GrantRequest,
    presented: &Presented,
    released: Option<&Arc<ReleasedClaims>>,
) -> Result<Result<Issuance<Option<Tokens>>, OAuthError>, Problem> {
    let (master, application, now) = (&context.master, &*asked.application, asked.now);
    let invalid = || Ok(Err(invalid_grant(INVALID_TOKEN)));
    let stored = Grant::find(tx, master, presented.token.grant)?;
    let is_theirs = |grant: &Grant| {
        presented.token.is_of(master, grant)
            && grant.application == asked.client.id
            && grant.granted.issuing == asked.issuing
    };
    let Some(mut grant) = stored.filter(is_theirs) else {
        return Ok(Err(OAuthError::unknown_grant(INVALID_TOKEN)));
    };
    let granted = grant.granted.clone();
    let tenant =
        application.serving(granted.tenant, granted.issuing).filter(|_| application.allow_user_login);
    let Some(tenant) = tenant else { return invalid() };
    if refresh_token_expiry(tx, &grant, application, &tenant.options, now)?.is_none() {
        return invalid();
    }
    if granted.cnf.as_ref().is_some_and(|bound| *bound != asked.cnf) {
        return Ok(Err(invalid_grant("The refresh token is bound to a key or certificate: show that one.")));
    }
    let used = check_generation(&grant, &presented.token, &tenant.options, now);
    let scope = scope_of(application, &granted.scope, presented.scope.as_ref());
    if let (Use::Valid, Ok(scope), None) = (&used, &scope, released)
        && let Some(rules) = claims::pending(tx, application, &granted, scope, now)?
    {
        return Ok(Ok(Issuance::Rules(rules)));
    }
    if let Err(refused) = claim_all(tx, &asked.replay)? {
        return Ok(Err(refused));
    }
    if let Use::Reused = used {
        let context = Context::of_server(context, chancery_resource::Scope::Everything, now);
        grant.end(&context, tx)?;
        note_reuse(&context, tx, &grant, tenant.subscription)?;
        return Ok(Ok(Issuance::Done(None)));
    }
    let Ok(admitted) = person::admit(tx, application, granted.identity(), granted.tenant, now)? else {
        return Ok(Err(invalid_grant("The person is no longer admitted.")));
    };
    let scope = match scope {
        Ok(scope) => scope,
        Err(refused) => return Ok(Err(refused)),
    };
    let aud = match audience(tx, application, &granted.resources)?
        .and_then(|all| narrowed(all, &presented.resources))
    {
        Ok(aud) => aud,
        Err(refused) => return Ok(Err(refused.into())),
    };
    let rotates =
        asked.client.is_public && granted.cnf.is_none() && presented.token.generation == grant.generation;
    let until = grant_expiry(&grant, application, &tenant.options, now);
    let lifetime = tenant.options.get(TenantOption::REFRESH_TOKEN_LIFETIME);
    let is_written = rotates || grant.is_use_due(lifetime, until, now);
    if is_written && !grant.advance(tx, rotates, until, now)? {
        return invalid();
    }
    let released = claims::released(tx, application, &granted, &scope, &admitted, released)?;
    Ok(Ok(Issuance::Done(Some(Tokens {
        grant: grant.id,
        refresh_token: Some(RefreshToken::of(master, &grant)),
        granted,
        released,
        scope,
        aud,
        nonce: None,
        lifetimes: Lifetimes::of(&tenant.options),
    }))))
}

/// The result of presenting a refresh token.
enum Use {
    /// It is valid.
    Valid,
    /// It was replaced before: it may have been stolen.
    Reused,
}

/// The previous token is valid for a short time and gets the same successor, so that two tabs, or a lost response, do
/// no harm.
fn check_generation(
    grant: &Grant,
    token: &RefreshToken,
    options: &Options<TenantOption>,
    now: Timestamp,
) -> Use {
    let leeway = options.get(TenantOption::REFRESH_TOKEN_REUSE_LEEWAY);
    // a request from before the rotation, or with another clock, counts as simultaneous: without leeway it is reuse
    let is_within = grant.rotated_on.is_some_and(|on| (now.0 - on.0).max(0) < leeway);
    let is_valid =
        token.generation == grant.generation || (token.generation + 1 == grant.generation && is_within);
    if is_valid { Use::Valid } else { Use::Reused }
}

/// The scope of the new tokens: the granted scope that the client app may still have, or the requested part.
fn scope_of(
    application: &Application,
    granted: &str,
    requested: Option<&Scope>,
) -> Result<String, OAuthError> {
    let granted = Scope::parse(granted).unwrap_or_default();
    let granted = application.grantable(Some(&granted)).unwrap_or_default();
    match requested {
        None => Ok(granted.to_string()),
        Some(requested) if requested.words().all(|word| granted.has(word)) => Ok(requested.to_string()),
        Some(_) => Err(OAuthError::new(400, "invalid_scope", "The scope is more than was granted.")),
    }
}

/// Writes the record and the event of a reused refresh token.
fn note_reuse(context: &Context, tx: &mut Tx<'_>, grant: &Grant, subscription: Uuid) -> Result<(), Problem> {
    grant.event(event_type!("platform.signin.grant.reused"), Some(subscription)).announce(context, tx)?;
    let record = SignInRecord {
        outcome: SignInOutcome::Reused,
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
