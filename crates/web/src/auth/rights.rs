//! Authorization: by the caller's cached rights, or by rights read within the transaction that uses them.

use std::sync::Arc;

use chancery_auth::{Audience, RightsLookup, SecurityContext, decide};
use chancery_record::Timestamp;
use chancery_resource::{Permit, Problem, Scope};
use chancery_signin::is_at_least;
use chancery_store::{Class, Tx};
use http::request::Parts;

use super::{
    authorization::{Authorization, problem_of_denial},
    token_binding,
    visitor::SessionAuthority,
};
use crate::{
    app::{App, NO_TOKEN, SIGN_IN, unauthorized},
    message::request::{Scheme, access_token},
    trace,
};

/// The requirements of a request.
#[derive(Clone)]
pub struct Requirement {
    permit: Permit,
    audience: Audience,
    scheme: Scheme,
    /// The nonce to demand where one is needed, because the DPoP proof has none.
    lacks_nonce: Option<String>,
    /// The class of authentication that people need.
    admin_acr: &'static str,
    now: Timestamp,
}

/// A request's verified token and the permit that it needs: enough to decide within a transaction, where no
/// change of rights can come in between.
pub struct AuthorityOfToken {
    requirement: Requirement,
    lookup: RightsLookup,
}

impl AuthorityOfToken {
    /// Decides by the rights that the transaction reads.
    fn decide(&self, tx: &mut Tx<'_>) -> Result<Authorization, Problem> {
        let context = self.lookup.look_up(tx)?;
        // a quick read on PostgreSQL has no snapshot: its next query is sent with this check
        tx.expect_epoch(context.epoch)?;
        self.requirement.check(context)
    }
}

/// The rights that a transaction uses.
#[derive(Clone)]
pub enum Rights {
    /// Cached rights of this epoch. At another the transaction does not run.
    Cached(i64),
    /// Rights that the transaction reads itself, because the cached ones are stale.
    Current(Arc<AuthorityOfToken>),
    /// Rights of a session of the console, which each transaction reads.
    Session(Arc<SessionAuthority>),
    /// Rights of a directory's token that the transaction reads itself, because the cached ones are stale.
    Asked(RightsQuery),
}

