//! Password reset by the user: a link by mail, and a new password by that link.

use chancery_record::{Secret, Value};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{
    AuditAction, Context, Problem, StateTable, Tx, Work, event_name, load_by, select_where,
};
use uuid::Uuid;

use super::{
    attempt::{by_login, count_for_unknown_user},
    change_at_sign_in::{NewPasswordFault, PasswordState, password_state},
    mail,
    set::options,
    token::{self, Redeemed},
};
use crate::user::{USER, User, UserForUpdate};

/// The minimum interval between two mails to a user, in milliseconds: anyone who knows a name can request one.
const MAIL_INTERVAL: i64 = 5 * 60 * 1000;

/// Whether users of the context's store can reset their passwords.
///
/// # Errors
/// The context is of no store.
pub fn can_reset(context: &Context) -> Result<bool, Problem> {
    let has_way = mail::has_server(context)? || context.app.has_reset_program;
    Ok(has_way && !options(context)?.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE))
}

/// Mails the user with this name in the context's store a link that resets the password, by the store's template or, from the
/// user's id and the token, by `link`; returns whether the name is known here. Sends nothing to a user who may not sign in, has no
/// address, or got a mail within the interval.
pub fn send_link(
    context: &Context,
    tx: &mut Tx<'_>,
    name: &str,
    link: impl FnOnce(Uuid, &Secret) -> String,
) -> Result<bool, Problem> {
    let Some(loaded) = by_login(context, tx, name)? else { return Ok(false) };
    let user = &loaded.user;
    // without a mail server, a program of the operator delivers, which needs no address
    let is_reachable = user.email_address.is_some() || !mail::has_server(context)?;
    let is_admitted = user.is_admitted(context.now) && !user.lockout().is_locked_permanently();
    if !(is_reachable
        && is_admitted
        && can_reset(context)?
        && claim_mail_interval(context, tx, loaded.was.rid)?)
    {
        write_for_unknown_user(context, tx)?;
        return Ok(true);
    }
    let (token, end) = token::create(context, tx, loaded.was.rid, Some(user.id.0))?;
    let link = link(user.id.0, &token);
    mail::send_token(context, tx, &loaded, &token, end, Some(link))?;
    // the user's concurrency token does not change: else anyone could make an administrator's change fail
    loaded.save(context, tx, AuditAction::Modified(event_name!("password-reset-requested")))?;
    Ok(true)
}

/// Writes something if no mail is sent: else the load would reveal which names are known.
pub fn write_for_unknown_user(context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
    count_for_unknown_user(context, tx)
}

/// Whether the user got no mail within the interval; then the time of this one is stored.
fn claim_mail_interval(context: &Context, tx: &mut Tx<'_>, user: i64) -> Result<bool, Problem> {
    let text = StateTable::PasswordResetMail.insert(
        "(user_rid, sent_on) VALUES (?1, ?2) ON CONFLICT (user_rid) DO UPDATE SET sent_on = excluded.sent_on \
         WHERE password_reset_mail.sent_on <= ?3",
    );
    let now = context.now.0;
    Ok(tx.execute(&text, &[user.into(), now.into(), now.saturating_sub(MAIL_INTERVAL).into()])? == 1)
}

/// The user in a link, if its token is valid.
fn find(
    context: &Context,
    tx: &mut Tx<'_>,
    user: Uuid,
    token: &Secret,
) -> Result<Option<UserForUpdate>, Problem> {
    if options(context)?.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE) {
        return Ok(None);
    }
    let sql = select_where(context, &USER, User::ID, Value::Id(user));
    let loaded = match load_by(context, tx, &USER, None, &sql) {
        Err(problem) if problem.status() == 404 => None,
        loaded => Some(UserForUpdate::new(loaded?)?),
    };
    token::admit(context, tx, loaded, token)
}

/// The requirements of a new password that is set by a link; `None`: the link is invalid.
pub fn state_by_link(
    context: &Context,
    tx: &mut Tx<'_>,
    user: Uuid,
    token: &Secret,
) -> Result<Option<PasswordState>, Problem> {
    let Some(loaded) = find(context, tx, user, token)? else { return Ok(None) };
    password_state(context, tx, loaded.was.rid)
}

/// The work of validating and hashing a new password that is set by a link: the same for an invalid link.
pub fn begin(
    context: &Context,
    tx: &mut Tx<'_>,
    user: Uuid,
    token: &Secret,
    password: Secret,
) -> Result<Work<Redeemed>, Problem> {
    let admitted = find(context, tx, user, token)?;
    token::redemption_work(context, tx, admitted.as_ref(), password)
}

/// The result of setting a password by a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// It is set, and earlier sign-ins have ended.
    Done,
    /// It is refused; the link remains valid.
    Faulty(NewPasswordFault),
    /// The link is invalid.
    Refused,
}

/// Sets the new password by the result of the work.
pub fn end(
    context: &mut Context,
    tx: &mut Tx<'_>,
    user: Uuid,
    token: &Secret,
    redeemed: &Redeemed,
) -> Result<Reset, Problem> {
    let admitted = find(context, tx, user, token)?;
    let Some((mut loaded, outcome)) = redeemed.of(admitted) else {
        return Ok(Reset::Refused);
    };
    if let Some(fault) = outcome.fault() {
        return Ok(Reset::Faulty(fault));
    }
    token::set_by_token(context, tx, &mut loaded, outcome.hash("newPassword")?)?;
    context.actor = Some(loaded.user.id.0);
    loaded.save(context, tx, AuditAction::Modified(event_name!("password-reset")))?;
    Ok(Reset::Done)
}
