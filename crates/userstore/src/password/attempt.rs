//! Attempts at a user's password: each is counted before the password is verified.

use chancery_credential::{
    hash::{Verification, hash, is_same_password, verify, verify_unknown_user},
    lockout::{self, AttemptStart, FailedAttempt, Reason},
};
use chancery_record::{Record as _, Secret, Timestamp, Value, fold};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{
    Answer, AuditAction, Call, Context, EventName, Permit, Problem, Purpose, Sql, StateTable, StoredRow, Tx,
    Work, event_name, load_by, read_form, select_by, update_unversioned, write_stored,
};
use uuid::Uuid;

use super::{
    ChangePassword, mail,
    set::{self, HashOutcome, options},
    stored_hash::{self, Hashes},
};
use crate::user::{PasswordDue, USER, User, UserForUpdate, limits};

/// The user in the path: by id or, in a public operation, by login name.
pub fn find(call: &mut Call, tx: &mut Tx<'_>) -> Result<Option<UserForUpdate>, Problem> {
    if call.request.op.permit != Permit::Public {
        return UserForUpdate::in_path(call, tx).map(Some);
    }
    by_login(&call.context, tx, call.request.parameter(0))
}

/// The user who signs in by this name: by login name first, then, if `LoginByEmailEnabled` is on, by an
/// e-mail address that no other user has.
pub fn by_login(context: &Context, tx: &mut Tx<'_>, name: &str) -> Result<Option<UserForUpdate>, Problem> {
    let sql = select_by(context, &USER, User::LOGIN_NAME, name);
    let by_name = read_one(load_by(context, tx, &USER, None, &sql))?;
    if !options(context)?.get(UserStoreOption::LOGIN_BY_EMAIL_ENABLED) {
        return Ok(by_name);
    }
    // the same queries run for an unknown name, so that the time reveals nothing
    let mut only = None;
    let count = Sql::new("SELECT count(*) FROM user_account WHERE store = ")
        .bind(context.scope.store())
        .push(" AND quarantined_on IS NULL AND email_address_key = ")
        .bind(fold(name));
    tx.query(&count.text, &count.parameters, |row| {
        only = Some(row.int(0)? == 1);
        Ok(())
    })?;
    let sql = select_by(context, &USER, User::EMAIL_ADDRESS, name);
    let by_address = read_one(load_by(context, tx, &USER, None, &sql));
    match by_name {
        None if only == Some(true) => by_address,
        by_name => Ok(by_name),
    }
}

/// The row, if there is one.
fn read_one(loaded: Result<StoredRow, Problem>) -> Result<Option<UserForUpdate>, Problem> {
    match loaded {
        Err(problem) if problem.status() == 404 => Ok(None),
        loaded => loaded.and_then(UserForUpdate::new).map(Some),
    }
}

/// The row number of an unknown user.
pub(super) const UNKNOWN_USER: i64 = -1;

/// An attempt that was counted, before its password is verified.
pub(super) struct Counted {
    pub attempt: Uuid,
    /// Until when the throttle refuses further attempts because of this one.
    pub throttled_until: Option<Timestamp>,
    /// The row number of the user.
    pub user: i64,
    /// When the verified password was set; `None` if there is none.
    pub changed_on: Option<Timestamp>,
}

/// The result of counting an attempt.
pub(super) enum Counting {
    /// It is refused.
    Refused {
        /// Whether the throttle refuses it, which does not need a hash to hide it from callers who know the user.
        is_throttled: bool,
    },
    /// It counts: the user with the new state, still to be saved, and the hashes to verify against.
    Counted(Box<UserForUpdate>, Counted, Hashes),
}

/// Counts an attempt at the password of this user, or of an unknown one. The writes are committed although the operation may
/// be refused.
pub(super) fn count(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: Option<UserForUpdate>,
    options: &Options<UserStoreOption>,
) -> Result<Counting, Problem> {
    tx.commit_dry_run();
    let Some(mut loaded) = loaded.filter(|loaded| loaded.user.is_admitted(context.now)) else {
        stored_hash::hashes(tx, UNKNOWN_USER, options)?;
        count_for_unknown_user(context, tx)?;
        return Ok(Counting::Refused { is_throttled: false });
    };
    let attempt = context.new_id();
    match lockout::begin(&loaded.user.lockout(), &limits(options), context.now, attempt) {
        AttemptStart::Refused(reason, failed) => {
            stored_hash::hashes(tx, UNKNOWN_USER, options)?;
            match failed {
                Some(failed) => record_failure(context, tx, loaded, &failed).map(drop)?,
                None => count_for_unknown_user(context, tx)?,
            }
            Ok(Counting::Refused { is_throttled: reason == Reason::Throttled })
        }
        AttemptStart::Counted(state) => {
            loaded.user.set_lockout(state);
            let hashes = stored_hash::hashes(tx, loaded.was.rid, options)?;
            let (user, changed_on) = (loaded.was.rid, hashes.changed_on);
            let counted = Counted { attempt, throttled_until: state.throttled_until, user, changed_on };
            Ok(Counting::Counted(loaded.into(), counted, hashes))
        }
    }
}

