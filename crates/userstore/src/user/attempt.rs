//! Attempts at what is verified at once, within one transaction: a code or an access pass. They count towards the
//! locks and the throttle as those at a password do.

use chancery_credential::lockout::{self, AttemptStart, State};
use chancery_resource::{AuditAction, Context, Problem, Tx, load_rows};
use uuid::Uuid;

use super::{USER, UserForUpdate, limits};
use crate::password::{count_for_nobody, options, record_failure};

/// An attempt of a user, begun. One that is dropped was not made.
pub struct InstantAttempt {
    /// The user.
    pub found: UserForUpdate,
    state: State,
    id: Uuid,
}

/// Begins an attempt; `None` where there is nobody who could sign in, or lock or throttle refuse it. Whatever comes of it,
/// something is written: time tells nothing.
///
/// # Errors
/// Those of the store.
pub fn begin_attempt(
    context: &Context,
    tx: &mut Tx<'_>,
    found: Option<UserForUpdate>,
) -> Result<Option<InstantAttempt>, Problem> {
    let Some(found) = found.filter(|found| found.user.is_admitted(context.now)) else {
        count_for_nobody(context, tx)?;
        return Ok(None);
    };
    let (limits, id) = (limits(&*options(context)?), context.new_id());
    match lockout::begin(&found.user.lockout(), &limits, context.now, id) {
        AttemptStart::Counted(state) => Ok(Some(InstantAttempt { found, state, id })),
        AttemptStart::Refused(_, failed) => {
            match failed {
                Some(failed) => record_failure(context, tx, found, &failed).map(drop)?,
                None => count_for_nobody(context, tx)?,
            }
            tx.commit_dry_run();
            Ok(None)
        }
    }
}

impl InstantAttempt {
    /// What was shown is wrong: the attempt counts, although the operation is refused.
    ///
    /// # Errors
    /// Those of the store.
    pub fn fail(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let failed = lockout::fail(self.state, &limits(&*options(context)?), context.now, self.id);
        tx.commit_dry_run();
        record_failure(context, tx, self.found, &failed).map(drop)
    }

    /// What was shown is right: what was counted before is forgotten.
    ///
    /// # Errors
    /// Those of the store.
    pub fn succeed(mut self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        self.found.user.set_lockout(lockout::succeed(self.state, context.now, self.id).state);
        self.found.save(context, tx, AuditAction::Silent).map(drop)
    }
}

/// The user with this row number.
///
/// # Errors
/// Those of the store.
pub fn user_of(context: &Context, tx: &mut Tx<'_>, user: i64) -> Result<Option<UserForUpdate>, Problem> {
    let row = load_rows(context, tx, &USER, &[user])?.pop();
    row.map(UserForUpdate::new).transpose()
}

/// Forgets failed attempts: the user's sign-in is complete. A temporary lock ends where `ends_lock` says so, as it does
/// for what cannot be guessed.
///
/// # Errors
/// Those of the store.
pub fn clear_attempts(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
    (attempt, ends_lock): (Option<Uuid>, bool),
) -> Result<(), Problem> {
    let Some(mut found) = user_of(context, tx, user)? else { return Ok(()) };
    let before = found.user.lockout();
    let state = if ends_lock { lockout::token_used(before) } else { before };
    let after = lockout::succeed(state, context.now, attempt.unwrap_or_default()).state;
    if after == before {
        return Ok(());
    }
    found.user.set_lockout(after);
    found.save(context, tx, AuditAction::Silent).map(drop)
}
