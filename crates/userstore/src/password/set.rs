//! Passwords that an administrator sets.

use std::sync::Arc;

use chancery_credential::{
    hash::{HashError, hash, is_among},
    lockout,
    policy::BrokenRule,
};
use chancery_record::{Secret, Timestamp};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{
    Answer, AuditAction, Call, Context, Problem, Purpose, StoreError, Tx, Work, event_name, read_form,
};

use super::{InitialPassword, ResetPassword, stored_hash};
use crate::user::UserForUpdate;

/// The result of validating and hashing a new password.
pub enum HashOutcome {
    /// The password breaks these rules of the policy.
    Broken(Vec<BrokenRule>),
    /// The password was used before.
    Used,
    /// The hash of the password.
    Hash(Secret),
    /// The password could not be hashed.
    Failed(HashError),
}

impl HashOutcome {
    /// The hash as it is stored; otherwise the problem, at `member`.
    ///
    /// # Errors
    /// There is no hash.
    pub fn hash(&self, member: &str) -> Result<&str, Problem> {
        match self {
            Self::Broken(broken) => Err(stored_hash::refuse_broken(member, broken)),
            Self::Used => {
                Err(Problem::wrong_at(format!("/{member}"), "was used before: choose one that is new"))
            }
            Self::Hash(hash) => Ok(std::str::from_utf8(hash.expose()).unwrap_or_default()),
            Self::Failed(error) => Err(StoreError::Internal(error.to_string()).into()),
        }
    }
}

/// The options of the call's user store.
pub fn options(context: &Context) -> Result<Arc<Options<UserStoreOption>>, Problem> {
    context.scope.of_store().map(|store| Arc::clone(&store.options))
}

/// The work of validating and hashing a user's new password; it takes as long as hashing does.
pub fn hashing_work(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: &UserForUpdate,
    password: Secret,
) -> Result<impl FnOnce() -> HashOutcome + Send + 'static, Problem> {
    let options = options(context)?;
    let (policy, parameters) = (stored_hash::policy(&options), stored_hash::parameters(context));
    let before = if options.get(UserStoreOption::PASSWORD_HISTORY_COUNT) > 0 {
        Some(stored_hash::hashes(tx, loaded.was.rid, &options)?)
    } else {
        None
    };
    let user = loaded.user.clone();
    Ok(move || {
        let broken = stored_hash::broken(&policy, &user, &password);
        if !broken.is_empty() {
            return HashOutcome::Broken(broken);
        }
        if before.is_some_and(|before| is_among(&password, &before.all())) {
            return HashOutcome::Used;
        }
        match hash(&password, &parameters) {
            Ok(hash) => HashOutcome::Hash(Secret::new(hash)),
            Err(error) => HashOutcome::Failed(error),
        }
    })
}

/// Sets a hashed password, like a reset; the caller writes the other fields of the user.
///
/// # Errors
/// The password breaks rules; reported at `member`.
pub fn put_new(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: &mut UserForUpdate,
    outcome: &HashOutcome,
    member: &str,
) -> Result<(), Problem> {
    let options = options(context)?;
    let set_by = context.setter_for(loaded.user.id.0);
    stored_hash::put(context, tx, loaded, outcome.hash(member)?, set_by, &options)?;
    stored_hash::finish(context, loaded, &options)?;
    loaded.user.set_lockout(lockout::reset(loaded.user.lockout()));
    Ok(())
}

pub fn initial(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: InitialPassword = read_form(call)?;
    let mut loaded = UserForUpdate::in_path(call, tx)?;
    let Some(outcome) = call.result::<HashOutcome>() else {
        return Ok(Answer::after(Work::new(
            Purpose::Password,
            hashing_work(&call.context, tx, &loaded, form.password.0)?,
        )));
    };
    let options = options(&call.context)?;
    let set_by = call.context.setter_for(loaded.user.id.0);
    stored_hash::put(&call.context, tx, &loaded, outcome.hash("password")?, set_by, &options)?;
    stored_hash::finish(&call.context, &mut loaded, &options)?;
    loaded.user.set_lockout(lockout::token_used(loaded.user.lockout()));
    loaded.user.is_initial_password = true;
    loaded.user.is_password_change_required = true;
    loaded.user.password_expiration =
        form.password_expiration.or_else(|| Some(initial_end(&call.context, &options)));
    loaded.save_and_answer(call, tx, AuditAction::Modified(event_name!("password-set")))
}

fn initial_end(context: &Context, options: &Options<UserStoreOption>) -> Timestamp {
    Timestamp(context.now.0.saturating_add(options.get(UserStoreOption::INITIAL_PASSWORD_EXPIRATION)))
}

pub fn extend_initial(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let mut loaded = UserForUpdate::in_path(call, tx)?;
    if !loaded.user.is_initial_password {
        return Err(Problem::conflict("The user's password is not an initial one."));
    }
    loaded.user.password_expiration = Some(initial_end(&call.context, &*options(&call.context)?));
    loaded.user.renew_token(&call.context)?;
    loaded.save_and_answer(call, tx, AuditAction::UPDATED)
}

pub fn reset(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: ResetPassword = read_form(call)?;
    let mut loaded = UserForUpdate::in_path(call, tx)?;
    let Some(outcome) = call.result::<HashOutcome>() else {
        return Ok(Answer::after(Work::new(
            Purpose::Password,
            hashing_work(&call.context, tx, &loaded, form.new_password.0)?,
        )));
    };
    put_new(&call.context, tx, &mut loaded, &outcome, "newPassword")?;
    loaded.save_and_answer(call, tx, AuditAction::Modified(event_name!("password-reset")))
}
