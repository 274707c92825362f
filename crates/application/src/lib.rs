//! Platform users and groups: persons and groups on the platform, whatever their identity provider,
//! and their synchronization from a user store or an external identity provider.
//!
//! The user store service writes them and the management service shows them, so both depend on this crate.

mod carried_roles;
mod checked_people;
mod controllers;
mod external;
mod grant_review;
mod granted_role;
mod group;
mod identity;
mod independence;
mod mirror;
mod provider_setters;
mod reconcile;
mod role_carriers;
mod set_by_other;
mod sign_in_roles;
mod sign_out;
mod store_user;
mod synchronize;
mod user;

pub use carried_roles::{
    counting_of_users as counting_roles_of_users, first_above, of_groups as roles_of_groups,
    of_people as roles_of_people, of_users as roles_of_users,
};
pub use checked_people::CredentialQuery;
pub use external::{ExternalInstance, ExternalProfile, ExternalSubject, create_external, update_external};
pub use grant_review::{GrantReview, ReviewRequired};
pub use granted_role::lineage_of;
pub use group::{APPLICATION_GROUP, APPLICATION_GROUP_IDENTITY, ApplicationGroup, ApplicationGroupId};
pub use identity::{ApplicationIdentity, ApplicationIdentityId, LifecycleStatus};
pub use independence::check_independence;
pub use mirror::Mirror;
pub use set_by_other::{CredentialKind, SetByOther, set_by_others};
pub use sign_in_roles::{at_instances, at_tenants, by_certificates, with_factors};
pub use sign_out::{SignOutScope, sign_out, sign_out_audited, sign_out_by, sign_out_user_by};
pub use synchronize::{SynchronizeResult, synchronize};
pub use user::{
    APPLICATION_IDENTITY, APPLICATION_USER, ApplicationUser, ApplicationUserId,
    profile::{APPLICATION_USER_PROFILE, ApplicationUserProfile, add_entries},
};
