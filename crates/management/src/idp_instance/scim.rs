//! The token that a provisioning client shows to an instance (SCIM, RFC 7644).

use chancery_record::Value;
use chancery_resource::{
    Action as A, Answer, Call, Custom, Method as M, Op, Permit::SubscriptionAdmin, Problem, Reply, Tx, random,
};
use chancery_scim::token_of;

use super::{IDP_INSTANCE, IdpInstance, look_up::find};
use crate::{
    idp_type::FactoryType,
    option::{self, OptionRow},
};

/// The operations on provisioning tokens.
pub static OPERATIONS: &[Op] = &[Op::new(
    "CreateIdpInstanceScimToken",
    M::Post,
    "/IdpInstance/{idpInstance}/scim/token",
    SubscriptionAdmin,
    &IDP_INSTANCE,
    A::Custom(Custom::writing(make).replying(Reply::Empty)),
    "Makes a new SCIM token: it replaces the one before and is readable in the options ScimToken and ScimTokenId.",
)
.answering(204, Reply::Empty)];

fn make(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let instance = find(call, tx, &IDP_INSTANCE)?;
    if instance.text(IdpInstance::IDP_FACTORY_TYPE) != Some(FactoryType::OpenIdConnect.name()) {
        return Err(Problem::invalid("Only an instance of type OpenIdConnect has a SCIM token."));
    }
    let enabled = option::find(call, tx, instance.get(IdpInstance::ID)?.0, "ScimEnabled")?;
    let is_on = enabled.is_some_and(|row| {
        row.text(OptionRow::VALUE).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    });
    if !is_on {
        return Err(Problem::invalid(
            "SCIM is off here: set the option ScimEnabled of the instance to true.",
        ));
    }
    option::set(call, tx, &instance, "ScimToken", Value::Text(token_of(random())))?;
    option::set(call, tx, &instance, "ScimTokenId", Value::Text(call.context.new_id().to_string()))?;
    Ok(Answer::new(call.request.op.status))
}
