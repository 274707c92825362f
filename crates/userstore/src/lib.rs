//! The user store service, version 2: one folder for each resource.

#![warn(missing_docs)]

pub mod answers;
pub mod attempt;
pub mod audit_trail;
pub mod event;
pub mod event_subscription;
pub mod explain;
pub mod group;
pub mod group_metadata;
pub mod passkey;
pub mod password;
pub mod password_removal;
pub mod quarantine_restore;
pub mod scim_token;
pub mod security_contact;
pub mod sms;
pub mod synchronize;
pub mod user;
pub mod user_image;
pub mod user_profile;
pub mod user_state;

use chancery_record::id_types;
use chancery_resource::Service;

id_types! {
    /// The id of a user store instance.
    InstanceId,
    /// The id of a user.
    UserId,
    /// The id of a group.
    GroupId,
}

/// The user store service, version 2.
pub static SERVICE: Service = Service {
    name: "userstore",
    version: "v2",
    title: "Chancery User Store Service",
    is_deprecated: false,
    base: "/api/userstore/v2/{userstore}",
    operations: &[
        user::OPERATIONS,
        user_state::OPERATIONS,
        user::STATES_OPERATIONS,
        explain::OPERATIONS,
        password::OPERATIONS,
        password_removal::OPERATIONS,
        user_image::OPERATIONS,
        security_contact::OPERATIONS,
        passkey::OPERATIONS,
        passkey::OVERVIEW_OPERATIONS,
        passkey::PROGRESS_OPERATIONS,
        passkey::ACCESS_PASS_OPERATIONS,
        passkey::RECOVERY_OPERATIONS,
        passkey::EVENT_OPERATIONS,
        group::OPERATIONS,
        group_metadata::OPERATIONS,
        synchronize::OPERATIONS,
        user_profile::OPERATIONS,
        &audit_trail::OPERATIONS,
        event::OPERATIONS,
        &event_subscription::OPERATIONS,
        &event_subscription::MORE,
        &scim_token::OPERATIONS,
        scim_token::MORE,
    ],
};
