//! Explains why a user can or cannot sign in, in the order of a real sign-in and by its functions.

use chancery_credential::lockout::{self, Limits, Reason};
use chancery_record::{Timestamp, Value, format_timestamp};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{
    Action as A, Answer, Call, Context, Custom, JsonForm, Method as M, Op, Permit::UserStore, Problem, Reply,
    Tx, load, load_hidden,
};
use serde_json::{Value as Json, json};

use crate::{
    passkey::{has_access_pass, sign_in},
    password::{is_set, options},
    user::{PasswordDue, USER, User, UserForUpdate, limits},
};

/// The checks, in order. `PasswordSet`, `HasPasskey` and `AccessPass` share one line, for the best available credential. `LockedForGood`
/// replaces `LockedByAdministrator` if it is unknown who locked the user.
const CHECKS: [&str; 15] = [
    "Deleted",
    "Active",
    "ValidFrom",
    "ValidTo",
    "LockedByAdministrator",
    "LockedForGood",
    "LockedByFailures",
    "LockedForNow",
    "AttemptUndecided",
    "Throttled",
    "PasswordSet",
    "HasPasskey",
    "AccessPass",
    "PasswordExpired",
    "PasswordChangeDue",
];

static EXPLANATION: JsonForm = JsonForm { name: "SignInExplanation", schema };

fn schema() -> Json {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let maybe = |about: &str| json!({ "type": ["string", "null"], "description": about });
    let until = json!({ "type": ["string", "null"], "format": "date-time", "description": "Until when the result applies, if known." });
    json!({
        "type": "object", "description": "Why a user can or cannot sign in.",
        "required": ["canSignIn", "ways", "lines"],
        "properties": {
            "canSignIn": { "type": "boolean", "description": "Whether the user can sign in now." },
            "ways": {
                "type": "array", "description": "The sign-in methods that are available now.",
                "items": { "type": "string", "enum": ["Password", "Passkey", "AccessPass"] },
            },
            "lines": {
                "type": "array", "description": "The checks, in the order of a sign-in.",
                "items": {
                    "type": "object", "required": ["check", "passes", "text", "until", "remedy"],
                    "properties": {
                        "check": { "type": "string", "enum": CHECKS, "description": "The check." },
                        "passes": { "type": "boolean", "description": "Whether the check passes: it does not prevent the sign-in." },
                        "text": text("The result of the check, in words."),
                        "until": until,
                        "remedy": maybe("The operation that resolves the failed check."),
                    },
                },
            },
        },
    })
}

/// The operations that explain.
pub static OPERATIONS: &[Op] = &[Op::new(
    "ExplainSignIn",
    M::Get,
    "/administration/User/{userId}/signin/explain",
    UserStore,
    &USER,
    A::Custom(Custom::reading(explain).replying(Reply::Json(&EXPLANATION))),
    "Explains why a user can or cannot sign in, in the order of a sign-in.",
)
.added()];

/// A check and its result.
struct Line {
    check: &'static str,
    passes: bool,
    text: String,
    until: Option<Timestamp>,
    remedy: Option<&'static str>,
}

impl Line {
    /// A line that passes with the text `good`, or fails with the text `bad` and this remedy.
    fn new(check: &'static str, passes: bool, good: &str, bad: &str, remedy: &'static str) -> Self {
        let text = if passes { good } else { bad }.to_owned();
        Self { check, passes, text, until: None, remedy: (!passes).then_some(remedy) }
    }

    /// The same, until this time.
    fn until(mut self, until: Option<Timestamp>) -> Self {
        self.until = until;
        self
    }

    fn to_json(&self) -> Json {
        json!({
            "check": self.check, "passes": self.passes, "text": self.text, "until": self.until.map(format_time),
            "remedy": self.remedy,
        })
    }
}

