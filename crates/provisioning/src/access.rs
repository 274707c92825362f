//! Who calls: a directory by its token, or a client app that administers the user store.

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
use chancery_scim::Home;
use chancery_web::{App, Ask, Authority, Authorization, Requirement, address_of};
use http::{header, request::Parts};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::users::stopped;

/// Tokens that are remembered.
const REMEMBERED: usize = 1000;
/// How many seconds' requests may come at once.
const BURST: i64 = 2;
/// The beginning of tokens of directories.
const PREFIX: &str = "chscim_";

/// What a token may do.
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

/// Who calls.
pub struct Access<'a> {
    app: &'a App,
    /// The home of what is provisioned.
    pub home: Home,
    by: By,
    now: Timestamp,
}

/// By what somebody calls.
enum By {
    /// A token, with who that was as the request began.
    Token(String, Arc<ScimCaller>),
    /// The access token of a client app, or of a person, and what it is granted in the user store.
    AccessToken(Box<Requirement>, Authorization, String),
}

impl Access<'_> {
    /// Whether this may be done. A refusal by what is remembered is confirmed by what is so now.
    ///
    /// # Errors
    /// The token has no such right; it is stopped; it has ended.
    pub async fn check(&self, right: Right) -> Result<(), Problem> {
        let By::Token(token, caller) = &self.by else { return Ok(()) };
        if judge(caller, right).is_ok() {
            return Ok(());
        }
        let found = look_up(self.app, token).await?;
        judge(&*found.ok_or_else(unauthorized)?, right)
    }

    /// Whether it is a person.
    pub fn is_person(&self) -> bool {
        match &self.by {
            By::Token(..) => false,
            By::AccessToken(_, allowed, _) => allowed.caller.as_ref().is_some_and(|caller| caller.is_person),
        }
    }

    /// What is granted, as it is remembered.
    pub fn allowed(&self) -> Authorization {
        match &self.by {
            By::Token(_, caller) => authorization(caller),
            By::AccessToken(_, allowed, _) => allowed.clone(),
        }
    }

    /// By what each transaction makes sure that this may be done.
    pub fn authority(&self, right: Right) -> Authority {
        match &self.by {
            By::Token(token, caller) => {
                let master = self.app.context.master.clone();
                Authority::Token(ask(master, token.clone(), (caller.instance, right), self.now))
            }
            By::AccessToken(requirement, _, store) => {
                Authority::AccessToken(requirement.clone(), store.clone())
            }
        }
    }
}

/// Whether a token has a right, and is not stopped.
fn judge(caller: &ScimCaller, right: Right) -> Result<(), Problem> {
    if !caller.rights.iter().any(|held| held == right.name()) {
        let detail = format!("The token has not the right {}.", right.name());
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    match caller.stopped_on {
        Some(since) if right != Right::Read => Err(stopped(since, caller.provisioner.mass_limit)),
        _ => Ok(()),
    }
}

/// The tokens that were good a moment ago, by themselves, for their epoch.
static KNOWN: LazyLock<Cache<String, Arc<ScimCaller>>> = LazyLock::new(|| Cache::new(REMEMBERED));
/// Until when each token has had its requests, in microseconds: by its id.
static SPENT: LazyLock<Cache<Uuid, Arc<AtomicI64>>> = LazyLock::new(|| Cache::new(REMEMBERED));

/// Finds out who calls an instance. An access token needs the permit; a directory's own token has rights instead.
///
/// # Errors
/// Nobody who may.
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
        Some(token) => by_token(app, parts, (instance, token), now).await,
        None => by_access_token(app, parts, (instance, permit), now).await,
    }
}

async fn by_token<'a>(
    app: &'a App,
    parts: &Parts,
    (instance, token): (&str, String),
    now: Timestamp,
) -> Result<Access<'a>, Problem> {
    let found = match KNOWN.get(&token) {
        Some(known) => Some(known),
        None => look_up(app, &token).await?,
    };
    let Some(caller) = found.filter(|caller| is_good(caller, parts, instance, now)) else {
        app.admit_address(parts, now)?;
        return Err(unauthorized());
    };
    spend(&caller, now)?;
    if !caller.is_open {
        return Err(closed());
    }
    if let Some(id) = caller.provisioner.token {
        app.token_service.uses.note(CredentialUse::SCIM, id, now);
    }
    let home = if matches!(caller.scope, Scope::Store(_)) { Home::Store } else { Home::Provider };
    Ok(Access { app, home, by: By::Token(token, caller), now })
}

