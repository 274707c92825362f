//! Mails about passwords: queued in the operation's own transaction, sent later.

use chancery_credential::lockout::FailedAttempt;
use chancery_mail::{Kind, NewMail, associated_data, enqueue};
use chancery_record::{Email, Name, Secret, Timestamp};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{Context, Problem, Tx};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::set::options;
use crate::{
    UserId,
    user::{User, UserForUpdate},
};

/// The lifetime of a notice, in milliseconds.
const NOTICE: i64 = 3 * 24 * 3600 * 1000;

/// Whether the store can send mail.
pub fn has_server(context: &Context) -> Result<bool, Problem> {
    Ok(options(context)?.sends_mail())
}

/// Refuses when the store cannot send mail.
pub fn require_server(context: &Context) -> Result<(), Problem> {
    if !has_server(context)? {
        let detail = "The store cannot send mail. Set its options MailServerConfig and EMailSenderAddress.";
        return Err(Problem::conflict(detail));
    }
    Ok(())
}

/// Mails a user the token that resets the password: in a link by the store's template, else in `link`, else bare.
pub fn send_token(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: &UserForUpdate,
    token: &Secret,
    end: Timestamp,
    link: Option<String>,
) -> Result<(), Problem> {
    let user = &loaded.user;
    // without a mail server the operator's reset program delivers the token, and needs no address
    let address = user.email_address.as_ref().map_or("", Email::as_str);
    let token = String::from_utf8(token.expose().to_vec()).unwrap_or_default();
    let mut data = json!({
        "name": display_name(user),
        "user_id": user.id.0,
        "login_name": user.login_name.as_str(),
        "store": context.scope.source(),
        "valid_until": end.0,
    });
    let template = options(context)?.get(UserStoreOption::PASSWORD_RESET_URL_TEMPLATE).to_owned();
    let link =
        if template.is_empty() { link } else { Some(fill(&template, user.login_name.as_str(), &token)) };
    if let Some(members) = data.as_object_mut() {
        match link {
            Some(link) => members.insert("link".into(), link.into()),
            None => members.insert("token".into(), token.into()),
        };
    }
    let locale = user.locale.as_ref().map(|locale| locale.as_str().to_owned());
    let message = Message {
        kind: Kind::PasswordReset,
        person: Some(user.id),
        recipient: address,
        locale,
        data: &data,
        expires_on: end,
    };
    send(context, tx, message)
}

fn fill(template: &str, login_name: &str, token: &str) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    template.replace("{loginName}", &encoded(login_name)).replace("{token}", &encoded(token))
}

/// Mails a notice of a lock to the operators that the store names.
pub fn notify_lock(
    context: &Context,
    tx: &mut Tx<'_>,
    loaded: &UserForUpdate,
    failed: &FailedAttempt,
) -> Result<(), Problem> {
    let options = options(context)?;
    if !options.get(UserStoreOption::USER_LOCK_NOTIFICATION_ENABLED) {
        return Ok(());
    }
    let mut data = json!({ "login_name": loaded.user.login_name.as_str(), "store": context.scope.source() });
    if let (false, Some(until), Some(members)) =
        (failed.locked_permanently, failed.state.locked_until, data.as_object_mut())
    {
        members.insert("until".into(), until.0.into());
    }
    let (kind, person) = (Kind::UserLocked, Some(loaded.user.id));
    let mut recipients = options.get(UserStoreOption::USER_LOCK_NOTIFICATION_RECIPIENTS).into_iter();
    recipients.try_for_each(|recipient| send_notice(context, tx, kind, person, recipient, &data))
}

/// Queues a notice to an operator, if the store can send mail. It expires after three days.
pub fn send_notice(
    context: &Context,
    tx: &mut Tx<'_>,
    kind: Kind,
    person: Option<UserId>,
    recipient: &str,
    data: &Value,
) -> Result<(), Problem> {
    if !has_server(context)? {
        return Ok(());
    }
    let expires_on = Timestamp(context.now.0 + NOTICE);
    send(context, tx, Message { kind, person, recipient, locale: None, data, expires_on })
}

/// A mail without its sender.
pub struct Message<'a> {
    /// The kind of mail.
    pub kind: Kind,
    /// The user that it is about.
    pub person: Option<UserId>,
    /// The recipient's address.
    pub recipient: &'a str,
    /// The recipient's language.
    pub locale: Option<String>,
    /// The template's data.
    pub data: &'a Value,
    /// When sending has no use any more.
    pub expires_on: Timestamp,
}

/// Queues a mail of the store.
pub fn send(context: &Context, tx: &mut Tx<'_>, message: Message<'_>) -> Result<(), Problem> {
    let options = options(context)?;
    let sender = Sender { mfa_instance: None, address: options.get(UserStoreOption::EMAIL_SENDER_ADDRESS) };
    queue(context, tx, sender, message)
}

/// The sender of a mail.
#[derive(Clone, Copy)]
pub struct Sender<'a> {
    /// The MFA instance with its own mail server; `None`: the store's.
    pub mfa_instance: Option<Uuid>,
    /// The sender's address.
    pub address: &'a str,
}

/// A code that a user types while signing in.
pub struct CodeMail<'a> {
    /// The sender.
    pub sender: Sender<'a>,
    /// The user.
    pub user: Uuid,
    /// Whether it confirms that the user owns the address; else it confirms a sign-in.
    pub confirms_address: bool,
    /// The address.
    pub recipient: &'a str,
    /// The user's language.
    pub locale: Option<String>,
    /// The code.
    pub code: &'a str,
    /// Until when it is valid.
    pub valid_until: Timestamp,
}

/// Queues the mail with a code.
pub fn send_code(context: &Context, tx: &mut Tx<'_>, mail: CodeMail<'_>) -> Result<(), Problem> {
    let kind = if mail.confirms_address { Kind::SecurityContactCode } else { Kind::SignInCode };
    let data = json!({ "code": mail.code, "valid_until": mail.valid_until.0 });
    let message = Message {
        kind,
        person: Some(UserId(mail.user)),
        recipient: mail.recipient,
        locale: mail.locale,
        data: &data,
        expires_on: mail.valid_until,
    };
    queue(context, tx, mail.sender, message)
}

fn queue(
    context: &Context,
    tx: &mut Tx<'_>,
    sender: Sender<'_>,
    message: Message<'_>,
) -> Result<(), Problem> {
    let id = context.new_id();
    let mail = NewMail {
        id,
        store: context.scope.store(),
        mfa_instance: sender.mfa_instance,
        person: message.person.map(|person| person.0),
        kind: message.kind,
        sender: sender.address.to_owned(),
        recipient: message.recipient.to_owned(),
        locale: message.locale,
        sealed_data: context.app.master.seal(&associated_data(id), message.data.to_string().as_bytes()),
        created_on: context.now,
        expires_on: message.expires_on,
    };
    Ok(enqueue(tx, mail)?)
}

/// The name of a user in a mail.
pub fn display_name(user: &User) -> String {
    let names = [&user.first_name, &user.last_name];
    let names: Vec<&str> = names.into_iter().flatten().map(Name::as_str).collect();
    if names.is_empty() { user.login_name.as_str().to_owned() } else { names.join(" ") }
}
