//! Groups.

use super::{
    Attribute,
    Mapping::{Field, Sets},
    ResourceType, Returned, Schema, complex, reference, text,
};

/// Groups.
pub static GROUP: ResourceType =
    ResourceType { name: "Group", endpoint: "/Groups", about: "Groups", core: &CORE, extensions: &[] };

static CORE: Schema = Schema {
    urn: "urn:ietf:params:scim:schemas:core:2.0:Group",
    name: "Group",
    about: "A named set of people and groups",
    attributes: &[
        text("displayName", "The group's name; case does not count.")
            .required()
            .unique()
            .at_both(Field("name")),
        complex("members", "Who and what is in the group.", MEMBER).many().at(
            Sets { sets: &[("memberUsers", "User")], written: true },
            Sets { sets: &[("memberUsers", "User"), ("memberGroups", "Group")], written: true },
        ),
    ],
};

const MEMBER: &[Attribute] = &[
    text("value", "The member's id.").required().exact(),
    reference("$ref", "The member's address.", &["User", "Group"]),
    text("display", "The member's name.").read_only_in_schema().returned(Returned::Request),
    text("type", "User or Group."),
];
