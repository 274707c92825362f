//! What a request may do: by what is remembered of its caller, or looked up within the very
//! transaction that uses it.

use std::sync::Arc;

use chancery_auth::{Audience, Caller, Known, Opened, Refused, decide};
use chancery_record::Timestamp;
use chancery_resource::{Permit, Problem, ProblemKind, Scope};
use chancery_store::{Class, Tx};
use http::request::Parts;

use crate::{
    app::App,
    guard,
    request::{Scheme, access_token},
};

/// What a request is allowed, and since which epoch that holds.
#[derive(Clone, Debug)]
pub struct Allowed {
    pub epoch: i64,
    /// Who calls; nobody known where no token is needed.
    pub caller: Option<Arc<Caller>>,
    pub scope: Scope,
}

/// What a request asks to do.
#[derive(Clone, Copy)]
struct Wanted {
    permit: Permit,
    audience: Audience,
    scheme: Scheme,
    now: Timestamp,
}

/// A request's token, opened, and what it asks for: enough to decide within a transaction. What
/// holds there cannot be overtaken by a change of rights.
pub struct Authority {
    wanted: Wanted,
    opened: Opened,
}

impl Authority {
    /// Decides by what the transaction sees.
    fn decide(&self, tx: &mut Tx<'_>) -> Result<Allowed, Problem> {
        let known = self.opened.look_up(tx)?;
        // a quick read on PostgreSQL has no snapshot: what it reads next leaves with this check
        tx.expect_epoch(known.epoch)?;
        self.wanted.judge(known)
    }
}

/// The rights that a transaction runs by.
#[derive(Clone)]
pub enum Rights {
    /// Those remembered at this epoch. At another the transaction does not run.
    Remembered(i64),
    /// Those that the transaction looks up itself, because the remembered ones were overtaken.
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

    /// What the request is allowed by the transaction's own look; nothing where the remembered rights
    /// hold.
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
    /// Whether a request may do it whose token was proven to be the caller's: by remembered rights,
    /// where they allow it. A refusal is looked up before it is given.
    ///
    /// # Errors
    /// The refusal.
    pub async fn authorize_again(
        &self,
        parts: &Parts,
        permit: Permit,
        store: Option<&str>,
        now: Timestamp,
    ) -> Result<Allowed, Problem> {
        let (wanted, token) = wanted(parts, permit, store, now)?;
        let remembered = self.rights.recall(token, store);
        if let Some(allowed) = remembered.and_then(|known| wanted.judge(known).ok()) {
            return Ok(allowed);
        }
        wanted
            .judge(self.rights.load(&self.store.with(Class::Urgent), &self.bearer, token, store, now).await?)
    }

    /// The rights of a request whose remembered ones were overtaken: it looks itself from now on, so
    /// that whoever changes rights holds nobody up.
    ///
    /// # Errors
    /// There is no token, or the store fails.
    pub async fn overtaken(
        &self,
        parts: &Parts,
        permit: Permit,
        store: Option<&str>,
        now: Timestamp,
    ) -> Result<Rights, Problem> {
        let (wanted, token) = wanted(parts, permit, store, now)?;
        let opened = Opened::new(&self.store.with(Class::Urgent), &self.bearer, token, store, now).await?;
        Ok(Rights::Own(Arc::new(Authority { wanted, opened })))
    }
}

/// What a request asks for, and its token where one counts.
fn wanted<'a>(
    parts: &'a Parts,
    permit: Permit,
    store: Option<&str>,
    now: Timestamp,
) -> Result<(Wanted, Option<&'a str>), Problem> {
    let audience = if store.is_some() { Audience::UserStore } else { Audience::Management };
    if permit == Permit::Public {
        return Ok((Wanted { permit, audience, scheme: Scheme::Bearer, now }, None));
    }
    let (scheme, token) = access_token(&parts.headers).ok_or_else(|| guard::invalid(Scheme::Bearer))?;
    Ok((Wanted { permit, audience, scheme, now }, Some(token)))
}

impl Wanted {
    fn judge(self, known: Known) -> Result<Allowed, Problem> {
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
        let scope = decide(self.permit, &caller, known.place.as_deref()).map_err(refuse)?;
        Ok(Allowed { epoch: known.epoch, caller: Some(caller), scope })
    }
}

/// Lets anyone into a store.
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
