//! Looks certificates up by type and target.

use chancery_record::{FieldOf, FieldType, Kind};
use chancery_resource::{
    Action as A, Answer, Call, Custom, Method as M, Op, Permit::TenantAdmin, Problem, Run, Shape, Tx,
    find_row, list_where,
};

use super::{CERT_STORE, CertStore, CertType};
use crate::{idp_instance::IDP_INSTANCE, subscription::SUBSCRIPTION, tenant::TENANT};

const fn op(name: &'static str, path: &'static str, run: Run, about: &'static str) -> Op {
    Op::new(name, M::Get, path, TenantAdmin, &CERT_STORE, A::Custom(Custom::listing(run)), about)
}

/// The operations that look certificates up.
pub static OPERATIONS: &[Op] = &[
    op("GetCertStoresByType", "/CertStore/type/{type}", of_type, "Lists the certificates of a type."),
    op(
        "GetCertStoresByTypeAndSubscription",
        "/CertStore/type/{type}/subscription/{subscriptionId}",
        of_subscription,
        "Lists the certificates of a type that apply to a subscription.",
    ),
    op(
        "GetCertStoresByTypeAndTenant",
        "/CertStore/type/{type}/tenant/{tenantId}",
        of_tenant,
        "Lists the certificates of a type that apply to a tenant.",
    ),
    op(
        "GetCertStoresByTypeAndIdpInstance",
        "/CertStore/type/{type}/idpinstance/{idpInstanceId}",
        of_instance,
        "Lists the certificates of a type that an identity provider instance uses.",
    ),
];

/// The certificate type that the path names.
fn cert_type(call: &Call) -> Result<&'static str, Problem> {
    let Kind::Choice(names) = <CertType as chancery_record::FieldType>::KIND else {
        return Err(Problem::not_found("certType"));
    };
    let found = names.iter().find(|name| name.eq_ignore_ascii_case(call.request.parameter(0)));
    found.copied().ok_or_else(|| {
        Problem::invalid(format!(
            "{:?} in the path is no certType; there are {}.",
            call.request.parameter(0),
            names.join(", ")
        ))
    })
}

fn of_type(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let kind = cert_type(call)?;
    list_where(call, tx, &|sql| {
        sql.add(" AND t.cert_type = ");
        sql.add_bound(kind);
    })
}

fn list_for_target<T: FieldType>(
    call: &mut Call,
    tx: &mut Tx<'_>,
    to: &Shape,
    field: FieldOf<CertStore, T>,
) -> Result<Answer, Problem> {
    let kind = cert_type(call)?;
    let (_, id) = find_row(&call.context, tx, to, call.request.parameter(1))?;
    list_where(call, tx, &|sql| {
        sql.add(" AND t.cert_type = ");
        sql.add_bound(kind);
        sql.add(&format!(" AND t.{field} = "));
        sql.add_bound(id.clone());
    })
}

fn of_subscription(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    list_for_target(call, tx, &SUBSCRIPTION, CertStore::APPLY_TO_SUBSCRIPTION_ID)
}

fn of_tenant(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    list_for_target(call, tx, &TENANT, CertStore::APPLY_TO_TENANT_ID)
}

fn of_instance(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let kind = cert_type(call)?;
    let (instance, _) = find_row(&call.context, tx, &IDP_INSTANCE, call.request.parameter(1))?;
    list_where(call, tx, &|sql| {
        sql.add(" AND t.cert_type = ");
        sql.add_bound(kind);
        sql.add(" AND t.rid IN (SELECT m.cert_store_rid FROM idp_instance_cert_store m WHERE m.idp_instance_rid = ");
        sql.add_bound(instance);
        sql.add(")");
    })
}
