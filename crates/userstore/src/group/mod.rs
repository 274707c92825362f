//! Groups: named sets of users and of other groups.

mod membership;

use chancery_application::roles_of_groups;
use chancery_record::{GroupName, HIDDEN, KEY, Name, OPEN, SCOPE, SHOWN, Token, record};
use chancery_resource::{
    Action as A, CarriedBy, Custom, JsonForm, LinkTable, Links, Method as M, Op, Permit::UserStore,
    Protection, Reach, Relation, RelationChange, Shape, Unique, delta,
};

use uuid::Uuid;

use crate::{
    GroupId, InstanceId,
    event::changes,
    user::{USER, User},
};

record! {
    /// A named set of users and of other groups.
    #[de("Gruppe", "Gruppen", "Eine benannte Menge von Benutzern und anderen Gruppen.")]
    pub struct Group {
        /// The user store that the group is in.
        instance_id: InstanceId = SCOPE,
        /// The group.
        id: GroupId = KEY,
        /// Its name, unique in the store without regard to case.
        #[de(_, "Der Name, eindeutig im Speicher; Groß- und Kleinschreibung zählt nicht.")]
        name: GroupName = OPEN.folded(),
        /// Whose SCIM tokens made the group: the first of their line.
        scim_owner: Option<Uuid> = HIDDEN.audited(),
        /// The group's id at the directory that provisions it.
        external_unique_identifier: Option<Name> = HIDDEN.audited(),
        /// Concurrency token. It changes with every write to the group's own fields.
        concurrency_token: Token = SHOWN,
    }
}

/// The protected fields of a group with a role: all but its name. Setting its members without a change is
/// allowed, because every synchronization does so.
static PROTECTION: Protection =
    Protection::new(roles_of_groups, CarriedBy::Itself, &[Group::NAME.field()], Links::AllBut(&[]));

/// The users in groups.
pub const GROUP_MEMBER: LinkTable = LinkTable::new("group_member", "group_rid", "user_rid");
/// The groups in groups.
const GROUP_EDGE: LinkTable = LinkTable::new("group_edge", "parent_rid", "child_rid");

impl Group {
    /// The users in the group.
    pub const MEMBER_USERS: Relation =
        Relation::new("memberUsers", "The users in the group.", GROUP_MEMBER.forward(), &USER).showing(&[
            User::ID.field(),
            User::LOGIN_NAME.field(),
            User::FIRST_NAME.field(),
            User::LAST_NAME.field(),
            User::EMAIL_ADDRESS.field(),
        ]);
    /// The groups that the group is in.
    pub const PARENT_GROUPS: Relation =
        Relation::new("parentGroups", "The groups that the group is in.", GROUP_EDGE.reverse(), &GROUP)
            .guarded(membership::guard_parents);
    /// The groups in the group.
    pub const MEMBER_GROUPS: Relation =
        Relation::new("memberGroups", "The groups in the group.", GROUP_EDGE.forward(), &GROUP)
            .guarded(membership::guard_members);
}

/// The shape of groups.
pub static GROUP: Shape = Shape::of::<Group>("Group", "user_group", Reach::Store)
    .protected_by(&PROTECTION)
    .unique(&[
        Unique::new("user_group__store__id", &[Group::ID.field()]),
        Unique::new("user_group__store__name_key", &[Group::NAME.field()]),
        Unique::new(
            "user_group__store__external_unique_identifier__scim_owner",
            &[Group::EXTERNAL_UNIQUE_IDENTIFIER.field(), Group::SCIM_OWNER.field()],
        )
        .reported_at(Group::EXTERNAL_UNIQUE_IDENTIFIER),
    ])
    .relations(const { &[Group::MEMBER_USERS, Group::PARENT_GROUPS, Group::MEMBER_GROUPS] })
    .large();

const ALL: &str = "/administration/Group";
const ONE: &str = "/administration/Group/{id}";
const BATCH: &str = "/administration/Group/batch";
const USERS: &str = "/administration/Group/{groupId}/users";
const PARENTS: &str = "/administration/Group/{groupId}/parentgroups";
const MEMBERS: &str = "/administration/Group/{groupId}/membergroups";

