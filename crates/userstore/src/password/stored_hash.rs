//! The stored password of a user: its hash, and the history of former hashes.

use chancery_credential::{
    PasswordOwner,
    hash::Parameters,
    policy::{BrokenRule, Policy},
};
use chancery_record::{Email, Name, Secret, Timestamp, Value};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{Context, Problem, StateTable, StoreError, Tx, selectable};

use uuid::Uuid;

use crate::user::{User, UserForUpdate, sign_out_user};

/// The hashes of a user's passwords. They cannot be printed.
#[derive(Clone)]
pub struct Hashes {
    current: Option<Secret>,
    /// When the current password was set. Hashing it anew does not change this.
    pub changed_on: Option<Timestamp>,
    /// The hashes that must not be used again, the newest first.
    former: Vec<Secret>,
}

impl Hashes {
    /// The current hash as text.
    pub fn current(&self) -> Option<&str> {
        self.current.as_ref().and_then(|hash| std::str::from_utf8(hash.expose()).ok())
    }

    /// All hashes as texts.
    pub fn all(&self) -> Vec<&str> {
        let all = self.current.iter().chain(&self.former);
        all.filter_map(|hash| std::str::from_utf8(hash.expose()).ok()).collect()
    }
}

/// Reads a user's current hash and as many former ones as the option `PasswordHistoryCount` requires.
pub fn hashes(tx: &mut Tx<'_>, user: i64, options: &Options<UserStoreOption>) -> Result<Hashes, StoreError> {
    let current = current(tx, user)?;
    let mut former = Vec::new();
    let count = usize::try_from(options.get(UserStoreOption::PASSWORD_HISTORY_COUNT)).unwrap_or(0);
    if count > 0 {
        let text = "SELECT hash FROM (SELECT hash, changed_on FROM user_password_history WHERE user_rid = ?1 \
            UNION ALL SELECT hash, changed_on FROM removed_password WHERE user_rid = ?1) former \
            ORDER BY changed_on DESC LIMIT 24";
        tx.query(text, &[Value::Int(user)], |row| {
            former.push(Secret::new(row.text(0)?));
            Ok(())
        })?;
        // the current hash is the first of those that must not be used again
        former.truncate(count - usize::from(current.is_some()));
    }
    let changed_on = current.as_ref().map(|current| current.changed_on);
    Ok(Hashes { current: current.map(|current| current.hash), changed_on, former })
}

selectable! {
    /// The hash of a user's password, and when the password was set.
    struct StoredHash<'r> from "FROM user_password WHERE user_rid = ?1" {
        hash: &'r str = "hash",
        changed_on: Timestamp = "changed_on",
    }
}

/// The current hash, and when the password was set. The hash cannot be printed.
struct CurrentHash {
    hash: Secret,
    changed_on: Timestamp,
}

fn current(tx: &mut Tx<'_>, user: i64) -> Result<Option<CurrentHash>, StoreError> {
    tx.one(StoredHash::SELECT, &[Value::Int(user)], |row| {
        let StoredHash { hash, changed_on } = StoredHash::read(row)?;
        Ok(CurrentHash { hash: Secret::new(hash), changed_on })
    })
}

/// Whether the user with this row number has a password.
pub fn is_set(tx: &mut Tx<'_>, user: i64) -> Result<bool, StoreError> {
    Ok(current(tx, user)?.is_some())
}

/// Whether the user's password is still the one that was set at this time, or there still is none. A hash with new parameters
/// is of the same password.
pub fn is_unchanged(tx: &mut Tx<'_>, user: i64, changed_on: Option<Timestamp>) -> Result<bool, StoreError> {
    Ok(current(tx, user)?.map(|current| current.changed_on) == changed_on)
}

