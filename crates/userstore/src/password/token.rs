//! Tokens that reset a password: 256 random bits, stored as a digest, one for each user, used once.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_credential::{hash::verify_unknown_user, lockout};
use chancery_record::{Email, MailAddress, Secret, Timestamp, Value};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{
    Answer, AuditAction, Call, Context, EventName, Problem, Purpose, StateTable, Tx, Work, event_name,
    random, read_form, selectable,
};
use uuid::Uuid;

use super::{
    ResetPasswordWithToken,
    attempt::{find, finish, refusal},
    mail,
    set::{self, HashOutcome, options},
    stored_hash,
};
use crate::user::{UserForUpdate, is_still_valid};

/// Creates a user's token, which replaces the one before. `by`: the requester.
pub(super) fn create(
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

selectable! {
    /// A user's token that has not expired.
    struct StoredToken from "FROM password_reset WHERE user_rid = ?1 AND expires_on > ?2" {
        digest: Vec<u8> = "digest",
        requester: Option<Uuid> = "made_by",
    }
}

/// Whether a token is the user's, and valid now. A token of a requester who holds less than the user carries now is not: it
/// may have been created before the user got a role.
fn is_valid(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: &UserForUpdate,
    token: &Secret,
) -> Result<bool, Problem> {
    let expected = Secret::new(digest(context, token));
    let parameters = [Value::Int(loaded.was.rid), Value::Int(context.now.0)];
    match tx.one(StoredToken::SELECT, &parameters, StoredToken::read)? {
        Some(stored) if expected.matches(&stored.digest) => {
            is_still_valid(context, tx, loaded.user.id, stored.requester)
        }
        _ => Ok(false),
    }
}

pub fn send_mail(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let loaded = UserForUpdate::in_path(call, tx)?;
    require_address(&loaded)?;
    mail::require_server(&call.context)?;
    deliver(call, tx, loaded)
}

pub fn request(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let loaded = UserForUpdate::in_path(call, tx)?;
    if mail::has_server(&call.context)? {
        require_address(&loaded)?;
    } else if !call.context.app.has_reset_program {
        let detail = "Nothing delivers tokens here: set the store's options MailServerConfig and \
                      EMailSenderAddress, or the server's reset_program.";
        return Err(Problem::conflict(detail));
    }
    deliver(call, tx, loaded)
}

/// Refuses if no mail can be sent to the user. An address that was stored long ago can be invalid.
fn require_address(loaded: &UserForUpdate) -> Result<(), Problem> {
    let address = loaded.user.email_address.as_ref().map(Email::as_str);
    if address.is_some_and(|address| MailAddress::read(address).is_some()) {
        return Ok(());
    }
    Err(Problem::invalid("The user has no e-mail address that a token can be sent to."))
}

fn deliver(call: &mut Call, tx: &mut Tx<'_>, loaded: UserForUpdate) -> Result<Answer, Problem> {
    let (token, end) = create(&call.context, tx, loaded.was.rid, call.context.actor)?;
    mail::send_token(&call.context, tx, &loaded, &token, end, None)?;
    // no field of the user changes: the request for a token is an audit entry of its own
    loaded.audit_and_respond(call, tx, event_name!("password-reset-requested"))
}

/// The user, if this token is valid for the user now: also during a temporary lock.
pub(super) fn admit(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: Option<UserForUpdate>,
    token: &Secret,
) -> Result<Option<UserForUpdate>, Problem> {
    let Some(loaded) = loaded else { return Ok(None) };
    let is_admitted = loaded.user.is_admitted(context.now) && !loaded.user.lockout().is_locked_permanently();
    Ok(if is_admitted && is_valid(context, tx, &loaded, token)? { Some(loaded) } else { None })
}

/// The result of validating and hashing the new password; without a user, the token was refused.
pub struct Redeemed {
    user: Option<i64>,
    outcome: Option<HashOutcome>,
}

/// The work of hashing a new password for this user, or the same for an unknown user.
pub(super) fn redemption_work(
    context: &Context,
    tx: &mut Tx<'_>,
    admitted: Option<&UserForUpdate>,
    password: Secret,
) -> Result<Work<Redeemed>, Problem> {
    let Some(loaded) = admitted else {
        let parameters = stored_hash::parameters(context);
        return Ok(Work::new(Purpose::Password, move || {
            verify_unknown_user(&password, &parameters);
            Redeemed { user: None, outcome: None }
        }));
    };
    let hashing = set::hashing_work(context, tx, loaded, password)?;
    let user = Some(loaded.was.rid);
    Ok(Work::new(Purpose::Password, move || Redeemed { user, outcome: Some(hashing()) }))
}

impl Redeemed {
    /// The result for this user, if the token is still valid.
    pub(super) fn of(&self, admitted: Option<UserForUpdate>) -> Option<(UserForUpdate, &HashOutcome)> {
        admitted.filter(|loaded| Some(loaded.was.rid) == self.user).zip(self.outcome.as_ref())
    }
}

/// Sets a user's new password. This ends a temporary lock.
pub(super) fn set_by_token(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: &mut UserForUpdate,
    hash: &str,
) -> Result<(), Problem> {
    let options = options(context)?;
    stored_hash::put(context, tx, loaded, hash, None, &options)?;
    stored_hash::finish(context, loaded, &options)?;
    loaded.user.set_lockout(lockout::token_used(loaded.user.lockout()));
    Ok(())
}

/// Sets a password; the token is the proof. This works during a temporary lock and ends it.
pub fn redeem(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: ResetPasswordWithToken = read_form(call)?;
    let loaded = find(call, tx)?;
    let admitted = admit(&call.context, tx, loaded, &form.token.0)?;
    let Some(redeemed) = call.result::<Redeemed>() else {
        let work = redemption_work(&call.context, tx, admitted.as_ref(), form.new_password.0)?;
        return Ok(Answer::after(work));
    };
    let Some((mut loaded, outcome)) = redeemed.of(admitted) else {
        return Ok(Answer::refusing(refusal(call, "token")));
    };
    set_by_token(&call.context, tx, &mut loaded, outcome.hash("newPassword")?)?;
    finish(call, tx, loaded, event_name!("password-reset"))
}

impl UserForUpdate {
    /// Audits an event of a user that changes none of the user's fields, and responds with the user.
    fn audit_and_respond(
        mut self,
        call: &mut Call,
        tx: &mut Tx<'_>,
        event: EventName,
    ) -> Result<Answer, Problem> {
        self.user.renew_token(&call.context)?;
        self.save_and_answer(call, tx, AuditAction::Modified(event))
    }
}