fn format_time(moment: Timestamp) -> String {
    let mut text = Vec::new();
    format_timestamp(moment, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// The credentials that a user has now.
#[expect(clippy::struct_excessive_bools, reason = "they are facts that do not exclude each other")]
struct AvailableCredentials {
    has_password: bool,
    has_passkey: bool,
    has_pass: bool,
    /// Whether a pass could be used to register a passkey.
    can_use_passes: bool,
}

fn explain(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (context, key) = (&call.context, USER.read_key(call.request.parameter(0))?);
    let loaded = UserForUpdate::new(find(context, tx, key)?)?;
    let (options, user, now) = (options(context)?, &loaded.user, context.now);
    let passkeys = sign_in::relying_party(&options, &context.app.public_url).is_some();
    let credentials = AvailableCredentials {
        has_password: is_set(tx, loaded.was.rid)?,
        has_passkey: passkeys && sign_in::summary_of(context, tx, loaded.was.rid)?.usable > 0,
        has_pass: has_access_pass(context, tx, user.id)?,
        can_use_passes: passkeys && options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_ENABLED),
    };
    let limits = limits(&options);
    let mut lines = vec![deletion(user, &options)];
    lines.extend(admission(user, now));
    lines.extend(locks(user, &limits, now));
    lines.extend(password(user, &credentials, now));
    let ways = ways(user, &credentials, &limits, now);
    let lines: Vec<Json> = lines.iter().map(Line::to_json).collect();
    let answer = json!({ "canSignIn": !ways.is_empty(), "ways": ways, "lines": lines });
    call.answer.bytes.extend_from_slice(answer.to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

/// The user, also one in the deletion quarantine: that is a reason, too.
fn find(context: &Context, tx: &mut Tx<'_>, key: Value) -> Result<chancery_resource::StoredRow, Problem> {
    match load(context, tx, &USER, None, key.clone()) {
        Err(problem) if problem.status() == 404 => load_hidden(context, tx, &USER, key),
        loaded => loaded,
    }
}

/// The available ways to sign in.
fn ways(
    user: &User,
    credentials: &AvailableCredentials,
    limits: &Limits,
    now: Timestamp,
) -> Vec<&'static str> {
    let lockout = user.lockout();
    let is_here = user.quarantined_on.is_none() && user.is_admitted(now) && !lockout.is_locked_permanently();
    let may_try = is_here && lockout::reasons(&lockout, limits, now).next().is_none();
    let is_over = user.password_terms().due(now) == PasswordDue::Expired;
    [
        ("Password", may_try && credentials.has_password && !is_over),
        // a passkey cannot be guessed: it works during a temporary lock, and is not throttled
        ("Passkey", is_here && credentials.has_passkey),
        ("AccessPass", may_try && credentials.has_pass),
    ]
    .into_iter()
    .filter_map(|(way, is_open)| is_open.then_some(way))
    .collect()
}

fn deletion(user: &User, options: &Options<UserStoreOption>) -> Line {
    let purged_on = user
        .quarantined_on
        .map(|since| since.plus(options.get(UserStoreOption::USER_DELETION_QUARANTINE_DURATION)));
    let is_kept = purged_on.is_none();
    let deleted = "The user was deleted, and can be restored until the purge.";
    Line::new("Deleted", is_kept, "The user is not deleted.", deleted, "RestoreUserDeletionQuarantine")
        .until(purged_on)
}

fn admission(user: &User, now: Timestamp) -> [Line; 3] {
    let admission = user.admission();
    let has_begun = admission.has_begun(now);
    [
        Line::new(
            "Active",
            admission.is_active,
            "The user is active.",
            "The user is not active.",
            "SetUserState",
        ),
        Line::new(
            "ValidFrom",
            has_begun,
            "The user's time has begun.",
            "The user's time has not begun yet.",
            "PatchUser",
        )
        .until(admission.valid_from.filter(|_| !has_begun)),
        Line::new(
            "ValidTo",
            !admission.has_ended(now),
            "The user's time is not over.",
            "The user's time is over.",
            "PatchUser",
        )
        .until(admission.valid_to.filter(|_| !admission.has_ended(now))),
    ]
}

/// Locks and throttle, in the order of an attempt.
fn locks(user: &User, limits: &Limits, now: Timestamp) -> [Line; 5] {
    let lockout = user.lockout();
    let holds = |searched: Reason| {
        lockout::reasons(&lockout, limits, now)
            .find(|(reason, _)| *reason == searched)
            .map(|(_, until)| until)
    };
    let line = |check, reason, passes: &str, fails: String, remedy| {
        let held = holds(reason);
        Line::new(check, held.is_none(), passes, &fails, remedy).until(held.flatten())
    };
    let is_locked = holds(Reason::Locked).is_some();
    let by_failures = lockout::is_last(&lockout, limits);
    let (all, for_now) = (lockout.failed_user_login_attempts, lockout.failed_temporary_lock_attempts);
    let locked_for_now = if lockout::is_last_for_now(&lockout, limits) {
        format!("The user is locked for a while after {for_now} wrong attempts.")
    } else if for_now > 0 {
        format!("The user is locked for a while, by an administrator or by {for_now} wrong attempts.")
    } else {
        "The user is locked for a while by an administrator.".to_owned()
    };
    let after = format!("The user is locked after {all} wrong attempts.");
    // the limit may have been another number at the time of the lock
    let (lock_check, lock_text) = if is_locked && !by_failures && all > 0 {
        let text = format!("The user is locked for good, by an administrator or by {all} wrong attempts.");
        ("LockedForGood", text)
    } else {
        ("LockedByAdministrator", "An administrator has locked the user for good.".to_owned())
    };
    [
        Line::new(
            lock_check,
            !is_locked || by_failures,
            "No administrator has locked the user for good.",
            &lock_text,
            "SetUserState",
        ),
        Line::new(
            "LockedByFailures",
            !is_locked || !by_failures,
            "Wrong attempts have not locked the user for good.",
            &after,
            "ResetAccessFailedCount",
        ),
        line(
            "LockedForNow",
            Reason::LockedTemporarily,
            "The user is not locked for a while.",
            locked_for_now,
            "ResetAccessFailedCount",
        ),
        line(
            "AttemptUndecided",
            Reason::Undecided,
            "No attempt that would lock the user is being decided.",
            "An attempt that would lock the user is being decided: others wait.".to_owned(),
            "ResetAccessFailedCount",
        ),
        line(
            "Throttled",
            Reason::Throttled,
            "Attempts are not slowed down.",
            format!("Attempts are slowed down after {} wrong ones.", lockout.throttle_step),
            "ResetAccessFailedCount",
        ),
    ]
}

/// The credential, and the action that the password requires.
fn password(user: &User, credentials: &AvailableCredentials, now: Timestamp) -> [Line; 3] {
    let terms = user.password_terms();
    let (due, expired) = (terms.due(now), terms.is_expired(now) && credentials.has_password);
    let (check, text) = match credentials {
        AvailableCredentials { has_password: true, .. } => ("PasswordSet", "A password is set."),
        AvailableCredentials { has_passkey: true, .. } => {
            ("HasPasskey", "There is a passkey, and no password.")
        }
        AvailableCredentials { has_pass: true, .. } => {
            ("AccessPass", "There is an access pass, no password, and no passkey.")
        }
        _ => ("PasswordSet", ""),
    };
    let remedy = if credentials.can_use_passes { "IssueTemporaryAccessPass" } else { "SetInitialPassword" };
    let nothing = "There is no password, no passkey that can be used, and no access pass.";
    let not_over = if expired {
        "The password expired, and is changed at the sign-in."
    } else {
        "The password has not expired."
    };
    let over = "The password expired, and cannot be changed by the user.";
    let is_over = credentials.has_password && due == PasswordDue::Expired;
    let is_due = credentials.has_password && due == PasswordDue::Change;
    let change =
        if is_due { "The password is changed at the sign-in." } else { "No change of the password is due." };
    [
        Line::new(check, !text.is_empty(), text, nothing, remedy),
        Line::new("PasswordExpired", !is_over, not_over, over, "SetInitialPassword")
            .until(terms.expires_on.filter(|_| credentials.has_password && !terms.never_expires && !expired)),
        Line::new("PasswordChangeDue", true, change, "", "SetInitialPassword"),
    ]
}
