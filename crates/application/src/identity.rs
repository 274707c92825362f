//! Who a platform user or group is at an identity provider instance.

use chancery_record::{FieldType, KEY, Kind, Mismatch, Name, OptionValue, SHOWN, Value, id_types, record};
use chancery_resource::{Reach, Relation, Shape};
use uuid::Uuid;

id_types! {
    /// The id of an identity.
    ApplicationIdentityId
}

/// Where an identity stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleStatus {
    /// It is to take another's place.
    Pending,
    /// It signs in.
    Active,
    /// Another took its place.
    Replaced,
    /// It is over.
    Revoked,
}

impl LifecycleStatus {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Pending, "Pending"),
        (Self::Active, "Active"),
        (Self::Replaced, "Replaced"),
        (Self::Revoked, "Revoked"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }
}

impl FieldType for LifecycleStatus {
    const KIND: Kind = Kind::Choice(&["Pending", "Active", "Replaced", "Revoked"]);
    fn into_value(self) -> Value {
        self.name().into()
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        let Value::Text(text) = value else { return Err(Mismatch("")) };
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(status, _)| *status).ok_or(Mismatch(""))
    }
}

record! {
    /// Who a platform user or group is at an identity provider instance.
    pub struct ApplicationIdentity {
        /// The identity.
        id: ApplicationIdentityId = KEY,
        /// The instance.
        idp_instance_id: Uuid = SHOWN,
        /// Who vouches for it: of a user store, its option ClaimIssuer.
        issuer: OptionValue = SHOWN,
        /// Its name there, unique at the instance: of a user store, the id of the user or group.
        subject: Name = SHOWN,
        /// Whether the instance is a user store.
        is_user_store_identity: bool = SHOWN,
        /// Where it stands.
        lifecycle_status: LifecycleStatus = SHOWN,
    }
}

/// The identities of platform users.
pub static APPLICATION_IDENTITY: Shape =
    Shape::of::<ApplicationIdentity>("ApplicationIdentity", "application_identity", Reach::Part);

/// The identities of platform groups.
pub static APPLICATION_GROUP_IDENTITY: Shape =
    Shape::of::<ApplicationIdentity>("ApplicationGroupIdentity", "application_group_identity", Reach::Part);

/// The relation with what belongs to one alone: its table is the table of pairs.
pub const fn identities(shape: &'static Shape, own: &'static str) -> Relation {
    Relation {
        name: "identities",
        about: "Who it is at identity provider instances.",
        table: shape.table,
        own,
        other: "rid",
        target: shape,
        shown: &["id", "idp_instance_id", "issuer", "subject", "is_user_store_identity", "lifecycle_status"],
        guard: None,
    }
}
