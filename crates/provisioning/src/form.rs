//! The forms in which directories see users and groups: the resources of version 2 with other members, and the operations
//! on them. Rules, audit entries, events and quarantine are the resources'.

use std::sync::LazyLock;

use chancery_application::{APPLICATION_GROUP, APPLICATION_USER, ApplicationGroup, ApplicationUser};
use chancery_record::{Access, Column, Field, Json};
use chancery_resource::{
    Action, Body, Call, Custom, JsonForm, Method, Op, Permit, Purpose, Relation, Reply, Run, Shape,
};
use chancery_scim::{GROUP, Home, Patch, Refusal, ResourceType, USER, read_resource};
use chancery_userstore::{
    group::{GROUP as STORE_GROUP, Group},
    user::{USER as STORE_USER, User},
    user_profile::USER_PROFILE,
};
use serde_json::json;

use crate::{groups, list, users};

/// A type of resources at a home.
#[derive(Clone, Copy)]
pub struct Form {
    /// The type.
    pub of: &'static ResourceType,
    /// The home.
    pub home: Home,
    /// The rows.
    pub shape: &'static Shape,
}

/// The operations on a type of resources at a home.
pub struct Operations {
    pub form: Form,
    pub list: Op,
    pub read: Op,
    pub create: Op,
    pub replace: Op,
    pub patch: Op,
    pub delete: Op,
    /// What tells a change after its commit, where that is not told within it.
    pub changed: Option<Op>,
}

/// The user store's home.
pub static STORE: LazyLock<[Operations; 2]> = LazyLock::new(|| {
    [
        operations((&USER, Home::Store), &STORE_USERS, &USERS),
        operations((&GROUP, Home::Store), &STORE_GROUPS, &GROUPS),
    ]
});

/// The home of an identity provider instance.
pub static PROVIDER: LazyLock<[Operations; 2]> = LazyLock::new(|| {
    [
        operations((&USER, Home::Provider), &PERSONS, &USERS),
        operations((&GROUP, Home::Provider), &PLATFORM_GROUPS, &GROUPS),
    ]
});

/// The forms of all resources that are provisioned.
pub fn shapes() -> impl Iterator<Item = &'static Shape> {
    STORE.iter().chain(PROVIDER.iter()).map(|all| all.form.shape)
}

/// The operations of people on the user whom they are.
pub struct OwnOperations {
    pub read: Op,
    pub replace: Op,
    pub patch: Op,
}

/// Those at user stores.
pub static OWN: LazyLock<OwnOperations> = LazyLock::new(|| {
    let op = |name, method, custom| {
        let shape = STORE_USERS.of(method);
        Op::new(name, method, "", Permit::Person, shape, Action::Custom(custom), "")
            .answering(200, Reply::Json(&BODY))
    };
    OwnOperations {
        read: op("ScimGetMe", Method::Get, Custom::reading(users::me::read).replying(Reply::Json(&BODY))),
        replace: op("ScimReplaceMe", Method::Put, taking(users::me::replace)),
        patch: op("ScimPatchMe", Method::Patch, taking(users::me::patch)),
    }
});

/// All paths below an instance, each with an operation there.
pub fn paths() -> impl Iterator<Item = (String, &'static Op)> {
    let of_many = STORE.iter().chain(PROVIDER.iter()).flat_map(|all| {
        let (many, one) = (all.form.of.endpoint.to_owned(), format!("{}/{{id}}", all.form.of.endpoint));
        let of_one = [&all.read, &all.replace, &all.patch, &all.delete];
        [(many.clone(), &all.list), (many, &all.create)].into_iter().chain(of_one.map(|op| (one.clone(), op)))
    });
    of_many.chain([&OWN.read, &OWN.replace, &OWN.patch].map(|op| ("/Me".to_owned(), op)))
}

impl Operations {
    /// Those of a home, users first.
    pub fn at(home: Home) -> &'static [Self; 2] {
        match home {
            Home::Store => &STORE,
            Home::Provider => &PROVIDER,
        }
    }
}

impl Form {
    /// What the operation of a call is about.
    pub fn of(call: &Call) -> Self {
        Self::of_shape(call.request.op.shape)
    }

    /// What a form's rows are.
    pub fn of_shape(shape: &'static Shape) -> Self {
        let is = |other: &Shape| shape.table == other.table;
        let home = if is(&STORE_USER) || is(&STORE_GROUP) { Home::Store } else { Home::Provider };
        let of = if is(&STORE_USER) || is(&APPLICATION_USER) { &USER } else { &GROUP };
        Self { of, home, shape }
    }

    /// Reads the body of an operation, to learn whether it can be read.
    ///
    /// # Errors
    /// What is wrong with it; it would be too much work.
    pub fn check_body(self, op: &Op, body: &Json) -> Result<(), Refusal> {
        if op.method == Method::Patch {
            return Patch::read(self.of, self.home, body).map(|_| ());
        }
        read_resource(self.of, self.home, body).map(|_| ())
    }

