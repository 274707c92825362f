//! What is good once: ids of assertions and of DPoP proofs, remembered in the database, so that every
//! process knows them.

use aws_lc_rs::digest::{Context, SHA256};
use chancery_record::{Timestamp, Value};
use chancery_store::{Error, Mode, StateTable, Store, Tx};

/// An id that was used.
#[derive(Clone, Debug)]
pub struct Used {
    digest: Vec<u8>,
    expires_on: Timestamp,
}

impl Used {
    /// An id of this kind and owner, to be remembered until then.
    pub fn new(kind: &str, owner: &str, id: &str, expires_on: Timestamp) -> Self {
        let mut context = Context::new(&SHA256);
        for part in [kind, owner, id] {
            context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            context.update(part.as_bytes());
        }
        Self { digest: context.finish().as_ref().to_vec(), expires_on }
    }

    /// Remembers it; false when it was used before.
    ///
    /// # Errors
    /// The store's.
    pub fn claim(&self, tx: &mut Tx<'_>) -> Result<bool, Error> {
        let text = StateTable::UsedProof
            .insert("(digest, expires_on) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING");
        let parameters = [Value::Bytes(self.digest.clone()), Value::Int(self.expires_on.0)];
        Ok(tx.execute(&text, &parameters)? == 1)
    }

    /// Remembers it as the last thing that a transaction does: with the commit, in one exchange.
    ///
    /// # Errors
    /// [`Error::Unique`] when it was used before; the store's.
    pub fn claim_last(&self, tx: &mut Tx<'_>) -> Result<(), Error> {
        let text = StateTable::UsedProof.insert("(digest, expires_on) VALUES (?1, ?2)");
        tx.queue(&text, vec![Value::Bytes(self.digest.clone()), Value::Int(self.expires_on.0)])?;
        tx.finish()
    }

    /// Remembers it in a transaction of its own; false when it was used before.
    ///
    /// # Errors
    /// The store's.
    pub async fn claim_alone(self, store: &Store) -> Result<bool, Error> {
        match store.run("UseProof", Mode::Write, None, move |tx| self.claim_last(tx)).await {
            Err(Error::Unique(_)) => Ok(false),
            claimed => claimed.map(|()| true),
        }
    }
}
