//! Owners of resource keys: the subscription of the client app that named the resource first owns it, as long
//! as one of its client apps names it. Otherwise any subscription could name it, and get tokens for another's API.

use std::collections::{BTreeMap, HashMap, HashSet};

use chancery_oauth::normalize_resource;
use chancery_record::Value;
use chancery_resource::{
    LIST, PLATFORM, Problem, ProblemKind, ProposedRow, Scope, Sql, StateTable, StoreError, Tx, Violation,
    Writer, selectable, visible,
};
use uuid::Uuid;

use super::{CLIENT_APP, scope_and_resource::ClientAppResource};
use crate::{owning_subscription::subscriptions_of, violation::conflict_at};

/// Claims the resources that rows name for the subscriptions of their client apps, and reports those that
/// another subscription owns. Each resource has one row in the database, so that of two concurrent claims
/// one wins.
pub fn claim(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let app_of = |row: &ProposedRow<'_>| row.get(ClientAppResource::CLIENT_APP_ID).map(|app| app.0);
    let apps = rows.iter().map(app_of).collect::<Result<HashSet<_>, _>>()?;
    let apps = visible(writer.context, tx, &CLIENT_APP, &apps.into_iter().collect::<Vec<_>>())?;
    let subscriptions = subscriptions_of(tx, "client_app", &apps.into_keys().collect::<Vec<_>>())?;
    let (mut violations, mut named) = (Vec::new(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        let Some(key) = row.text(ClientAppResource::KEY) else { continue };
        if row.was.is_some_and(|was| was.text(ClientAppResource::KEY) == Some(key)) {
            continue;
        }
        if PLATFORM.contains(&key) {
            if matches!(writer.context.scope, Scope::Parts { .. }) {
                let detail = "is a resource of the platform itself: only a SystemAdmin gives it".to_owned();
                violations.push(Violation {
                    row: index,
                    kind: ProblemKind::Forbidden,
                    field: ClientAppResource::KEY.field(),
                    detail,
                });
            }
        } else if let Some(subscription) = subscriptions.get(&app_of(row)?) {
            named.push((index, key, *subscription));
        }
    }
    let changed: Vec<i64> = rows.iter().filter_map(|row| row.was.map(|was| was.rid)).take(LIST).collect();
    let mut others = other_spellings(tx, &named, &changed)?;
    // within a batch the first spelling counts
    let mut first: HashMap<String, &str> = HashMap::new();
    for (_, key, _) in &named {
        let spelled = *first.entry(normalize_resource(key)).or_insert(*key);
        if spelled != *key {
            others.insert((*key).to_owned(), spelled.to_owned());
        }
    }
    violations.extend(named.iter().filter_map(|(index, key, _)| {
        let detail =
            format!("is the same address as {}, which is registered: spell it so", others.get(*key)?);
        Some(conflict_at(*index, ClientAppResource::KEY, detail))
    }));
    named.retain(|(_, key, _)| !others.contains_key(*key));
    let owners =
        claim_free(tx, &named.iter().map(|(_, key, subscription)| (*key, *subscription)).rev().collect())?;
    let foreign = named.iter().filter(|(_, key, subscription)| owners.get(*key) != Some(subscription));
    let refuse = |index| {
        let detail = "belongs to another subscription, whose client app has it";
        conflict_at(index, ClientAppResource::KEY, detail)
    };
    violations.extend(foreign.map(|(index, ..)| refuse(*index)));
    Ok(violations)
}

/// Claims resources without an owner for the first subscription that named them, and stores missing normal forms: an
/// older release, running in parallel, creates them without.
pub fn claim_unowned(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let text = StateTable::ResourceOwner.insert("(key, subscription_id) \
        SELECT r.key, a.subscription_id FROM client_app_resource r JOIN client_app a ON a.id = r.client_app_id \
        WHERE NOT EXISTS (SELECT 1 FROM resource_owner o WHERE o.key = r.key) \
        AND r.rid = (SELECT min(f.rid) FROM client_app_resource f WHERE f.key = r.key) \
        AND r.key NOT IN ('PlatformManagementService', 'PlatformUserStoreService') ON CONFLICT DO NOTHING");
    tx.execute(&text, &[])?;
    store_normal_forms(tx)
}

selectable! {
    /// A spelling of a resource that a client app has.
    struct Spelling {
        key: String = "o.key",
        normal_form: String = "o.normal_key",
    }
}

/// The resources that a client app has in another spelling (RFC 3986, sections 6.2.2 and 6.2.3), with that spelling. Rows
/// that are changed themselves do not count.
fn other_spellings(
    tx: &mut Tx<'_>,
    named: &[(usize, &str, Uuid)],
    changed: &[i64],
) -> Result<HashMap<String, String>, Problem> {
    let mut spellings_by_key = HashMap::new();
    for chunk in named.chunks(LIST) {
        let mut sql = Sql::new(format!(
            "SELECT {} FROM resource_owner o WHERE EXISTS (SELECT 1 FROM client_app_resource r WHERE r.key = o.key",
            Spelling::COLUMNS
        ));
        if !changed.is_empty() {
            sql.add(" AND r.rid NOT IN ");
            sql.add_list(changed.iter().map(|rid| Value::from(*rid)));
        }
        sql.add(") AND o.normal_key IN ");
        sql.add_list(chunk.iter().map(|(_, name, _)| Value::from(normalize_resource(name))));
        let mut known: HashMap<String, Vec<String>> = HashMap::new();
        tx.query(&sql.text, &sql.parameters, |row| {
            let Spelling { key, normal_form } = Spelling::read(row)?;
            known.entry(normal_form).or_default().push(key);
            Ok(())
        })?;
        for (_, name, _) in chunk {
            let spellings = known.get(&normalize_resource(name)).map(Vec::as_slice).unwrap_or_default();
            // existing double spellings stay
            if let Some(other) = spellings.first().filter(|_| !spellings.iter().any(|known| known == name)) {
                spellings_by_key.insert((*name).to_owned(), other.clone());
            }
        }
    }
    Ok(spellings_by_key)
}

/// Stores the normal form of resources without one, which an older release created.
fn store_normal_forms(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    loop {
        let mut keys = Vec::new();
        let text =
            format!("SELECT key FROM resource_owner WHERE normal_key IS NULL ORDER BY key LIMIT {LIST}");
        tx.query(&text, &[], |row| {
            keys.push(row.text(0)?.to_owned());
            Ok(())
        })?;
        for key in &keys {
            let text = StateTable::ResourceOwner.update("SET normal_key = ?2 WHERE key = ?1");
            tx.execute(&text, &[key.as_str().into(), normalize_resource(key).into()])?;
        }
        if keys.len() < LIST {
            return Ok(());
        }
    }
}

selectable! {
    /// The owner of a resource.
    struct ResourceOwner from "FROM resource_owner WHERE key IN " {
        key: String = "key",
        subscription: Uuid = "subscription_id",
    }
}

/// Claims free resources for subscriptions; returns the resulting owner of each resource.
fn claim_free(tx: &mut Tx<'_>, requested: &BTreeMap<&str, Uuid>) -> Result<HashMap<String, Uuid>, Problem> {
    let (mut owners, requested): (_, Vec<_>) = (HashMap::new(), requested.iter().collect());
    for chunk in requested.chunks(LIST) {
        let mut sql = Sql::new("(key, subscription_id, normal_key) VALUES ");
        for (index, (key, subscription)) in chunk.iter().enumerate() {
            sql.add(if index == 0 { "(" } else { ", (" });
            sql.add_bound(**key);
            sql.add(", ");
            sql.add_bound(**subscription);
            sql.add(", ");
            sql.add_bound(normalize_resource(key));
            sql.add(")");
        }
        sql.add(
            " ON CONFLICT (key) DO UPDATE SET subscription_id = excluded.subscription_id, \
             normal_key = excluded.normal_key \
             WHERE resource_owner.subscription_id <> excluded.subscription_id AND NOT EXISTS ( \
             SELECT 1 FROM client_app_resource r JOIN client_app a ON a.id = r.client_app_id \
             WHERE r.key = resource_owner.key AND a.subscription_id = resource_owner.subscription_id)",
        );
        tx.execute(&StateTable::ResourceOwner.insert(&sql.text), &sql.parameters)?;
        let mut sql = Sql::new(ResourceOwner::SELECT);
        sql.add_list(chunk.iter().map(|(key, _)| Value::from(**key)));
        tx.query(&sql.text, &sql.parameters, |row| {
            let owner = ResourceOwner::read(row)?;
            owners.insert(owner.key, owner.subscription);
            Ok(())
        })?;
    }
    Ok(owners)
}
