//! An administrator confirms the settings of an external identity provider after reviewing them.

use chancery_resource::{
    Action as A, Answer, Call, Custom, Method as M, Op, Permit::SubscriptionAdmin, Problem, Reply, Tx,
    advance, key_of, load,
};

use super::{IDP_INSTANCE, IdpInstance};

/// The operation that confirms the settings of an instance.
pub static OPERATIONS: &[Op] = &[Op::new(
    "ConfirmIdpInstanceSettings",
    M::Post,
    "/IdpInstance/{id}/settings/confirm",
    SubscriptionAdmin,
    &IDP_INSTANCE,
    A::Custom(Custom::writing(confirm).replying(Reply::Empty)),
    "Declares that you have reviewed the settings, certificates and directory token of an external instance: from now on they \
     count as set by you. Required before people of the instance get a role that an actor who configured it lacks.",
)
.answering(204, Reply::Empty)
.sensitive()
.added()];

fn confirm(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = key_of(call, &IDP_INSTANCE)?;
    let instance = load(&call.context, tx, &IDP_INSTANCE, None, key)?;
    if instance.text(IdpInstance::STORE_NAME_KEY).is_some() {
        return Err(Problem::invalid(
            "The instance is a user store: only those of an external instance are confirmed.",
        ));
    }
    let mut values = instance.values.clone();
    IdpInstance::SETTINGS_CONFIRMED_BY.set(&mut values, call.context.actor)?;
    IdpInstance::SETTINGS_CONFIRMED_ON.set(&mut values, Some(call.context.now))?;
    advance(&call.context, tx, &IDP_INSTANCE, &instance, values, ("Modified", "settings-confirmed"))?;
    Ok(Answer::new(call.request.op.status))
}
