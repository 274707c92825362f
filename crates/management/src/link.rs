//! Links between two subscriptions: only those of client apps that allow it.

use chancery_record::Value;
use chancery_resource::{LIST, Problem, Sql, Tx};
use uuid::Uuid;

/// The tables of pairs that link client apps, each with the column of the client app, the column of the
/// linked resource, and that resource's table.
const OF_CLIENT_APPS: [(&str, &str, &str, &str); 8] = [
    ("tenant_client_app", "client_app_rid", "tenant_rid", "tenant"),
    ("idp_instance_client_app", "client_app_rid", "idp_instance_rid", "idp_instance"),
    ("client_app_mfa_instance", "client_app_rid", "mfa_instance_rid", "mfa_instance"),
    ("client_app_claim_rule", "client_app_rid", "claim_rule_rid", "claim_rule"),
    ("client_app_authorized_user", "client_app_rid", "application_user_rid", "application_user"),
    ("client_app_authorized_group", "client_app_rid", "application_group_rid", "application_group"),
    ("client_app_token_exchange", "client_app_rid", "allowed_rid", "client_app"),
    ("client_app_token_exchange", "allowed_rid", "client_app_rid", "client_app"),
];

/// Refuses new links between two subscriptions, unless a client app is linked and each linked client app
/// has `allowCrossSubscription`. What is everyone's belongs to no subscription.
///
/// # Errors
/// A link that is not allowed.
pub fn check_subscriptions(
    tx: &mut Tx<'_>,
    (table, row): (&str, i64),
    (other_table, others): (&str, &[i64]),
) -> Result<(), Problem> {
    let apps = [(table, "a"), (other_table, "b")].into_iter().filter(|(table, _)| *table == "client_app");
    let allowed: Vec<String> = apps.map(|(_, alias)| format!("{alias}.allow_cross_subscription")).collect();
    // only a client app can allow it
    let allowed = if allowed.is_empty() { "FALSE".to_owned() } else { allowed.join(" AND ") };
    for chunk in others.chunks(LIST) {
        let mut sql = Sql::new(format!("SELECT 1 FROM {table} a CROSS JOIN {other_table} b WHERE a.rid = "))
            .bind(row)
            .push(" AND a.subscription_id <> b.subscription_id AND NOT (")
            .push(&allowed)
            .push(") AND b.rid IN ");
        sql.add_list(chunk.iter().copied().map(Value::Int));
        sql.add(" LIMIT 1");
        if tx.one(&sql.text, &sql.parameters, |_| Ok(()))?.is_some() {
            return Err(Problem::conflict(
                "What is linked is of two subscriptions: for that a client app must be linked whose \
                 allowCrossSubscription is true.",
            ));
        }
    }
    Ok(())
}

/// Whether a client app has a link to another subscription.
pub fn crosses_subscriptions(tx: &mut Tx<'_>, app: Uuid) -> Result<bool, Problem> {
    for (pairs, own, other, table) in OF_CLIENT_APPS {
        let text = format!(
            "SELECT 1 FROM client_app a JOIN {pairs} m ON m.{own} = a.rid JOIN {table} b ON b.rid = m.{other} \
             WHERE a.id = ?1 AND a.subscription_id <> b.subscription_id LIMIT 1"
        );
        if tx.one(&text, &[Value::Id(app)], |_| Ok(()))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
