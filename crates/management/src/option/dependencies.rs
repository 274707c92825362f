//! Dependencies between options of one owner: the valid values of one option depend on another one.

use std::collections::HashMap;

use chancery_record::{FieldOf, Value};
use chancery_resource::{
    AuditAction, Context, Problem, ProblemKind, ProposedRow, Tx, load_by, select_where, settings::Entry,
    update_unversioned,
};
use uuid::Uuid;

use super::{OPTION, OptionRow, rules::entry_of};

/// The target of an option, with the field that names it.
#[derive(Clone, Copy)]
struct Target {
    field: FieldOf<OptionRow, Option<Uuid>>,
    id: Uuid,
}

/// The target of an option.
fn target(values: &[Value]) -> Option<Target> {
    OptionRow::TARGETS.into_iter().find_map(|field| Some(Target { field, id: field.field().id(values)? }))
}

/// The stored value of the option of this name; empty if there is none.
fn stored(tx: &mut Tx<'_>, of: Target, name: &str) -> Result<String, Problem> {
    let text = format!("SELECT COALESCE(value, '') FROM option_value WHERE {} = ?1 AND name = ?2", of.field);
    let found = tx.one(&text, &[Value::Id(of.id), name.into()], |row| Ok(row.text(0)?.to_owned()))?;
    Ok(found.unwrap_or_default())
}

/// Marks those of the rows that contradict other options of their owners, in the stored or proposed state.
pub fn mark_contradictions(tx: &mut Tx<'_>, rows: &mut [ProposedRow<'_>]) -> Result<(), Problem> {
    let proposed: HashMap<(Uuid, String), String> = rows
        .iter()
        .filter_map(|row| {
            let name = row.text(OptionRow::NAME)?.to_owned();
            Some(((target(row.values)?.id, name), row.text(OptionRow::VALUE).unwrap_or_default().to_owned()))
        })
        .collect();
    for row in rows {
        let (Some(entry), Some(of)) = (entry_of(row.values), target(row.values)) else { continue };
        for dependency in entry.constraints() {
            let other = match proposed.get(&(of.id, dependency.other().to_owned())) {
                Some(other) => other.clone(),
                None => stored(tx, of, dependency.other())?,
            };
            if dependency.contradicts(entry, row.text(OptionRow::VALUE).unwrap_or_default(), &other) {
                row.set(OptionRow::HAS_CONFIGURATION_ERROR, true)?;
            }
        }
    }
    Ok(())
}

/// The name of the stored option of the same owner that an option contradicts, if it does.
pub fn contradicted(
    tx: &mut Tx<'_>,
    values: &[Value],
    entry: &Entry,
) -> Result<Option<&'static str>, Problem> {
    let Some(of) = target(values) else { return Ok(None) };
    contradiction(tx, of, entry, OptionRow::VALUE.text(values).unwrap_or_default())
}

/// The name of the stored option that this value of another contradicts, if it does.
fn contradiction(
    tx: &mut Tx<'_>,
    of: Target,
    entry: &Entry,
    own: &str,
) -> Result<Option<&'static str>, Problem> {
    for dependency in entry.constraints() {
        let other = stored(tx, of, dependency.other())?;
        if dependency.contradicts(entry, own, &other) {
            return Ok(Some(dependency.other()));
        }
    }
    Ok(None)
}

/// Validates the options again that depend on one that was written or deleted.
pub fn revalidate_dependent(context: &Context, tx: &mut Tx<'_>, values: &[Value]) -> Result<(), Problem> {
    let (Some(written), Some(of)) = (entry_of(values), target(values)) else { return Ok(()) };
    for entry in written.dependent() {
        let sql = select_where(context, &OPTION, of.field, of.id.into());
        let sql = sql.push(&format!(" AND t.{} = ", OptionRow::NAME)).bind(entry.name);
        let was = match load_by(context, tx, &OPTION, None, &sql) {
            Ok(was) => was,
            Err(problem) if problem.kind == ProblemKind::NotFound => continue,
            Err(problem) => return Err(problem),
        };
        let own = was.text(OptionRow::VALUE).unwrap_or_default();
        let is_wrong = entry.is_wrong(own) || contradiction(tx, of, entry, own)?.is_some();
        let mut changed = was.values.clone();
        OptionRow::HAS_CONFIGURATION_ERROR.set(&mut changed, is_wrong)?;
        update_unversioned(context, tx, &OPTION, &was, &changed, AuditAction::UPDATED)?;
    }
    Ok(())
}
