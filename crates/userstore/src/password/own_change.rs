//! A password that its user changes while signing in, because it must be changed.

use chancery_credential::{lockout, policy::Policy};
use chancery_record::Secret;
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{AuditAction, Context, Problem, StoreError, Tx};

use super::{
    set::{HashOutcome, making, options},
    sign_in::{PendingSignIn, VerifiedSignIn, begin},
    stored_hash,
};
use crate::user::user_of;

/// The rule that a password is easy to guess, by its option.
const BLOCKLIST: &str = "PasswordBlocklistEnabled";

/// The password of a user: what is due about it, and what another one needs.
pub struct PasswordState {
    /// Whether it expired.
    pub is_expired: bool,
    /// Whether there is none yet.
    pub is_missing: bool,
    /// The login name.
    pub login_name: String,
    /// What another one needs.
    pub policy: Policy,
    /// How many of the last ones another one must differ from.
    pub history: i64,
}

/// Reads the state of the password of the user with this row number.
///
/// # Errors
/// Those of the store.
pub fn password_state(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
) -> Result<Option<PasswordState>, Problem> {
    let Some(found) = user_of(context, tx, user)? else { return Ok(None) };
    let (options, is_expired) = (options(context)?, found.user.password_terms().is_expired(context.now));
    let is_missing = !stored_hash::is_set(tx, found.was.rid)?;
    let user = found.user;
    Ok(Some(PasswordState {
        is_missing,
        is_expired,
        login_name: user.login_name.as_str().to_owned(),
        policy: stored_hash::policy(&options),
        history: options.get(UserStoreOption::PASSWORD_HISTORY_COUNT),
    }))
}

/// A change of a password by its user. Where there is one, the present one is an attempt to sign in.
pub struct PendingChange {
    user: i64,
    pending: Option<PendingSignIn>,
    making: Box<dyn FnOnce() -> HashOutcome + Send>,
}

/// A change whose present password was verified, and whose new one is hashed where that was right.
pub struct VerifiedChange {
    user: i64,
    /// The present password, as an attempt to sign in; none for who has no password.
    pub sign_in: Option<VerifiedSignIn>,
    made: Option<HashOutcome>,
}

/// What is wrong with a new password.
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
    /// What is wrong with the password, as its user is told.
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

/// Counts an attempt at the present password of the user with this row number, to set a new one. Who `has_none` makes
/// the first one.
///
/// # Errors
/// Those of the store.
pub fn begin_change(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
    (new, has_none): (Secret, bool),
) -> Result<Option<PendingChange>, Problem> {
    let Some(found) = user_of(context, tx, user)? else { return Ok(None) };
    let making = Box::new(making(context, tx, &found, new)?);
    let pending = if has_none { None } else { Some(begin(context, tx, Some(found))?) };
    Ok(Some(PendingChange { user, pending, making }))
}

impl PendingChange {
    /// Verifies the present password, and hashes the new one where it is right.
    pub fn verify(self, current: &Secret) -> VerifiedChange {
        let sign_in = self.pending.map(|pending| pending.verify(current));
        let is_right = sign_in.as_ref().is_none_or(|sign_in| sign_in.is_right);
        VerifiedChange { user: self.user, sign_in, made: is_right.then(|| (self.making)()) }
    }
}

/// Sets the new password; or what is wrong with it. The present one was found right by [`decide`], or there is none.
///
/// [`decide`]: super::sign_in::decide
///
/// # Errors
/// Those of the store.
pub fn change(
    context: &Context,
    tx: &mut Tx<'_>,
    verified: &VerifiedChange,
) -> Result<Result<(), NewPasswordFault>, Problem> {
    let gone = || StoreError::Internal("a password is to be changed that was not verified".into());
    let Some(made) = &verified.made else { return Err(gone().into()) };
    if let Some(fault) = made.fault() {
        return Ok(Err(fault));
    }
    let Some(mut found) = user_of(context, tx, verified.user)? else { return Err(gone().into()) };
    let counted = verified.sign_in.as_ref().and_then(|sign_in| sign_in.counted.as_ref());
    if counted.is_none() && stored_hash::is_set(tx, verified.user)? {
        return Err(Problem::conflict("The user has a password since."));
    }
    let options = options(context)?;
    stored_hash::put(context, tx, &found, (made.hash("newPassword")?, None), &options)?;
    stored_hash::finish(context, &mut found, &options)?;
    if let Some(counted) = counted {
        let succeeded = lockout::succeed(found.user.lockout(), context.now, counted.attempt);
        found.user.set_lockout(succeeded.state);
    }
    found.save(context, tx, AuditAction::As("Modified", "password-changed")).map(drop)?;
    Ok(Ok(()))
}
