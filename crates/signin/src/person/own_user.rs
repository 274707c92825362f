//! The user of a person in a user store, as the person sees it.

use chancery_record::Timestamp;
use chancery_resource::{StoreError, Tx};
use chancery_store::selectable;
use uuid::Uuid;

use super::user_subject::{StoreIdentity, UserSubject, store_identity};

/// The person's user in the user store of a sign-in, with passkeys.
#[derive(Clone, Debug, Default)]
pub struct OwnUser {
    /// The name of the user store.
    pub store: String,
    /// The user.
    pub id: Uuid,
    /// The passkeys.
    pub passkeys: Vec<OwnPasskey>,
}

selectable! {
    /// A passkey of the person's user.
    #[derive(Clone, Debug)]
    pub struct OwnPasskey from "FROM passkey_credential WHERE user_rid = ?1 ORDER BY rid" {
        /// The name.
        pub name: String = "name",
        /// When it was registered.
        pub created_on: Timestamp = "created_on",
        /// The last use.
        pub last_used_on: Option<Timestamp> = "last_used_on",
    }
}

/// The user of a person in a user store; `None` if the instance is none.
pub fn own_user(tx: &mut Tx<'_>, person: Uuid, instance: Uuid) -> Result<Option<OwnUser>, StoreError> {
    let identity = store_identity(tx, person, instance)?;
    let Some(StoreIdentity { subject: UserSubject(Some(id)), store, store_name }) = identity else {
        return Ok(None);
    };
    let text =
        "SELECT u.rid FROM user_account u WHERE u.store = ?1 AND u.id = ?2 AND u.quarantined_on IS NULL";
    let Some(user) = tx.one(text, &[store.into(), id.into()], |row| row.int(0))? else { return Ok(None) };
    let mut passkeys = Vec::new();
    tx.query(OwnPasskey::SELECT, &[user.into()], |row| {
        passkeys.push(OwnPasskey::read(row)?);
        Ok(())
    })?;
    Ok(Some(OwnUser { store: store_name, id, passkeys }))
}

/// The platform user of a store's user; `None` if the user has not been synchronized yet.
pub fn platform_user(tx: &mut Tx<'_>, store: Uuid, user: Uuid) -> Result<Option<Uuid>, StoreError> {
    let text = "SELECT a.id FROM application_identity i JOIN application_user a ON a.rid = i.application_user_rid \
        WHERE i.idp_instance_id = ?1 AND i.subject = ?2";
    tx.one(text, &[store.into(), user.to_string().into()], |row| row.id(0))
}
