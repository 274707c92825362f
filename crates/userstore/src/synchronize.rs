//! Synchronizing the platform's users and groups with those of the store.

use chancery_application::{APPLICATION_GROUP, ApplicationGroup, Mirror, SynchronizeResult, synchronize};
use chancery_resource::{
    Action as A, BodyForm, Custom, Method as M, Op, Permit::UserStore, Reply, Run, Shape,
};

use crate::{
    group::{GROUP, Group},
    user::{MIRROR, USER},
};

static GROUPS: Mirror = Mirror {
    from: &GROUP,
    to: &APPLICATION_GROUP,
    fields: &[(Group::NAME.field(), ApplicationGroup::NAME.field())],
    subscription: ApplicationGroup::SUBSCRIPTION_ID.field(),
    instance: ApplicationGroup::IDP_INSTANCE_ID.field(),
};

static RESULT: BodyForm = BodyForm::of::<SynchronizeResult>("SynchronizeResult");

/// An operation that synchronizes. It changes the configuration, not the store.
const fn op(
    name: &'static str,
    path: &'static str,
    shape: &'static Shape,
    run: Run,
    summary: &'static str,
) -> Op {
    let custom = Custom::writing(run).replying(Reply::Form(&RESULT));
    Op::new(name, M::Post, path, UserStore, shape, A::Custom(custom), summary).outside_store()
}

/// The operations that synchronize.
pub static OPERATIONS: &[Op] = &[
    op(
        "SynchronizeAllUsers",
        "/administration/User/synchronize",
        &USER,
        |call, tx| synchronize(call, tx, &MIRROR),
        "Updates the platform's users to match those of the store, some hundred in each transaction. A call that is interrupted can simply be repeated.",
    ),
    op(
        "SynchronizeAllGroups",
        "/administration/Group/synchronize",
        &GROUP,
        |call, tx| synchronize(call, tx, &GROUPS),
        "Updates the platform's groups to match those of the store, some hundred in each transaction. A call that is interrupted can simply be repeated.",
    ),
];
