//! Signing in by a password: counted before it is verified, and cleared once the sign-in is complete.

use chancery_credential::{
    hash::{Parameters, Verification, hash, verify_nobody},
    lockout,
};
use chancery_record::Secret;
use chancery_resource::{AuditAction, Context, Problem, Tx};

use uuid::Uuid;

use super::{
    attempt::{Counted, Counting, NOBODY, check, count, record_failure},
    set::options,
    stored_hash::{self, Hashes},
};
use crate::user::{User, UserForUpdate, limits, user_of};

/// An attempt to sign in, counted, its password not yet verified.
pub struct PendingSignIn {
    counted: Option<(Counted, Hashes)>,
    parameters: Parameters,
}

/// An attempt to sign in whose password was verified.
pub struct VerifiedSignIn {
    pub(super) counted: Option<Counted>,
    pub(super) is_right: bool,
    /// The password hashed anew, if its hash has other parameters than the present ones.
    rehashed: Option<Secret>,
}

impl VerifiedSignIn {
    /// The attempt, if it counted.
    pub fn attempt(&self) -> Option<Uuid> {
        self.counted.as_ref().map(|counted| counted.attempt)
    }
}

/// Counts an attempt to sign in as this user of the context's store, or as nobody. The transaction is to be
/// committed whatever follows.
///
/// # Errors
/// Those of the store.
pub fn begin(
    context: &Context,
    tx: &mut Tx<'_>,
    found: Option<UserForUpdate>,
) -> Result<PendingSignIn, Problem> {
    let parameters = stored_hash::parameters(context);
    let options = options(context)?;
    let counted = match count(context, tx, found, &options)? {
        Counting::Counted(found, counted, hashes) => {
            found.save(context, tx, AuditAction::Silent)?;
            Some((counted, hashes))
        }
        Counting::Refused { .. } => None,
    };
    Ok(PendingSignIn { counted, parameters })
}

impl PendingSignIn {
    /// Verifies the password: as much work for nobody as for a user, and for who is refused anyway.
    pub fn verify(self, password: &Secret) -> VerifiedSignIn {
        let Some((counted, hashes)) = self.counted else {
            verify_nobody(password, &self.parameters);
            return VerifiedSignIn { counted: None, is_right: false, rehashed: None };
        };
        let Verification { right, needs_rehash } = check(&hashes, password, &self.parameters);
        let rehashed = needs_rehash.then(|| hash(password, &self.parameters).ok().map(Secret::new)).flatten();
        VerifiedSignIn { counted: Some(counted), is_right: right, rehashed }
    }
}

/// What an attempt comes to.
pub enum Decision {
    /// The password is right.
    Right(Box<User>),
    /// The password of this user is wrong, and that is recorded.
    Wrong(Uuid),
    /// It is refused, for whatever other reason, and that is recorded.
    Refused,
}

/// Decides an attempt.
///
/// Of one that is right nothing is cleared yet: whoever knows a password alone would get endless attempts at a
/// second factor: that is done once the sign-in is complete.
///
/// # Errors
/// Those of the store.
pub fn decide(context: &Context, tx: &mut Tx<'_>, verified: &VerifiedSignIn) -> Result<Decision, Problem> {
    tx.commit_dry_run();
    let Some(counted) = &verified.counted else {
        user_of(context, tx, NOBODY)?;
        return Ok(Decision::Refused);
    };
    let Some(found) = user_of(context, tx, counted.user)? else { return Ok(Decision::Refused) };
    let (options, user) = (options(context)?, found.user.id.0);
    // a password that was replaced in the meantime proves nothing
    if !verified.is_right || !stored_hash::is_unchanged(tx, counted.user, counted.changed_on)? {
        let failed = lockout::fail(found.user.lockout(), &limits(&options), context.now, counted.attempt);
        record_failure(context, tx, found, &failed)?;
        return Ok(Decision::Wrong(user));
    }
    if let Some(hash) = &verified.rehashed {
        stored_hash::rehash(tx, counted.user, hash)?;
    }
    let is_locked = lockout::succeed(found.user.lockout(), context.now, counted.attempt).refused;
    if is_locked || !found.user.is_admitted(context.now) {
        // it was right: it counts neither as a failure nor as a success
        withdraw(context, tx, verified)?;
        return Ok(Decision::Refused);
    }
    Ok(Decision::Right(found.user.into()))
}

/// Takes the attempt back: the password was right, but the sign-in is not complete.
///
/// # Errors
/// Those of the store.
pub fn withdraw(context: &Context, tx: &mut Tx<'_>, verified: &VerifiedSignIn) -> Result<(), Problem> {
    let Some(counted) = &verified.counted else { return Ok(()) };
    let Some(mut found) = user_of(context, tx, counted.user)? else { return Ok(()) };
    found.user.set_lockout(lockout::withdraw(found.user.lockout(), counted.attempt, counted.throttled_until));
    found.save(context, tx, AuditAction::Silent).map(drop)
}
