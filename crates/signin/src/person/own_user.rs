//! The user of a person in a user store, as the person sees it.

use chancery_record::Timestamp;
use chancery_resource::{StoreError, Tx};
use uuid::Uuid;

/// The person's user in the user store of a sign-in, with passkeys.
#[derive(Clone, Debug, Default)]
pub struct OwnUser {
    /// The name of the user store.
    pub store: String,
    /// The user.
    pub id: Uuid,
    /// The passkeys: name, creation time and last use.
    pub passkeys: Vec<(String, Timestamp, Option<Timestamp>)>,
}

/// The user of a person in a user store; `None` if the instance is none.
pub fn own_user(tx: &mut Tx<'_>, person: Uuid, instance: Uuid) -> Result<Option<OwnUser>, StoreError> {
    let text = "SELECT i.subject, o.rid, o.name FROM application_user a \
        JOIN application_identity i ON i.application_user_rid = a.rid JOIN idp_instance o ON o.id = i.idp_instance_id \
        WHERE a.id = ?1 AND i.idp_instance_id = ?2";
    let row = tx.one(text, &[person.into(), instance.into()], |row| {
        Ok((Uuid::try_parse(row.text(0)?).ok(), row.int(1)?, row.text(2)?.to_owned()))
    })?;
    let Some((Some(id), rid, store)) = row else { return Ok(None) };
    let text =
        "SELECT u.rid FROM user_account u WHERE u.store = ?1 AND u.id = ?2 AND u.quarantined_on IS NULL";
    let Some(user) = tx.one(text, &[rid.into(), id.into()], |row| row.int(0))? else { return Ok(None) };
    let text =
        "SELECT name, created_on, last_used_on FROM passkey_credential WHERE user_rid = ?1 ORDER BY rid";
    let mut passkeys = Vec::new();
    tx.query(text, &[user.into()], |row| {
        let last_used = if row.is_null(2)? { None } else { Some(Timestamp(row.int(2)?)) };
        passkeys.push((row.text(0)?.to_owned(), Timestamp(row.int(1)?), last_used));
        Ok(())
    })?;
    Ok(Some(OwnUser { store, id, passkeys }))
}

/// The platform user of a store's user; `None` if the user has not been synchronized yet.
pub fn platform_user(tx: &mut Tx<'_>, store: Uuid, user: Uuid) -> Result<Option<Uuid>, StoreError> {
    let text = "SELECT a.id FROM application_identity i JOIN application_user a ON a.rid = i.application_user_rid \
        WHERE i.idp_instance_id = ?1 AND i.subject = ?2";
    tx.one(text, &[store.into(), user.to_string().into()], |row| row.id(0))
}
