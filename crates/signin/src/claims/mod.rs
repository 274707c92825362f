//! The claims about a person in the tokens of a client app: collecting the facts, running the claim rules, selecting
//! the claims of each token.

mod person_claims;
mod reasons;
mod release;
mod release_policy;

use std::{mem, sync::Arc};

use chancery_management::claim_rule::{Unusable, run};
use chancery_record::Timestamp;
use chancery_resource::{Problem, Purpose, StoreError, Tx, Work};
use uuid::Uuid;

pub use reasons::{Preview, Reasons};
pub use release::ReleasedClaims;
pub use release_policy::{ReleaseReason, WithholdReason};

use self::{
    person_claims::{ClaimGroups, PersonClaims},
    release::{release_claims, without_rules},
    release_policy::{Issue, ReleasePolicy},
};
use crate::{
    client_app::{
        Application,
        claim_rules::{Rules, TenantInstance},
    },
    grant::{claims_request::RequestedClaims, granted::Granted},
    person::{self, Admitted},
};

/// The input of claim rules, which run outside of transactions.
pub struct Pending {
    rules: Rules,
    facts: PersonClaims,
    policy: ReleasePolicy,
    /// The grant of the person.
    pub granted: Granted,
    /// The client app of the tokens.
    pub application: Uuid,
}

impl Pending {
    /// The work that runs the rules. Result: the claims to release, or why the rules cannot run.
    pub fn work(self) -> Work<Result<ReleasedClaims, Unusable>> {
        let Self { rules, mut facts, policy, .. } = self;
        Work::new(Purpose::Claims, move || {
            let set = rules.compile()?;
            let evaluation = run(&set, mem::take(&mut facts.claims), false)?;
            release_claims(&evaluation.outcome.claims, &facts, &policy)
        })
    }
}

/// The outcome of a transaction that issues tokens.
pub enum Issuance<T> {
    /// It is done.
    Done(T),
    /// Claim rules are in force. Nothing is written yet.
    Rules(Box<Pending>),
}

/// The input of the claim rules in force for tokens of this scope; `None` if there are no rules or the person is not
/// admitted.
pub fn pending(
    tx: &mut Tx<'_>,
    application: &Application,
    granted: &Granted,
    scope: &str,
    now: Timestamp,
) -> Result<Option<Box<Pending>>, Problem> {
    let Some(rules) = rules_of(tx, application, granted)? else { return Ok(None) };
    let Ok(admitted) = person::admit(tx, application, granted.identity(), granted.tenant, now)? else {
        return Ok(None);
    };
    pending_of(
        tx,
        application,
        ReleasePolicy::new(application, granted, scope, Issue::Tokens),
        granted,
        rules,
        &admitted,
    )
}

/// The input of the claim rules for a token exchange of this client app; `None` if there are no rules or the person
/// no longer exists.
pub fn pending_exchange(
    tx: &mut Tx<'_>,
    application: &Application,
    granted: &Granted,
    scope: &str,
    now: Timestamp,
) -> Result<Option<Box<Pending>>, Problem> {
    let Some(rules) = rules_of(tx, application, granted)? else { return Ok(None) };
    let Some(user) = person::user_of(tx, application, granted.identity(), now)? else { return Ok(None) };
    // claims that the other client app requested by name are not for this one
    let own = Granted { requested: RequestedClaims::default(), ..granted.clone() };
    pending_of(
        tx,
        application,
        ReleasePolicy::new(application, &own, scope, Issue::Exchange),
        granted,
        rules,
        &user,
    )
}

fn rules_of(tx: &mut Tx<'_>, application: &Application, granted: &Granted) -> Result<Option<Rules>, Problem> {
    let scope = TenantInstance { tenant: granted.tenant, instance: granted.instance };
    application.rules.find(tx, application, scope)
}

fn pending_of(
    tx: &mut Tx<'_>,
    application: &Application,
    policy: ReleasePolicy,
    granted: &Granted,
    rules: Rules,
    user: &Admitted,
) -> Result<Option<Box<Pending>>, Problem> {
    let Some(facts) = person_claims::read(tx, user, ClaimGroups::ALL, &granted.provider_claims)? else {
        return Ok(None);
    };
    let pending = Pending { rules, facts, policy, granted: granted.clone(), application: application.id };
    Ok(Some(Box::new(pending)))
}

/// The claims of tokens: `released` if claim rules ran, else from the facts about the person.
///
/// # Errors
/// Fails when the database does, or when rules are in force but did not run.
pub fn released(
    tx: &mut Tx<'_>,
    application: &Application,
    granted: &Granted,
    scope: &str,
    user: &Admitted,
    released: Option<&Arc<ReleasedClaims>>,
) -> Result<Arc<ReleasedClaims>, Problem> {
    if let Some(released) = released {
        return Ok(Arc::clone(released));
    }
    if rules_of(tx, application, granted)?.is_some() {
        return Err(StoreError::Internal("claim rules did not run".into()).into());
    }
    let policy = ReleasePolicy::new(application, granted, scope, Issue::Tokens);
    let known = plain(tx, application, &policy, granted, user)?;
    Ok(Arc::new(known.unwrap_or_default()))
}

/// The claims of the UserInfo endpoint, or the input of the rules; `None` if the user no longer exists.
pub fn at_userinfo(
    tx: &mut Tx<'_>,
    application: &Application,
    granted: &Granted,
    scope: &str,
    user: &Admitted,
) -> Result<Option<Issuance<ReleasedClaims>>, Problem> {
    let policy = ReleasePolicy::new(application, granted, scope, Issue::UserInfo);
    if let Some(rules) = rules_of(tx, application, granted)? {
        let pending = pending_of(tx, application, policy, granted, rules, user)?;
        return Ok(pending.map(Issuance::Rules));
    }
    Ok(plain(tx, application, &policy, granted, user)?.map(Issuance::Done))
}

/// The claims of a person without rules; `None` if the user no longer exists.
fn plain(
    tx: &mut Tx<'_>,
    application: &Application,
    policy: &ReleasePolicy,
    granted: &Granted,
    user: &Admitted,
) -> Result<Option<ReleasedClaims>, Problem> {
    if !policy.releases_any() {
        return Ok(Some(ReleasedClaims::default()));
    }
    let include = ClaimGroups { entries: policy.may_release_entries(), groups: application.includes_groups };
    let Some(facts) = person_claims::read(tx, user, include, &granted.provider_claims)? else {
        return Ok(None);
    };
    let released = release_claims(&without_rules(&facts), &facts, policy);
    // only claims of rules have a limit
    Ok(Some(released.map_err(|_| StoreError::Internal("claims without rules are refused".into()))?))
}