    /// Whether it is about users.
    pub fn is_of_users(self) -> bool {
        std::ptr::eq(self.of, &raw const USER)
    }
}

/// A resource as directories see it.
struct Views {
    /// With all that is audited, for those that write.
    whole: Shape,
    /// With what is shown alone, for those that read.
    shown: Shape,
}

impl Views {
    /// The one that an operation by this method needs.
    fn of(&self, method: Method) -> &Shape {
        if method == Method::Get { &self.shown } else { &self.whole }
    }
}

static STORE_USERS: LazyLock<Views> = LazyLock::new(|| {
    let open = [
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
    // filters look for both; what answers tell of them is read beside the rows
    let groups = STORE_USER.relation(User::MEMBER_OF_GROUPS.name).copied();
    let entries = Relation::new(
        "userProfiles",
        "What else is known of the user.",
        ("(SELECT user_rid AS own, rid AS other FROM user_profile)", "own", "other"),
        &USER_PROFILE,
    );
    let relations: Vec<Relation> = groups.into_iter().chain([entries]).collect();
    views(&STORE_USER, &open, &relations)
});

static STORE_GROUPS: LazyLock<Views> = LazyLock::new(|| {
    let open = [Group::NAME.field(), Group::EXTERNAL_UNIQUE_IDENTIFIER.field(), Group::SCIM_OWNER.field()];
    let sets = [Group::MEMBER_USERS, Group::MEMBER_GROUPS]
        .into_iter()
        .filter_map(|relation| STORE_GROUP.relation(relation.name));
    let relations: Vec<Relation> = sets.copied().collect();
    views(&STORE_GROUP, &open, &relations)
});

static PERSONS: LazyLock<Views> = LazyLock::new(|| {
    let open = [
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
    views(&APPLICATION_USER, &open, &[groups])
});

static PLATFORM_GROUPS: LazyLock<Views> = LazyLock::new(|| {
    let open = [
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
    views(&APPLICATION_GROUP, &open, &[users])
});

/// The same rows with these fields alone, which a directory writes, and these sets.
fn views(whole: &'static Shape, open: &[&'static Field], relations: &[Relation]) -> Views {
    let view = |reads: bool| {
        let fields = whole.fields.iter().map(|field| {
            let is_open = open.iter().any(|one| one.is(field));
            let is_shown = is_open || field.access.key || field.is_token();
            let access = Access {
                create: is_open,
                put: is_open,
                patch: is_open,
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

/// The functions of a type of resources, and what its operations are called.
struct Functions {
    names: [&'static str; 6],
    read: Custom,
    create: Custom,
    replace: Custom,
    patch: Custom,
    delete: Run,
    changed: Option<(&'static str, Custom)>,
}

/// Any resource, as the schemas describe it.
pub static BODY: JsonForm =
    JsonForm { name: "ScimResource", schema: || json!({ "type": "object", "description": "See /Schemas." }) };

const fn taking(run: Run) -> Custom {
    Custom::writing(run).taking(Body::Json(&BODY)).replying(Reply::Json(&BODY)).by_rows()
}

/// The same, which may hash a password.
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
    create: taking(groups::create),
    replace: taking(groups::replace),
    patch: taking(groups::patch),
    delete: groups::delete,
    changed: Some(("ScimGetChangedGroup", Custom::listing(groups::changed).replying(Reply::Json(&BODY)))),
};

/// The role that an access token needs; a directory's own token has rights instead.
const PERMIT: Permit = Permit::UserStore;

fn operations(
    (of, home): (&'static ResourceType, Home),
    views: &'static Views,
    with: &Functions,
) -> Operations {
    let form = Form { of, home, shape: &views.whole };
    let [list, read, create, replace, patch, delete] = with.names;
    let op = |name, method, custom, status| {
        let reply = if status == 204 { Reply::Empty } else { Reply::Json(&BODY) };
        let shape = views.of(method);
        Op::new(name, method, "", PERMIT, shape, Action::Custom(custom), "").answering(status, reply)
    };
    Operations {
        form,
        list: op(list, Method::Get, Custom::listing(list::list).replying(Reply::Json(&BODY)), 200),
        read: op(read, Method::Get, with.read, 200),
        create: op(create, Method::Post, with.create, 201),
        replace: op(replace, Method::Put, with.replace, 200),
        patch: op(patch, Method::Patch, with.patch, 200),
        delete: op(
            delete,
            Method::Delete,
            Custom::writing(with.delete).replying(Reply::Empty).by_rows(),
            204,
        ),
        changed: with.changed.map(|(name, custom)| op(name, Method::Get, custom, 200)),
    }
}
