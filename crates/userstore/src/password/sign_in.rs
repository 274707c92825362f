//! Sign-in by a password: the attempt is counted before the verification, and cleared once the sign-in is complete.

use chancery_credential::{
    hash::{Parameters, Verification, hash, verify_unknown_user},
    lockout,
};
use chancery_record::Secret;
use chancery_resource::{AuditAction, Context, Problem, Tx};

use uuid::Uuid;

use super::{
    attempt::{Counted, Counting, UNKNOWN_USER, check, count, record_failure},
    set::options,
    stored_hash::{self, Hashes},
};
use crate::user::{User, UserForUpdate, limits, user_of};

/// A counted attempt to sign in, before the verification of the password.
pub struct PendingSignIn {
    counted: Option<(Counted, Hashes)>,
    parameters: Parameters,
}

/// A counted attempt to sign in, after the verification of the password.
pub struct VerifiedSignIn {
    pub(super) counted: Option<Counted>,
    pub(super) is_right: bool,
    /// The password hashed anew, if its hash has outdated parameters.
    rehashed: Option<Secret>,
}

impl VerifiedSignIn {
    /// The attempt, if it counted.
    pub fn attempt(&self) -> Option<Uuid> {
        self.counted.as_ref().map(|counted| counted.attempt)
    }
}

/// Counts an attempt to sign in as this user of the context's store, or as an unknown one. The transaction must be
/// committed in any case.
pub fn begin(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: Option<UserForUpdate>,
) -> Result<PendingSignIn, Problem> {
    let parameters = stored_hash::parameters(context);
    let options = options(context)?;
    let counted = match count(context, tx, loaded, &options)? {
        Counting::Counted(loaded, counted, hashes) => {
            loaded.save(context, tx, AuditAction::Silent)?;
            Some((counted, hashes))
        }
        Counting::Refused { .. } => None,
    };
    Ok(PendingSignIn { counted, parameters })
}

impl PendingSignIn {
    /// Verifies the password: the same work for an unknown user, and for a refused attempt.
    pub fn verify(self, password: &Secret) -> VerifiedSignIn {
        let Some((counted, hashes)) = self.counted else {
            verify_unknown_user(password, &self.parameters);
            return VerifiedSignIn { counted: None, is_right: false, rehashed: None };
        };
        let Verification { right, needs_rehash } = check(&hashes, password, &self.parameters);
        let rehashed = needs_rehash.then(|| hash(password, &self.parameters).ok().map(Secret::new)).flatten();
        VerifiedSignIn { counted: Some(counted), is_right: right, rehashed }
    }
}

/// The decision on an attempt.
pub enum Decision {
    /// The password is right.
    Right(Box<User>),
    /// The password of this user is wrong; the failure is recorded.
    Wrong(Uuid),
    /// It is refused for any other reason; the failure is recorded.
    Refused,
}

/// Decides an attempt.
///
/// A right password does not reset the counters yet, or an attacker who knows it would have unlimited attempts at a
/// second factor. They are reset once the sign-in is complete.
pub fn decide(context: &Context, tx: &mut Tx<'_>, verified: &VerifiedSignIn) -> Result<Decision, Problem> {
    tx.commit_dry_run();
    let Some(counted) = &verified.counted else {
        user_of(context, tx, UNKNOWN_USER)?;
        return Ok(Decision::Refused);
    };
    let Some(loaded) = user_of(context, tx, counted.user)? else { return Ok(Decision::Refused) };
    let (options, user) = (options(context)?, loaded.user.id.0);
    // a password that was replaced in the meantime is no proof
    if !verified.is_right || !stored_hash::is_unchanged(tx, counted.user, counted.changed_on)? {
        let failed = lockout::fail(loaded.user.lockout(), &limits(&options), context.now, counted.attempt);
        record_failure(context, tx, loaded, &failed)?;
        return Ok(Decision::Wrong(user));
    }
    if let Some(hash) = &verified.rehashed {
        stored_hash::rehash(tx, counted.user, hash)?;
    }
    let is_locked = lockout::succeed(loaded.user.lockout(), context.now, counted.attempt).refused;
    if is_locked || !loaded.user.is_admitted(context.now) {
        // it was right, so it counts neither as a failure nor as a success
        withdraw(context, tx, verified)?;
        return Ok(Decision::Refused);
    }
    Ok(Decision::Right(loaded.user.into()))
}

/// Withdraws the attempt: the password was right, but the sign-in is not complete.
pub fn withdraw(context: &Context, tx: &mut Tx<'_>, verified: &VerifiedSignIn) -> Result<(), Problem> {
    let Some(counted) = &verified.counted else { return Ok(()) };
    let Some(mut loaded) = user_of(context, tx, counted.user)? else { return Ok(()) };
    loaded.user.set_lockout(lockout::withdraw(
        loaded.user.lockout(),
        counted.attempt,
        counted.throttled_until,
    ));
    loaded.save(context, tx, AuditAction::Silent).map(drop)
}
