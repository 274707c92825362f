//! Tokens that reset a password: 256 random bits, stored as a digest, one for each user, used once.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_credential::{hash::verify_nobody, lockout};
use chancery_record::{Email, MailAddress, Secret, Timestamp, Value};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{
    Answer, AuditAction, Call, Context, Problem, Purpose, StateTable, Tx, Work, random, read_form,
};
use uuid::Uuid;

use super::{
    ResetPasswordWithToken,
    attempt::{find, finish, refusal},
    mail,
    set::{self, HashOutcome, options},
    stored_hash,
};
use crate::user::{UserForUpdate, still_counts};

/// Creates a user's token, which replaces the one before. `by`: who asked for it.
pub(super) fn make(
    context: &Context,
    tx: &mut Tx<'_>,
    user: i64,
    by: Option<Uuid>,
) -> Result<(Secret, Timestamp), Problem> {
    let token = Secret::new(BASE64_URL_SAFE_NO_PAD.encode(random::<32>()));
    let lifetime = options(context)?.get(UserStoreOption::PASSWORD_RESET_TOKEN_LIFETIME);
    let end = Timestamp(context.now.0.saturating_add(lifetime));
    tx.queue(
        &StateTable::PasswordReset.insert(
            "(user_rid, digest, expires_on, made_by) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (user_rid) DO UPDATE \
             SET digest = excluded.digest, expires_on = excluded.expires_on, made_by = excluded.made_by",
        ),
        vec![
            Value::Int(user),
            digest(context, &token).into(),
            Value::Int(end.0),
            by.map_or(Value::Null, Value::Id),
        ],
    )?;
    Ok((token, end))
}

fn digest(context: &Context, token: &Secret) -> Vec<u8> {
    context.app.master.digest("password-reset", token.expose())
}

/// Whether a token is the user's, and good now. One that somebody asked for who holds less than the user carries now is not: it
/// may have been made before the user got a role.
fn is_good(
    context: &Context,
    tx: &mut Tx<'_>,
    found: &UserForUpdate,
    token: &Secret,
) -> Result<bool, Problem> {
    let wanted = Secret::new(digest(context, token));
    let text = "SELECT digest, made_by FROM password_reset WHERE user_rid = ?1 AND expires_on > ?2";
    let parameters = [Value::Int(found.was.rid), Value::Int(context.now.0)];
    let kept = tx.one(text, &parameters, |row| Ok((row.bytes(0)?.to_vec(), row.optional_id(1)?)))?;
    match kept {
        Some((kept, maker)) if wanted.matches(&kept) => still_counts(context, tx, found.user.id, maker),
        _ => Ok(false),
    }
}

pub fn send_mail(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let found = UserForUpdate::in_path(call, tx)?;
    require_address(&found)?;
    mail::require_server(&call.context)?;
    deliver(call, tx, found)
}

pub fn request(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let found = UserForUpdate::in_path(call, tx)?;
    if mail::has_server(&call.context)? {
        require_address(&found)?;
    } else if !call.context.app.has_reset_program {
        let detail = "Nothing delivers tokens here: set the store's options MailServerConfig and \
                      EMailSenderAddress, or the server's reset_program.";
        return Err(Problem::conflict(detail));
    }
    deliver(call, tx, found)
}

/// Refuses when no mail can be sent to the user. An address that was stored long ago can be none.
fn require_address(found: &UserForUpdate) -> Result<(), Problem> {
    let address = found.user.email_address.as_ref().map(Email::as_str);
    if address.is_some_and(|address| MailAddress::read(address).is_some()) {
        return Ok(());
    }
    Err(Problem::invalid("The user has no e-mail address that a token can be sent to."))
}

fn deliver(call: &mut Call, tx: &mut Tx<'_>, found: UserForUpdate) -> Result<Answer, Problem> {
    let (token, end) = make(&call.context, tx, found.was.rid, call.context.actor)?;
    mail::send_token(&call.context, tx, &found, (&token, end), None)?;
    // no field of the user changes: the request for a token is an audit entry of its own
    found.tell_and_answer(call, tx, "password-reset-requested")
}

/// The user, if this token is good for the user now: also during a temporary lock.
pub(super) fn admit(
    context: &Context,
    tx: &mut Tx<'_>,
    found: Option<UserForUpdate>,
    token: &Secret,
) -> Result<Option<UserForUpdate>, Problem> {
    let Some(found) = found else { return Ok(None) };
    let is_admitted = found.user.is_admitted(context.now) && !found.user.lockout().is_shut();
    Ok(if is_admitted && is_good(context, tx, &found, token)? { Some(found) } else { None })
}

/// The outcome of checking and hashing the new password; without a user, the token was refused.
pub struct Redeemed {
    user: Option<i64>,
    made: Option<HashOutcome>,
}

/// The work of a new password for this user, or as much for nobody.
pub(super) fn redeeming(
    context: &Context,
    tx: &mut Tx<'_>,
    good: Option<&UserForUpdate>,
    password: Secret,
) -> Result<Work<Redeemed>, Problem> {
    let Some(found) = good else {
        let parameters = stored_hash::parameters(context);
        return Ok(Work::new(Purpose::Password, move || {
            verify_nobody(&password, &parameters);
            Redeemed { user: None, made: None }
        }));
    };
    let making = set::making(context, tx, found, password)?;
    let user = Some(found.was.rid);
    Ok(Work::new(Purpose::Password, move || Redeemed { user, made: Some(making()) }))
}

impl Redeemed {
    /// The outcome for this user, whose token is still good.
    pub(super) fn of(&self, good: Option<UserForUpdate>) -> Option<(UserForUpdate, &HashOutcome)> {
        good.filter(|found| Some(found.was.rid) == self.user).zip(self.made.as_ref())
    }
}

/// Sets a user's new password. This ends a temporary lock.
pub(super) fn set_by_token(
    context: &Context,
    tx: &mut Tx<'_>,
    found: &mut UserForUpdate,
    hash: &str,
) -> Result<(), Problem> {
    let options = options(context)?;
    stored_hash::put(context, tx, found, (hash, None), &options)?;
    stored_hash::finish(context, found, &options)?;
    found.user.set_lockout(lockout::token_used(found.user.lockout()));
    Ok(())
}

/// Sets a password; the token is the proof. This works during a temporary lock and ends it.
pub fn redeem(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: ResetPasswordWithToken = read_form(call)?;
    let found = find(call, tx)?;
    let good = admit(&call.context, tx, found, &form.token.0)?;
    let Some(redeemed) = call.result::<Redeemed>() else {
        let work = redeeming(&call.context, tx, good.as_ref(), form.new_password.0)?;
        return Ok(Answer::after(work));
    };
    let Some((mut found, made)) = redeemed.of(good) else {
        return Ok(Answer::refusing(refusal(call, "token")));
    };
    set_by_token(&call.context, tx, &mut found, made.hash("newPassword")?)?;
    finish(call, tx, found, "password-reset")
}

impl UserForUpdate {
    /// Audits an event of a user that changes none of the user's fields, and answers with the user.
    fn tell_and_answer(
        mut self,
        call: &mut Call,
        tx: &mut Tx<'_>,
        event: &'static str,
    ) -> Result<Answer, Problem> {
        self.user.renew_token(&call.context)?;
        self.save_and_answer(call, tx, AuditAction::As("Modified", event))
    }
}
