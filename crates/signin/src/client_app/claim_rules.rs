//! The claim rules in force for sign-ins to a client app.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_claims::RuleSet;
use chancery_management::claim_rule::{ActiveRules, RuleScope, Unusable, compiled};
use chancery_resource::{Problem, Tx};
use uuid::Uuid;

use super::Application;

/// The maximum of cached pairs of tenant and instance of a client app.
const MAX_SCOPES: usize = 64;

/// A tenant, and an instance of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantInstance {
    /// The tenant.
    pub tenant: Uuid,
    /// The instance.
    pub instance: Uuid,
}

/// Cache of the rules in force, by tenant and instance: the key of the compiled rules, empty if there are none. It is
/// part of the cached client app, until the security epoch advances.
#[derive(Debug, Default)]
pub struct ClaimRuleCache(Mutex<Vec<(TenantInstance, Vec<u8>)>>);

/// The rules in force.
pub enum Rules {
    /// Already compiled.
    Compiled(Arc<RuleSet>),
    /// Read from the database.
    Read(ActiveRules),
}

impl Rules {
    /// The compiled rules. Call it outside of transactions.
    ///
    /// # Errors
    /// Fails when the rules cannot be used.
    pub fn compile(&self) -> Result<Arc<RuleSet>, Unusable> {
        match self {
            Self::Compiled(set) => Ok(Arc::clone(set)),
            Self::Read(rules) => rules.compile(),
        }
    }
}

impl ClaimRuleCache {
    /// The rules in force for people of an instance who sign in to a client app at a tenant; `None` if there are none.
    /// The database is queried only for uncached pairs.
    pub fn find(
        &self,
        tx: &mut Tx<'_>,
        application: &Application,
        scope: TenantInstance,
    ) -> Result<Option<Rules>, Problem> {
        if let Some(key) = self.known(scope) {
            if key.is_empty() {
                return Ok(None);
            }
            if let Some(set) = compiled(&key) {
                return Ok(Some(Rules::Compiled(set)));
            }
        }
        let app = Some((application.id, application.rid));
        let TenantInstance { tenant, instance } = scope;
        let rules = ActiveRules::read(tx, RuleScope { app, instance: Some(instance), tenant: Some(tenant) })?;
        let key = if rules.is_empty() { Vec::new() } else { rules.key().to_vec() };
        let mut scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.retain(|(known, _)| *known != scope);
        if scopes.len() >= MAX_SCOPES {
            scopes.remove(0);
        }
        scopes.push((scope, key));
        drop(scopes);
        Ok(Some(rules).filter(|rules| !rules.is_empty()).map(Rules::Read))
    }

    fn known(&self, scope: TenantInstance) -> Option<Vec<u8>> {
        let scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.iter().find(|(known, _)| *known == scope).map(|(_, key)| key.clone())
    }
}
