//! Proof of an identity of a replacement by a sign-in at an external identity provider.

use chancery_record::{Record as _, Uuid, Value};
use chancery_resource::{Context, Problem, Tx, advance, event_name, load_rows};

use super::{IDENTITY_REPLACEMENT, record::IdentityReplacement};

const REPLACING: &str = "SELECT r.rid FROM application_identity i \
    JOIN identity_replacement r ON r.replacement_identity_id = i.id WHERE i.idp_instance_id = ?1 AND i.subject = ?2 \
    AND r.open_user_id IS NOT NULL AND r.expires_on > ?3 AND r.replacement_identity_proven_on IS NULL";
const REPLACED: &str = "SELECT r.rid FROM identity_replacement r \
    JOIN application_identity i ON i.id = r.current_identity_id WHERE r.open_user_id = ?1 AND i.idp_instance_id = ?2 \
    AND r.expires_on > ?3 AND r.current_identity_proven_on IS NULL";

/// Sets the proof time of a replacement identity: its person has just signed in at the external identity provider.
/// Such an identity cannot be used to sign in here yet.
pub fn prove_replacing(
    context: &Context,
    tx: &mut Tx<'_>,
    instance: Uuid,
    subject: &str,
) -> Result<(), Problem> {
    let key = [Value::Id(instance), subject.into(), Value::Int(context.now.0)];
    prove(context, tx, REPLACING, &key, |replacement| {
        replacement.replacement_identity_proven_on = Some(context.now);
    })
}

/// Sets the proof time of the identity at this instance that is to be replaced: the person has just signed in with it and all factors
/// that were required.
pub fn prove_replaced(
    context: &Context,
    tx: &mut Tx<'_>,
    person: Uuid,
    instance: Uuid,
) -> Result<(), Problem> {
    let key = [Value::Id(person), Value::Id(instance), Value::Int(context.now.0)];
    prove(context, tx, REPLACED, &key, |replacement| {
        replacement.current_identity_proven_on = Some(context.now);
    })
}

fn prove(
    context: &Context,
    tx: &mut Tx<'_>,
    text: &str,
    key: &[Value],
    set: impl Fn(&mut IdentityReplacement),
) -> Result<(), Problem> {
    let mut rids = Vec::new();
    tx.query(text, key, |row| {
        rids.push(row.int(0)?);
        Ok(())
    })?;
    if rids.is_empty() {
        return Ok(());
    }
    for was in load_rows(context, tx, &IDENTITY_REPLACEMENT, &rids)? {
        let mut replacement = IdentityReplacement::from_values(was.values.clone())?;
        set(&mut replacement);
        let values = replacement.into_values();
        advance(context, tx, &IDENTITY_REPLACEMENT, &was, values, event_name!("proven"))?;
    }
    Ok(())
}
