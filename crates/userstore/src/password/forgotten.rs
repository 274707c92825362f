//! A password that its user forgot: a link by mail, and a new password by that link.

use chancery_record::{Secret, Value};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{AuditAction, Context, Problem, StateTable, Tx, Work, load_by, select_where};
use uuid::Uuid;

use super::{
    attempt::{by_login, count_for_nobody},
    mail,
    own_change::{NewPasswordFault, PasswordState, password_state},
    set::options,
    token::{self, Redeemed},
};
use crate::user::{USER, User, UserForUpdate};

/// The rest between two mails to a user, in milliseconds: whoever knows a name can ask for one.
const REST: i64 = 5 * 60 * 1000;

/// Whether users of the context's store can reset their passwords.
///
/// # Errors
/// The context is of no store.
pub fn can_reset(context: &Context) -> Result<bool, Problem> {
    let has_way = mail::has_server(context)? || context.app.has_reset_program;
    Ok(has_way && !options(context)?.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE))
}

/// Mails who has this name at the context's store a link that resets the password, by the store's template or, of the
/// user's id and the token, by `link`; whether the name is known here. Nothing is mailed to who may not sign in, has no
/// address, or got a mail a while ago.
///
/// # Errors
/// Those of the store.
pub fn send_link(
    context: &Context,
    tx: &mut Tx<'_>,
    name: &str,
    link: impl FnOnce(Uuid, &Secret) -> String,
) -> Result<bool, Problem> {
    let Some(found) = by_login(context, tx, name)? else { return Ok(false) };
    let user = &found.user;
    // a program of the operator's delivers without an address, where there is no mail server
    let is_reachable = user.email_address.is_some() || !mail::has_server(context)?;
    let is_admitted = user.is_admitted(context.now) && !user.lockout().is_shut();
    if !(is_reachable && is_admitted && can_reset(context)? && take_turn(context, tx, found.was.rid)?) {
        spend_for_nobody(context, tx)?;
        return Ok(true);
    }
    let (token, end) = token::make(context, tx, found.was.rid, Some(user.id.0))?;
    let link = link(user.id.0, &token);
    mail::send_token(context, tx, &found, (&token, end), Some(link))?;
    // the user's concurrency token stays: else strangers could make an administrator's change fail
    found.save(context, tx, AuditAction::As("Modified", "password-reset-requested"))?;
    Ok(true)
}

/// Writes something where nobody is mailed: else the load would tell which names are known.
///
/// # Errors
/// Those of the store.
pub fn spend_for_nobody(context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
    count_for_nobody(context, tx)
}

/// Whether the user got no mail for a while; then the time of this one is noted.
fn take_turn(context: &Context, tx: &mut Tx<'_>, user: i64) -> Result<bool, Problem> {
    let text = StateTable::PasswordResetMail.insert(
        "(user_rid, sent_on) VALUES (?1, ?2) ON CONFLICT (user_rid) DO UPDATE SET sent_on = excluded.sent_on \
         WHERE password_reset_mail.sent_on <= ?3",
    );
    let now = context.now.0;
    Ok(tx.execute(&text, &[user.into(), now.into(), now.saturating_sub(REST).into()])? == 1)
}

/// The user whom a link names, if its token is good.
fn find(
    context: &Context,
    tx: &mut Tx<'_>,
    (user, token): (Uuid, &Secret),
) -> Result<Option<UserForUpdate>, Problem> {
    if options(context)?.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE) {
        return Ok(None);
    }
    let sql = select_where(context, &USER, User::ID, Value::Id(user));
    let found = match load_by(context, tx, &USER, None, &sql) {
        Err(problem) if problem.status() == 404 => None,
        found => Some(UserForUpdate::new(found?)?),
    };
    token::admit(context, tx, found, token)
}

/// What a new password needs that is set by a link; `None`: the link is good for nothing.
///
/// # Errors
/// Those of the store.
pub fn state_by_link(
    context: &Context,
    tx: &mut Tx<'_>,
    link: (Uuid, &Secret),
) -> Result<Option<PasswordState>, Problem> {
    let Some(found) = find(context, tx, link)? else { return Ok(None) };
    password_state(context, tx, found.was.rid)
}

/// The work of checking and hashing a new password that is set by a link: as much for a link that is good for nothing.
///
/// # Errors
/// Those of the store.
pub fn begin(
    context: &Context,
    tx: &mut Tx<'_>,
    link: (Uuid, &Secret),
    password: Secret,
) -> Result<Work<Redeemed>, Problem> {
    let good = find(context, tx, link)?;
    token::redeeming(context, tx, good.as_ref(), password)
}

/// What came of a new password that was set by a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// It is set, and whoever was signed in is so no longer.
    Done,
    /// It is not good enough; the link stays good.
    Faulty(NewPasswordFault),
    /// The link is good for nothing.
    Refused,
}

/// Sets the new password by the result of the work.
///
/// # Errors
/// Those of the store; the result is of another kind.
pub fn end(
    context: &mut Context,
    tx: &mut Tx<'_>,
    link: (Uuid, &Secret),
    redeemed: &Redeemed,
) -> Result<Reset, Problem> {
    let good = find(context, tx, link)?;
    let Some((mut found, made)) = redeemed.of(good) else {
        return Ok(Reset::Refused);
    };
    if let Some(fault) = made.fault() {
        return Ok(Reset::Faulty(fault));
    }
    token::set_by_token(context, tx, &mut found, made.hash("newPassword")?)?;
    context.actor = Some(found.user.id.0);
    found.save(context, tx, AuditAction::As("Modified", "password-reset"))?;
    Ok(Reset::Done)
}
