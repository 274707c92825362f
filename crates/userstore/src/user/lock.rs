//! A user that is read for a change, and the locks and sign-ins that follow from the user's state.

use chancery_application::{SignOutScope, sign_out};
use chancery_credential::lockout::{self, Limits};
use chancery_record::{Record as _, Timestamp, Value};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{
    Answer, AuditAction, Call, Context, EventName, Problem, StoredRow, Tx, check_if_match, event_name, load,
    load_rows, update_unversioned, write_stored,
};

use super::{USER, User};
use crate::UserId;

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

/// New values of activity and locks; `None`: the value stays.
#[derive(Clone, Copy, Debug)]
pub struct StateChange {
    /// Whether the user is active.
    pub is_active: Option<bool>,
    /// Whether the user is locked permanently.
    pub is_locked: Option<bool>,
    /// The end of a temporary lock.
    pub locked_until: Option<Timestamp>,
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
    pub(crate) fn audit_action_since(
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
    pub fn set(&mut self, context: &Context, change: StateChange) -> Result<AuditAction, Problem> {
        let before = self.user.clone();
        let user = &mut self.user;
        user.is_user_active = change.is_active.unwrap_or(user.is_user_active);
        if let Some(is_locked) = change.is_locked {
            user.set_lockout(lockout::set_locked(user.lockout(), is_locked));
        }
        if change.locked_until.is_some() {
            user.set_lockout(lockout::set_locked_until(user.lockout(), change.locked_until));
        }
        self.audit_action_since(context, &before, AuditAction::UPDATED)
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

/// The key of the first path parameter.
pub(crate) fn key_in_path(call: &Call) -> Result<Value, Problem> {
    USER.read_key(call.request.parameter(0))
}

/// The name of a change of activity or of a lock; of both, that of activity.
pub fn name_change(was: &[Value], now: &[Value]) -> Option<EventName> {
    let state = |values: &[Value]| {
        let (active, locked) =
            (User::IS_USER_ACTIVE.get(values).ok()?, User::IS_USER_LOCKED.get(values).ok()?);
        Some((active, locked, User::LOCKED_UNTIL.get(values).ok()?))
    };
    let ((was_active, was_locked, was_until), (active, locked, until)) = (state(was)?, state(now)?);
    match (was_locked, locked) {
        _ if active && !was_active => Some(event_name!("activated")),
        _ if was_active && !active => Some(event_name!("deactivated")),
        (false, true) => Some(event_name!("locked")),
        (true, false) => Some(event_name!("unlocked")),
        (false, false) if until > was_until => Some(event_name!("locked")),
        (false, false) if until < was_until => Some(event_name!("unlocked")),
        _ => None,
    }
}

/// The user with this row number.
pub fn user_of(context: &Context, tx: &mut Tx<'_>, user: i64) -> Result<Option<UserForUpdate>, Problem> {
    let row = load_rows(context, tx, &USER, &[user])?.pop();
    row.map(UserForUpdate::new).transpose()
}
