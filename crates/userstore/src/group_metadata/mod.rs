//! Group metadata: entries of a group, by key.

use chancery_record::{EntryValue, KEY, Key, OPEN, OWNER, SCOPE, SHOWN, Token, record};
use chancery_resource::{Action as A, Method as M, Op, Permit::UserStore, Reach, Reply, Shape, Unique};

use crate::{GroupId, InstanceId, group::GROUP};

record! {
    /// A key and value entry of a group.
    #[de("Eintrag einer Gruppe", "Einträge von Gruppen")]
    pub struct GroupMetadata {
        /// The user store that the group is in.
        instance_id: InstanceId = SCOPE,
        /// The group.
        #[de("Gruppe")]
        group_id: GroupId = OWNER,
        /// The key of the entry, unique in the group. It is case-sensitive.
        #[de(_, "Der Schlüssel des Eintrags, eindeutig in der Gruppe. Groß- und Kleinschreibung wird unterschieden.")]
        key: Key = KEY,
        /// Its value.
        value: Option<EntryValue> = OPEN,
        /// Concurrency token. It changes with every write to the entry.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of group metadata.
pub static GROUP_METADATA: Shape =
    Shape::of::<GroupMetadata>("GroupMetadata", "group_metadata", Reach::Store)
        .owned(&GROUP, "group_rid")
        .open()
        .unique(&[Unique::new("group_metadata__group_rid__key", &[GroupMetadata::KEY.field()])]);

const ALL: &str = "/administration/Group/{groupId}/GroupMetadata";
const EARLIER: &str = "/administration/Group/{groupId}/GroupMetadata/groupId";
const ONE: &str = "/administration/Group/{groupId}/GroupMetadata/{key}";

const fn op(name: &'static str, method: M, path: &'static str, action: A, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &GROUP_METADATA, action, summary)
}

/// The operations on group metadata.
pub static OPERATIONS: &[Op] = &[
    op("GetGroupMetadataByGroupId", M::Get, ALL, A::List, "Lists the entries of a group."),
    op(
        "GetGroupMetadataByGroupIdEarlier",
        M::Get,
        EARLIER,
        A::List,
        "Lists the entries of a group, at its path of release 3.0.",
    ),
    op("CreateGroupMetadata", M::Post, ALL, A::Create, "Creates an entry.").answering(200, Reply::One),
    op("GetGroupMetadata", M::Get, ONE, A::Read, "Reads an entry."),
    op("UpdateGroupMetadata", M::Put, ONE, A::Replace, "Replaces an entry's value."),
    op("PatchGroupMetadata", M::Patch, ONE, A::Patch, "Changes an entry's value."),
    op("DeleteGroupMetadata", M::Delete, ONE, A::Delete, "Deletes an entry."),
];
