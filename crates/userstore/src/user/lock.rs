//! A user's state: locks, counters of attempts, activity, deletion quarantine.

use chancery_application::{SignOutScope, sign_out};
use chancery_credential::lockout::{self, Limits};
use chancery_record::{OPEN, Record as _, Timestamp, Token, Value, record};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{
    Action as A, Answer, AuditAction, Body, BodyForm, Call, Context, Custom, Method as M, Op,
    Permit::UserStore, Problem, ProblemKind, StateTable, StoredRow, Tx, check_if_match, load, load_hidden,
    purge, purged, read_form, update_unversioned, write_stored,
};

use super::{USER, User};
use crate::{UserId, passkey::revoke_passes};

record! {
    /// What is to change of a user's state: at least one member besides the token.
    pub struct UserState {
        /// Whether the user may sign in at all.
        is_user_active: Option<bool> = OPEN,
        /// Whether the user is locked. False also zeroes the counters and ends a temporary lock.
        is_user_locked: Option<bool> = OPEN,
        /// Until when the user is locked.
        locked_until: Option<Timestamp> = OPEN,
        /// The user's concurrency token; when it is given, it must be the current one.
        concurrency_token: Option<Token> = OPEN.stored_as("expected_token"),
    }
}

static STATE: BodyForm = BodyForm::of::<UserState>("UserState");

const fn op(name: &'static str, path: &'static str, custom: Custom, summary: &'static str) -> Op {
    Op::new(name, M::Post, path, UserStore, &USER, A::Custom(custom), summary)
}

/// The operations on a user's state.
pub static STATE_OPERATIONS: &[Op] = &[
    op(
        "ResetAccessFailedCount",
        "/administration/User/{userId}/lockout/reset",
        Custom::writing(reset_lockout),
        "Unlocks a user and forgets failed sign-ins.",
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
        "Takes a user out of the deletion quarantine.",
    ),
    Op {
        status: 204,
        ..op(
            "EraseUser",
            "/administration/User/{userId}/erase",
            Custom::writing(erase).replying(chancery_resource::Reply::Empty),
            "Erases a user at once and for good, with what the audit trail says of the person.",
        )
    }
    .sensitive()
    .added(),
];

impl User {
    /// Gives the user a new concurrency token, since a field of the user changed.
    pub fn renew_token(&mut self, context: &Context) -> Result<(), Problem> {
        self.concurrency_token = chancery_record::FieldType::from_value(context.new_token())?;
        Ok(())
    }
}

/// Ends the sign-ins of a user who is deactivated, locked permanently, or deleted. Temporary locks end nothing: else
/// anyone could sign people out.
pub fn sign_out_if_not_admitted(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    // locks do not apply to an exempt user
    let is_locked_permanently =
        User::IS_USER_LOCK_ENABLED.get(values)? && User::IS_USER_LOCKED.get(values)?;
    let is_in = User::IS_USER_ACTIVE.get(values)?
        && !is_locked_permanently
        && User::QUARANTINED_ON.get(values)?.is_none();
    if is_in { Ok(()) } else { sign_out_user(context, tx, User::ID.get(values)?) }
}

/// Ends the sign-ins of a user, and the grants of client apps.
pub fn sign_out_user(context: &Context, tx: &mut Tx<'_>, user: UserId) -> Result<(), Problem> {
    let users = SignOutScope::StoreUsers { store: context.scope.of_store()?.id, users: &[user.0] };
    sign_out(context, tx, users)
}

/// The lockout limits of a store's options.
pub fn limits(options: &Options<UserStoreOption>) -> Limits {
    Limits {
        attempts_before_user_locked: options.get(UserStoreOption::ATTEMPTS_BEFORE_USER_LOCKED),
        temporary_lock_enabled: options.get(UserStoreOption::TEMPORARY_LOCK_ENABLED),
        attempts_before_temporary_lock: options.get(UserStoreOption::ATTEMPTS_BEFORE_TEMPORARY_LOCK),
        temporary_lock_duration_ms: options.get(UserStoreOption::TEMPORARY_LOCK_DURATION),
        throttling_enabled: options.get(UserStoreOption::LOGIN_THROTTLING_ENABLED),
        throttling_initial_delay_ms: options.get(UserStoreOption::LOGIN_THROTTLING_INITIAL_DELAY),
        throttling_max_delay_ms: options.get(UserStoreOption::LOGIN_THROTTLING_MAX_DELAY),
    }
}

/// A user that was read for a change: the row and the record.
pub struct UserForUpdate {
    /// The row as it was read.
    pub was: StoredRow,
    /// The record, to be changed.
    pub user: User,
}

