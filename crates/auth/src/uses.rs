//! When secrets and key sets of client apps were last used. Client authentication is the most frequent operation: uses
//! are recorded in memory, once an hour for each, and a job writes them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chancery_record::Timestamp;
use chancery_resource::StateTable;
use chancery_store::{Error, Tx, selectable};
use uuid::Uuid;

/// How often a use is recorded, in ms.
const INTERVAL_MS: i64 = 3_600_000;
/// The most recorded uses: beyond it all are dropped, and recorded anew.
const MAX_NOTED: usize = 100_000;

/// A use of a secret or a key set for client authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialUse {
    /// The secret, or the key set.
    pub credential: Uuid,
    /// The client app.
    pub client_app: Uuid,
    /// The time.
    pub used_on: Timestamp,
}

impl CredentialUse {
    /// In place of the client app where the credential is the SCIM token of a directory.
    pub const SCIM: Uuid = Uuid::nil();
}

/// The uses recorded by this process.
#[derive(Debug, Default)]
pub struct CredentialUses(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    noted: HashMap<Uuid, i64>,
    unwritten: Vec<CredentialUse>,
}

impl CredentialUses {
    /// Records a use.
    pub fn record(&self, client_app: Uuid, credential: Uuid, now: Timestamp) {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.noted.get(&credential).is_some_and(|noted| now.0 - noted < INTERVAL_MS) {
            return;
        }
        if recorded.noted.len() >= MAX_NOTED {
            recorded.noted.clear();
        }
        recorded.noted.insert(credential, now.0);
        recorded.unwritten.push(CredentialUse { credential, client_app, used_on: now });
    }

    /// Takes the unwritten uses, at most `MAX_NOTED`.
    pub fn take(&self) -> Vec<CredentialUse> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).unwritten)
    }

    /// Puts back uses that could not be written.
    pub fn put_back(&self, uses: Vec<CredentialUse>) {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.unwritten.len() < MAX_NOTED {
            recorded.unwritten.extend(uses);
        }
    }
}

/// Writes uses, except those of deleted client apps.
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

selectable! {
    /// The last use of a credential of a client app.
    struct LastUse from "FROM client_credential_use WHERE client_app_id = ?1" {
        credential: Uuid = "credential_id",
        used_on: Timestamp = "used_on",
    }
}

/// When the secrets and key sets of a client app were last used, by their ids.
pub fn credential_uses(tx: &mut Tx<'_>, client_app: Uuid) -> Result<HashMap<Uuid, Timestamp>, Error> {
    let mut uses = HashMap::new();
    tx.query(LastUse::SELECT, &[client_app.into()], |row| {
        let LastUse { credential, used_on } = LastUse::read(row)?;
        uses.insert(credential, used_on);
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
            uses.record(app, secret, Timestamp(minute * 60_000));
        }
        let recorded = uses.take();
        assert_eq!(recorded.iter().map(|one| one.used_on.0 / 60_000).collect::<Vec<_>>(), [0, 60]);
        assert!(uses.take().is_empty(), "what was taken is not taken again");
        uses.put_back(recorded.clone());
        assert_eq!(uses.take(), recorded);
    }
}
