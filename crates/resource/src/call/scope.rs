//! What a caller's rights cover.

use std::sync::Arc;

use crate::settings::Options;
use uuid::Uuid;

use crate::Problem;

/// What the caller's rights cover, and so what every query is limited to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One user store.
    Store(StoreScope),
    /// The configuration, whole.
    Everything,
    /// The configuration of these parts, each with what is below it.
    Parts {
        /// Whole customers.
        customers: Vec<Uuid>,
        /// Whole subscriptions.
        subscriptions: Vec<Uuid>,
        /// What tenants own.
        tenants: Vec<Uuid>,
        /// Instances.
        instances: Vec<Uuid>,
        /// What is assigned to tenants.
        assigned: Vec<Uuid>,
        /// Whether it is asked for to be changed.
        writes: bool,
    },
}

/// The user store that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreScope {
    /// Its number in its tables.
    pub number: i64,
    /// Its instance's id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: Arc<Options>,
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

    /// The same scope, asked for to be changed or only to be read.
    #[must_use]
    pub fn to_be_changed(mut self, changes: bool) -> Self {
        if let Self::Parts { writes, .. } = &mut self {
            *writes = changes;
        }
        self
    }

    /// The same scope without what is reached through a tenant alone.
    #[must_use]
    pub fn above_tenants(mut self) -> Self {
        if let Self::Parts { tenants, assigned, .. } = &mut self {
            tenants.clear();
            assigned.clear();
        }
        self
    }

    /// Whether secrets are shown: not to who sees some rows only because they are assigned to a
    /// tenant.
    pub const fn reveals(&self) -> bool {
        !matches!(self, Self::Parts { assigned, .. } if !assigned.is_empty())
    }

    /// What the audit trail and events call the source of a change.
    pub fn source(&self) -> &str {
        match self {
            Self::Store(store) => &store.name,
            _ => "management",
        }
    }
}