/// Stores a new hash. The former one, also a removed one, goes into the history, if the store has one, the
/// reset token is deleted, and sign-ins with the former password end. `set_by`: who sets the password,
/// if that is not the user.
pub fn put(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: &UserForUpdate,
    hash: &str,
    set_by: Option<Uuid>,
    options: &Options<UserStoreOption>,
) -> Result<(), Problem> {
    let rid = Value::Int(loaded.was.rid);
    let count = options.get(UserStoreOption::PASSWORD_HISTORY_COUNT);
    if count > 0 {
        tx.queue(
            &StateTable::UserPasswordHistory.insert(
                "(user_rid, changed_on, hash) \
             SELECT user_rid, changed_on, hash FROM user_password WHERE user_rid = ?1 \
             UNION SELECT user_rid, changed_on, hash FROM removed_password WHERE user_rid = ?1",
            ),
            vec![rid.clone()],
        )?;
    }
    // the new hash is the first of those that must not be used again
    tx.queue(
        &StateTable::UserPasswordHistory.delete("WHERE user_rid = ?1 AND changed_on < COALESCE((SELECT MIN(changed_on) \
         FROM (SELECT changed_on FROM user_password_history WHERE user_rid = ?1 ORDER BY changed_on DESC LIMIT ?2) newest), ?3)"),
        vec![rid.clone(), Value::Int((count - 1).max(0)), Value::Int(i64::MAX)],
    )?;
    tx.queue(
        &StateTable::UserPassword.insert(
            "(user_rid, hash, changed_on, set_by) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (user_rid) DO UPDATE SET hash = excluded.hash, set_by = excluded.set_by, changed_on = \
         CASE WHEN user_password.changed_on < excluded.changed_on THEN excluded.changed_on ELSE user_password.changed_on + 1 END",
        ),
        vec![rid.clone(), hash.into(), Value::Int(context.now.0), set_by.into()],
    )?;
    tx.queue(&StateTable::RemovedPassword.delete("WHERE user_rid = ?1"), vec![rid.clone()])?;
    tx.queue(&StateTable::PasswordReset.delete("WHERE user_rid = ?1"), vec![rid])?;
    sign_out_user(context, tx, loaded.user.id)
}

/// Replaces the current hash by another of the same password.
pub fn rehash(tx: &mut Tx<'_>, user: i64, hash: &Secret) -> Result<(), StoreError> {
    let hash = std::str::from_utf8(hash.expose()).unwrap_or_default();
    tx.queue(
        &StateTable::UserPassword.update("SET hash = ?1 WHERE user_rid = ?2"),
        vec![hash.into(), Value::Int(user)],
    )
}

/// The parameters for hashing new passwords.
pub fn parameters(context: &Context) -> Parameters {
    context.app.hashing
}

/// The password policy of a store's options.
pub fn policy(options: &Options<UserStoreOption>) -> Policy {
    let length = |setting| usize::try_from(options.get(setting)).unwrap_or(0);
    Policy {
        min_length: length(UserStoreOption::PASSWORD_MIN_LENGTH),
        max_length: length(UserStoreOption::PASSWORD_MAX_LENGTH),
        require_digit: options.get(UserStoreOption::PASSWORD_REQUIRE_DIGIT),
        require_lowercase: options.get(UserStoreOption::PASSWORD_REQUIRE_LOWERCASE),
        require_uppercase: options.get(UserStoreOption::PASSWORD_REQUIRE_UPPERCASE),
        require_non_alphanumeric: options.get(UserStoreOption::PASSWORD_REQUIRE_NON_ALPHANUMERIC),
        blocklist_enabled: options.get(UserStoreOption::PASSWORD_BLOCKLIST_ENABLED),
        not_login_name: options.get(UserStoreOption::PASSWORD_NOT_LOGIN_NAME),
        not_email: options.get(UserStoreOption::PASSWORD_NOT_EMAIL),
    }
}

/// The rules of a policy that a user's new password breaks.
pub fn broken(policy: &Policy, user: &User, password: &Secret) -> Vec<BrokenRule> {
    let person = PasswordOwner {
        login_name: user.login_name.as_str(),
        email_address: user.email_address.as_ref().map(Email::as_str),
        first_name: user.first_name.as_ref().map(Name::as_str),
        last_name: user.last_name.as_ref().map(Name::as_str),
    };
    policy.check(password, &person)
}

/// The problem of a password that breaks rules; it lists all of them.
pub fn refuse_broken(member: &str, broken: &[BrokenRule]) -> Problem {
    let errors: Vec<_> = broken
        .iter()
        .map(|rule| chancery_record::FieldError::new(format!("/{member}"), rule.detail.clone()))
        .collect();
    Problem::wrong(errors)
}

/// Sets a user's own fields after the password was set: its expiry, and that it need not be changed.
pub fn finish(
    context: &Context,
    loaded: &mut UserForUpdate,
    options: &Options<UserStoreOption>,
) -> Result<(), Problem> {
    let days = options.get(UserStoreOption::PASSWORD_EXPIRATION_DAYS);
    let user = &mut loaded.user;
    user.password_expiration = (days > 0).then(|| Timestamp(context.now.0 + days * 24 * 3600 * 1000));
    user.is_initial_password = false;
    user.is_password_change_required = false;
    user.renew_token(context)
}
