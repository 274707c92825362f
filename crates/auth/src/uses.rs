//! When secrets and key sets of client apps were last used. Proving a client is what servers do most often: uses are noted
//! in memory, once an hour for each, and a job writes them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chancery_record::Timestamp;
use chancery_resource::StateTable;
use chancery_store::{Error, Tx};
use uuid::Uuid;

/// How often a use is noted, in ms.
const NOTED_MS: i64 = 3_600_000;
/// The most that is remembered: beyond it all is forgotten, and noted anew.
const MOST: usize = 100_000;

/// That a secret or a key set proved its client app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialUse {
    /// The secret, or the key set.
    pub credential: Uuid,
    /// The client app.
    pub client_app: Uuid,
    /// When.
    pub used_on: Timestamp,
}

impl CredentialUse {
    /// Stands for a client app where the credential is the SCIM token of a directory.
    pub const SCIM: Uuid = Uuid::nil();
}

/// The uses that this process has seen.
#[derive(Debug, Default)]
pub struct CredentialUses(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    noted: HashMap<Uuid, i64>,
    unwritten: Vec<CredentialUse>,
}

impl CredentialUses {
    /// Notes a use.
    pub fn note(&self, client_app: Uuid, credential: Uuid, now: Timestamp) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.noted.get(&credential).is_some_and(|noted| now.0 - noted < NOTED_MS) {
            return;
        }
        if seen.noted.len() >= MOST {
            seen.noted.clear();
        }
        seen.noted.insert(credential, now.0);
        seen.unwritten.push(CredentialUse { credential, client_app, used_on: now });
    }

    /// The uses that are to be written; `MOST` of them at once.
    pub fn take(&self) -> Vec<CredentialUse> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).unwritten)
    }

    /// Puts back what could not be written.
    pub fn put_back(&self, uses: Vec<CredentialUse>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.unwritten.len() < MOST {
            seen.unwritten.extend(uses);
        }
    }
}

/// Writes uses. Those of client apps that are gone are left out.
///
/// # Errors
/// Errors of the store.
pub fn write_uses(tx: &mut Tx<'_>, uses: &[CredentialUse]) -> Result<(), Error> {
    let text = StateTable::ClientCredentialUse.insert(
        "(credential_id, client_app_id, used_on) SELECT ?1, a.id, ?3 FROM client_app a WHERE a.id = ?2 \
         ON CONFLICT (credential_id) DO UPDATE SET used_on = excluded.used_on",
    );
    let of_directory = StateTable::ScimTokenUse.insert(
        "(token_id, used_on) VALUES (?1, ?2) ON CONFLICT (token_id) DO UPDATE SET used_on = excluded.used_on",
    );
    for one in uses {
        if one.client_app == CredentialUse::SCIM {
            tx.queue(&of_directory, vec![one.credential.into(), one.used_on.0.into()])?;
            continue;
        }
        let parameters = vec![one.credential.into(), one.client_app.into(), one.used_on.0.into()];
        tx.queue(&text, parameters)?;
    }
    Ok(())
}

/// When the secrets and key sets of a client app were last used, by their ids.
///
/// # Errors
/// Errors of the store.
pub fn credential_uses(tx: &mut Tx<'_>, client_app: Uuid) -> Result<HashMap<Uuid, Timestamp>, Error> {
    let text = "SELECT credential_id, used_on FROM client_credential_use WHERE client_app_id = ?1";
    let mut uses = HashMap::new();
    tx.query(text, &[client_app.into()], |row| {
        uses.insert(row.id(0)?, Timestamp(row.int(1)?));
        Ok(())
    })?;
    Ok(uses)
}

#[cfg(test)]
mod tests {
    use chancery_record::Timestamp;
    use uuid::Uuid;

    use super::CredentialUses;

    #[test]
    fn a_use_is_noted_once_an_hour() {
        let (uses, app, secret) = (CredentialUses::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        for minute in [0, 1, 59, 60, 61] {
            uses.note(app, secret, Timestamp(minute * 60_000));
        }
        let seen = uses.take();
        assert_eq!(seen.iter().map(|one| one.used_on.0 / 60_000).collect::<Vec<_>>(), [0, 60]);
        assert!(uses.take().is_empty(), "what was taken is not taken again");
        uses.put_back(seen.clone());
        assert_eq!(uses.take(), seen);
    }
}
