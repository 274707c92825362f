//! The user store service, version 1.

use std::sync::LazyLock;

use chancery_record::{Json, OPEN, Timestamp, record};
use chancery_resource::{
    Answer, BodyForm, Call, Method, Op, Pairs, Problem, Relation, Service, Shape, Tx, answer_with,
    check_if_match, key_of, load,
};
use chancery_userstore::{
    SERVICE as SUCCESSOR,
    group::{GROUP as NEW_GROUP, Group, OPERATIONS as GROUP_OPERATIONS},
    group_metadata::{GROUP_METADATA as NEW_METADATA, GroupMetadata, OPERATIONS as METADATA_OPERATIONS},
    password::{Password, ResetToken},
    user::{OPERATIONS as USER_OPERATIONS, USER as NEW_USER, User},
    user_profile::{OPERATIONS as PROFILE_OPERATIONS, USER_PROFILE as NEW_PROFILE, UserProfile},
};

use crate::{
    form::{form, same, written},
    pattern::{Resource, pattern},
    special::{find, known_only, renamed, run_of},
};

static USER: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &NEW_USER,
        &[
            same(User::ID),
            same(User::EXTERNAL_UNIQUE_IDENTIFIER),
            same(User::LOGIN_NAME),
            same(User::FIRST_NAME),
            same(User::LAST_NAME),
            same(User::EMAIL_ADDRESS),
            same(User::EMAIL_ADDRESS_CONFIRMED),
            same(User::USER_VALID_FROM),
            same(User::USER_VALID_TO),
            same(User::IS_USER_ACTIVE),
            same(User::IS_USER_LOCK_ENABLED),
            same(User::IS_USER_LOCKED),
            same(User::FAILED_USER_LOGIN_ATTEMPTS),
            same(User::FAILED_TEMPORARY_LOCK_ATTEMPTS),
            same(User::LOCKED_UNTIL),
            same(User::PASSWORD_NEVER_EXPIRES),
            same(User::CAN_CHANGE_PASSWORD_ON_EXPIRATION),
            same(User::PASSWORD_EXPIRATION),
            same(User::IS_INITIAL_PASSWORD),
            same(User::IS_PASSWORD_CHANGE_REQUIRED),
            same(User::INSTANCE_ID),
        ],
        &[written("memberOfGroups")],
        vec![
            Relation::new(
                "userProfiles",
                "The profile entries of the user.",
                Pairs {
                    table: "(SELECT user_rid AS own, rid AS other FROM user_profile)",
                    own: "own",
                    other: "other",
                },
                &NEW_PROFILE,
            )
            .showing(const { &[UserProfile::KEY.field(), UserProfile::VALUE.field()] }),
        ],
    )
});

static GROUP: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &NEW_GROUP,
        &[same(Group::ID), same(Group::NAME), same(Group::INSTANCE_ID)],
        &[written("memberUsers"), written("parentGroups"), written("memberGroups")],
        vec![
            Relation::new(
                "metadata",
                "The metadata entries of the group.",
                Pairs {
                    table: "(SELECT group_rid AS own, rid AS other FROM group_metadata)",
                    own: "own",
                    other: "other",
                },
                &NEW_METADATA,
            )
            .showing(const { &[GroupMetadata::KEY.field(), GroupMetadata::VALUE.field()] }),
        ],
    )
});

static METADATA: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &NEW_METADATA,
        &[
            same(GroupMetadata::GROUP_ID),
            same(GroupMetadata::KEY),
            same(GroupMetadata::VALUE),
            same(GroupMetadata::INSTANCE_ID),
        ],
        &[],
        Vec::new(),
    )
});

static PROFILE: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &NEW_PROFILE,
        &[
            same(UserProfile::USER_ID),
            same(UserProfile::KEY),
            same(UserProfile::VALUE),
            same(UserProfile::INSTANCE_ID),
        ],
        &[],
        Vec::new(),
    )
});

fn resources() -> Vec<Op> {
    let group = Resource {
        name: "Group",
        shape: &GROUP,
        path: "/administration/Group",
        successors: GROUP_OPERATIONS,
        is_partly_added: false,
    };
    let metadata = Resource {
        name: "GroupMetadata",
        shape: &METADATA,
        path: "/administration/Group/{groupId}/GroupMetadata",
        successors: METADATA_OPERATIONS,
        is_partly_added: false,
    };
    let user = Resource {
        name: "User",
        shape: &USER,
        path: "/administration/User",
        successors: USER_OPERATIONS,
        is_partly_added: false,
    };
    let profile = Resource {
        name: "UserProfile",
        shape: &PROFILE,
        path: "/administration/user/{userId}/UserProfile",
        successors: PROFILE_OPERATIONS,
        is_partly_added: false,
    };
    let mut operations = Vec::new();
    for resource in [&group, &metadata, &user, &profile] {
        operations.extend(pattern(resource));
    }
    operations.extend(second_list(&metadata, "/groupId"));
    operations.extend(second_list(&profile, "/userId"));
    operations
}

