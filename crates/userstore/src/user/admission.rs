//! The conditions under which a user may sign in: evaluated here alone, for attempts, for running sign-ins, and for an
//! administrator's explanation.

use chancery_credential::lockout::{PendingAttempt, State};
use chancery_record::Timestamp;

use super::User;

/// The admission of a user, apart from locks and quarantine.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// Whether the user is active.
    pub is_active: bool,
    /// Time from which the user may sign in.
    pub valid_from: Option<Timestamp>,
    /// Time until which the user may sign in.
    pub valid_to: Option<Timestamp>,
}

impl Admission {
    /// Whether the validity period has started.
    pub fn has_begun(&self, now: Timestamp) -> bool {
        self.valid_from.is_none_or(|from| from <= now)
    }

    /// Whether the validity period is over.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.valid_to.is_some_and(|to| to <= now)
    }

    /// Whether the user is admitted at this time.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.is_active && self.has_begun(now) && !self.has_ended(now)
    }
}

/// The action that a password requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordDue {
    /// Nothing.
    Nothing,
    /// It must be changed first.
    Change,
    /// It expired, and can no longer be changed.
    Expired,
}

/// The terms of a password, apart from its hash.
#[derive(Clone, Copy, Debug)]
pub struct PasswordTerms {
    /// When it expires.
    pub expires_on: Option<Timestamp>,
    /// Whether it never expires, whatever `expires_on` is.
    pub never_expires: bool,
    /// Whether an expired one can still be used to set another.
    pub can_change_expired: bool,
    /// Whether it is the initial one, or must be changed for another reason.
    pub must_be_changed: bool,
}

impl PasswordTerms {
    /// Whether the password has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        !self.never_expires && self.expires_on.is_some_and(|end| end <= now)
    }

    /// The action that it requires.
    pub fn due(&self, now: Timestamp) -> PasswordDue {
        match (self.is_expired(now), self.can_change_expired, self.must_be_changed) {
            (true, false, _) => PasswordDue::Expired,
            (true, true, _) | (_, _, true) => PasswordDue::Change,
            _ => PasswordDue::Nothing,
        }
    }
}

impl User {
    /// The admission of the user.
    pub const fn admission(&self) -> Admission {
        Admission {
            is_active: self.is_user_active,
            valid_from: self.user_valid_from,
            valid_to: self.user_valid_to,
        }
    }

    /// Whether the user may sign in at this time, apart from locks.
    pub fn is_admitted(&self, now: Timestamp) -> bool {
        self.admission().holds(now)
    }

    /// The terms of the password.
    pub const fn password_terms(&self) -> PasswordTerms {
        PasswordTerms {
            expires_on: self.password_expiration,
            never_expires: self.password_never_expires,
            can_change_expired: self.can_change_password_on_expiration,
            must_be_changed: self.is_initial_password || self.is_password_change_required,
        }
    }

    /// The lockout state of the user, for the rules in `chancery_credential`.
    pub fn lockout(&self) -> State {
        State {
            is_lock_enabled: self.is_user_lock_enabled,
            is_locked: self.is_user_locked,
            locked_until: self.locked_until,
            failed_user_login_attempts: self.failed_user_login_attempts,
            failed_temporary_lock_attempts: self.failed_temporary_lock_attempts,
            throttle_step: self.throttle_step,
            throttled_until: self.throttled_until,
            closing: self
                .closing_attempt
                .zip(self.closing_since)
                .map(|(attempt, since)| PendingAttempt { attempt, since }),
        }
    }

    /// Sets the lockout state of the user.
    pub fn set_lockout(&mut self, state: State) {
        self.is_user_locked = state.is_locked;
        self.locked_until = state.locked_until;
        self.failed_user_login_attempts = state.failed_user_login_attempts;
        self.failed_temporary_lock_attempts = state.failed_temporary_lock_attempts;
        self.throttle_step = state.throttle_step;
        self.throttled_until = state.throttled_until;
        self.closing_attempt = state.closing.map(|closing| closing.attempt);
        self.closing_since = state.closing.map(|closing| closing.since);
    }
}
