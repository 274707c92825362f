//! Attempts that are verified within one transaction: at a code or an access pass. They count towards the
//! locks and the throttle like attempts at a password.

use chancery_credential::lockout::{self, AttemptStart, State};
use chancery_resource::{AuditAction, Context, Problem, Tx};
use uuid::Uuid;

use crate::{
    password::{count_for_unknown_user, options, record_failure},
    user::{UserForUpdate, limits, user_of},
};

/// A started attempt of a user. A dropped one has no effect.
pub struct InstantAttempt {
    /// The user.
    pub loaded: UserForUpdate,
    state: State,
    id: Uuid,
}

/// Starts an attempt; `None` if there is no user who could sign in, or a lock or the throttle refuses it. Every outcome
/// writes something, so that the time reveals nothing.
pub fn begin_attempt(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: Option<UserForUpdate>,
) -> Result<Option<InstantAttempt>, Problem> {
    let Some(loaded) = loaded.filter(|loaded| loaded.user.is_admitted(context.now)) else {
        count_for_unknown_user(context, tx)?;
        return Ok(None);
    };
    let (limits, id) = (limits(&*options(context)?), context.new_id());
    match lockout::begin(&loaded.user.lockout(), &limits, context.now, id) {
        AttemptStart::Counted(state) => Ok(Some(InstantAttempt { loaded, state, id })),
        AttemptStart::Refused(_, failed) => {
            match failed {
                Some(failed) => record_failure(context, tx, loaded, &failed).map(drop)?,
                None => count_for_unknown_user(context, tx)?,
            }
            tx.commit_dry_run();
            Ok(None)
        }
    }
}

impl InstantAttempt {
    /// The credential is wrong: the attempt counts, although the operation is refused.
    pub fn fail(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let failed = lockout::fail(self.state, &limits(&*options(context)?), context.now, self.id);
        tx.commit_dry_run();
        record_failure(context, tx, self.loaded, &failed).map(drop)
    }

    /// The credential is right: earlier failures are reset.
    pub fn succeed(mut self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        self.loaded.user.set_lockout(lockout::succeed(self.state, context.now, self.id).state);
        self.loaded.save(context, tx, AuditAction::Silent).map(drop)
    }
}

/// Resets failed attempts: the user's sign-in is complete. A temporary lock ends if `ends_lock`, as it does
/// for credentials that cannot be guessed.
pub fn clear_attempts(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
    attempt: Option<Uuid>,
    ends_lock: bool,
) -> Result<(), Problem> {
    let Some(mut loaded) = user_of(context, tx, user)? else { return Ok(()) };
    let before = loaded.user.lockout();
    let state = if ends_lock { lockout::token_used(before) } else { before };
    let after = lockout::succeed(state, context.now, attempt.unwrap_or_default()).state;
    if after == before {
        return Ok(());
    }
    loaded.user.set_lockout(after);
    loaded.save(context, tx, AuditAction::Silent).map(drop)
}
