//! Platform groups.

use chancery_record::{GroupName, HIDDEN, KEY, Name, SHOWN, Token, id_types, record};
use chancery_resource::{Reach, Relation, Shape, Unique};
use uuid::Uuid;

use crate::identity::{ApplicationIdentity, identities};

id_types! {
    /// The id of a platform group.
    ApplicationGroupId
}

record! {
    /// A platform group. It is created by synchronizing a user store and kept in sync with it.
    #[de(
        "Plattformgruppe",
        "Plattformgruppen",
        "Eine Plattformgruppe. Sie entsteht beim Synchronisieren eines Benutzerspeichers und wird mit ihm synchron gehalten."
    )]
    pub struct ApplicationGroup {
        /// The platform group.
        id: ApplicationGroupId = KEY,
        /// Its name.
        name: GroupName = SHOWN.folded(),
        /// The group's id at the directory that provisions it.
        external_id: Option<Name> = HIDDEN.audited(),
        /// Its name, unique at the instance, where a directory provisions it.
        provisioned_name: Option<GroupName> = HIDDEN.folded(),
        /// The subscription of the instance that the group comes from.
        subscription_id: Uuid = HIDDEN,
        /// The instance that the group comes from, and follows.
        idp_instance_id: Uuid = HIDDEN,
        /// Concurrency token. It changes with every write to the group.
        concurrency_token: Token = SHOWN,
    }
}

static RELATIONS: [Relation; 1] = [identities(&APPLICATION_GROUP_IDENTITY, "application_group_rid")];

/// The shape of platform groups.
pub static APPLICATION_GROUP: Shape = Shape::of::<ApplicationGroup>(
    "ApplicationGroup",
    "application_group",
    Reach::Instance(ApplicationGroup::SUBSCRIPTION_ID.field(), ApplicationGroup::IDP_INSTANCE_ID.field()),
)
.unique(&[
    Unique::new(
        "application_group__idp_instance_id__provisioned_name_key",
        &[ApplicationGroup::IDP_INSTANCE_ID.field(), ApplicationGroup::PROVISIONED_NAME.field()],
    )
    .reported_at(ApplicationGroup::NAME),
    Unique::new(
        "application_group__idp_instance_id__external_id",
        &[ApplicationGroup::IDP_INSTANCE_ID.field(), ApplicationGroup::EXTERNAL_ID.field()],
    )
    .reported_at(ApplicationGroup::EXTERNAL_ID),
])
.relations(&RELATIONS);

/// The identities of platform groups.
pub static APPLICATION_GROUP_IDENTITY: Shape =
    Shape::of::<ApplicationIdentity>("ApplicationGroupIdentity", "application_group_identity", Reach::Part)
        .owned(&APPLICATION_GROUP, "application_group_rid");
