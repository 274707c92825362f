//! The token of the provisioning client of an instance (SCIM, RFC 7644), and the status of provisioning.

use chancery_record::{SHOWN, Timestamp, Value, record};
use chancery_resource::settings::{ProviderOption, Setting, flag};
use chancery_resource::{
    Action as A, Answer, BodyForm, Call, Custom, Method as M, Op,
    Permit::{SubscriptionAdmin, TenantMember},
    Problem, Reply, StateTable, Tx, answer_form, audit_state, check_act, event_name, random, selectable,
};
use chancery_scim::{digest_of, token_of};
use uuid::Uuid;

use super::{IDP_INSTANCE, IdpInstance, IdpInstanceId, look_up::find};
use crate::{
    idp_type::FactoryType,
    option::{self, OptionRow},
};

record! {
    /// The provisioning status of an identity provider instance.
    struct IdpInstanceScim {
        /// The instance.
        instance_id: IdpInstanceId = SHOWN,
        /// Whether provisioning is enabled: the option ScimEnabled.
        #[de("Eingeschaltet")]
        is_enabled: bool = SHOWN,
        /// The id of the token. The audit trail records its changes under this id.
        #[de("Token")]
        token_id: Option<Uuid> = SHOWN,
        /// When the token was last used, to the hour.
        last_used_on: Option<Timestamp> = SHOWN,
        /// Since when the token cannot write, because it deactivated or deleted too many users within an hour.
        stopped_on: Option<Timestamp> = SHOWN,
        /// The number of users that the directory provisions. 1,001 if there are more than 1,000.
        owned_users: i64 = SHOWN,
        /// The number of groups that the directory provisions. 1,001 if there are more than 1,000.
        owned_groups: i64 = SHOWN,
    }
}

static STATE: BodyForm = BodyForm::of::<IdpInstanceScim>("IdpInstanceScim");

/// The operations on provisioning tokens.
pub static OPERATIONS: &[Op] = &[
    Op::new(
    "CreateIdpInstanceScimToken",
    M::Post,
    "/IdpInstance/{idpInstance}/scim/token",
    SubscriptionAdmin,
    &IDP_INSTANCE,
    A::Custom(Custom::writing(create_token).replying(Reply::Empty)),
    "Creates a new SCIM token. It replaces the previous one and is readable in the options ScimToken and ScimTokenId.",
    )
    .answering(204, Reply::Empty)
    .sensitive(),
    Op::new(
        "ResumeIdpInstanceScim",
        M::Post,
        "/IdpInstance/{idpInstance}/scim/resume",
        SubscriptionAdmin,
        &IDP_INSTANCE,
        A::Custom(Custom::writing(resume).replying(Reply::Empty)),
        "Resumes the SCIM token of an instance that was stopped because it deactivated or deleted too many users.",
    )
    .answering(204, Reply::Empty)
    .added(),
    Op::new(
        "GetIdpInstanceScim",
        M::Get,
        "/IdpInstance/{idpInstance}/scim",
        TenantMember,
        &IDP_INSTANCE,
        A::Custom(Custom::listing(show_status).replying(Reply::Form(&STATE))),
        "Reads the provisioning status of an instance: its token, when the token was last used, and how many users and groups it provisions.",
    )
    .added(),
];

/// The text of an instance's option; empty where there is none.
fn stored_text<T>(
    call: &Call,
    tx: &mut Tx<'_>,
    instance: Uuid,
    setting: Setting<ProviderOption, T>,
) -> Result<String, Problem> {
    let row = option::find(call, tx, instance, setting)?;
    Ok(row.and_then(|row| row.text(OptionRow::VALUE).map(str::to_owned)).unwrap_or_default())
}

/// Whether directories may provision the people of an instance.
fn is_enabled(call: &Call, tx: &mut Tx<'_>, instance: Uuid) -> Result<bool, Problem> {
    Ok(flag(&stored_text(call, tx, instance, ProviderOption::SCIM_ENABLED)?).unwrap_or(false))
}

selectable! {
    /// The use of an instance's token, and how much its directory provisions.
    #[derive(Default)]
    struct ProvisioningState from "" {
        last_used_on: Option<Timestamp> = "(SELECT u.used_on FROM scim_instance_token s \
            JOIN scim_token_use u ON u.token_id = s.token_id WHERE s.idp_instance_id = ?1)",
        stopped_on: Option<Timestamp> = "(SELECT stopped_on FROM scim_instance_token WHERE idp_instance_id = ?1)",
        owned_users: i64 = "(SELECT count(*) FROM (SELECT 1 FROM application_user WHERE idp_instance_id = ?1 \
            AND user_name_key IS NOT NULL AND hidden_on IS NULL LIMIT 1001) n)",
        owned_groups: i64 = "(SELECT count(*) FROM (SELECT 1 FROM application_group WHERE idp_instance_id = ?1 \
            AND provisioned_name_key IS NOT NULL LIMIT 1001) n)",
        token_id: Option<Uuid> = "(SELECT token_id FROM scim_instance_token WHERE idp_instance_id = ?1)",
    }
}

fn show_status(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let instance = find(call, tx, &IDP_INSTANCE)?;
    let id = instance.get(IdpInstance::ID)?;
    let is_enabled = is_enabled(call, tx, id.0)?;
    let state = tx.one(ProvisioningState::SELECT, &[id.0.into()], ProvisioningState::read)?;
    let ProvisioningState { last_used_on, stopped_on, owned_users, owned_groups, token_id } =
        state.unwrap_or_default();
    let status = IdpInstanceScim {
        instance_id: id,
        is_enabled,
        token_id,
        last_used_on,
        stopped_on,
        owned_users,
        owned_groups,
    };
    Ok(answer_form(call, status))
}

fn resume(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let instance = find(call, tx, &IDP_INSTANCE)?;
    // the path may name it by its name
    check_act(&call.context, tx, &IDP_INSTANCE, &instance)?;
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
    audit_state(&call.context, tx, &IDP_INSTANCE, &instance, &instance.values, event_name!("scim-resumed"))?;
    Ok(Answer::new(call.request.op.status))
}

fn create_token(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let instance = find(call, tx, &IDP_INSTANCE)?;
    if instance.text(IdpInstance::IDP_FACTORY_TYPE) != Some(FactoryType::OpenIdConnect.name()) {
        return Err(Problem::invalid("Only an instance of type OpenIdConnect has a SCIM token."));
    }
    if !is_enabled(call, tx, instance.get(IdpInstance::ID)?.0)? {
        return Err(Problem::invalid(
            "SCIM is off here: set the option ScimEnabled of the instance to true.",
        ));
    }
    let token = token_of(random());
    let digest = digest_of(&call.context.app.master, &token);
    let token_id = call.context.new_id();
    tx.queue(
        &StateTable::ScimInstanceToken.insert(
            "(idp_instance_id, digest, token_id) VALUES (?1, ?2, ?3) ON CONFLICT (idp_instance_id) \
             DO UPDATE SET digest = excluded.digest, token_id = excluded.token_id, stopped_on = NULL",
        ),
        vec![instance.get(IdpInstance::ID)?.0.into(), Value::Bytes(digest), token_id.into()],
    )?;
    tx.advance_epoch()?;
    option::set(call, tx, &instance, ProviderOption::SCIM_TOKEN, Value::Text(token))?;
    option::set(call, tx, &instance, ProviderOption::SCIM_TOKEN_ID, Value::Text(token_id.to_string()))?;
    Ok(Answer::new(call.request.op.status))
}
