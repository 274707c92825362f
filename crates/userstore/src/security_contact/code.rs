//! The code that verifies a contact: six digits, a quarter of an hour, five attempts.

use chancery_mail::Kind;
use chancery_record::{Record as _, Secret, Timestamp, Value, fold};
use chancery_resource::{
    Answer, AuditAction, Call, Context, OwnerRow, Problem, Purpose, StateTable, Tx, Work, event_name, load,
    owner_of, random, read_form, update_unversioned, write_stored,
};
use serde_json::json;

use super::{ContactCode, SECURITY_CONTACT, SecurityContact};
use crate::{
    password::mail::{self, Message},
    sms::{Gateway, TextCode},
};

/// The lifetime of a code, in milliseconds.
const LIFETIME: i64 = 15 * 60 * 1000;
const ATTEMPTS: i64 = 5;

/// A code that was sent to a gateway.
pub struct TextedCode {
    code: Secret,
    is_accepted: bool,
}

/// The gateway of the store.
///
/// # Errors
/// A conflict if there is none.
pub fn gateway(context: &Context, tx: &mut Tx<'_>) -> Result<Gateway, Problem> {
    let store = context.scope.of_store()?.id;
    Gateway::of_store(tx, store)?.ok_or_else(|| {
        Problem::conflict(
            "No tenant of the store has an active second factor of type sms with a GatewayUrl, so no code can be sent to a \
             telephone number.",
        )
    })
}

/// The work of sending a code to a telephone number.
///
/// # Errors
/// There is no gateway, or outbound traffic is off.
pub fn text(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: &OwnerRow,
    contact: &SecurityContact,
) -> Result<Work<TextedCode>, Problem> {
    let gateway = gateway(context, tx)?;
    let permission =
        context.app.outbound.permission().map_err(|quiet| Problem::conflict(quiet.to_string()))?;
    let (code, locale) = (new_code(), locale_of(tx, owner)?);
    let locale = locale.as_deref();
    let message_text = TextCode::Number.text(locale, &code);
    let message = gateway.message(context, tx, contact.value.as_str(), locale, &message_text)?;
    let send = context.app.send_text.clone();
    Ok(Work::waiting(Purpose::Outbound, async move {
        TextedCode { code: Secret::new(code), is_accepted: send(permission, message).await }
    }))
}

/// Whether the user has this contact already.
pub fn is_known(tx: &mut Tx<'_>, owner: &OwnerRow, contact: &SecurityContact) -> Result<bool, Problem> {
    let text = "SELECT 1 FROM security_contact WHERE user_rid = ?1 AND value_key = ?2";
    let key = [owner.rid.into(), fold(contact.value.as_str()).into()];
    Ok(tx.one(text, &key, |_| Ok(()))?.is_some())
}

/// Stores the code that was sent to a number.
///
/// # Errors
/// A conflict if the gateway did not accept it.
pub fn store_texted(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: &OwnerRow,
    contact: &SecurityContact,
    texted: &TextedCode,
) -> Result<(), Problem> {
    if !texted.is_accepted {
        return Err(Problem::conflict(
            "The SMS gateway did not accept the text message with the code. The server's log says why.",
        ));
    }
    store_digest(context, tx, owner, contact, texted.code.expose()).map(drop)
}

fn new_code() -> String {
    format!("{:06}", u64::from_be_bytes(random::<8>()) % 1_000_000)
}

fn locale_of(tx: &mut Tx<'_>, owner: &OwnerRow) -> Result<Option<String>, Problem> {
    let text = "SELECT locale FROM user_account WHERE rid = ?1";
    Ok(tx.one(text, &[owner.rid.into()], |row| row.optional_text(0))?.flatten())
}

/// Stores the digest of a contact's code; returns its end.
fn store_digest(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: &OwnerRow,
    contact: &SecurityContact,
    code: &[u8],
) -> Result<Timestamp, Problem> {
    let end = Timestamp(context.now.0 + LIFETIME);
    let text = StateTable::SecurityContactCode.insert(
        "(contact_rid, digest, expires_on, attempts) \
         SELECT rid, ?1, ?2, 0 FROM security_contact WHERE user_rid = ?3 AND id = ?4",
    );
    let digest = digest(context, contact, code).into();
    tx.queue(&text, vec![digest, end.0.into(), owner.rid.into(), contact.id.0.into()])?;
    Ok(end)
}

/// Creates a contact's code and mails it.
pub fn send(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: &OwnerRow,
    contact: &SecurityContact,
) -> Result<(), Problem> {
    mail::require_server(context)?;
    let code = new_code();
    let end = store_digest(context, tx, owner, contact, code.as_bytes())?;
    let locale = locale_of(tx, owner)?;
    let data = json!({ "code": code, "valid_until": end.0 });
    let message = Message {
        kind: Kind::SecurityContactCode,
        person: Some(contact.user_id),
        recipient: contact.value.as_str(),
        locale,
        data: &data,
        expires_on: end,
    };
    mail::send(context, tx, message)
}

/// The digest of a code: keyed, since a code is short, and bound to the contact.
fn digest(context: &Context, contact: &SecurityContact, code: &[u8]) -> Vec<u8> {
    context.app.master.digest(&format!("security-contact/{}", contact.id.0), code)
}

/// Verifies a contact. Attempts are counted before the code is checked, and remain counted.
pub fn verify(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: ContactCode = read_form(call)?;
    let owner = owner_of(call, tx, &SECURITY_CONTACT)?.ok_or_else(|| Problem::not_found("User"))?;
    let key = SECURITY_CONTACT.read_key(call.request.parameter(1))?;
    let was = load(&call.context, tx, &SECURITY_CONTACT, Some(&owner), key)?;
    let mut contact = SecurityContact::from_values(was.values.clone())?;
    if contact.is_verified {
        return Err(Problem::conflict("The contact is verified already."));
    }
    let text = StateTable::SecurityContactCode.update(
        "SET attempts = attempts + 1 \
                WHERE contact_rid = ?1 AND attempts < ?2 AND expires_on > ?3 RETURNING digest",
    );
    let parameters = [was.rid.into(), ATTEMPTS.into(), call.context.now.0.into()];
    let stored = tx.returning(&text, &parameters, |row| Ok(Secret::new(row.bytes(0)?)))?;
    let Some(stored) = stored else {
        let detail = "There is no code to be verified any more. Delete the contact and add it again.";
        return Err(Problem::conflict(detail));
    };
    if !stored.matches(&digest(&call.context, &contact, form.code.as_str().trim().as_bytes())) {
        // the attempt counts although the operation is refused
        tx.commit_dry_run();
        return Ok(Answer::refusing(Problem::wrong_field(
            ContactCode::CODE,
            "is not the code that was sent",
        )));
    }
    tx.queue(&StateTable::SecurityContactCode.delete("WHERE contact_rid = ?1"), vec![Value::Int(was.rid)])?;
    contact.is_verified = true;
    contact.verified_on = Some(call.context.now);
    let values = contact.into_values();
    update_unversioned(
        &call.context,
        tx,
        &SECURITY_CONTACT,
        &was,
        &values,
        AuditAction::Modified(event_name!("verified")),
    )?;
    write_stored(call, tx, &SECURITY_CONTACT, &was.with(values))?;
    Ok(Answer::resource(call.request.op.status))
}
