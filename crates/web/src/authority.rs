//! Authorization: by the caller's cached rights, or by rights read within the transaction that uses them.

use std::sync::Arc;

use chancery_auth::{Audience, Caller, Known, Opened, Refused, decide};
use chancery_record::Timestamp;
use chancery_resource::{Permit, Problem, ProblemKind, Scope};
use chancery_store::{Class, Tx};
use http::request::Parts;

use crate::{
    app::{App, unauthorized},
    guard,
    request::{Scheme, access_token},
    trace,
};

/// A granted request, and the epoch that its rights were read at.
#[derive(Clone, Debug)]
pub struct Allowed {
    pub epoch: i64,
    /// The caller; `None` where no token is needed or given.
    pub caller: Option<Arc<Caller>>,
    pub scope: Scope,
}

/// What a request needs to be permitted.
#[derive(Clone)]
pub struct Wanted {
    permit: Permit,
    audience: Audience,
    scheme: Scheme,
    /// The nonce to request where one is needed, because the DPoP proof has none.
    lacks_nonce: Option<String>,
    now: Timestamp,
}

/// A request's verified token and the permit it needs: enough to decide within a transaction, where no
/// change of rights can come in between.
pub struct Authority {
    wanted: Wanted,
    opened: Opened,
}

impl Authority {
    /// Decides by the rights that the transaction reads.
    fn decide(&self, tx: &mut Tx<'_>) -> Result<Allowed, Problem> {
        let known = self.opened.look_up(tx)?;
        // a quick read on PostgreSQL has no snapshot: its next query is sent with this check
        tx.expect_epoch(known.epoch)?;
        self.wanted.judge(known)
    }
}

/// The rights that a transaction uses.
#[derive(Clone)]
pub enum Rights {
    /// Cached rights of this epoch. At another the transaction does not run.
    Remembered(i64),
    /// Rights that the transaction reads itself, because the cached ones are stale.
    Own(Arc<Authority>),
}

impl Rights {
    /// The epoch that the transaction must find.
    pub const fn epoch(&self) -> Option<i64> {
        match self {
            Self::Remembered(epoch) => Some(*epoch),
            Self::Own(_) => None,
        }
    }

    /// What the request is granted by rights read now; `None` where cached rights are used.
    ///
    /// # Errors
    /// The refusal.
    pub fn look(&self, tx: &mut Tx<'_>) -> Result<Option<Allowed>, Problem> {
        match self {
            Self::Remembered(_) => Ok(None),
            Self::Own(authority) => authority.decide(tx).map(Some),
        }
    }
}

impl App {
    /// Whether the caller may call the operation: by its token, its rights and the store in the path. A
    /// refusal by cached rights is confirmed by current ones before it is answered.
    ///
    /// # Errors
    /// The refusal.
    pub async fn authorize(
        &self,
        parts: &Parts,
        permit: Permit,
        store: Option<&str>,
        now: Timestamp,
    ) -> Result<(Wanted, Allowed), Problem> {
        let (mut wanted, token) = wanted(parts, permit, store, now)?;
        let remembered = self.rights.recall(token, store);
        let is_remembered = remembered.is_some();
        let known = match remembered {
            Some(known) => known,
            None => self.look_up(token, store, now).await?,
        };
        if let Some(token) = token {
            let claims = known.claims.as_deref().filter(|claims| claims.is_current(now));
            let claims = claims.ok_or_else(|| guard::invalid(wanted.scheme))?;
            let needs_nonce = known.caller.as_ref().is_some_and(|caller| caller.needs_nonce);
            let bound = guard::Bound { scheme: wanted.scheme, token, claims, needs_nonce };
            wanted.lacks_nonce = guard::check(self, parts, &bound, now).await?;
        }
        let allowed = match wanted.judge(known) {
            Err(_) if is_remembered => wanted.judge(self.look_up(token, store, now).await?)?,
            judged => judged?,
        };
        trace::note(allowed.caller.as_deref(), &allowed.scope);
        Ok((wanted, allowed))
    }

