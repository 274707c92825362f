//! The operations on a user's state: locks, counters of attempts, activity, deletion quarantine.

use chancery_credential::lockout;
use chancery_record::{OPEN, Timestamp, Token, Value, record};
use chancery_resource::{
    Action as A, Answer, AuditAction, Body, BodyForm, Call, Custom, Method as M, Op, Permit::UserStore,
    Problem, ProblemKind, StateTable, Tx, event_name, load, load_hidden, purge, purged, read_form,
    write_stored,
};

use crate::{
    passkey::revoke_passes,
    user::{StateChange, USER, UserForUpdate, key_in_path},
};

record! {
    /// The changes to a user's state. At least one member besides the concurrency token is required.
    pub struct UserState {
        /// Whether the user may sign in at all.
        is_user_active: Option<bool> = OPEN,
        /// Whether the user is locked. False also resets the counters of failed sign-ins and removes a temporary lock.
        is_user_locked: Option<bool> = OPEN,
        /// Time until which the user is locked.
        locked_until: Option<Timestamp> = OPEN,
        /// The user's concurrency token. If it is given, it must be the current one.
        concurrency_token: Option<Token> = OPEN.stored_as("expected_token"),
    }
}

static STATE: BodyForm = BodyForm::of::<UserState>("UserState");

const fn op(name: &'static str, path: &'static str, custom: Custom, summary: &'static str) -> Op {
    Op::new(name, M::Post, path, UserStore, &USER, A::Custom(custom), summary)
}

/// The operations on a user's state.
pub static OPERATIONS: &[Op] = &[
    op(
        "ResetAccessFailedCount",
        "/administration/User/{userId}/lockout/reset",
        Custom::writing(reset_lockout),
        "Unlocks a user and resets the counters of failed sign-ins.",
    ),
    op(
        "SetUserState",
        "/administration/User/{userId}/state",
        Custom::writing(set_state).taking(Body::Form(&STATE)),
        "Activates, deactivates, locks or unlocks a user.",
    ),
    op(
        "RestoreUserDeletionQuarantine",
        "/administration/User/{userId}/restore-deletion",
        Custom::writing(restore),
        "Restores a user from the deletion quarantine.",
    ),
    Op {
        status: 204,
        ..op(
            "EraseUser",
            "/administration/User/{userId}/erase",
            Custom::writing(erase).replying(chancery_resource::Reply::Empty),
            "Erases a user immediately and permanently, including the user's personal data in the audit trail.",
        )
    }
    .sensitive()
    .added(),
];

fn reset_lockout(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let mut loaded = UserForUpdate::in_path(call, tx)?;
    let before = loaded.user.clone();
    loaded.user.set_lockout(lockout::reset(before.lockout()));
    let audit =
        loaded.audit_action_since(&call.context, &before, AuditAction::Modified(event_name!("unlocked")))?;
    loaded.save_and_answer(call, tx, audit)
}

fn set_state(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let requested: UserState = read_form(call)?;
    if (requested.is_user_active, requested.is_user_locked, requested.locked_until) == (None, None, None) {
        let detail = "needs isUserActive, isUserLocked or lockedUntil";
        return Err(Problem::wrong_at("", detail));
    }
    let mut loaded = UserForUpdate::in_path(call, tx)?;
    if let Some(token) = requested.concurrency_token
        && token != loaded.user.concurrency_token
    {
        let detail =
            "The user was changed since it was read. Read it again and send its present concurrencyToken.";
        return Err(Problem::new(ProblemKind::ConcurrencyConflict, detail)
            .with_member("currentConcurrencyToken", loaded.user.concurrency_token.as_str()));
    }
    let change = StateChange {
        is_active: requested.is_user_active,
        is_locked: requested.is_user_locked,
        locked_until: requested.locked_until,
    };
    let audit = loaded.set(&call.context, change)?;
    loaded.save_and_answer(call, tx, audit)
}

fn restore(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = key_in_path(call)?;
    let hidden = match load_hidden(&call.context, tx, &USER, key.clone()) {
        Err(problem) if problem.status() == 404 => {
            load(&call.context, tx, &USER, None, key)?;
            return Err(Problem::conflict("The user is not in the deletion quarantine."));
        }
        loaded => loaded?,
    };
    let mut loaded = UserForUpdate::new(hidden)?;
    // tokens and passes do not outlive a deletion
    tx.queue(&StateTable::PasswordReset.delete("WHERE user_rid = ?1"), vec![Value::Int(loaded.was.rid)])?;
    loaded.user.quarantined_on = None;
    loaded.user.renew_token(&call.context)?;
    let user = loaded.user.id;
    let stored = loaded.save(&call.context, tx, AuditAction::Modified(event_name!("restored")))?;
    revoke_passes(&call.context, tx, user)?;
    write_stored(call, tx, &USER, &stored)?;
    Ok(Answer::resource(call.request.op.status))
}

fn erase(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = key_in_path(call)?;
    let loaded = match load(&call.context, tx, &USER, None, key.clone()) {
        Err(problem) if problem.status() == 404 => load_hidden(&call.context, tx, &USER, key.clone())?,
        loaded => loaded?,
    };
    purge(&call.context, tx, &USER, &loaded)?;
    purged(&mut call.context, tx, &USER, std::slice::from_ref(&loaded))?;
    Ok(Answer::new(call.request.op.status))
}
