//! The claim rules in force where people sign in to a client app.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_claims::RuleSet;
use chancery_management::claim_rule::{InForce, Place, Unusable, compiled};
use chancery_resource::{Problem, Tx};
use uuid::Uuid;

/// The most places of a client app that are cached.
const PLACES: usize = 64;

/// A tenant, and an instance of it.
type TenantAndInstance = (Uuid, Uuid);

/// Which rules are in force, by tenant and instance: the key of the compiled rules, an empty one where there are no rules. It is cached
/// with its client app, until the security epoch advances.
#[derive(Debug, Default)]
pub struct RulesInForce(Mutex<Vec<(TenantAndInstance, Vec<u8>)>>);

/// The rules in force.
pub enum Rules {
    /// They are compiled.
    Compiled(Arc<RuleSet>),
    /// They are read.
    Read(InForce),
}

impl Rules {
    /// The compiled rules. Call it outside of transactions.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn compile(&self) -> Result<Arc<RuleSet>, Unusable> {
        match self {
            Self::Compiled(set) => Ok(Arc::clone(set)),
            Self::Read(rules) => rules.compile(),
        }
    }
}

impl RulesInForce {
    /// The rules in force for people of an instance who sign in to a client app, of this id and row number, at a tenant; `None` where
    /// there are none. The database is asked only
    /// for what is not cached.
    ///
    /// # Errors
    /// Those of the store.
    pub fn find(
        &self,
        tx: &mut Tx<'_>,
        application: (Uuid, i64),
        place: TenantAndInstance,
    ) -> Result<Option<Rules>, Problem> {
        if let Some(key) = self.known(place) {
            if key.is_empty() {
                return Ok(None);
            }
            if let Some(set) = compiled(&key) {
                return Ok(Some(Rules::Compiled(set)));
            }
        }
        let (tenant, instance) = place;
        let rules = InForce::read(
            tx,
            Place { app: Some(application), instance: Some(instance), tenant: Some(tenant) },
        )?;
        let key = if rules.is_empty() { Vec::new() } else { rules.key().to_vec() };
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|(known, _)| *known != place);
        if places.len() >= PLACES {
            places.remove(0);
        }
        places.push((place, key));
        drop(places);
        Ok(Some(rules).filter(|rules| !rules.is_empty()).map(Rules::Read))
    }

    fn known(&self, place: TenantAndInstance) -> Option<Vec<u8>> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.iter().find(|(known, _)| *known == place).map(|(_, key)| key.clone())
    }
}
