//! The link of the first administrator.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::Timestamp;
use chancery_resource::{MasterKey, StateTable, StoreError, Tx, random};

/// The lifetime of the first administrator's link, in ms.
const SETUP_MS: i64 = 3_600_000;

fn setup_digest(master: &MasterKey, code: &str) -> Vec<u8> {
    master.digest("console-setup", code.as_bytes())
}

/// The link is valid only while there is no `SystemAdmin`.
const NO_ADMINISTRATOR: &str =
    "NOT EXISTS (SELECT 1 FROM role_assignment r WHERE r.role_type = 'SystemAdmin')";

/// Creates the code of the first administrator's link; an earlier one becomes invalid.
pub fn open_setup(tx: &mut Tx<'_>, master: &MasterKey, now: Timestamp) -> Result<String, StoreError> {
    let code = BASE64_URL_SAFE_NO_PAD.encode(random::<32>());
    let text = StateTable::ConsoleSetup.insert(
        "(id, digest, expires_on) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET digest = ?1, expires_on = ?2",
    );
    tx.queue(&text, vec![setup_digest(master, &code).into(), now.plus(SETUP_MS).0.into()])?;
    Ok(code)
}

/// Whether a code of the first administrator's link is valid now.
pub fn is_setup_open(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    code: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let text =
        format!("SELECT 1 FROM console_setup WHERE digest = ?1 AND expires_on > ?2 AND {NO_ADMINISTRATOR}");
    Ok(tx.one(&text, &[setup_digest(master, code).into(), now.0.into()], |_| Ok(()))?.is_some())
}

/// Deletes the code. `false`: another request has used it.
pub fn spend_setup(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    code: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let good = format_args!("WHERE digest = ?1 AND expires_on > ?2 AND {NO_ADMINISTRATOR}");
    let text = StateTable::ConsoleSetup.delete(good);
    Ok(tx.execute(&text, &[setup_digest(master, code).into(), now.0.into()])? == 1)
}
