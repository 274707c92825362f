//! The SCIM representation of users and groups: the resources of version 2 with other members. Rules, audit entries,
//! events and quarantine are the resources'.

use std::sync::LazyLock;

use chancery_application::{APPLICATION_GROUP, APPLICATION_USER, ApplicationGroup, ApplicationUser};
use chancery_record::{Access, Column, Field, Json};
use chancery_resource::{Call, Method, Op, Pairs, Relation, Shape};
use chancery_scim::{GROUP, Patch, ResourceType, ScimError, Target, USER, read_resource};
use chancery_userstore::{
    group::{GROUP as STORE_GROUP, Group},
    user::{USER as STORE_USER, User},
    user_profile::USER_PROFILE,
};

/// A resource type at a target.
#[derive(Clone, Copy)]
pub struct Form {
    /// The type.
    pub of: &'static ResourceType,
    /// The target.
    pub target: Target,
    /// The table and fields.
    pub shape: &'static Shape,
}

impl Form {
    /// The form of a call.
    pub fn of(call: &Call) -> Self {
        Self::of_shape(call.request.op.shape)
    }

    /// The forms of users and of groups at a target.
    pub fn at(target: Target) -> [Self; 2] {
        let [users, groups] = Views::at(target);
        [(&USER, users), (&GROUP, groups)].map(|(of, views)| Self { of, target, shape: &views.whole })
    }

    /// The form of a shape.
    pub fn of_shape(shape: &'static Shape) -> Self {
        let is = |other: &Shape| shape.table == other.table;
        let target = if is(&STORE_USER) || is(&STORE_GROUP) { Target::Store } else { Target::Provider };
        let of = if is(&STORE_USER) || is(&APPLICATION_USER) { &USER } else { &GROUP };
        Self { of, target, shape }
    }

    /// Parses the body of an operation, to validate it.
    ///
    /// # Errors
    /// The body is invalid, or above a limit.
    pub fn check_body(self, op: &Op, body: &Json) -> Result<(), ScimError> {
        if op.method == Method::Patch {
            return Patch::read(self.of, self.target, body).map(|_| ());
        }
        read_resource(self.of, self.target, body).map(|_| ())
    }

    /// Whether it is about users.
    pub fn is_of_users(self) -> bool {
        std::ptr::eq(self.of, &raw const USER)
    }

    /// Whether the target stores profile entries.
    pub fn stores_entries(self) -> bool {
        self.target == Target::Store && self.is_of_users()
    }

    /// The shape for operations of this method.
    pub fn shape_for(self, method: Method) -> &'static Shape {
        let [users, groups] = Views::at(self.target);
        let views = if self.is_of_users() { users } else { groups };
        if method == Method::Get { &views.shown } else { &views.whole }
    }
}

/// A resource as directories see it, for writing and for reading.
struct Views {
    /// With all audited fields, for operations that write.
    whole: Shape,
    /// With the rendered fields only, for operations that read.
    shown: Shape,
}

impl Views {
    /// The views of users and of groups at a target.
    fn at(target: Target) -> [&'static Self; 2] {
        match target {
            Target::Store => [&STORE_USERS, &STORE_GROUPS],
            Target::Provider => [&PERSONS, &PLATFORM_GROUPS],
        }
    }
}

