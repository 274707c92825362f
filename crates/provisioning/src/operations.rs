//! The operations on users and groups at each target.

use std::sync::LazyLock;

use chancery_resource::{Action, Body, Custom, JsonForm, Method, Op, Permit, Purpose, Reply, Run, Shape};
use chancery_scim::Target;
use serde_json::json;

use crate::{form::Form, groups, list, users};

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
pub static STORE: LazyLock<[Operations; 2]> = LazyLock::new(|| operations_at(Target::Store));

/// The target of an identity provider instance.
pub static PROVIDER: LazyLock<[Operations; 2]> = LazyLock::new(|| operations_at(Target::Provider));

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
    let [users, _] = Form::at(Target::Store);
    let op = |name, method, custom| {
        let shape = users.shape_for(method);
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

fn operations_at(target: Target) -> [Operations; 2] {
    let [users, groups] = Form::at(target);
    [operations(users, &USERS), operations(groups, &GROUPS)]
}

fn operations(form: Form, functions: &Functions) -> Operations {
    let [list, read, create, replace, patch, delete] = functions.names;
    let op = |name, method, custom, status| {
        let reply = if status == 204 { Reply::Empty } else { Reply::Json(&BODY) };
        let shape = form.shape_for(method);
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
