//! The code that verifies a contact: six digits, a quarter of an hour, five attempts.

use chancery_mail::Kind;
use chancery_record::{Record as _, Secret, Timestamp, Value};
use chancery_resource::{
    Answer, AuditAction, Call, Context, OwnerRow, Problem, StateTable, Tx, load, owner_of, random, read_form,
    update_unversioned, write_stored,
};
use serde_json::json;

use super::{ContactCode, SECURITY_CONTACT, SecurityContact};
use crate::password::mail;

/// How long a code is valid, in milliseconds.
const LIFETIME: i64 = 15 * 60 * 1000;
const ATTEMPTS: i64 = 5;

/// Creates a contact's code and mails it.
pub fn send(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: &OwnerRow,
    contact: &SecurityContact,
) -> Result<(), Problem> {
    mail::require_server(context)?;
    let code = format!("{:06}", u64::from_be_bytes(random::<8>()) % 1_000_000);
    let end = Timestamp(context.now.0 + LIFETIME);
    tx.queue(
        &StateTable::SecurityContactCode.insert(
            "(contact_rid, digest, expires_on, attempts) \
         SELECT rid, ?1, ?2, 0 FROM security_contact WHERE user_rid = ?3 AND id = ?4",
        ),
        vec![
            digest(context, contact, code.as_bytes()).into(),
            end.0.into(),
            owner.rid.into(),
            contact.id.0.into(),
        ],
    )?;
    let locale = tx.one("SELECT locale FROM user_account WHERE rid = ?1", &[owner.rid.into()], |row| {
        row.optional_text(0)
    })?;
    let data = json!({ "code": code, "valid_until": end.0 });
    let about = (Kind::SecurityContactCode, contact.user_id);
    mail::send(context, tx, about, contact.value.as_str(), locale.flatten(), &data, end)
}

/// The digest of a code: keyed, since a code is short, and bound to the contact.
fn digest(context: &Context, contact: &SecurityContact, code: &[u8]) -> Vec<u8> {
    context.app.master.digest(&format!("security-contact/{}", contact.id.0), code)
}

/// Verifies a contact. Attempts are counted before the code is checked, and stay counted.
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
    let kept = tx.returning(&text, &parameters, |row| Ok(Secret::new(row.bytes(0)?)))?;
    let Some(kept) = kept else {
        let detail = "There is no code to be verified any more. Delete the contact and add it again.";
        return Err(Problem::conflict(detail));
    };
    if !kept.matches(&digest(&call.context, &contact, form.code.as_str().trim().as_bytes())) {
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
        AuditAction::As("Modified", "verified"),
    )?;
    write_stored(call, tx, &SECURITY_CONTACT, &was.with(values))?;
    Ok(Answer::resource(call.request.op.status))
}
