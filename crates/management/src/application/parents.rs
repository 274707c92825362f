//! What look-ups go by: as much of tenants and instances as tells whether they are the caller's.

use chancery_record::{KEY, id_types, record};
use chancery_resource::{Reach, Shape};

id_types! {
    /// The id of a tenant.
    TenantId,
    /// The id of an identity provider instance.
    IdpInstanceId,
}

record! {
    /// A tenant.
    pub struct Tenant {
        /// The tenant.
        id: TenantId = KEY,
    }
}

record! {
    /// An identity provider instance.
    pub struct IdpInstance {
        /// The instance.
        id: IdpInstanceId = KEY,
    }
}

pub static TENANT: Shape = Shape::of::<Tenant>("Tenant", "tenant", Reach::Tenant("subscription_id", "id"));

pub static IDP_INSTANCE: Shape =
    Shape::of::<IdpInstance>("IdpInstance", "idp_instance", Reach::Instance("subscription_id", "id"));