async fn look_up(app: &App, token: &str) -> Result<Option<Arc<ScimCaller>>, Problem> {
    let (master, wanted) = (app.context.master.clone(), token.to_owned());
    let found = app.store.run("FindScimToken", Mode::Long, None, move |tx| {
        find_scim_token(tx, &master, &wanted).map_err(Problem::from)
    });
    let found = found.await?.map(Arc::new);
    // what is closed now is looked up again until it is open
    if let Some(found) = found.as_ref().filter(|found| found.is_open) {
        KNOWN.insert(token.to_owned(), Arc::clone(found));
    }
    Ok(found)
}

/// What a transaction asks where what is remembered is of another epoch.
fn ask(master: MasterKey, token: String, (instance, right): (Uuid, Right), now: Timestamp) -> Ask {
    Arc::new(move |tx| {
        let found = find_scim_token(tx, &master, &token)?;
        let good = found.filter(|found| found.instance == instance && is_current(found, now));
        let Some(found) = good else {
            KNOWN.remove(&token);
            return Err(unauthorized());
        };
        if !found.is_open {
            KNOWN.remove(&token);
            return Err(closed());
        }
        let allowed = judge(&found, right).map(|()| authorization(&found));
        KNOWN.insert(token.clone(), Arc::new(found));
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

fn is_good(caller: &ScimCaller, parts: &Parts, instance: &str, now: Timestamp) -> bool {
    let is_named = match Uuid::try_parse(instance) {
        Ok(id) => id == caller.instance,
        Err(_) => fold(instance) == fold(&caller.name),
    };
    let is_near = caller.networks.as_ref().is_none_or(|networks| networks.holds(address_of(parts)));
    is_named && is_near && is_current(caller, now)
}

/// Takes one of the token's requests: so many a second, and at once those of two seconds.
fn spend(caller: &ScimCaller, now: Timestamp) -> Result<(), Problem> {
    let Some(id) = caller.provisioner.token else { return Ok(()) };
    let spent = SPENT.get(&id).unwrap_or_else(|| {
        let new = Arc::new(AtomicI64::new(0));
        SPENT.insert(id, Arc::clone(&new));
        new
    });
    let (now, each) = (now.0 * 1000, 1_000_000 / caller.rate.max(1));
    let taken =
        spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| taken_until(until, now, each));
    if taken.is_ok() {
        return Ok(());
    }
    let detail = format!("The token has {} requests a second. Go on in a second.", caller.rate);
    let wait = Duration::from_secs(1).as_secs().to_string();
    Err(Problem::new(ProblemKind::TooManyRequests, detail).with_header("retry-after", wait))
}

/// Until when the requests of a token are spent after one more, in microseconds; none where they are by now. What is spent
/// further ahead than two bursts was spent before the clock was set back, and is over.
fn taken_until(until: i64, now: i64, each: i64) -> Option<i64> {
    let burst = BURST * 1_000_000;
    let next = if until - now <= 2 * burst { until.max(now) } else { now } + each;
    (next - now <= burst).then_some(next)
}

async fn by_access_token<'a>(
    app: &'a App,
    parts: &Parts,
    (instance, permit): (&str, Permit),
    now: Timestamp,
) -> Result<Access<'a>, Problem> {
    let (requirement, mut allowed) = app.authorize(parts, permit, Some(instance), now).await?;
    let Scope::Store(store) = &allowed.scope else { return Err(unauthorized()) };
    let store = store.name.clone();
    let directory = Provisioner { reaches_all: true, mass_limit: i64::MAX, ..Provisioner::default() };
    allowed.provisioner = Some(Arc::new(directory));
    Ok(Access { app, home: Home::Store, by: By::AccessToken(Box::new(requirement), allowed, store), now })
}

/// The refusal of a token whose own instance is inactive, or provisioned no longer.
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
    fn a_clock_that_was_ahead_stops_no_directory() {
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
