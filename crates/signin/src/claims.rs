//! The claims about a person in the tokens of a client app: what is known of the person, what claim rules make of it, and what of
//! that each token tells.

mod facts;
mod preview;
mod requested;
mod rules;
mod told;

use std::{mem, sync::Arc};

use chancery_management::claim_rule::{Unusable, run};
use chancery_oauth::GROUPS;
use chancery_record::Timestamp;
use chancery_resource::{Problem, Purpose, StoreError, Tx, Work};
use uuid::Uuid;

pub use facts::person_claims;
pub use preview::{Preview, Reasons};
pub use requested::Requested;
pub use rules::RulesInForce;
pub use told::{Ground, ReleasedClaims, Withheld};

use self::{
    facts::{Facts, Wanted},
    rules::Rules,
    told::{Asked, Issue, tell, untouched},
};
use crate::{
    application::Application,
    granted::Granted,
    person::{self, Admitted},
    ruled::Making,
};

/// The claims of the platform that no column of a user holds as it is, each with its scope.
const DERIVED: [(&str, &str); 5] = [
    ("name", "profile"),
    ("updated_at", "profile"),
    ("email_verified", "email"),
    ("phone_number_verified", "phone"),
    ("groups", GROUPS),
];

/// The scope of a claim of the platform; `None` of any other claim.
pub(crate) fn scope_of(claim: &str) -> Option<&'static str> {
    let derived = DERIVED.iter().find(|(name, _)| *name == claim).map(|(_, scope)| *scope);
    derived.or_else(|| person_claims().find(|(name, _)| *name == claim).map(|(name, _)| facts::scope(name)))
}

/// The claims of the platform that discovery lists.
pub fn platform_claims() -> impl Iterator<Item = &'static str> {
    person_claims().chain(DERIVED).map(|(name, _)| name).chain(["groups_truncated"])
}

/// The input of claim rules, which run outside of transactions.
pub struct Pending {
    rules: Rules,
    facts: Facts,
    asked: Asked,
    /// Whom it is about.
    pub granted: Granted,
    /// The client app that the tokens are for.
    pub application: Uuid,
}

impl Pending {
    /// The work that runs the rules. Its result: the claims to release, or why the rules cannot run.
    pub fn work(self) -> Work<Result<ReleasedClaims, Unusable>> {
        let Self { rules, mut facts, asked, .. } = self;
        Work::new(Purpose::Claims, move || {
            let set = rules.compile()?;
            let evaluation = run(&set, mem::take(&mut facts.claims), false)?;
            tell(&evaluation.outcome.claims, &facts, &asked)
        })
    }
}

/// What the claim rules in force are to run on, for tokens of this scope; `None` where there are no rules, or the person is not
/// admitted.
///
/// # Errors
/// Those of the store.
pub fn pending(
    tx: &mut Tx<'_>,
    application: &Application,
    (granted, scope): (&Granted, &str),
    now: Timestamp,
) -> Result<Option<Box<Pending>>, Problem> {
    let Some(rules) = rules_of(tx, application, granted)? else { return Ok(None) };
    let of = (granted.person, granted.instance);
    let Ok(admitted) = person::admit(tx, application, of, granted.tenant, now)? else { return Ok(None) };
    pending_of(
        tx,
        application,
        Asked::new(application, (granted, scope), Issue::Tokens),
        (granted, rules, &admitted),
    )
}

/// What claim rules are to run on where a token of a person is exchanged for one of this client app; `None` where there are no rules,
/// or the person is gone.
///
/// # Errors
/// Those of the store.
pub fn pending_exchange(
    tx: &mut Tx<'_>,
    application: &Application,
    (granted, scope): (&Granted, &str),
    now: Timestamp,
) -> Result<Option<Box<Pending>>, Problem> {
    let Some(rules) = rules_of(tx, application, granted)? else { return Ok(None) };
    let of = (granted.person, granted.instance);
    let Some(user) = person::user_of(tx, application, of, now)? else { return Ok(None) };
    // what the other client app asked for by name is not for this one
    let own = Granted { requested: Requested::default(), ..granted.clone() };
    pending_of(
        tx,
        application,
        Asked::new(application, (&own, scope), Issue::Exchange),
        (granted, rules, &user),
    )
}

fn rules_of(tx: &mut Tx<'_>, application: &Application, granted: &Granted) -> Result<Option<Rules>, Problem> {
    application.rules.find(tx, (application.id, application.rid), (granted.tenant, granted.instance))
}

fn pending_of(
    tx: &mut Tx<'_>,
    application: &Application,
    asked: Asked,
    (granted, rules, user): (&Granted, Rules, &Admitted),
) -> Result<Option<Box<Pending>>, Problem> {
    let Some(facts) = facts::read(tx, user, Wanted::ALL, &granted.provider_claims)? else { return Ok(None) };
    let pending = Pending { rules, facts, asked, granted: granted.clone(), application: application.id };
    Ok(Some(Box::new(pending)))
}

/// What tokens tell: `told` after claim rules, else what is known of the person.
///
/// # Errors
/// Those of the store; rules are in force and nothing was told after them.
pub fn told(
    tx: &mut Tx<'_>,
    application: &Application,
    (granted, scope): (&Granted, &str),
    (user, told): (&Admitted, Option<&Arc<ReleasedClaims>>),
) -> Result<Arc<ReleasedClaims>, Problem> {
    if let Some(told) = told {
        return Ok(Arc::clone(told));
    }
    if rules_of(tx, application, granted)?.is_some() {
        return Err(StoreError::Internal("claim rules did not run".into()).into());
    }
    let asked = Asked::new(application, (granted, scope), Issue::Tokens);
    let known = plain(tx, application, &asked, (granted, user))?;
    Ok(Arc::new(known.unwrap_or_default()))
}

/// What the UserInfo endpoint tells, or what rules are to run on; `None` if the user does not exist any more.
///
/// # Errors
/// Those of the store.
pub fn at_userinfo(
    tx: &mut Tx<'_>,
    application: &Application,
    (granted, scope): (&Granted, &str),
    user: &Admitted,
) -> Result<Option<Making<ReleasedClaims>>, Problem> {
    let asked = Asked::new(application, (granted, scope), Issue::UserInfo);
    if let Some(rules) = rules_of(tx, application, granted)? {
        let pending = pending_of(tx, application, asked, (granted, rules, user))?;
        return Ok(pending.map(Making::Rules));
    }
    Ok(plain(tx, application, &asked, (granted, user))?.map(Making::Done))
}

/// What is told of a person where no rules are in force; `None` if the user does not exist any more.
fn plain(
    tx: &mut Tx<'_>,
    application: &Application,
    asked: &Asked,
    (granted, user): (&Granted, &Admitted),
) -> Result<Option<ReleasedClaims>, Problem> {
    if !asked.is_told() {
        return Ok(Some(ReleasedClaims::default()));
    }
    let wanted = Wanted { entries: asked.wants_entries(), groups: application.includes_groups };
    let Some(facts) = facts::read(tx, user, wanted, &granted.provider_claims)? else { return Ok(None) };
    let told = tell(&untouched(&facts), &facts, asked);
    // only what rules send is bounded
    Ok(Some(told.map_err(|_| StoreError::Internal("claims without rules are refused".into()))?))
}
