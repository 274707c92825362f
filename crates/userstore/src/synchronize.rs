//! Synchronizing: the platform's users and groups follow those of the store.

use chancery_application::{APPLICATION_GROUP, APPLICATION_USER, Mirror, SynchronizeResult, synchronize};
use chancery_resource::{
    Action as A, BodyForm, Custom, Method as M, Op, Permit::UserStore, Reply, Run, Shape,
};

use crate::{group::GROUP, user::USER};

/// How users are mirrored.
pub static USERS: Mirror = Mirror {
    from: &USER,
    to: &APPLICATION_USER,
    columns: &["first_name", "last_name", "email_address", "picture"],
};

static GROUPS: Mirror = Mirror { from: &GROUP, to: &APPLICATION_GROUP, columns: &["name"] };

static RESULT: BodyForm = BodyForm::of::<SynchronizeResult>("SynchronizeResult");

/// It changes the configuration, not the store.
const fn op(
    name: &'static str,
    path: &'static str,
    shape: &'static Shape,
    run: Run,
    summary: &'static str,
) -> Op {
    let custom = Custom::writing(run).replying(Reply::Form(&RESULT));
    Op::new(name, M::Post, path, UserStore, shape, A::Custom(custom), summary).beside()
}

/// Its operations.
pub static OPERATIONS: &[Op] = &[
    op(
        "SynchronizeAllUsers",
        "/administration/User/synchronize",
        &USER,
        |call, tx| synchronize(call, tx, &USERS),
        "Makes the platform's users the same as those of the store, some hundred in each transaction. A \
         call that breaks off is simply made again.",
    ),
    op(
        "SynchronizeAllGroups",
        "/administration/Group/synchronize",
        &GROUP,
        |call, tx| synchronize(call, tx, &GROUPS),
        "Makes the platform's groups the same as those of the store, some hundred in each transaction. A \
         call that breaks off is simply made again.",
    ),
];
