//! Facts about the app, its tenants and this browser.

use uuid::Uuid;

use crate::Proof;

/// What is known before the person is.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppFacts<'a> {
    /// The tenants in which the app serves. At a tenant's issuer that one alone, or none.
    pub tenants: &'a [TenantFacts],
    /// The tenants with an IpAddressRange that holds the caller's address.
    pub in_range: &'a [Uuid],
    /// This browser's sessions, in any tenant.
    pub sessions: &'a [SessionFacts],
}

/// A tenant in which the app serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    /// The tenant.
    pub id: Uuid,
    /// The instances that are assigned to both tenant and app, and can be used, by position and name.
    pub instances: Vec<InstanceFacts>,
}

/// An IdpInstance that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceFacts {
    /// The instance.
    pub id: Uuid,
    /// `isHidden`: offered only to a request that names it.
    pub is_hidden: bool,
    /// Where people prove who they are.
    pub kind: InstanceKind,
}

/// Where an instance's people prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// In a user store.
    Store,
    /// At an external provider.
    External {
        /// `treatMfaFactorClaimsAsConfirmed`: whether a second factor there counts here.
        believed: bool,
    },
}

/// A session of this browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// The session.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// Its platform user.
    pub person: Uuid,
    /// What was proven in it.
    pub proofs: Vec<Proof>,
    /// Whether the person is the one that the `login_hint` names.
    pub fits_login_hint: bool,
}
