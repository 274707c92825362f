//! The types of new instances.

use std::collections::HashMap;

use chancery_record::{FieldOf, Record};
use chancery_resource::{Problem, ProposedRow, Tx, Violation};

use super::{FactoryType, IdpTypeId, ProviderType};
use crate::violation::violation_at;

/// Resolves the types of new rows: the first field has the type's id, the second gets the type's
/// `factoryType`. Reports types that are not active or not of the required kind.
pub fn settle_types<R: Record>(
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
    (type_id, served_by): (FieldOf<R, IdpTypeId>, FieldOf<R, Option<FactoryType>>),
    required: ProviderType,
) -> Result<Vec<Violation>, Problem> {
    if rows.iter().all(|row| row.was.is_some()) {
        return Ok(Vec::new());
    }
    // all types are read: there are few
    let mut types = HashMap::new();
    tx.query("SELECT id, factory_type, provider_type, is_active FROM idp_type", &[], |row| {
        let fits = row.text(2)? == required.name() && row.bool(3)?;
        types.insert(row.id(0)?, (row.text(1)?.to_owned(), fits));
        Ok(())
    })?;
    let mut violations = Vec::new();
    for (index, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.was.is_none()) {
        match types.get(&row.get(type_id)?.0) {
            Some((factory, true)) => served_by.field().set(row.values, factory.as_str().into()),
            Some((_, false)) => {
                let detail = format!("names a type that is not active, or is none of {}", required.name());
                violations.push(violation_at(index, type_id, detail));
            }
            None => violations.push(violation_at(index, type_id, "names no IdpType")),
        }
    }
    Ok(violations)
}
