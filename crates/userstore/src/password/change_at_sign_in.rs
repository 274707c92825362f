//! Change of a password by its user during a sign-in, because it must be changed.

use chancery_credential::{lockout, policy::Policy};
use chancery_record::Secret;
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{AuditAction, Context, Problem, StoreError, Tx, event_name};

use super::{
    set::{HashOutcome, hashing_work, options},
    sign_in::{PendingSignIn, VerifiedSignIn, begin},
    stored_hash,
};
use crate::user::user_of;

/// The option of the rule against passwords that are easy to guess.
const BLOCKLIST: &str = "PasswordBlocklistEnabled";

/// The state of a user's password, and the requirements of a new one.
pub struct PasswordState {
    /// Whether it expired.
    pub is_expired: bool,
    /// Whether it was not set yet.
    pub is_missing: bool,
    /// The login name.
    pub login_name: String,
    /// The policy for a new one.
    pub policy: Policy,
    /// The number of former ones that a new one must differ from.
    pub history: i64,
}

/// Reads the state of the password of the user with this row number.
pub fn password_state(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
) -> Result<Option<PasswordState>, Problem> {
    let Some(loaded) = user_of(context, tx, user)? else { return Ok(None) };
    let (options, is_expired) = (options(context)?, loaded.user.password_terms().is_expired(context.now));
    let is_missing = !stored_hash::is_set(tx, loaded.was.rid)?;
    let user = loaded.user;
    Ok(Some(PasswordState {
        is_missing,
        is_expired,
        login_name: user.login_name.as_str().to_owned(),
        policy: stored_hash::policy(&options),
        history: options.get(UserStoreOption::PASSWORD_HISTORY_COUNT),
    }))
}

/// A change of a password by its user. A current password, if there is one, is verified as an attempt to sign in.
pub struct PendingChange {
    user: i64,
    pending: Option<PendingSignIn>,
    hashing: Box<dyn FnOnce() -> HashOutcome + Send>,
}

/// A change after the verification of the current password; if that was right, the new one is hashed.
pub struct VerifiedChange {
    user: i64,
    /// The attempt at the current password; `None` if the user has no password.
    pub sign_in: Option<VerifiedSignIn>,
    outcome: Option<HashOutcome>,
}

/// The fault of a new password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewPasswordFault {
    /// It breaks rules of the policy.
    Rules,
    /// It is easy to guess.
    Common,
    /// It was used before.
    Used,
}

impl HashOutcome {
    /// The fault of the password, as reported to its user.
    pub fn fault(&self) -> Option<NewPasswordFault> {
        match self {
            Self::Broken(broken) if broken.iter().all(|rule| rule.code == BLOCKLIST) => {
                Some(NewPasswordFault::Common)
            }
            Self::Broken(_) => Some(NewPasswordFault::Rules),
            Self::Used => Some(NewPasswordFault::Used),
            Self::Hash(_) | Self::Failed(_) => None,
        }
    }
}

/// Counts an attempt at the current password of the user with this row number, to set a new one. With `has_none`, the user
/// sets the first one.
pub fn begin_change(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
    new: Secret,
    has_none: bool,
) -> Result<Option<PendingChange>, Problem> {
    let Some(loaded) = user_of(context, tx, user)? else { return Ok(None) };
    let hashing = Box::new(hashing_work(context, tx, &loaded, new)?);
    let pending = if has_none { None } else { Some(begin(context, tx, Some(loaded))?) };
    Ok(Some(PendingChange { user, pending, hashing }))
}

impl PendingChange {
    /// Verifies the current password, and hashes the new one if it is right.
    pub fn verify(self, current: &Secret) -> VerifiedChange {
        let sign_in = self.pending.map(|pending| pending.verify(current));
        let is_right = sign_in.as_ref().is_none_or(|sign_in| sign_in.is_right);
        VerifiedChange { user: self.user, sign_in, outcome: is_right.then(|| (self.hashing)()) }
    }
}

/// Sets the new password, or returns its fault. The current one was verified by [`decide`], or there is none.
///
/// [`decide`]: super::sign_in::decide
pub fn change(
    context: &Context,
    tx: &mut Tx<'_>,
    verified: &VerifiedChange,
) -> Result<Result<(), NewPasswordFault>, Problem> {
    let gone = || StoreError::Internal("a password is to be changed that was not verified".into());
    let Some(outcome) = &verified.outcome else { return Err(gone().into()) };
    if let Some(fault) = outcome.fault() {
        return Ok(Err(fault));
    }
    let Some(mut loaded) = user_of(context, tx, verified.user)? else { return Err(gone().into()) };
    let counted = verified.sign_in.as_ref().and_then(|sign_in| sign_in.counted.as_ref());
    if counted.is_none() && stored_hash::is_set(tx, verified.user)? {
        return Err(Problem::conflict("The user has a password since."));
    }
    let options = options(context)?;
    stored_hash::put(context, tx, &loaded, outcome.hash("newPassword")?, None, &options)?;
    stored_hash::finish(context, &mut loaded, &options)?;
    if let Some(counted) = counted {
        let succeeded = lockout::succeed(loaded.user.lockout(), context.now, counted.attempt);
        loaded.user.set_lockout(succeeded.state);
    }
    loaded.save(context, tx, AuditAction::Modified(event_name!("password-changed"))).map(drop)?;
    Ok(Ok(()))
}
