//! Passwords that an administrator sets.

use std::sync::Arc;

use chancery_credential::{
    hash::{HashError, hash, is_among},
    lockout,
    policy::Broken,
};
use chancery_record::{Secret, Timestamp};
use chancery_resource::settings::Options;
use chancery_resource::{Answer, Call, Problem, Purpose, Telling, Work, read_form};
use chancery_store::{Error, Tx};

use super::{InitialPassword, ResetPassword, kept};
use crate::user::{Found, UPDATED};

/// What came of checking and hashing a new password.
pub enum Made {
    /// It breaks these rules.
    Broken(Vec<Broken>),
    /// It was used before.
    Used,
    /// Its hash.
    Hash(Secret),
    /// It could not be hashed.
    Failed(HashError),
}

impl Made {
    /// The hash, as it is kept.
    pub fn hash(&self, member: &str) -> Result<&str, Problem> {
        match self {
            Self::Broken(broken) => Err(kept::refuse_broken(member, broken)),
            Self::Used => {
                Err(Problem::wrong_at(format!("/{member}"), "was used before: choose one that is new"))
            }
            Self::Hash(hash) => Ok(std::str::from_utf8(hash.expose()).unwrap_or_default()),
            Self::Failed(error) => Err(Error::Internal(error.to_string()).into()),
        }
    }
}

/// The options of the store that the call is in.
pub fn options(call: &Call) -> Result<Arc<Options>, Problem> {
    call.scope.of_store().map(|store| Arc::clone(&store.options))
}

/// Checks and hashes a new password of a user: takes as long as a hash.
pub fn making(
    call: &Call,
    tx: &mut Tx<'_>,
    found: &Found,
    password: Secret,
) -> Result<impl FnOnce() -> Made + Send + 'static, Problem> {
    let options = options(call)?;
    let (policy, parameters) = (kept::policy(&options), kept::parameters(call));
    let before = if options.number("PasswordHistoryCount") > 0 {
        Some(kept::hashes(tx, found.was.rid, &options)?)
    } else {
        None
    };
    let user = found.user.clone();
    Ok(move || {
        let broken = kept::broken(&policy, &user, &password);
        if !broken.is_empty() {
            return Made::Broken(broken);
        }
        if before.is_some_and(|before| is_among(&password, &before.all())) {
            return Made::Used;
        }
        match hash(&password, &parameters) {
            Ok(hash) => Made::Hash(Secret::new(hash)),
            Err(error) => Made::Failed(error),
        }
    })
}

pub fn initial(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: InitialPassword = read_form(call)?;
    let mut found = Found::in_path(call, tx)?;
    let Some(made) = call.result::<Made>(0)? else {
        return Ok(Answer::after(Work::new(Purpose::Password, making(call, tx, &found, form.password.0)?)));
    };
    let options = options(call)?;
    kept::put(tx, found.was.rid, made.hash("password")?, call.now, &options)?;
    kept::settle(call, &mut found, &options)?;
    found.user.set_lockout(lockout::token_used(found.user.lockout()));
    found.user.is_initial_password = true;
    found.user.is_password_change_required = true;
    found.user.password_expiration = form.password_expiration.or_else(|| Some(initial_end(call, &options)));
    found.save_and_answer(call, tx, Telling::As("Modified", "password-set"))
}

fn initial_end(call: &Call, options: &Options) -> Timestamp {
    Timestamp(call.now.0.saturating_add(options.span("InitialPasswordExpiration")))
}

pub fn extend_initial(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let mut found = Found::in_path(call, tx)?;
    if !found.user.is_initial_password {
        return Err(Problem::conflict("The user's password is not an initial one."));
    }
    found.user.password_expiration = Some(initial_end(call, &*options(call)?));
    found.user.renew_token(call)?;
    found.save_and_answer(call, tx, UPDATED)
}

pub fn reset(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: ResetPassword = read_form(call)?;
    let mut found = Found::in_path(call, tx)?;
    let Some(made) = call.result::<Made>(0)? else {
        return Ok(Answer::after(Work::new(
            Purpose::Password,
            making(call, tx, &found, form.new_password.0)?,
        )));
    };
    let options = options(call)?;
    kept::put(tx, found.was.rid, made.hash("newPassword")?, call.now, &options)?;
    kept::settle(call, &mut found, &options)?;
    found.user.set_lockout(lockout::reset(found.user.lockout()));
    found.save_and_answer(call, tx, Telling::As("Modified", "password-reset"))
}
