//! Looks instances up by tenant, client app or subscription, and reports the health of one.

use chancery_record::{Record as _, parse_id, record};
use chancery_resource::{
    Action as A, Answer, BodyForm, Call, Custom, Method as M, Op,
    Permit::{self, SubscriptionAdmin, TenantMember},
    Problem, ProblemKind, Reply, Shape, Sql, StoredRow, Tx, answer_form, find_row, list_where, load,
    select_by, write_items,
};

use super::{IDP_INSTANCE, IdpInstance, IdpInstanceId};
use crate::{client_app::CLIENT_APP, subscription::SUBSCRIPTION, tenant::TENANT};

record! {
    /// The health of an identity provider instance.
    struct IdpInstanceHealth {
        /// The instance.
        instance_id: IdpInstanceId = chancery_record::SHOWN,
        /// Whether a mandatory option is empty or an option cannot be read.
        has_configuration_error: bool = chancery_record::SHOWN,
        /// Whether users can sign in at the instance: it is active and has no configuration error.
        #[de("In Betrieb")]
        is_operational: bool = chancery_record::SHOWN,
    }
}

static HEALTH: BodyForm = BodyForm::of::<IdpInstanceHealth>("IdpInstanceHealth");

const fn op(
    name: &'static str,
    path: &'static str,
    permit: Permit,
    action: Custom,
    about: &'static str,
) -> Op {
    Op::new(name, M::Get, path, permit, &IDP_INSTANCE, A::Custom(action), about)
}

/// The operations that look instances up.
pub static OPERATIONS: &[Op] = &[
    op(
        "GetIdpInstancesByTenantAndClientApp",
        "/IdpInstance/tenant/{tenantId}/clientapp/{clientAppId}",
        TenantMember,
        Custom::listing(of_both),
        "Lists the instances that are assigned to a tenant and to a client app.",
    ),
    op(
        "GetIdpInstancesByTenant",
        "/IdpInstance/tenant/{tenantId}",
        TenantMember,
        Custom::listing(of_tenant),
        "Lists the instances that are assigned to a tenant.",
    ),
    op(
        "GetIdpInstancesBySubscription",
        "/IdpInstance/subscription/{subscriptionId}",
        SubscriptionAdmin,
        Custom::listing(of_subscription),
        "Lists the instances of a subscription.",
    ),
    op(
        "GetIdpInstanceHealth",
        "/IdpInstance/{idpInstance}/health",
        TenantMember,
        Custom::reading(health).replying(Reply::Form(&HEALTH)),
        "Reads the health of an instance.",
    ),
];

fn assigned_to_tenant(sql: &mut Sql, tenant: i64) {
    sql.add(" AND t.rid IN (SELECT m.idp_instance_rid FROM tenant_idp_instance m WHERE m.tenant_rid = ");
    sql.add_bound(tenant);
    sql.add(")");
}

/// Without a query, a list is ordered by position, then name; pages and filtered lists are ordered like any list.
fn list(call: &mut Call, tx: &mut Tx<'_>, condition: &dyn Fn(&mut Sql)) -> Result<Answer, Problem> {
    if !call.request.query.is_empty() {
        return list_where(call, tx, condition);
    }
    call.answer.begin(call.request.op.status, Vec::new());
    write_items(call, tx, call.request.op.shape, None, condition, " ORDER BY t.position, t.name_key, t.id")?;
    Ok(Answer::new(call.request.op.status))
}

fn of_tenant(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (tenant, _) = find_row(&call.context, tx, &TENANT, call.request.parameter(0))?;
    list(call, tx, &|sql| assigned_to_tenant(sql, tenant))
}

fn of_both(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (tenant, _) = find_row(&call.context, tx, &TENANT, call.request.parameter(0))?;
    let (app, _) = find_row(&call.context, tx, &CLIENT_APP, call.request.parameter(1))?;
    list(call, tx, &|sql| {
        assigned_to_tenant(sql, tenant);
        sql.add(" AND t.rid IN (SELECT m.idp_instance_rid FROM idp_instance_client_app m WHERE m.client_app_rid = ");
        sql.add_bound(app);
        sql.add(")");
    })
}

fn of_subscription(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (_, subscription) = find_row(&call.context, tx, &SUBSCRIPTION, call.request.parameter(0))?;
    list(call, tx, &|sql| {
        sql.add(" AND t.subscription_id = ");
        sql.add_bound(subscription.clone());
    })
}

/// The instance that the path names, by id or by name.
pub fn find(call: &Call, tx: &mut Tx<'_>, shape: &Shape) -> Result<StoredRow, Problem> {
    let named = call.request.parameter(0);
    if parse_id(named).is_some() {
        return load(&call.context, tx, shape, None, shape.read_key(named)?);
    }
    let sql = select_by(&call.context, shape, IdpInstance::NAME, named);
    let mut rids = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        rids.push(row.int(0)?);
        Ok(())
    })?;
    match rids.as_slice() {
        [rid] => {
            let rows = chancery_resource::load_rows(&call.context, tx, shape, &[*rid])?;
            rows.into_iter().next().ok_or_else(|| Problem::not_found(shape.name))
        }
        [] => Err(Problem::not_found(shape.name)),
        _ => Err(Problem::new(ProblemKind::Conflict, "More than one instance has this name: say the id.")),
    }
}

fn health(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let instance = IdpInstance::from_values(find(call, tx, &IDP_INSTANCE)?.values)?;
    let health = IdpInstanceHealth {
        instance_id: instance.id,
        has_configuration_error: instance.has_configuration_error,
        is_operational: instance.is_active && !instance.has_configuration_error,
    };
    Ok(answer_form(call, health))
}