/// The result of verifying the password.
struct Checked {
    /// The attempt; `None` if it was refused.
    counted: Option<Counted>,
    right: bool,
    /// The old password hashed anew, if its hash has outdated parameters.
    rehashed: Option<Secret>,
    /// The new password, if the old one was right.
    outcome: Option<HashOutcome>,
}

/// The single refusal for all reasons that a caller must not distinguish.
pub fn refusal(call: &Call, member: &str) -> Problem {
    if call.request.op.permit == Permit::Public {
        return Problem::invalid(
            "This is not accepted. Check what was typed, wait a while, or ask for help if it happens again.",
        );
    }
    let detail = "is not accepted: it is wrong, or the user's state does not let the user sign in now";
    Problem::wrong_at(format!("/{member}"), detail)
}

/// Changes a password; the old one is the proof.
pub fn change(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: ChangePassword = read_form(call)?;
    match call.result::<Checked>() {
        None => begin(call, tx, form),
        Some(checked) => end(call, tx, &checked),
    }
}

/// Counts the attempt; the verification comes next, and takes as long for an unknown user.
fn begin(call: &mut Call, tx: &mut Tx<'_>, form: ChangePassword) -> Result<Answer, Problem> {
    let parameters = stored_hash::parameters(&call.context);
    let options = options(&call.context)?;
    let refused = |spends_hash: bool, old: Secret| {
        Answer::after(Work::new(Purpose::Password, move || {
            if spends_hash {
                verify_unknown_user(&old, &parameters);
            }
            Checked { counted: None, right: false, rehashed: None, outcome: None }
        }))
    };
    let old = form.old_password.0;
    let loaded = find(call, tx)?;
    let (loaded, counted, hashes) = match count(&call.context, tx, loaded, &options)? {
        Counting::Counted(loaded, counted, hashes) => (loaded, counted, hashes),
        Counting::Refused { is_throttled } => {
            // the throttle spares the work of hashing, but not where the time would reveal which users exist
            return Ok(refused(!is_throttled || call.request.op.permit == Permit::Public, old));
        }
    };
    let hashing = set::hashing_work(&call.context, tx, &loaded, form.new_password.0.clone())?;
    loaded.save(&call.context, tx, AuditAction::Silent)?;
    let new = form.new_password.0;
    Ok(Answer::after(Work::new(Purpose::Password, move || {
        let Verification { right, needs_rehash } = check(&hashes, &old, &parameters);
        let is_same = right && is_same_password(&new, &old);
        let outcome = right.then(|| if is_same { HashOutcome::Used } else { hashing() });
        // the hash of a new password replaces the old one anyway
        let hash_stays = needs_rehash && !matches!(outcome, Some(HashOutcome::Hash(_)));
        let rehashed = if hash_stays { hash(&old, &parameters).ok().map(Secret::new) } else { None };
        Checked { counted: Some(counted), right, rehashed, outcome }
    })))
}

/// The number of rows that stand in for unknown users: concurrent attempts contend for them as they do for
/// users' rows.
const UNKNOWN_USER_SLOTS: u8 = 64;

/// Writes as durably as an attempt at a user's password does, for an unknown user: otherwise the time of the
/// write would reveal which login names exist.
pub fn count_for_unknown_user(context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
    write_for_unknown_user(context, tx, 1)
}

/// Writes this often for an unknown user.
pub fn write_for_unknown_user(context: &Context, tx: &mut Tx<'_>, writes: usize) -> Result<(), Problem> {
    let attempt = context.new_id();
    let slot = attempt.as_bytes().last().copied().unwrap_or(0) % UNKNOWN_USER_SLOTS;
    let text = StateTable::AttemptAtUnknownUser.insert(
        "(store, slot, attempt) VALUES (?1, ?2, ?3) \
         ON CONFLICT (store, slot) DO UPDATE SET attempt = excluded.attempt",
    );
    for _ in 0..writes {
        let parameters = [Value::Int(context.scope.store()), Value::Int(slot.into()), Value::Id(attempt)];
        tx.queue(&text, parameters.into())?;
    }
    tx.commit_dry_run();
    Ok(())
}

