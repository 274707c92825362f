//! Protection against replay: ids of used assertions and DPoP proofs, stored in the database for every
//! process.

use aws_lc_rs::digest::{Context, SHA256};
use chancery_record::{Timestamp, Value};
use chancery_store::{Error, Mode, StateTable, Store, Tx};

/// The id of an assertion or proof that can be used once.
#[derive(Clone, Debug)]
pub struct ReplayId {
    digest: Vec<u8>,
    expires_on: Timestamp,
}

impl ReplayId {
    /// An id of this kind and owner, to be stored until `expires_on`.
    pub fn new(kind: &str, owner: &str, id: &str, expires_on: Timestamp) -> Self {
        let mut context = Context::new(&SHA256);
        for part in [kind, owner, id] {
            context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            context.update(part.as_bytes());
        }
        Self { digest: context.finish().as_ref().to_vec(), expires_on }
    }

    /// Stores the id; false when it was used before.
    pub fn claim(&self, tx: &mut Tx<'_>) -> Result<bool, Error> {
        let text = StateTable::UsedProof
            .insert("(digest, expires_on) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING");
        let parameters = [Value::Bytes(self.digest.clone()), Value::Int(self.expires_on.0)];
        Ok(tx.execute(&text, &parameters)? == 1)
    }

    /// Stores the id as the last statement of a transaction, in one exchange with the commit.
    ///
    /// # Errors
    /// [`Error::Unique`] when it was used before; other errors of the store.
    pub fn claim_last(&self, tx: &mut Tx<'_>) -> Result<(), Error> {
        let text = StateTable::UsedProof.insert("(digest, expires_on) VALUES (?1, ?2)");
        tx.queue(&text, vec![Value::Bytes(self.digest.clone()), Value::Int(self.expires_on.0)])?;
        tx.finish()
    }

    /// Stores the id in a transaction of its own; false when it was used before.
    pub async fn claim_alone(self, store: &Store) -> Result<bool, Error> {
        match store.run("UseProof", Mode::Write, None, move |tx| self.claim_last(tx)).await {
            Err(Error::Unique(_)) => Ok(false),
            claimed => claimed.map(|()| true),
        }
    }
}
