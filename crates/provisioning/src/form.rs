//! The SCIM representation of users and groups: the resources of version 2 with other members, and the operations on
//! them. Rules, audit entries, events and quarantine are the resources'.

use std::sync::LazyLock;

use chancery_application::{APPLICATION_GROUP, APPLICATION_USER, ApplicationGroup, ApplicationUser};
use chancery_record::{Access, Column, Field, Json};
use chancery_resource::{
    Action, Body, Call, Custom, JsonForm, Method, Op, Permit, Purpose, Relation, Reply, Run, Shape,
};
use chancery_scim::{GROUP, Patch, ResourceType, ScimError, Target, USER, read_resource};
use chancery_userstore::{
    group::{GROUP as STORE_GROUP, Group},
    user::{USER as STORE_USER, User},
    user_profile::USER_PROFILE,
};
use serde_json::json;

use crate::{groups, list, users};

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

/// The operations on a resource type at a target.
pub struct Operations {
    pub form: Form,
    pub list: Op,
    pub read: Op,
    pub create: Op,
    pub replace: Op,
    pub patch: Op,
    pub delete: Op,
    /// Reads the resource after the commit of a change, if the change does not return it itself.
    pub changed: Option<Op>,
}

/// The target of a user store.
pub static STORE: LazyLock<[Operations; 2]> = LazyLock::new(|| {
    [
        operations((&USER, Target::Store), &STORE_USERS, &USERS),
        operations((&GROUP, Target::Store), &STORE_GROUPS, &GROUPS),
    ]
});

/// The target of an identity provider instance.
pub static PROVIDER: LazyLock<[Operations; 2]> = LazyLock::new(|| {
    [
        operations((&USER, Target::Provider), &PERSONS, &USERS),
        operations((&GROUP, Target::Provider), &PLATFORM_GROUPS, &GROUPS),
    ]
});

/// The shapes of all resources that are provisioned.
pub fn shapes() -> impl Iterator<Item = &'static Shape> {
    STORE.iter().chain(PROVIDER.iter()).map(|all| all.form.shape)
}

/// The operations of `/Me`.
pub struct MeOperations {
    pub read: Op,
    pub replace: Op,
    pub patch: Op,
}

/// The operations of `/Me` at user stores.
pub static ME: LazyLock<MeOperations> = LazyLock::new(|| {
    let op = |name, method, custom| {
        let shape = STORE_USERS.of(method);
        Op::new(name, method, "", Permit::Person, shape, Action::Custom(custom), "")
            .answering(200, Reply::Json(&BODY))
    };
    MeOperations {
        read: op("ScimGetMe", Method::Get, Custom::reading(users::me::read).replying(Reply::Json(&BODY))),
        replace: op("ScimReplaceMe", Method::Put, writing(users::me::replace)),
        patch: op("ScimPatchMe", Method::Patch, writing(users::me::patch)),
    }
});

/// All paths below an instance, each with an operation on it.
pub fn paths() -> impl Iterator<Item = (String, &'static Op)> {
    let of_many = STORE.iter().chain(PROVIDER.iter()).flat_map(|all| {
        let (many, one) = (all.form.of.endpoint.to_owned(), format!("{}/{{id}}", all.form.of.endpoint));
        let of_one = [&all.read, &all.replace, &all.patch, &all.delete];
        [(many.clone(), &all.list), (many, &all.create)].into_iter().chain(of_one.map(|op| (one.clone(), op)))
    });
    of_many.chain([&ME.read, &ME.replace, &ME.patch].map(|op| ("/Me".to_owned(), op)))
}

impl Operations {
    /// The operations of a target, users first.
    pub fn at(target: Target) -> &'static [Self; 2] {
        match target {
            Target::Store => &STORE,
            Target::Provider => &PROVIDER,
        }
    }
}

