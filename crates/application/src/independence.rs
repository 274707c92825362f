//! Independence of approvers: an actor may not approve through a person or client app that it created.

use std::collections::{BTreeSet, HashMap};

use chancery_record::Timestamp;
use chancery_resource::{Context, HeldRole, Problem, ProblemKind, RoleType, Tx};
use uuid::Uuid;

use crate::{
    carried_roles::of_actor,
    controllers::{Controller, controllers_of},
    provider_setters::{external_identities_of, providers},
};

/// How long the actions of a SystemAdmin count, in ms: seven days. A SystemAdmin could act as anyone, and created most principals.
const TRUSTED_AFTER: i64 = 7 * 24 * 3_600_000;
/// The maximum number of controllers that are followed. A principal with more is never independent.
const MAX_CONTROLLERS: usize = 1_000;

/// Refuses an approval if the actor is not independent of the requester and the earlier approvers (`others`), or if the actor uses a
/// token from a token exchange, which acts on behalf of another actor. `requested_on` is when the approval was requested.
///
/// # Errors
/// 403.
pub fn check_independence(
    context: &Context,
    tx: &mut Tx<'_>,
    others: &[Uuid],
    requested_on: Timestamp,
) -> Result<(), Problem> {
    let Some(actor) = context.actor.filter(|_| context.acting.is_none()) else {
        let detail =
            "An approval must be given in person: use a token that does not come from a token exchange.";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    };
    if is_independent(tx, actor, others, requested_on)? {
        return Ok(());
    }
    let detail = "You are not independent of the requester or of another approver: one of you created the other, or gave the other \
        a credential, an identity, a role or a membership in a group with a role, or a third party did so for both of you. \
        Another approver is needed.";
    Err(Problem::new(ProblemKind::Forbidden, detail))
}

/// Whether an actor is independent of each of the others, for a request of that time: neither created the other, gave the other
/// a credential, an identity, a role or a membership that carries one, directly or through others; nor did a third party do that to
/// both, unless it is SystemAdmin. The token of a directory is no third party: it acts for its creator, who is followed.
fn is_independent(
    tx: &mut Tx<'_>,
    actor: Uuid,
    others: &[Uuid],
    requested_on: Timestamp,
) -> Result<bool, Problem> {
    let mut search =
        ControllerSearch { trusted_before: requested_on.0 - TRUSTED_AFTER, admins: HashMap::new() };
    let Some(own) = search.controllers(tx, actor)? else { return Ok(false) };
    for other in others.iter().filter(|other| **other != actor) {
        let Some(others_controllers) = search.controllers(tx, *other)? else { return Ok(false) };
        if own.contains(other) || others_controllers.contains(&actor) {
            return Ok(false);
        }
        for third in own.intersection(&others_controllers) {
            if !search.is_admin(tx, *third)? && !is_token(tx, *third)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The actors who set up the external identity providers by which these people sign in.
fn controllers_of_providers(tx: &mut Tx<'_>, people: &[Uuid]) -> Result<Vec<Controller>, Problem> {
    let instances =
        external_identities_of(tx, people)?.into_iter().map(|identity| identity.instance).collect();
    let mut controllers = Vec::new();
    for provider in providers(tx, &instances)?.into_values() {
        let setters = provider.controllers(tx)?.into_iter();
        controllers.extend(setters.map(|(actor, when)| Controller { actor, acted_on: Some(when) }));
    }
    controllers.retain(|controller| !people.contains(&controller.actor));
    Ok(controllers)
}

fn is_token(tx: &mut Tx<'_>, actor: Uuid) -> Result<bool, Problem> {
    Ok(tx.one("SELECT 1 FROM scim_token WHERE id = ?1", &[actor.into()], |_| Ok(()))?.is_some())
}

/// A search for the controllers of principals.
struct ControllerSearch {
    /// Actions of a SystemAdmin before this time do not count.
    trusted_before: i64,
    admins: HashMap<Uuid, bool>,
}

impl ControllerSearch {
    /// All controllers of a principal, direct and indirect; `None`: too many to be followed.
    fn controllers(&mut self, tx: &mut Tx<'_>, of: Uuid) -> Result<Option<BTreeSet<Uuid>>, Problem> {
        let (mut all, mut next) = (BTreeSet::new(), vec![of]);
        while !next.is_empty() {
            let mut discovered = Vec::new();
            let mut controllers = controllers_of(tx, &next)?;
            controllers.extend(controllers_of_providers(tx, &next)?);
            for Controller { actor, acted_on } in controllers {
                // an earlier release did not store the time: then it counts
                let is_old = acted_on.is_some_and(|acted_on| acted_on.0 < self.trusted_before);
                let counts = actor != of && !all.contains(&actor) && !(is_old && self.is_admin(tx, actor)?);
                if counts && all.insert(actor) {
                    discovered.push(actor);
                }
            }
            if all.len() > MAX_CONTROLLERS {
                return Ok(None);
            }
            next = discovered;
        }
        Ok(Some(all))
    }

    fn is_admin(&mut self, tx: &mut Tx<'_>, actor: Uuid) -> Result<bool, Problem> {
        if let Some(known) = self.admins.get(&actor) {
            return Ok(*known);
        }
        let held: Vec<HeldRole> = of_actor(tx, actor)?;
        let is_admin = held.iter().any(|held| held.role == RoleType::SystemAdmin);
        self.admins.insert(actor, is_admin);
        Ok(is_admin)
    }
}
