//! The scope of a caller: the coverage of its rights.

use std::sync::Arc;

use crate::settings::{Options, UserStoreOption};
use uuid::Uuid;

use crate::{Lineage, Problem};

/// The scope of a caller: the coverage of its rights, which limits every query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One user store.
    Store(StoreScope),
    /// The complete configuration.
    Everything,
    /// Parts of the configuration, each with its descendants.
    Parts {
        /// Customers with all descendants.
        customers: Vec<Uuid>,
        /// Subscriptions with all descendants.
        subscriptions: Vec<Uuid>,
        /// Tenants, for the items that they own.
        tenants: Vec<Uuid>,
        /// Instances.
        instances: Vec<Uuid>,
        /// Tenants, for the items that are assigned to them.
        assigned: Vec<Uuid>,
        /// Whether the scope is for changes, and not only for reading.
        writes: bool,
    },
}

/// The user store of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreScope {
    /// The user store's number, as its rows hold it in `store`.
    pub number: i64,
    /// Its instance's id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: Arc<Options<UserStoreOption>>,
    /// Its ancestors: its subscription, that one's customer, and the tenant, where it serves one alone.
    pub lineage: Lineage,
    /// The number of the snapshot of authenticators' metadata in effect, if there is one.
    pub metadata: Option<i64>,
}

impl Scope {
    /// The store's number; 0 for the configuration.
    pub const fn store(&self) -> i64 {
        match self {
            Self::Store(store) => store.number,
            _ => 0,
        }
    }

    /// The store; a problem where there is none.
    pub fn of_store(&self) -> Result<&StoreScope, Problem> {
        match self {
            Self::Store(store) => Ok(store),
            _ => Err(Problem::not_found("user store")),
        }
    }

    /// The store's instance id.
    pub const fn store_id(&self) -> Option<Uuid> {
        match self {
            Self::Store(store) => Some(store.id),
            _ => None,
        }
    }

    /// The same scope, for changes or only for reading.
    #[must_use]
    pub fn to_be_changed(mut self, changes: bool) -> Self {
        if let Self::Parts { writes, .. } = &mut self {
            *writes = changes;
        }
        self
    }

    /// The same scope without the items reachable through a tenant only.
    #[must_use]
    pub fn above_tenants(mut self) -> Self {
        if let Self::Parts { tenants, assigned, .. } = &mut self {
            tenants.clear();
            assigned.clear();
        }
        self
    }

    /// Whether secrets are shown: not to callers who see some rows only because they are assigned to a tenant.
    pub const fn reveals(&self) -> bool {
        !matches!(self, Self::Parts { assigned, .. } if !assigned.is_empty())
    }

    /// The source of a change, as the audit trail and events name it.
    pub fn source(&self) -> &str {
        match self {
            Self::Store(store) => &store.name,
            _ => "management",
        }
    }
}
