//! The token that a provisioning client shows to an instance (SCIM, RFC 7644).

use chancery_record::Value;
use chancery_resource::{
    Action as A, Answer, Call, Custom, Method as M, Op, Permit::SubscriptionAdmin, Problem, Reply,
    StateTable, Tx, note, random,
};
use chancery_scim::{digest_of, token_of};

use super::{IDP_INSTANCE, IdpInstance, look_up::find};
use crate::{
    idp_type::FactoryType,
    option::{self, OptionRow},
};

/// The operations on provisioning tokens.
pub static OPERATIONS: &[Op] = &[
    Op::new(
    "CreateIdpInstanceScimToken",
    M::Post,
    "/IdpInstance/{idpInstance}/scim/token",
    SubscriptionAdmin,
    &IDP_INSTANCE,
    A::Custom(Custom::writing(make).replying(Reply::Empty)),
    "Makes a new SCIM token: it replaces the one before and is readable in the options ScimToken and ScimTokenId.",
    )
    .answering(204, Reply::Empty),
    Op::new(
        "ResumeIdpInstanceScim",
        M::Post,
        "/IdpInstance/{idpInstance}/scim/resume",
        SubscriptionAdmin,
        &IDP_INSTANCE,
        A::Custom(Custom::writing(resume).replying(Reply::Empty)),
        "Lets an instance's SCIM token write again that was stopped because it deactivated or deleted too many.",
    )
    .answering(204, Reply::Empty)
    .added(),
];

fn resume(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let instance = find(call, tx, &IDP_INSTANCE)?;
    let id = instance.get(IdpInstance::ID)?.0;
    let text = "SELECT stopped_on FROM scim_instance_token WHERE idp_instance_id = ?1";
    let is_stopped = tx.one(text, &[id.into()], |row| Ok(!row.is_null(0)?))?.unwrap_or(false);
    if !is_stopped {
        return Err(Problem::conflict("The instance's token is not stopped."));
    }
    tx.queue(
        &StateTable::ScimInstanceToken.update("SET stopped_on = NULL WHERE idp_instance_id = ?1"),
        vec![id.into()],
    )?;
    tx.advance_epoch()?;
    let (was, change) = (&instance, ("Modified", "scim-resumed"));
    note(&call.context, tx, &IDP_INSTANCE, (was, &was.values), change)?;
    Ok(Answer::new(call.request.op.status))
}

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
    let token = token_of(random());
    let digest = digest_of(&call.context.app.master, &token);
    tx.queue(
        &StateTable::ScimInstanceToken.insert(
            "(idp_instance_id, digest) VALUES (?1, ?2) ON CONFLICT (idp_instance_id) \
             DO UPDATE SET digest = excluded.digest, stopped_on = NULL",
        ),
        vec![instance.get(IdpInstance::ID)?.0.into(), Value::Bytes(digest)],
    )?;
    tx.advance_epoch()?;
    option::set(call, tx, &instance, "ScimToken", Value::Text(token))?;
    option::set(call, tx, &instance, "ScimTokenId", Value::Text(call.context.new_id().to_string()))?;
    Ok(Answer::new(call.request.op.status))
}