pub(super) fn check(
    hashes: &Hashes,
    password: &Secret,
    parameters: &chancery_credential::hash::Parameters,
) -> Verification {
    if let Some(hash) = hashes.current() {
        return verify(hash, password, parameters);
    }
    verify_unknown_user(password, parameters);
    Verification { right: false, needs_rehash: false }
}

/// Records the outcome of the verification.
fn end(call: &mut Call, tx: &mut Tx<'_>, checked: &Checked) -> Result<Answer, Problem> {
    let refused = refusal(call, "oldPassword");
    let Some(counted) = &checked.counted else {
        count_for_unknown_user(&call.context, tx)?;
        return Ok(Answer::refusing(refused));
    };
    let Some(mut loaded) = find(call, tx)?.filter(|loaded| loaded.was.rid == counted.user) else {
        return Ok(Answer::refusing(refused));
    };
    let options = options(&call.context)?;
    // a password that was replaced in the meantime is no proof
    if !checked.right || !stored_hash::is_unchanged(tx, counted.user, counted.changed_on)? {
        let failed =
            lockout::fail(loaded.user.lockout(), &limits(&options), call.context.now, counted.attempt);
        record_failure(&call.context, tx, loaded, &failed)?;
        tx.commit_dry_run();
        return Ok(Answer::refusing(refused));
    }
    let succeeded = lockout::succeed(loaded.user.lockout(), call.context.now, counted.attempt);
    loaded.user.set_lockout(succeeded.state);
    let hash = if succeeded.refused || !loaded.user.is_admitted(call.context.now) {
        Err(refused)
    } else if loaded.user.password_terms().due(call.context.now) == PasswordDue::Expired {
        let detail = "The password has expired and can no longer be changed. Ask for it to be reset.";
        Err(Problem::invalid(detail))
    } else {
        checked.outcome.as_ref().map_or(Err(refused), |outcome| outcome.hash("newPassword"))
    };
    let hash = match hash {
        Ok(hash) => hash,
        Err(problem) => {
            loaded.save(&call.context, tx, AuditAction::Silent)?;
            if let Some(hash) = &checked.rehashed {
                stored_hash::rehash(tx, counted.user, hash)?;
            }
            tx.commit_dry_run();
            return Ok(Answer::refusing(problem));
        }
    };
    if call.request.dry_run {
        return dry_run(call, tx, loaded, &options);
    }
    stored_hash::put(&call.context, tx, &loaded, hash, None, &options)?;
    stored_hash::finish(&call.context, &mut loaded, &options)?;
    finish(call, tx, loaded, event_name!("password-changed"))
}

/// Responds to a dry run like to a change. Only the successful attempt is recorded.
fn dry_run(
    call: &mut Call,
    tx: &mut Tx<'_>,
    mut loaded: UserForUpdate,
    options: &Options<UserStoreOption>,
) -> Result<Answer, Problem> {
    update_unversioned(
        &call.context,
        tx,
        &USER,
        &loaded.was,
        &loaded.user.clone().into_values(),
        AuditAction::Silent,
    )?;
    tx.commit_dry_run();
    if call.request.op.permit == Permit::Public {
        return Ok(Answer::new(call.request.op.status));
    }
    stored_hash::finish(&call.context, &mut loaded, options)?;
    write_stored(call, tx, call.request.op.shape, &loaded.was.with(loaded.user.into_values()))?;
    Ok(Answer::resource(call.request.op.status))
}

/// Saves a change and responds: an administrator gets the user, a public operation an empty response.
pub fn finish(
    call: &mut Call,
    tx: &mut Tx<'_>,
    loaded: UserForUpdate,
    event: EventName,
) -> Result<Answer, Problem> {
    let audit = AuditAction::Modified(event);
    if call.request.op.permit == Permit::Public {
        call.context.actor = Some(loaded.user.id.0);
        loaded.save(&call.context, tx, audit)?;
        return Ok(Answer::new(call.request.op.status));
    }
    loaded.save_and_answer(call, tx, audit)
}

/// Records a failed attempt. A lock is audited, and mailed to the operators that the store names.
pub fn record_failure(
    context: &Context,
    tx: &mut Tx<'_>,
    mut loaded: UserForUpdate,
    failed: &FailedAttempt,
) -> Result<StoredRow, Problem> {
    loaded.user.set_lockout(failed.state);
    if !failed.locked_permanently && !failed.locked_temporarily {
        return loaded.save(context, tx, AuditAction::Silent);
    }
    mail::notify_lock(context, tx, &loaded, failed)?;
    loaded.save(context, tx, AuditAction::Modified(event_name!("locked")))
}
