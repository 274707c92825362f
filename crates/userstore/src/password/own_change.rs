//! A password that its user changes while signing in, because it must be changed.

use chancery_credential::{lockout, policy::Policy};
use chancery_record::Secret;
use chancery_resource::{AuditAction, Context, Problem, StoreError, Tx};

use super::{
    attempt::is_expired,
    set::{HashOutcome, making, options},
    sign_in::{PendingSignIn, VerifiedSignIn, begin, find},
    stored_hash,
};

/// The rule that a password is easy to guess, by its option.
const BLOCKLIST: &str = "PasswordBlocklistEnabled";

/// The password of a user: what is due about it, and what another one needs.
pub struct PasswordState {
    /// Whether it expired and may not be changed for that.
    pub is_over: bool,
    /// Whether another one must be set before the user goes on.
    pub must_change: bool,
    /// Whether it expired.
    pub is_expired: bool,
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
    let Some(found) = find(context, tx, user)? else { return Ok(None) };
    let (options, is_expired) = (options(context)?, is_expired(context, &found));
    let user = found.user;
    Ok(Some(PasswordState {
        is_over: is_expired && !user.can_change_password_on_expiration,
        must_change: is_expired || user.is_password_change_required || user.is_initial_password,
        is_expired,
        login_name: user.login_name.as_str().to_owned(),
        policy: stored_hash::policy(&options),
        history: options.number("PasswordHistoryCount"),
    }))
}

/// A change of a password by its user, counted as an attempt to sign in.
pub struct PendingChange {
    pending: PendingSignIn,
    making: Box<dyn FnOnce() -> HashOutcome + Send>,
}

/// A change whose present password was verified.
pub struct VerifiedChange {
    /// The present password, as an attempt to sign in.
    pub sign_in: VerifiedSignIn,
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

/// Counts an attempt at the present password of the user with this row number, to set a new one.
///
/// # Errors
/// Those of the store.
pub fn begin_change(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
    new: Secret,
) -> Result<Option<PendingChange>, Problem> {
    let Some(found) = find(context, tx, user)? else { return Ok(None) };
    let making = Box::new(making(context, tx, &found, new)?);
    Ok(Some(PendingChange { pending: begin(context, tx, Some(found))?, making }))
}

impl PendingChange {
    /// Verifies the present password, and hashes the new one where it is right.
    pub fn verify(self, current: &Secret) -> VerifiedChange {
        let sign_in = self.pending.verify(current);
        let made = sign_in.is_right.then(|| (self.making)());
        VerifiedChange { sign_in, made }
    }
}

/// Sets the new password of an attempt that [`decide`] found right; or what is wrong with it.
///
/// # Errors
/// Those of the store.
pub fn change(
    context: &Context,
    tx: &mut Tx<'_>,
    verified: &VerifiedChange,
) -> Result<Result<(), NewPasswordFault>, Problem> {
    let gone = || StoreError::Internal("a password is to be changed that was not verified".into());
    let (Some(counted), Some(made)) = (&verified.sign_in.counted, &verified.made) else {
        return Err(gone().into());
    };
    match made {
        HashOutcome::Broken(broken) if broken.iter().all(|rule| rule.code == BLOCKLIST) => {
            return Ok(Err(NewPasswordFault::Common));
        }
        HashOutcome::Broken(_) => return Ok(Err(NewPasswordFault::Rules)),
        HashOutcome::Used => return Ok(Err(NewPasswordFault::Used)),
        HashOutcome::Hash(_) | HashOutcome::Failed(_) => {}
    }
    let Some(mut found) = find(context, tx, counted.user)? else { return Err(gone().into()) };
    let options = options(context)?;
    stored_hash::put(context, tx, &found, made.hash("newPassword")?, &options)?;
    stored_hash::finish(context, &mut found, &options)?;
    let succeeded = lockout::succeed(found.user.lockout(), context.now, counted.attempt);
    found.user.set_lockout(succeeded.state);
    found.save(context, tx, AuditAction::As("Modified", "password-changed")).map(drop)?;
    Ok(Ok(()))
}