static STORE_USERS: LazyLock<Views> = LazyLock::new(|| {
    let writable = [
        User::EXTERNAL_UNIQUE_IDENTIFIER.field(),
        User::LOGIN_NAME.field(),
        User::FIRST_NAME.field(),
        User::LAST_NAME.field(),
        User::EMAIL_ADDRESS.field(),
        User::EMAIL_ADDRESS_CONFIRMED.field(),
        User::PHONE_NUMBER.field(),
        User::MIDDLE_NAME.field(),
        User::NICKNAME.field(),
        User::PROFILE.field(),
        User::PICTURE.field(),
        User::ZONEINFO.field(),
        User::LOCALE.field(),
        User::IS_USER_ACTIVE.field(),
        User::SCIM_OWNER.field(),
        User::SCIM_EXTRA.field(),
    ];
    // both are for filters; responses read them as related data
    let groups = STORE_USER.relation(User::MEMBER_OF_GROUPS.name).copied();
    let entries = Relation::new(
        "userProfiles",
        "The profile entries of the user.",
        Pairs {
            table: "(SELECT user_rid AS own, rid AS other FROM user_profile)",
            own: "own",
            other: "other",
        },
        &USER_PROFILE,
    );
    let relations: Vec<Relation> = groups.into_iter().chain([entries]).collect();
    views(&STORE_USER, &writable, &relations)
});

static STORE_GROUPS: LazyLock<Views> = LazyLock::new(|| {
    let writable =
        [Group::NAME.field(), Group::EXTERNAL_UNIQUE_IDENTIFIER.field(), Group::SCIM_OWNER.field()];
    let sets = [Group::MEMBER_USERS, Group::MEMBER_GROUPS]
        .into_iter()
        .filter_map(|relation| STORE_GROUP.relation(relation.name));
    let relations: Vec<Relation> = sets.copied().collect();
    views(&STORE_GROUP, &writable, &relations)
});

static PERSONS: LazyLock<Views> = LazyLock::new(|| {
    let writable = [
        ApplicationUser::EXTERNAL_ID.field(),
        ApplicationUser::USER_NAME.field(),
        ApplicationUser::FIRST_NAME.field(),
        ApplicationUser::LAST_NAME.field(),
        ApplicationUser::EMAIL_ADDRESS.field(),
        ApplicationUser::ORGANIZATIONAL_UNIT.field(),
        ApplicationUser::PICTURE.field(),
        ApplicationUser::MANAGER_ID.field(),
        ApplicationUser::IS_ACTIVE.field(),
        ApplicationUser::SUBSCRIPTION_ID.field(),
        ApplicationUser::IDP_INSTANCE_ID.field(),
    ];
    let groups = Relation::new(
        "memberOfGroups",
        "The groups that the person is in.",
        Pairs {
            table: "application_group_member",
            own: "application_user_rid",
            other: "application_group_rid",
        },
        &APPLICATION_GROUP,
    );
    views(&APPLICATION_USER, &writable, &[groups])
});

static PLATFORM_GROUPS: LazyLock<Views> = LazyLock::new(|| {
    let writable = [
        ApplicationGroup::NAME.field(),
        ApplicationGroup::PROVISIONED_NAME.field(),
        ApplicationGroup::EXTERNAL_ID.field(),
        ApplicationGroup::SUBSCRIPTION_ID.field(),
        ApplicationGroup::IDP_INSTANCE_ID.field(),
    ];
    let users = Relation::new(
        "memberUsers",
        "The persons in the group.",
        Pairs {
            table: "application_group_member",
            own: "application_group_rid",
            other: "application_user_rid",
        },
        &APPLICATION_USER,
    );
    views(&APPLICATION_GROUP, &writable, &[users])
});

/// The same rows with only these fields writable by a directory, and these relations.
fn views(whole: &'static Shape, writable: &[&'static Field], relations: &[Relation]) -> Views {
    let view = |reads: bool| {
        let fields = whole.fields.iter().map(|field| {
            let is_writable = writable.iter().any(|one| one.is(field));
            let is_shown = is_writable || field.access.key || field.is_token();
            let access = Access {
                create: is_writable,
                put: is_writable,
                patch: is_writable,
                shown: is_shown,
                audited: field.access.audited || field.access.shown,
                column: if reads && !is_shown { Column::Unstored } else { field.access.column },
                ..field.access
            };
            field.with(field.kind, access)
        });
        whole.legacy_view(fields.collect(), relations.to_vec())
    };
    Views { whole: view(false), shown: view(true) }
}
