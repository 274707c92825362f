//! The SystemAdmin: at least one client app with that role can always get a token, and no caller gains a role
//! through a client app that has more rights than the caller.

use std::sync::LazyLock;

use chancery_record::{Timestamp, Value};
use chancery_resource::{
    Context, Problem, Role, Scope, ScopeKind, Sql, Tx, other_role_condition, role_condition,
};

use super::ClientAppId;
use crate::owning_subscription;

/// The condition that a role `r` is given at the system, or unknown.
static COVERS_ALL: LazyLock<String> = LazyLock::new(|| {
    let is_always = |line: &Role| line.given_at == [ScopeKind::System];
    let can_be = |line: &Role| line.given_at.contains(&ScopeKind::System) && !is_always(line);
    let nowhere = "r.apply_to_tenant_id IS NULL AND r.apply_to_idp_instance_id IS NULL";
    let (always, sometimes) =
        (role_condition("r.role_type", is_always), role_condition("r.role_type", can_be));
    let unknown = other_role_condition("r.role_type", |_| true);
    format!("{always} OR ({sometimes} AND {nowhere}) OR {unknown}")
});

/// The condition that a role `r` is given at the customer of its client app.
static COVERS_CUSTOMER: LazyLock<String> =
    LazyLock::new(|| role_condition("r.role_type", |line| line.given_at.contains(&ScopeKind::Customer)));

/// The columns that a role's target can be in, each with the target's table.
const TARGETS: [(&str, &str); 2] =
    [("apply_to_tenant_id", "tenant"), ("apply_to_idp_instance_id", "idp_instance")];

/// Adds the condition that the client app has no rights beyond the scope: a caller who can change a client app
/// can take over its rights.
pub fn is_no_higher(sql: &mut Sql, alias: &str, scope: &Scope) {
    sql.add(&format!(
        "NOT EXISTS (SELECT 1 FROM client_app_role r WHERE r.client_app_id = {alias}.id AND ({} \
         OR ({}",
        *COVERS_ALL, *COVERS_CUSTOMER
    ));
    if let Scope::Parts { customers, .. } = scope
        && !customers.is_empty()
    {
        sql.add(&format!(
            " AND {alias}.subscription_id NOT IN (SELECT id FROM subscription WHERE customer_id IN "
        ));
        sql.add_list(customers.iter().copied().map(Value::Id));
        sql.add(")");
    }
    sql.add(")");
    for (column, table) in TARGETS {
        sql.add(&format!(
            " OR EXISTS (SELECT 1 FROM {table} x WHERE x.id = r.{column} AND NOT (x.subscription_id = {alias}.subscription_id OR "
        ));
        owning_subscription::is_covered(sql, "x.subscription_id", scope);
        sql.add("))");
    }
    sql.add("))");
}

/// Selects a SystemAdmin client app of an active subscription that can authenticate at `?1`; `?2` is
/// whether this server asks for client certificates.
const SYSTEM_ADMIN_WITH_CREDENTIAL: &str = "SELECT 1 FROM client_app a \
    JOIN client_app_role r ON r.client_app_id = a.id AND r.role_type = 'SystemAdmin' \
    JOIN subscription y ON y.id = a.subscription_id AND y.status = 'Active' \
    LEFT JOIN client_app_authentication_configuration c ON c.client_app_id = a.id \
    WHERE a.enabled AND a.allow_client_credential_login AND NOT a.is_public \
    AND (?2 OR NOT COALESCE(c.require_certificate_bound_access_tokens, FALSE)) AND ( \
    (COALESCE(c.token_endpoint_auth_method, 'client_secret_basic') IN ('client_secret_basic', 'client_secret_post') \
     AND EXISTS (SELECT 1 FROM client_app_secret s WHERE s.client_app_id = a.id AND (s.expiry IS NULL OR s.expiry > ?1))) \
    OR (c.token_endpoint_auth_method = 'client_secret_jwt' AND EXISTS (SELECT 1 FROM client_app_secret s \
     WHERE s.client_app_id = a.id AND s.sealed_secret IS NOT NULL AND (s.expiry IS NULL OR s.expiry > ?1))) \
    OR (c.token_endpoint_auth_method IN ('private_key_jwt', 'self_signed_tls_client_auth') \
     AND (?2 OR c.token_endpoint_auth_method = 'private_key_jwt') AND EXISTS ( \
     SELECT 1 FROM client_app_key_set k WHERE k.client_app_id = a.id AND k.key_use = 'Signing' AND k.status IN ('Active', 'Retiring') \
     AND (k.valid_from IS NULL OR k.valid_from <= ?1) AND (k.valid_to IS NULL OR k.valid_to > ?1))) \
    OR (?2 AND c.token_endpoint_auth_method = 'tls_client_auth')) LIMIT 1";

/// Selects the role of a client app that is SystemAdmin.
const IS_SYSTEM_ADMIN: &str =
    "SELECT 1 FROM client_app_role WHERE client_app_id = ?1 AND role_type = 'SystemAdmin' LIMIT 1";
/// A credential that ends within this time does not count, in milliseconds: a week.
const SOON: i64 = 7 * 24 * 3_600_000;

/// Refuses a change that leaves no SystemAdmin who can get a token.
pub fn require_system_admin(context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
    check_system_admin(context, tx, context.now)
}

/// Refuses to let the last credential of a SystemAdmin end soon, just as its deletion is refused.
pub fn require_system_admin_until(
    context: &Context,
    tx: &mut Tx<'_>,
    app: ClientAppId,
    end: Option<Timestamp>,
) -> Result<(), Problem> {
    let Some(end) = end.filter(|end| end.0 < context.now.0 + SOON) else { return Ok(()) };
    if tx.one(IS_SYSTEM_ADMIN, &[app.0.into()], |_| Ok(()))?.is_none() {
        return Ok(());
    }
    check_system_admin(context, tx, context.now.max(end))
}

fn check_system_admin(context: &Context, tx: &mut Tx<'_>, at: Timestamp) -> Result<(), Problem> {
    let parameters = [Value::Int(at.0), Value::Bool(context.app.requests_client_certificates)];
    if tx.one(SYSTEM_ADMIN_WITH_CREDENTIAL, &parameters, |_| Ok(()))?.is_some() {
        return Ok(());
    }
    Err(Problem::conflict(
        "Nobody who is SystemAdmin could get a token any more. Give another client app that role and a secret first.",
    ))
}
