//! Identities of platform users and groups at identity provider instances.

use chancery_record::{
    HIDDEN, KEY, Name, OWNER, OptionValue, SHOWN, Timestamp, choice_types, id_types, record,
};
use chancery_resource::{Pairs, Relation, Shape};
use uuid::Uuid;

id_types! {
    /// The id of an identity.
    ApplicationIdentityId
}

choice_types! {
    /// The lifecycle status of an identity.
    LifecycleStatus {
        /// It is to replace another one.
        Pending,
        /// It can be used to sign in.
        Active,
        /// Another one replaced it.
        Replaced,
        /// It was revoked.
        Revoked,
    }
}

record! {
    /// Who a platform user or group is at an identity provider instance.
    pub struct ApplicationIdentity {
        /// The identity.
        id: ApplicationIdentityId = KEY,
        /// The platform user or group.
        #[de("Person")]
        owner_id: Uuid = OWNER.write_only(),
        /// The instance.
        idp_instance_id: Uuid = SHOWN,
        /// Issuer (`iss`) of the identity. For a user store: its option ClaimIssuer.
        issuer: OptionValue = SHOWN,
        /// Subject (`sub`) of the identity, unique at the instance. For a user store: the id of the user or group.
        subject: Name = SHOWN,
        /// Whether the instance is a user store.
        is_user_store_identity: bool = SHOWN,
        /// The status.
        #[de("Status")]
        lifecycle_status: LifecycleStatus = SHOWN,
        /// Who linked it, if that was not the person or the server itself.
        set_by: Option<Uuid> = HIDDEN,
        /// When it was linked, if that is known.
        set_on: Option<Timestamp> = HIDDEN,
    }
}

/// The relation from a platform user or group to its identities. Each identity has one owner, so the
/// relation's table of pairs is the table of the identities. `own`: the owner's column there.
pub const fn identities(shape: &'static Shape, own: &'static str) -> Relation {
    Relation::new(
        "identities",
        "Identities at identity provider instances.",
        Pairs { table: shape.table, own, other: "rid" },
        shape,
    )
    .showing_all()
}