impl UserForUpdate {
    /// Reads the record from a row.
    pub fn new(was: StoredRow) -> Result<Self, Problem> {
        let user = User::from_values(was.values.clone())?;
        Ok(Self { was, user })
    }

    /// The user of the first path parameter, if `If-Match` holds. Later steps of the call skip
    /// that check: the first step may have changed the token.
    pub fn in_path(call: &mut Call, tx: &mut Tx<'_>) -> Result<Self, Problem> {
        let key = key_in_path(call)?;
        let loaded = load(&call.context, tx, &USER, None, key)?;
        if call.steps.results.is_empty() {
            // If-Match refers to the representation of the operation's response
            let shape = call.request.op.shape;
            let form = if shape.table == USER.table { shape } else { &USER };
            check_if_match(call, tx, form, &loaded)?;
        }
        Self::new(loaded)
    }

    /// The audit action for a change of the state. Counters are run-time state: a change of them alone renews no
    /// concurrency token and is not audited.
    fn audit_action_since(
        &mut self,
        context: &Context,
        before: &User,
        audit: AuditAction,
    ) -> Result<AuditAction, Problem> {
        let state = |user: &User| (user.is_user_active, user.is_user_locked, user.locked_until);
        if state(&self.user) == state(before) {
            return Ok(AuditAction::Silent);
        }
        self.user.renew_token(context)?;
        Ok(audit)
    }

    /// Sets the given members of activity and locks; returns the audit action.
    pub fn set(
        &mut self,
        context: &Context,
        (active, locked, until): (Option<bool>, Option<bool>, Option<Timestamp>),
    ) -> Result<AuditAction, Problem> {
        let before = self.user.clone();
        let user = &mut self.user;
        user.is_user_active = active.unwrap_or(user.is_user_active);
        if let Some(locked) = locked {
            user.set_lockout(lockout::set_locked(user.lockout(), locked));
        }
        if until.is_some() {
            user.set_lockout(lockout::set_locked_until(user.lockout(), until));
        }
        self.audit_action_since(context, &before, UPDATED)
    }

    /// Writes the changes with this audit action.
    pub fn save(self, context: &Context, tx: &mut Tx<'_>, audit: AuditAction) -> Result<StoredRow, Problem> {
        let values = self.user.into_values();
        update_unversioned(context, tx, &USER, &self.was, &values, audit)?;
        Ok(self.was.with(values))
    }

    /// Writes the changes with this audit action, and responds with the user.
    pub fn save_and_answer(
        self,
        call: &mut Call,
        tx: &mut Tx<'_>,
        audit: AuditAction,
    ) -> Result<Answer, Problem> {
        let stored = self.save(&call.context, tx, audit)?;
        write_stored(call, tx, call.request.op.shape, &stored)?;
        Ok(Answer::resource(call.request.op.status))
    }
}

fn key_in_path(call: &Call) -> Result<Value, Problem> {
    USER.read_key(call.request.parameter(0))
}

/// The name of a change of activity or of a lock; of both, that of activity (`8-events.md`, section 11).
pub fn name_change(was: &[Value], now: &[Value]) -> Option<&'static str> {
    let state = |values: &[Value]| {
        let (active, locked) =
            (User::IS_USER_ACTIVE.get(values).ok()?, User::IS_USER_LOCKED.get(values).ok()?);
        Some((active, locked, User::LOCKED_UNTIL.get(values).ok()?))
    };
    let ((was_active, was_locked, was_until), (active, locked, until)) = (state(was)?, state(now)?);
    match (was_locked, locked) {
        _ if active && !was_active => Some("activated"),
        _ if was_active && !active => Some("deactivated"),
        (false, true) => Some("locked"),
        (true, false) => Some("unlocked"),
        (false, false) if until > was_until => Some("locked"),
        (false, false) if until < was_until => Some("unlocked"),
        _ => None,
    }
}

/// The audit action for an update of the user.
pub const UPDATED: AuditAction = AuditAction::As("Modified", "updated");

fn reset_lockout(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let mut loaded = UserForUpdate::in_path(call, tx)?;
    let before = loaded.user.clone();
    loaded.user.set_lockout(lockout::reset(before.lockout()));
    let audit = loaded.audit_action_since(&call.context, &before, AuditAction::As("Modified", "unlocked"))?;
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
    let audit = loaded
        .set(&call.context, (requested.is_user_active, requested.is_user_locked, requested.locked_until))?;
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
    let stored = loaded.save(&call.context, tx, AuditAction::As("Modified", "restored"))?;
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
