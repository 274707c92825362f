//! Authentication and authorization of SCIM clients: a directory by its token, or a client app that administers
//! the user store.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use chancery_auth::{CredentialUse, ScimCaller, find_scim_token};
use chancery_record::{Timestamp, fold};
use chancery_resource::{MasterKey, Mode, Permit, Problem, ProblemKind, Provisioner, Scope};
use chancery_scim::Target;
use chancery_web::{App, Authorization, Requirement, RightsQuery, ScimAuthority, address_of};
use http::{header, request::Parts};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::users::stopped;

/// The most cached tokens.
const MAX_CACHED: usize = 1000;
/// The requests of how many seconds may be sent at once.
const BURST: i64 = 2;
/// The prefix of directory tokens.
const PREFIX: &str = "chscim_";

/// A right of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Read users and groups.
    Read,
    /// Create and change users.
    WriteUsers,
    /// Create and change groups.
    WriteGroups,
    /// Delete users and groups.
    Delete,
}

impl Right {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::WriteUsers => "WriteUsers",
            Self::WriteGroups => "WriteGroups",
            Self::Delete => "Delete",
        }
    }
}

/// An authenticated client.
pub struct Access<'a> {
    app: &'a App,
    /// The target of the request.
    pub target: Target,
    credential: Credential,
    now: Timestamp,
}

/// The credential of the client.
enum Credential {
    /// A directory's token, with the caller that it was looked up as.
    Token(String, Arc<ScimCaller>),
    /// The access token of a client app, or of a person, and its authorization in the user store.
    AccessToken(Box<Requirement>, Authorization, String),
}

impl Access<'_> {
    /// Checks a right. A denial by a cached caller is confirmed by a fresh look-up.
    ///
    /// # Errors
    /// The token lacks the right, is stopped or has expired.
    pub async fn check(&self, right: Right) -> Result<(), Problem> {
        let Credential::Token(token, caller) = &self.credential else { return Ok(()) };
        if check_right(caller, right).is_ok() {
            return Ok(());
        }
        let fresh = look_up(self.app, token).await?;
        check_right(&*fresh.ok_or_else(unauthorized)?, right)
    }

    /// Whether the caller is a person.
    pub fn is_person(&self) -> bool {
        match &self.credential {
            Credential::Token(..) => false,
            Credential::AccessToken(_, allowed, _) => {
                allowed.caller.as_ref().is_some_and(|caller| caller.is_person)
            }
        }
    }

    /// The authorization, as cached.
    pub fn allowed(&self) -> Authorization {
        match &self.credential {
            Credential::Token(_, caller) => authorization(caller),
            Credential::AccessToken(_, allowed, _) => allowed.clone(),
        }
    }

    /// How each transaction checks the right again.
    pub fn authority(&self, right: Right) -> ScimAuthority {
        match &self.credential {
            Credential::Token(token, caller) => {
                let master = self.app.context.master.clone();
                ScimAuthority::Token(recheck(master, token.clone(), caller.instance, right, self.now))
            }
            Credential::AccessToken(requirement, _, store) => {
                ScimAuthority::AccessToken(requirement.clone(), store.clone())
            }
        }
    }
}

/// Whether a token has a right, and is not stopped.
fn check_right(caller: &ScimCaller, right: Right) -> Result<(), Problem> {
    if !caller.rights.iter().any(|held| held == right.name()) {
        let detail = format!("The token has not the right {}.", right.name());
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    match caller.stopped_on {
        Some(since) if right != Right::Read => Err(stopped(since, caller.provisioner.mass_limit)),
        _ => Ok(()),
    }
}

/// Callers by their tokens, each for its epoch.
static CALLERS: LazyLock<Cache<String, Arc<ScimCaller>>> = LazyLock::new(|| Cache::new(MAX_CACHED));
/// The time until which the requests of a token are spent, in microseconds: by the token's id.
static SPENT_UNTIL: LazyLock<Cache<Uuid, Arc<AtomicI64>>> = LazyLock::new(|| Cache::new(MAX_CACHED));

/// Authenticates a request to an instance. An access token needs the permit; a directory's own token has rights
/// instead.
///
/// # Errors
/// No valid credential for this instance.
pub async fn of<'a>(
    app: &'a App,
    parts: &Parts,
    instance: &str,
    permit: Permit,
    now: Timestamp,
) -> Result<Access<'a>, Problem> {
    let token = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        (scheme.eq_ignore_ascii_case("bearer") && token.trim().starts_with(PREFIX))
            .then(|| token.trim().to_owned())
    });
    match token {
        Some(token) => by_token(app, parts, instance, token, now).await,
        None => by_access_token(app, parts, instance, permit, now).await,
    }
}

async fn by_token<'a>(
    app: &'a App,
    parts: &Parts,
    instance: &str,
    token: String,
    now: Timestamp,
) -> Result<Access<'a>, Problem> {
    let caller = match CALLERS.get(&token) {
        Some(caller) => Some(caller),
        None => look_up(app, &token).await?,
    };
    let Some(caller) = caller.filter(|caller| is_valid(caller, parts, instance, now)) else {
        app.admit_address(parts, now)?;
        return Err(unauthorized());
    };
    spend(&caller, now)?;
    if !caller.is_enabled {
        return Err(closed());
    }
    if let Some(id) = caller.provisioner.token {
        app.token_service.uses.record(CredentialUse::SCIM, id, now);
    }
    let target = if matches!(caller.scope, Scope::Store(_)) { Target::Store } else { Target::Provider };
    Ok(Access { app, target, credential: Credential::Token(token, caller), now })
}