impl Form {
    /// The form of a call.
    pub fn of(call: &Call) -> Self {
        Self::of_shape(call.request.op.shape)
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
}

/// A resource as directories see it, for writing and for reading.
struct Views {
    /// With all audited fields, for operations that write.
    whole: Shape,
    /// With the rendered fields only, for operations that read.
    shown: Shape,
}

impl Views {
    /// The shape for operations of this method.
    fn of(&self, method: Method) -> &Shape {
        if method == Method::Get { &self.shown } else { &self.whole }
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
        "What else is known of the user.",
        ("(SELECT user_rid AS own, rid AS other FROM user_profile)", "own", "other"),
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
        ("application_group_member", "application_user_rid", "application_group_rid"),
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
        ("application_group_member", "application_group_rid", "application_user_rid"),
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

/// The functions and names of the operations on a resource type.
struct Functions {
    names: [&'static str; 6],
    read: Custom,
    create: Custom,
    replace: Custom,
    patch: Custom,
    delete: Run,
    changed: Option<(&'static str, Custom)>,
}

/// A resource, as the schemas describe it.
pub static BODY: JsonForm =
    JsonForm { name: "ScimResource", schema: || json!({ "type": "object", "description": "See /Schemas." }) };

const fn writing(run: Run) -> Custom {
    Custom::writing(run).taking(Body::Json(&BODY)).replying(Reply::Json(&BODY)).by_rows()
}

/// As [`writing`], but may hash a password.
const fn hashing(run: Run) -> Custom {
    Custom::working(Purpose::Password, run).taking(Body::Json(&BODY)).replying(Reply::Json(&BODY)).by_rows()
}

const USERS: Functions = Functions {
    names: [
        "ScimListUsers",
        "ScimGetUser",
        "ScimCreateUser",
        "ScimReplaceUser",
        "ScimPatchUser",
        "ScimDeleteUser",
    ],
    read: Custom::reading(users::read).replying(Reply::Json(&BODY)),
    create: hashing(users::create),
    replace: hashing(users::replace),
    patch: hashing(users::patch),
    delete: users::delete,
    changed: None,
};
const GROUPS: Functions = Functions {
    names: [
        "ScimListGroups",
        "ScimGetGroup",
        "ScimCreateGroup",
        "ScimReplaceGroup",
        "ScimPatchGroup",
        "ScimDeleteGroup",
    ],
    read: Custom::listing(groups::read).replying(Reply::Json(&BODY)),
    create: writing(groups::create),
    replace: writing(groups::replace),
    patch: writing(groups::patch),
    delete: groups::delete,
    changed: Some(("ScimGetChangedGroup", Custom::listing(groups::changed).replying(Reply::Json(&BODY)))),
};

/// The permit that an access token needs; a directory's own token has rights instead.
const PERMIT: Permit = Permit::UserStore;

fn operations(
    (of, target): (&'static ResourceType, Target),
    views: &'static Views,
    functions: &Functions,
) -> Operations {
    let form = Form { of, target, shape: &views.whole };
    let [list, read, create, replace, patch, delete] = functions.names;
    let op = |name, method, custom, status| {
        let reply = if status == 204 { Reply::Empty } else { Reply::Json(&BODY) };
        let shape = views.of(method);
        Op::new(name, method, "", PERMIT, shape, Action::Custom(custom), "").answering(status, reply)
    };
    Operations {
        form,
        list: op(list, Method::Get, Custom::listing(list::list).replying(Reply::Json(&BODY)), 200),
        read: op(read, Method::Get, functions.read, 200),
        create: op(create, Method::Post, functions.create, 201),
        replace: op(replace, Method::Put, functions.replace, 200),
        patch: op(patch, Method::Patch, functions.patch, 200),
        delete: op(
            delete,
            Method::Delete,
            Custom::writing(functions.delete).replying(Reply::Empty).by_rows(),
            204,
        ),
        changed: functions.changed.map(|(name, custom)| op(name, Method::Get, custom, 200)),
    }
}