    /// Like [`App::authorize`], by current rights: for requests without a transaction, which would detect
    /// stale ones.
    ///
    /// # Errors
    /// The refusal.
    pub async fn authorize_at_once(
        &self,
        parts: &Parts,
        permit: Permit,
        now: Timestamp,
    ) -> Result<(), Problem> {
        let (asked, _) = self.authorize(parts, permit, None, now).await?;
        let (_, token) = wanted(parts, permit, None, now)?;
        asked.judge(self.look_up(token, None, now).await?).map(drop)
    }

    async fn look_up(
        &self,
        token: Option<&str>,
        store: Option<&str>,
        now: Timestamp,
    ) -> Result<Known, Problem> {
        Ok(self.rights.load(&self.store.with(Class::Urgent), &self.bearer, token, store, now).await?)
    }

    /// The rights of a request whose cached ones are stale: from now on it reads them itself, so that changes
    /// of rights cannot hold it up for ever. Everything cached with them is dropped.
    ///
    /// # Errors
    /// The store fails.
    pub async fn overtaken(
        &self,
        parts: &Parts,
        wanted: &Wanted,
        store: Option<&str>,
        over: &Rights,
    ) -> Result<Rights, Problem> {
        if let Some(epoch) = over.epoch() {
            self.rights.forget(epoch);
        }
        let token = access_token(&parts.headers).map(|(_, token)| token);
        let token = token.filter(|_| wanted.permit != Permit::Public);
        let urgent = self.store.with(Class::Urgent);
        let opened = Opened::new(&urgent, &self.bearer, token, store, wanted.now).await?;
        Ok(Rights::Own(Arc::new(Authority { wanted: wanted.clone(), opened })))
    }
}

/// The permit that a request needs, and its token where one counts.
fn wanted<'a>(
    parts: &'a Parts,
    permit: Permit,
    store: Option<&str>,
    now: Timestamp,
) -> Result<(Wanted, Option<&'a str>), Problem> {
    let audience = if store.is_some() { Audience::UserStore } else { Audience::Management };
    let (scheme, token) = match access_token(&parts.headers) {
        _ if permit == Permit::Public => (Scheme::Bearer, None),
        Some((scheme, token)) => (scheme, Some(token)),
        None => return Err(unauthorized("Send an access token: Authorization: Bearer ...", None)),
    };
    Ok((Wanted { permit, audience, scheme, lacks_nonce: None, now }, token))
}

impl Wanted {
    fn judge(&self, known: Known) -> Result<Allowed, Problem> {
        if self.permit == Permit::Public {
            return enter(known);
        }
        let invalid = || guard::invalid(self.scheme);
        let fits =
            |claims: &chancery_auth::Claims| claims.is_current(self.now) && claims.is_for(self.audience);
        if !known.claims.as_deref().is_some_and(fits) {
            return Err(invalid());
        }
        let caller = known.caller.filter(|caller| caller.enabled).ok_or_else(invalid)?;
        if let (true, Some(nonce)) = (caller.needs_nonce, &self.lacks_nonce) {
            return Err(guard::asking_for(nonce));
        }
        let scope = decide(self.permit, &caller, known.place.as_deref()).map_err(refuse)?;
        Ok(Allowed { epoch: known.epoch, caller: Some(caller), scope })
    }
}

/// Grants anyone access to a store.
fn enter(known: Known) -> Result<Allowed, Problem> {
    let place = known.place.filter(|place| place.is_active);
    let place = place.ok_or_else(|| Problem::not_found("user store"))?;
    Ok(Allowed { epoch: known.epoch, caller: None, scope: Scope::Store(place.scope.clone()) })
}

fn refuse(refused: Refused) -> Problem {
    match refused {
        Refused::Forbidden => {
            Problem::new(ProblemKind::Forbidden, "The client app has no role that allows this.")
        }
        Refused::NotFound => Problem::new(ProblemKind::NotFound, "There is no such user store here."),
    }
}
