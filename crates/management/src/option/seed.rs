//! Rows for the catalogue's entries: created with each owner, and when a release adds an entry.

use std::collections::HashMap;

use chancery_record::{FieldType as _, Name, OptionValue, Record as _, Value};
use chancery_resource::settings::{Entry, Owner};
use chancery_resource::{
    Context, LIST, Problem, Sql, StateTable, Tx, insert, load_keys, new_row, selectable, update,
};
use uuid::Uuid;

use super::{DataType, EditorType, OPTION, OptionRow};

/// The maximum number of options that are created with an owner of the filtered types.
pub fn max_created(filter: fn(Owner) -> bool) -> usize {
    let owners = Owner::TYPES.iter().map(|(_, owner)| *owner).filter(|owner| filter(*owner));
    owners.map(|owner| owner.entries().count()).max().unwrap_or(0)
}

/// Creates a new owner's options, with their defaults.
pub fn create_all(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: Owner,
    target: Uuid,
    subscription: Uuid,
) -> Result<(), Problem> {
    owner.entries().try_for_each(|entry| create(context, tx, entry, target, subscription))
}

/// Creates one of an owner's options, with its default.
pub fn create_one(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: Owner,
    name: &str,
    target: Uuid,
    subscription: Uuid,
) -> Result<(), Problem> {
    owner.entry(name).map_or(Ok(()), |entry| create(context, tx, entry, target, subscription))
}

fn create(
    context: &Context,
    tx: &mut Tx<'_>,
    entry: &Entry,
    target: Uuid,
    subscription: Uuid,
) -> Result<(), Problem> {
    let (data_type, editor_type) = entry.form.hints();
    let kind = entry.owner.type_name();
    let is_factor = entry.owner.is_second_factor();
    let is_tenant = entry.owner == Owner::Tenant;
    let applies_to = match (is_tenant, is_factor) {
        (true, _) => OptionRow::APPLY_TO_TENANT_ID,
        (_, true) => OptionRow::APPLY_TO_MFA_INSTANCE_ID,
        _ => OptionRow::APPLY_TO_IDP_INSTANCE_ID,
    };
    let mut values = OptionRow::no_values();
    let has_error = entry.mandatory && entry.default.is_empty();
    OptionRow::NAME.set(&mut values, Name::from_value(entry.name.into())?)?;
    OptionRow::VALUE.set(&mut values, OptionValue::from_value(entry.default.into())?)?;
    OptionRow::DATA_TYPE.set(&mut values, DataType::from_value(data_type.into())?)?;
    OptionRow::EDITOR_TYPE.set(&mut values, EditorType::from_value(editor_type.into())?)?;
    OptionRow::HAS_CONFIGURATION_ERROR.set(&mut values, has_error)?;
    applies_to.set(&mut values, Some(target))?;
    OptionRow::SUBSCRIPTION_ID.set(&mut values, Some(subscription))?;
    OptionRow::OWNER_TYPE.set(&mut values, Some(Name::from_value(kind.into())?))?;
    insert(context, tx, &OPTION, None, &new_row(context, &OPTION, None, values)?)
}

selectable! {
    /// An entry that every owner has a row for.
    struct KnownEntry from "FROM option_entry" {
        owner: String = "owner",
        name: String = "name",
        form: String = "COALESCE(form, '')",
    }
}

/// Creates the entries that this release added for all existing owners, and validates values again where it
/// changed an entry's form.
pub fn add_new_entries(context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
    let mut known = HashMap::new();
    tx.query(KnownEntry::SELECT, &[], |row| {
        let KnownEntry { owner, name, form } = KnownEntry::read(row)?;
        known.insert((owner, name), form);
        Ok(())
    })?;
    for entry in chancery_resource::settings::CATALOGUE.iter() {
        let needed = if entry.mandatory { ", mandatory" } else { "" };
        let (owner, form) = (format!("{:?}", entry.owner), format!("{:?}{needed}", entry.form));
        let text = match known.get(&(owner.clone(), entry.name.to_owned())) {
            Some(stored_form) if *stored_form == form => continue,
            Some(_) => {
                revalidate(context, tx, entry)?;
                StateTable::OptionEntry.update("SET form = ?3 WHERE owner = ?1 AND name = ?2")
            }
            None => {
                for target in targets(tx, entry)? {
                    create(context, tx, entry, target.id, target.subscription)?;
                }
                StateTable::OptionEntry.insert("(owner, name, form) VALUES (?1, ?2, ?3)")
            }
        };
        tx.queue(&text, vec![owner.into(), entry.name.into(), form.into()])?;
    }
    Ok(())
}

selectable! {
    /// A stored value of an entry.
    struct EntryValue<'r> from "FROM option_value WHERE owner_type = ?1 AND name = ?2" {
        id: Uuid = "id",
        value: &'r str = "COALESCE(value, '')",
        is_wrong: bool = "has_configuration_error",
    }
}

/// Updates `hasConfigurationError` of an entry's values after its form changed.
fn revalidate(context: &Context, tx: &mut Tx<'_>, entry: &Entry) -> Result<(), Problem> {
    // a secret is sealed, and may be any text
    if entry.secret {
        return Ok(());
    }
    let mut changed = Vec::new();
    tx.query(EntryValue::SELECT, &[entry.owner.type_name().into(), entry.name.into()], |row| {
        let EntryValue { id, value, is_wrong } = EntryValue::read(row)?;
        if is_wrong != entry.is_wrong(value) {
            changed.push(Value::Id(id));
        }
        Ok(())
    })?;
    for chunk in changed.chunks(LIST) {
        for was in load_keys(context, tx, &OPTION, None, chunk)?.into_values() {
            let mut values = was.values.clone();
            let is_wrong = was.text(OptionRow::VALUE).is_some_and(|value| entry.is_wrong(value));
            OptionRow::HAS_CONFIGURATION_ERROR.set(&mut values, is_wrong)?;
            OptionRow::CONCURRENCY_TOKEN.field().set(&mut values, context.new_token());
            update(context, tx, &OPTION, &was, &values)?;
        }
    }
    Ok(())
}

selectable! {
    /// An owner of options: a tenant or an instance.
    struct Target {
        id: Uuid = "t.id",
        subscription: Uuid = "t.subscription_id",
    }
}

/// The owners without a row for an entry.
fn targets(tx: &mut Tx<'_>, entry: &Entry) -> Result<Vec<Target>, Problem> {
    let (table, column) = match entry.owner {
        Owner::Tenant => ("tenant", OptionRow::APPLY_TO_TENANT_ID),
        owner if owner.is_second_factor() => ("mfa_instance", OptionRow::APPLY_TO_MFA_INSTANCE_ID),
        _ => ("idp_instance", OptionRow::APPLY_TO_IDP_INSTANCE_ID),
    };
    let mut sql = Sql::new(format!(
        "SELECT {} FROM {table} t LEFT JOIN option_value o ON o.{column} = t.id AND o.name = ",
        Target::COLUMNS
    ))
    .bind(entry.name)
    .push(" WHERE o.rid IS NULL");
    if entry.owner != Owner::Tenant {
        sql = sql.push(" AND t.idp_type = ").bind(entry.owner.type_name());
    }
    let mut targets = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        targets.push(Target::read(row)?);
        Ok(())
    })?;
    Ok(targets)
}