/// Reads the rights of a directory's token, within a transaction.
pub type RightsQuery = Arc<dyn Fn(&mut Tx<'_>) -> Result<Authorization, Problem> + Send + Sync>;

impl Rights {
    /// The epoch that the transaction must find.
    pub const fn epoch(&self) -> Option<i64> {
        match self {
            Self::Cached(epoch) => Some(*epoch),
            Self::Current(_) | Self::Session(_) | Self::Asked(_) => None,
        }
    }

    /// Authorizes by rights read now; `None` where cached rights are used.
    pub fn authorize(&self, tx: &mut Tx<'_>) -> Result<Option<Authorization>, Problem> {
        match self {
            Self::Cached(_) => Ok(None),
            Self::Current(authority) => authority.decide(tx).map(Some),
            Self::Session(authority) => authority.decide(tx).map(Some),
            Self::Asked(ask) => {
                let allowed = ask(tx)?;
                tx.expect_epoch(allowed.epoch)?;
                Ok(Some(allowed))
            }
        }
    }
}

impl App {
    /// Authorizes a call: by its token, its rights and the store in the path. A
    /// denial by cached rights is confirmed by current ones before it is answered.
    pub async fn authorize(
        &self,
        parts: &Parts,
        permit: Permit,
        store: Option<&str>,
        now: Timestamp,
    ) -> Result<(Requirement, Authorization), Problem> {
        let (mut requirement, token) = requirement(parts, permit, store, now)?;
        requirement.admin_acr = self.sign_in.admin_acr;
        let remembered = self.rights.recall(token, store);
        let is_remembered = remembered.is_some();
        let context = match remembered {
            Some(context) => context,
            None => self.look_up(token, store, now).await?,
        };
        if let Some(token) = token {
            let claims = context.claims.as_deref().filter(|claims| claims.is_current(now));
            let claims = claims.ok_or_else(|| token_binding::invalid(requirement.scheme))?;
            let needs_nonce = context.caller.as_ref().is_some_and(|caller| caller.needs_nonce);
            let presented =
                token_binding::PresentedToken { scheme: requirement.scheme, token, claims, needs_nonce };
            requirement.lacks_nonce =
                token_binding::check_token_binding(self, parts, &presented, now).await?;
        }
        let authorization = match requirement.check(context) {
            Err(_) if is_remembered => requirement.check(self.look_up(token, store, now).await?)?,
            result => result?,
        };
        trace::note(authorization.caller.as_deref(), &authorization.scope);
        Ok((requirement, authorization))
    }

    /// Authorizes again a request whose proof was verified before: a long answer repeats this check.
    ///
    /// # Errors
    /// The token has expired, or a right was revoked.
    pub async fn authorize_again(
        &self,
        parts: &Parts,
        requirement: &Requirement,
        store: Option<&str>,
        now: Timestamp,
    ) -> Result<Authorization, Problem> {
        let token = access_token(&parts.headers).map(|(_, token)| token);
        let context = match self.rights.recall(token, store) {
            Some(context) => context,
            None => self.look_up(token, store, now).await?,
        };
        Requirement { now, ..requirement.clone() }.check(context)
    }

    /// Like [`App::authorize`], by current rights: for requests without a transaction, which would detect
    /// stale ones.
    pub async fn authorize_at_once(
        &self,
        parts: &Parts,
        permit: Permit,
        now: Timestamp,
    ) -> Result<(), Problem> {
        let (requirement_of_token, _) = self.authorize(parts, permit, None, now).await?;
        let (_, token) = requirement(parts, permit, None, now)?;
        requirement_of_token.check(self.look_up(token, None, now).await?).map(drop)
    }

    async fn look_up(
        &self,
        token: Option<&str>,
        store: Option<&str>,
        now: Timestamp,
    ) -> Result<SecurityContext, Problem> {
        Ok(self.rights.load(&self.store.with(Class::Urgent), &self.token_service, token, store, now).await?)
    }

    /// The rights of a request whose cached ones are stale: from now on it reads them itself, so that changes
    /// of rights cannot hold it up for ever. Everything cached with them is dropped.
    pub async fn renew_rights(
        &self,
        parts: &Parts,
        requirement: &Requirement,
        store: Option<&str>,
        over: &Rights,
    ) -> Result<Rights, Problem> {
        if let Some(epoch) = over.epoch() {
            self.rights.forget(epoch);
        }
        let token = access_token(&parts.headers).map(|(_, token)| token);
        let token = token.filter(|_| requirement.permit != Permit::Public);
        let urgent = self.store.with(Class::Urgent);
        let lookup = RightsLookup::new(&urgent, &self.token_service, token, store, requirement.now).await?;
        Ok(Rights::Current(Arc::new(AuthorityOfToken { requirement: requirement.clone(), lookup })))
    }
}

/// The permit that a request needs, and its token where one counts.
fn requirement<'a>(
    parts: &'a Parts,
    permit: Permit,
    store: Option<&str>,
    now: Timestamp,
) -> Result<(Requirement, Option<&'a str>), Problem> {
    let audience = if store.is_some() { Audience::UserStore } else { Audience::Management };
    let (scheme, token) = match access_token(&parts.headers) {
        _ if permit == Permit::Public => (Scheme::Bearer, None),
        Some((scheme, token)) => (scheme, Some(token)),
        None => return Err(unauthorized(NO_TOKEN, None)),
    };
    Ok((
        Requirement { permit, audience, scheme, lacks_nonce: None, admin_acr: SIGN_IN.admin_acr, now },
        token,
    ))
}

impl Requirement {
    fn check(&self, context: SecurityContext) -> Result<Authorization, Problem> {
        if self.permit == Permit::Public {
            return grant_public_access(context);
        }
        let invalid = || token_binding::invalid(self.scheme);
        let fits =
            |claims: &chancery_auth::Claims| claims.is_current(self.now) && claims.is_for(self.audience);
        if !context.claims.as_deref().is_some_and(fits) {
            return Err(invalid());
        }
        let caller = context.caller.filter(|caller| caller.enabled).ok_or_else(invalid)?;
        let acr = context.claims.as_ref().and_then(|claims| claims.acr.as_deref());
        // a person who reads the own user administers nothing
        let administers = self.permit != Permit::Person;
        if caller.is_person && administers && !is_at_least(acr, self.admin_acr) {
            return Err(token_binding::too_weak(self.scheme, self.admin_acr));
        }
        if let (true, Some(nonce)) = (caller.needs_nonce, &self.lacks_nonce) {
            return Err(token_binding::nonce_required(nonce));
        }
        let scope = decide(self.permit, &caller, context.store.as_deref()).map_err(problem_of_denial)?;
        Ok(Authorization { epoch: context.epoch, caller: Some(caller), provisioner: None, scope })
    }
}

/// Grants anonymous access to a store.
fn grant_public_access(context: SecurityContext) -> Result<Authorization, Problem> {
    let store = context.store.filter(|store| store.is_active);
    let store = store.ok_or_else(|| Problem::not_found("user store"))?;
    let scope = Scope::Store(store.scope.clone());
    Ok(Authorization { epoch: context.epoch, caller: None, provisioner: None, scope })
}
