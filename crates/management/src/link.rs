//! Links between resources of the platform, and the rule on those that join two subscriptions.

use chancery_record::Value;
use chancery_resource::{LIST, LinkTable, NewLinks, Problem, Sql, Tx};
use uuid::Uuid;

use crate::client_app::CLIENT_APP;

pub const TENANT_IDP_INSTANCE: LinkTable =
    LinkTable::new("tenant_idp_instance", "tenant_rid", "idp_instance_rid");
pub const TENANT_MFA_INSTANCE: LinkTable =
    LinkTable::new("tenant_mfa_instance", "tenant_rid", "mfa_instance_rid");
pub const TENANT_CLIENT_APP: LinkTable = LinkTable::new("tenant_client_app", "tenant_rid", "client_app_rid");
pub const IDP_INSTANCE_MFA_INSTANCE: LinkTable =
    LinkTable::new("idp_instance_mfa_instance", "idp_instance_rid", "mfa_instance_rid");
pub const IDP_INSTANCE_CLIENT_APP: LinkTable =
    LinkTable::new("idp_instance_client_app", "idp_instance_rid", "client_app_rid");
pub const IDP_INSTANCE_CERT_STORE: LinkTable =
    LinkTable::new("idp_instance_cert_store", "idp_instance_rid", "cert_store_rid");
pub const CLIENT_APP_MFA_INSTANCE: LinkTable =
    LinkTable::new("client_app_mfa_instance", "client_app_rid", "mfa_instance_rid");
pub const CLIENT_APP_CLAIM_RULE: LinkTable =
    LinkTable::new("client_app_claim_rule", "client_app_rid", "claim_rule_rid");
pub const CLIENT_APP_AUTHORIZED_USER: LinkTable =
    LinkTable::new("client_app_authorized_user", "client_app_rid", "application_user_rid");
pub const CLIENT_APP_AUTHORIZED_GROUP: LinkTable =
    LinkTable::new("client_app_authorized_group", "client_app_rid", "application_group_rid");
pub const CLIENT_APP_TOKEN_EXCHANGE: LinkTable =
    LinkTable::new("client_app_token_exchange", "client_app_rid", "allowed_rid");

/// Refuses new links between two subscriptions, unless a client app is linked and each linked client app
/// has `allowCrossSubscription`. A global resource belongs to no subscription.
///
/// # Errors
/// A link that is not allowed.
pub fn within_subscription(tx: &mut Tx<'_>, links: &NewLinks<'_>) -> Result<(), Problem> {
    let (table, other_table) = (links.shape.table, links.relation.target.table);
    let apps = [(table, "a"), (other_table, "b")].into_iter().filter(|(table, _)| *table == CLIENT_APP.table);
    let allowed: Vec<String> = apps.map(|(_, alias)| format!("{alias}.allow_cross_subscription")).collect();
    // only a client app can allow it
    let allowed = if allowed.is_empty() { "FALSE".to_owned() } else { allowed.join(" AND ") };
    for chunk in links.others.chunks(LIST) {
        let mut sql = Sql::new(format!("SELECT 1 FROM {table} a CROSS JOIN {other_table} b WHERE a.rid = "))
            .bind(links.row)
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
    // children have no guard: they belong to their parent's subscription
    for relation in CLIENT_APP.relations.iter().filter(|relation| relation.guard.is_some()) {
        let (own, other, target) = (relation.own, relation.other, relation.target.table);
        let is_of_client_apps = target == CLIENT_APP.table;
        let both = [Some((own, other)), is_of_client_apps.then_some((other, own))];
        for (own, other) in both.into_iter().flatten() {
            let text = format!(
                "SELECT 1 FROM client_app a JOIN {} m ON m.{own} = a.rid JOIN {target} b ON b.rid = m.{other} \
                 WHERE a.id = ?1 AND a.subscription_id <> b.subscription_id LIMIT 1",
                relation.table
            );
            if tx.one(&text, &[Value::Id(app)], |_| Ok(()))?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