async fn look_up(app: &App, token: &str) -> Result<Option<Arc<ScimCaller>>, Problem> {
    let (master, looked_up) = (app.context.master.clone(), token.to_owned());
    let caller = app.store.run("FindScimToken", Mode::Long, None, move |tx| {
        find_scim_token(tx, &master, &looked_up).map_err(Problem::from)
    });
    let caller = caller.await?.map(Arc::new);
    // a closed instance is looked up again until it is open
    if let Some(caller) = caller.as_ref().filter(|caller| caller.is_enabled) {
        CALLERS.insert(token.to_owned(), Arc::clone(caller));
    }
    Ok(caller)
}

/// The check in a transaction, where the cached caller is of another epoch.
fn recheck(master: MasterKey, token: String, instance: Uuid, right: Right, now: Timestamp) -> RightsQuery {
    Arc::new(move |tx| {
        let caller = find_scim_token(tx, &master, &token)?;
        let valid = caller.filter(|caller| caller.instance == instance && is_current(caller, now));
        let Some(caller) = valid else {
            CALLERS.remove(&token);
            return Err(unauthorized());
        };
        if !caller.is_enabled {
            CALLERS.remove(&token);
            return Err(closed());
        }
        let allowed = check_right(&caller, right).map(|()| authorization(&caller));
        CALLERS.insert(token.clone(), Arc::new(caller));
        allowed
    })
}

fn authorization(caller: &ScimCaller) -> Authorization {
    let provisioner = Some(Arc::new(caller.provisioner.clone()));
    Authorization { epoch: caller.epoch, caller: None, provisioner, scope: caller.scope.clone() }
}

fn is_current(caller: &ScimCaller, now: Timestamp) -> bool {
    caller.expires_on.is_none_or(|end| end > now)
}

fn is_valid(caller: &ScimCaller, parts: &Parts, instance: &str, now: Timestamp) -> bool {
    let is_named = match Uuid::try_parse(instance) {
        Ok(id) => id == caller.instance,
        Err(_) => fold(instance) == fold(&caller.name),
    };
    let is_in_networks = caller.networks.as_ref().is_none_or(|networks| networks.holds(address_of(parts)));
    is_named && is_in_networks && is_current(caller, now)
}

/// Spends one of the token's requests: a rate per second, and a burst of two seconds.
fn spend(caller: &ScimCaller, now: Timestamp) -> Result<(), Problem> {
    let Some(id) = caller.provisioner.token else { return Ok(()) };
    let spent = SPENT_UNTIL.get(&id).unwrap_or_else(|| {
        let new = Arc::new(AtomicI64::new(0));
        SPENT_UNTIL.insert(id, Arc::clone(&new));
        new
    });
    let (now, each) = (now.0 * 1000, 1_000_000 / caller.rate.max(1));
    let updated =
        spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| taken_until(until, now, each));
    if updated.is_ok() {
        return Ok(());
    }
    let detail = format!("The token has {} requests a second. Go on in a second.", caller.rate);
    let wait = Duration::from_secs(1).as_secs().to_string();
    Err(Problem::new(ProblemKind::TooManyRequests, detail).with_header("retry-after", wait))
}

/// The new time until which requests are spent, in microseconds; `None` if the burst is used up. A time more than two
/// bursts ahead was stored before the clock was set back, and is ignored.
fn taken_until(until: i64, now: i64, each: i64) -> Option<i64> {
    let burst = BURST * 1_000_000;
    let next = if until - now <= 2 * burst { until.max(now) } else { now } + each;
    (next - now <= burst).then_some(next)
}

async fn by_access_token<'a>(
    app: &'a App,
    parts: &Parts,
    instance: &str,
    permit: Permit,
    now: Timestamp,
) -> Result<Access<'a>, Problem> {
    let (requirement, mut allowed) = app.authorize(parts, permit, Some(instance), now).await?;
    let Scope::Store(store) = &allowed.scope else { return Err(unauthorized()) };
    let store = store.name.clone();
    let directory = Provisioner { reaches_all: true, mass_limit: i64::MAX, ..Provisioner::default() };
    allowed.provisioner = Some(Arc::new(directory));
    Ok(Access {
        app,
        target: Target::Store,
        credential: Credential::AccessToken(Box::new(requirement), allowed, store),
        now,
    })
}

/// The instance of the token is inactive, or no longer provisioned.
fn closed() -> Problem {
    Problem::new(ProblemKind::NotFound, "The instance is inactive, or its option ScimEnabled is off.")
}

fn unauthorized() -> Problem {
    let detail = "Send a token that is good for this instance: Authorization: Bearer ...";
    Problem::new(ProblemKind::Unauthorized, detail).with_header("www-authenticate", "Bearer realm=\"scim\"")
}

#[cfg(test)]
mod tests {
    use super::taken_until;

    /// A token has the requests of two seconds at once, also after the clock was ahead.
    #[test]
    fn a_clock_that_was_set_back_blocks_no_directory() {
        const DAYS: i64 = 8 * 24 * 3_600_000_000;
        let all = |now: i64, mut until: i64| {
            let mut count = 0;
            while let Some(next) = taken_until(until, now, 100_000) {
                (until, count) = (next, count + 1);
            }
            (count, until)
        };
        let (count, until) = all(DAYS, 0);
        assert_eq!(count, 20);
        assert_eq!(all(0, until).0, 20, "what was spent ahead is over");
        assert_eq!(all(DAYS - 1_000_000, until).0, 0, "times of requests may differ");
    }
}
