//! The types of new instances.

use std::collections::HashMap;

use chancery_record::{FieldOf, Record};
use chancery_resource::{Problem, ProposedRow, Tx, Violation, selectable};
use uuid::Uuid;

use super::{FactoryType, IdpTypeId, ProviderType};
use crate::violation::violation_at;

selectable! {
    /// A type of instances.
    struct InstanceType from "FROM idp_type" {
        id: Uuid = "id",
        factory: String = "factory_type",
        provider: String = "provider_type",
        is_active: bool = "is_active",
    }
}

/// Resolves the types of new rows: the field `type_id` has the type's id, the field `served_by` gets the type's
/// `factoryType`. Reports types that are not active or not of the required kind.
pub fn settle_types<R: Record>(
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
    type_id: FieldOf<R, IdpTypeId>,
    served_by: FieldOf<R, Option<FactoryType>>,
    required: ProviderType,
) -> Result<Vec<Violation>, Problem> {
    if rows.iter().all(|row| row.was.is_some()) {
        return Ok(Vec::new());
    }
    // all types are read: there are few
    let mut types = HashMap::new();
    tx.query(InstanceType::SELECT, &[], |row| {
        let found = InstanceType::read(row)?;
        types.insert(found.id, found);
        Ok(())
    })?;
    let mut violations = Vec::new();
    for (index, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.was.is_none()) {
        match types.get(&row.get(type_id)?.0) {
            Some(found) if found.is_active && found.provider == required.name() => {
                served_by.field().set(row.values, found.factory.as_str().into());
            }
            Some(_) => {
                let detail = format!("names a type that is not active, or is none of {}", required.name());
                violations.push(violation_at(index, type_id, detail));
            }
            None => violations.push(violation_at(index, type_id, "names no IdpType")),
        }
    }
    Ok(violations)
}