/// The list of an owner's entries at its second path.
pub fn second_list(resource: &Resource, end: &str) -> Option<Op> {
    let list = pattern(resource).into_iter().next()?;
    let (name, path) = (format!("{}Again", list.name), format!("{}{end}", list.path));
    Some(Op { name: name.leak(), path: path.leak(), ..list })
}

record! {
    /// An initial password, which the user must change.
    pub struct InitialPassword {
        /// Time until which the password is valid. Without it, the store's option InitialPasswordExpiration applies.
        expiration: Option<Timestamp> = OPEN,
        /// The password.
        password: Password = OPEN,
    }
}

record! {
    /// A new password.
    pub struct ResetPassword {
        /// The password.
        password: Password = OPEN,
    }
}

record! {
    /// A new password, with a reset token as proof.
    pub struct ResetPasswordWithToken {
        /// The reset token that was sent.
        token: ResetToken = OPEN,
        /// The new password.
        password: Password = OPEN,
    }
}

static INITIAL: BodyForm = BodyForm::of::<InitialPassword>("InitialPassword");
static RESET: BodyForm = BodyForm::of::<ResetPassword>("ResetPassword");
static WITH_TOKEN: BodyForm = BodyForm::of::<ResetPasswordWithToken>("ResetPasswordWithToken");

type Outcome = Result<Answer, Problem>;

fn initial(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    let names = [("password", "password"), ("expiration", "passwordExpiration")];
    renamed(call, tx, &names, |_, value| value.clone())
}

fn reset(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    renamed(call, tx, &[("password", "newPassword"), ("token", "token")], |_, value| value.clone())
}

fn change(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    let names = ["oldPassword", "newPassword"].map(|name| (name, name));
    renamed(call, tx, &names, |_, value| value.clone())
}

/// Sets a user's state. A body without any of its members changes nothing.
fn state(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    let names = ["isUserActive", "isUserLocked", "lockedUntil", "concurrencyToken"];
    let has_member = |body: &Json| match body {
        Json::Object(_) => names[..3].iter().any(|name| !matches!(body.get(name), None | Some(Json::Null))),
        _ => true,
    };
    if call.request.body.as_ref().is_some_and(has_member) {
        return renamed(call, tx, &names.map(|name| (name, name)), |_, value| value.clone());
    }
    let shape = call.request.op.shape;
    let stored = load(&call.context, tx, shape, None, key_of(call, shape)?)?;
    check_if_match(call, tx, shape, &stored)?;
    answer_with(call, tx, shape, &stored)
}

/// Synchronizes, without the result in the response. Since it is a GET that changes data, the response must not be
/// cached.
fn synchronize(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    let run = run_of(call)?;
    let mut answer = run(call, tx)?;
    if answer.is_final() {
        call.answer.bytes.clear();
        answer.headers.push(("cache-control", "no-store".to_owned()));
    }
    Ok(answer)
}

fn special_operations() -> Vec<Op> {
    let successor = |name: &str| find(&SUCCESSOR, name);
    let of_user = |name: &str| successor(name).in_form(&USER);
    let of_group = |name: &str| successor(name).in_form(&GROUP);
    known_only([
        successor("GetAuditTrail"),
        successor("GetAuditTrails"),
        of_group("GetAllGroupMembershipFromGroup"),
        of_group("GetAllGroupMembershipFromUser"),
        of_group("SynchronizeAllGroups").run_by(synchronize).with_empty_reply(Method::Get),
        of_user("SynchronizeAllUsers").run_by(synchronize).with_empty_reply(Method::Get),
        of_user("GetUserByLoginName"),
        of_user("SetInitialPassword").run_by(initial).taking(&INITIAL),
        of_user("ResetInitialPasswordExpiration"),
        of_user("ResetPassword").run_by(reset).taking(&RESET),
        of_user("SendPasswordResetEmail"),
        of_user("ResetPasswordTokenRequest"),
        of_user("ResetPasswordTokenResponse").run_by(reset).taking(&WITH_TOKEN),
        of_user("ResetAccessFailedCount"),
        of_user("ChangePassword").run_by(change),
        of_user("SetUserState").run_by(state).optionally(),
        of_user("ChangePasswordPublic").run_by(change),
        of_user("ResetPasswordTokenResponsePublic").run_by(reset).taking(&WITH_TOKEN),
    ])
}

/// The user store service, version 1.
pub static SERVICE: LazyLock<Service> = LazyLock::new(|| Service {
    name: "userstore",
    version: "v1",
    title: "Chancery User Store Service, deprecated version 1",
    base: "/api/userstore/v1/{userstore}",
    is_deprecated: true,
    operations: vec![&*resources().leak(), &*special_operations().leak()].leak(),
});
