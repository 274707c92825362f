//! Independence of approvers: nobody may approve through a person or client app that they created.

use std::collections::{BTreeSet, HashMap};

use chancery_record::Timestamp;
use chancery_resource::{Context, HeldRole, Problem, ProblemKind, RoleType, Tx};
use uuid::Uuid;

use crate::{carried_roles::of_actor, makers::makers_of};

/// For how long what a SystemAdmin did counts, in ms: seven days. Whoever holds that role could act as anybody, and made most.
const TRUSTED_AFTER: i64 = 7 * 24 * 3_600_000;
/// The most makers that are followed. Who has more is independent of nobody.
const MOST: usize = 1_000;

/// Refuses an approval if the actor is not independent of the requester and the earlier approvers (`others`), or if the actor uses a
/// token from a token exchange, which acts on behalf of somebody else. `asked_on` is when the approval was requested.
///
/// # Errors
/// 403; the store's.
pub fn check_independence(
    context: &Context,
    tx: &mut Tx<'_>,
    others: &[Uuid],
    asked_on: Timestamp,
) -> Result<(), Problem> {
    let Some(actor) = context.actor.filter(|_| context.acting.is_none()) else {
        let detail =
            "An approval must be given in person: use a token that does not come from a token exchange.";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    };
    if is_independent(tx, actor, others, asked_on)? {
        return Ok(());
    }
    let detail = "You are not independent of the requester or of another approver: one of you created the other, or gave the other \
        a credential, an identity, a role or a membership in a group with a role, or a third party did so for both of you. \
        Somebody else must approve.";
    Err(Problem::new(ProblemKind::Forbidden, detail))
}

/// Whether an actor is independent of each of the others, for what was asked for then: neither made the other, gave the other
/// a credential, an identity, a role or a membership that carries one, directly or through others; nor did a third do that to
/// both, unless it is SystemAdmin. The token of a directory is no third: it acts for whoever made it, who is followed.
fn is_independent(
    tx: &mut Tx<'_>,
    actor: Uuid,
    others: &[Uuid],
    asked_on: Timestamp,
) -> Result<bool, Problem> {
    let mut looking = Looking { trusted_before: asked_on.0 - TRUSTED_AFTER, admins: HashMap::new() };
    let Some(mine) = looking.makers(tx, actor)? else { return Ok(false) };
    for other in others.iter().filter(|other| **other != actor) {
        let Some(theirs) = looking.makers(tx, *other)? else { return Ok(false) };
        if mine.contains(other) || theirs.contains(&actor) {
            return Ok(false);
        }
        for third in mine.intersection(&theirs) {
            if !looking.is_admin(tx, *third)? && !is_token(tx, *third)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn is_token(tx: &mut Tx<'_>, actor: Uuid) -> Result<bool, Problem> {
    Ok(tx.one("SELECT 1 FROM scim_token WHERE id = ?1", &[actor.into()], |_| Ok(()))?.is_some())
}

struct Looking {
    /// Before this moment what a SystemAdmin did counts for nothing.
    trusted_before: i64,
    admins: HashMap<Uuid, bool>,
}

impl Looking {
    /// All who made somebody, directly or through others; `None`: too many to be followed.
    fn makers(&mut self, tx: &mut Tx<'_>, of: Uuid) -> Result<Option<BTreeSet<Uuid>>, Problem> {
        let (mut all, mut next) = (BTreeSet::new(), vec![of]);
        while !next.is_empty() {
            let mut found = Vec::new();
            for (maker, when) in makers_of(tx, &next)? {
                // when an earlier release noted it is not known: then it counts
                let is_old = when.is_some_and(|when| when.0 < self.trusted_before);
                let counts = maker != of && !all.contains(&maker) && !(is_old && self.is_admin(tx, maker)?);
                if counts && all.insert(maker) {
                    found.push(maker);
                }
            }
            if all.len() > MOST {
                return Ok(None);
            }
            next = found;
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
