//! Rows for the catalogue: one an entry when an owner is made, and when a release adds an entry.

use chancery_record::Value;
use chancery_resource::{Call, Problem, Sql, insert, new_row};
use chancery_settings::{Entry, Owner};
use chancery_store::Tx;
use uuid::Uuid;

use super::OPTION;

/// Makes a new owner's options, with their defaults.
///
/// # Errors
/// The store's.
pub fn make_all(
    call: &Call,
    tx: &mut Tx<'_>,
    owner: Owner,
    target: Uuid,
    subscription: Uuid,
) -> Result<(), Problem> {
    owner.entries().try_for_each(|entry| make(call, tx, entry, target, subscription))
}

fn make(
    call: &Call,
    tx: &mut Tx<'_>,
    entry: &Entry,
    target: Uuid,
    subscription: Uuid,
) -> Result<(), Problem> {
    let (data_type, editor_type) = entry.form.hints();
    let (is_tenant, kind) = match kind_of(entry.owner) {
        Some(kind) => (false, kind),
        None => (true, "Tenant"),
    };
    let value_of = |column: &str| match column {
        "name" => entry.name.into(),
        "value" => entry.default.into(),
        "data_type" => data_type.into(),
        "editor_type" => editor_type.into(),
        "has_configuration_error" => Value::Bool(entry.mandatory && entry.default.is_empty()),
        "apply_to_idp_instance_id" if !is_tenant => target.into(),
        "apply_to_tenant_id" if is_tenant => target.into(),
        "subscription_id" => subscription.into(),
        "owner_type" => kind.into(),
        _ => Value::Null,
    };
    let values = OPTION.fields.iter().map(|field| value_of(field.column)).collect();
    insert(call, tx, &OPTION, None, &new_row(call, &OPTION, None, values)?)
}

fn kind_of(owner: Owner) -> Option<&'static str> {
    Owner::IDP_TYPES.iter().find(|(_, known)| *known == owner).map(|(name, _)| *name)
}

/// Gives every owner that there is already the entries that this release added.
///
/// # Errors
/// The store's.
pub fn add_new_entries(call: &Call, tx: &mut Tx<'_>) -> Result<(), Problem> {
    let mut known = Vec::new();
    tx.query("SELECT owner, name FROM option_entry", &[], |row| {
        known.push((row.text(0)?.to_owned(), row.text(1)?.to_owned()));
        Ok(())
    })?;
    for entry in chancery_settings::CATALOGUE {
        let owner = format!("{:?}", entry.owner);
        if known.iter().any(|(known_owner, name)| *known_owner == owner && name == entry.name) {
            continue;
        }
        for (target, subscription) in targets(tx, entry)? {
            make(call, tx, entry, target, subscription)?;
        }
        tx.queue(
            "INSERT INTO option_entry (owner, name) VALUES (?1, ?2)",
            vec![owner.into(), entry.name.into()],
        )?;
    }
    Ok(())
}

/// The owners without a row for an entry.
fn targets(tx: &mut Tx<'_>, entry: &Entry) -> Result<Vec<(Uuid, Uuid)>, Problem> {
    let sql = match (kind_of(entry.owner), entry.owner) {
        (Some(kind), _) => Sql::new(
            "SELECT t.id, t.subscription_id FROM idp_instance t LEFT JOIN option_value o \
             ON o.apply_to_idp_instance_id = t.id AND o.name = ",
        )
        .bind(entry.name)
        .push(" WHERE o.rid IS NULL AND t.idp_type = ")
        .bind(kind),
        (None, Owner::Tenant) => Sql::new(
            "SELECT t.id, t.subscription_id FROM tenant t LEFT JOIN option_value o \
             ON o.apply_to_tenant_id = t.id AND o.name = ",
        )
        .bind(entry.name)
        .push(" WHERE o.rid IS NULL"),
        // there are no MFA instances yet
        (None, _) => return Ok(Vec::new()),
    };
    let mut targets = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        targets.push((row.id(0)?, row.id(1)?));
        Ok(())
    })?;
    Ok(targets)
}