static DELTA: JsonForm = JsonForm { name: "GroupDelta", schema: || delta::schema("Group") };

const fn op(name: &'static str, method: M, path: &'static str, action: A, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &GROUP, action, summary)
}

const fn list(run: chancery_resource::Run) -> A {
    A::Custom(Custom::listing(run))
}

/// The operations on groups.
pub static OPERATIONS: &[Op] = &[
    op("GetGroups", M::Get, ALL, A::List, "Lists the groups."),
    op(
        "GetGroupDelta",
        M::Get,
        "/administration/Group/delta",
        changes(&DELTA),
        "Reads the groups that changed after a cursor, or whose links changed: each one once, in its current state or as deleted.",
    )
    .with_query(delta::QUERY)
    .added(),
    op("CreateGroup", M::Post, ALL, A::Create, "Creates a group."),
    op("UpdateGroups", M::Put, BATCH, A::ReplaceBatch, "Replaces many groups, all or none."),
    op("CreateGroupBatch", M::Post, BATCH, A::CreateBatch, "Creates many groups, all or none."),
    op("DeleteGroupBatch", M::Delete, BATCH, A::DeleteBatch, "Deletes many groups, all or none."),
    op("GetGroup", M::Get, ONE, A::Read, "Reads a group."),
    op("UpdateGroup", M::Put, ONE, A::Replace, "Replaces a group."),
    op("DeleteGroup", M::Delete, ONE, A::Delete, "Deletes a group with its metadata."),
    op("PatchGroup", M::Patch, ONE, A::Patch, "Changes a group."),
    op(
        "SetGroupMemberUsers",
        M::Put,
        USERS,
        A::Relate(&Group::MEMBER_USERS, RelationChange::Set),
        "Replaces the users in a group.",
    ),
    op(
        "AddGroupUserToGroup",
        M::Post,
        USERS,
        A::Relate(&Group::MEMBER_USERS, RelationChange::Add),
        "Adds users to a group.",
    ),
    op(
        "RemoveGroupUserFromGroup",
        M::Delete,
        USERS,
        A::Relate(&Group::MEMBER_USERS, RelationChange::Remove),
        "Removes users from a group.",
    ),
    op(
        "SetGroupParentGroups",
        M::Put,
        PARENTS,
        A::Relate(&Group::PARENT_GROUPS, RelationChange::Set),
        "Replaces the parent groups of a group.",
    ),
    op(
        "AddParentGroup",
        M::Post,
        PARENTS,
        A::Relate(&Group::PARENT_GROUPS, RelationChange::Add),
        "Adds a group to parent groups.",
    ),
    op(
        "RemoveParentGroup",
        M::Delete,
        PARENTS,
        A::Relate(&Group::PARENT_GROUPS, RelationChange::Remove),
        "Removes a group from parent groups.",
    ),
    op(
        "SetGroupMemberGroups",
        M::Put,
        MEMBERS,
        A::Relate(&Group::MEMBER_GROUPS, RelationChange::Set),
        "Replaces the groups in a group.",
    ),
    op(
        "AddMemberGroup",
        M::Post,
        MEMBERS,
        A::Relate(&Group::MEMBER_GROUPS, RelationChange::Add),
        "Adds groups to a group.",
    ),
    op(
        "RemoveMemberGroup",
        M::Delete,
        MEMBERS,
        A::Relate(&Group::MEMBER_GROUPS, RelationChange::Remove),
        "Removes groups from a group.",
    ),
    op(
        "GetAllGroupMembershipFromGroup",
        M::Get,
        "/administration/Group/parentGroup/{parentGroupId}/membership",
        list(membership::below_group),
        "Lists all groups below a group, without the group itself.",
    ),
    op(
        "GetAllGroupMembershipFromUser",
        M::Get,
        "/administration/Group/user/{userid}/membership",
        list(membership::of_user),
        "Lists the groups of a user and all groups above them.",
    ),
];
