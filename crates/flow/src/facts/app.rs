//! Facts about the app, its tenants and this browser.

use uuid::Uuid;

use crate::Proof;

/// What is known before the person is identified.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppFacts<'a> {
    /// The tenants that the app serves. At a tenant's issuer only that one, or none.
    pub tenants: &'a [TenantFacts],
    /// The tenants with an IpAddressRange that contains the caller's address.
    pub in_range: &'a [Uuid],
    /// This browser's sessions, in any tenant.
    pub sessions: &'a [SessionFacts],
}

/// A tenant that the app serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFacts {
    /// The tenant.
    pub id: Uuid,
    /// The instances that are assigned to both tenant and app, and are usable, by position and name.
    pub instances: Vec<InstanceFacts>,
}

/// A usable IdpInstance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceFacts {
    /// The instance.
    pub id: Uuid,
    /// `isHidden`: offered only to a request that names it.
    pub is_hidden: bool,
    /// Where people authenticate.
    pub kind: InstanceKind,
}

/// Where an instance's people authenticate.
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
    /// The proofs of the session.
    pub proofs: Vec<Proof>,
    /// Whether the person matches the `login_hint`.
    pub fits_login_hint: bool,
}
