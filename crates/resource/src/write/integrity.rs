//! Integrity between rows: a new row refers to parents within the caller's scope, and a row with children
//! cannot be deleted.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use chancery_record::{Field, FieldError, Kind, Value};
use chancery_store::{Tx, selectable};
use uuid::Uuid;

use crate::{
    Child, Context, LIST, Parent, Problem, ProblemKind, ProposedRow, Reach, Scope, Shape, Sql, StoredRow,
    Violation, Writer,
    read::{load::key_name, visible::visible},
};

/// The most children in an error's detail; the others are counted.
const MAX_NAMED: usize = 5;

/// The violations by rows to be written together: for each the index of the row, the problem type and the error.
pub fn find_violations(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
    base: impl Fn(usize) -> String,
) -> Result<Vec<(usize, ProblemKind, FieldError)>, Problem> {
    let Writer { context, shape, .. } = writer;
    let mut violations = match shape.writes.validate_rows {
        Some(validate) => validate(writer, tx, rows)?,
        None => Vec::new(),
    };
    violations.extend(find_unknown_parents(shape, context, tx, rows)?);
    violations.extend(find_full_parents(shape, tx, rows)?);
    let errors = violations
        .into_iter()
        .map(|Violation { row, kind, field, detail }| (row, kind, shape.error_at(&base(row), field, detail)));
    Ok(errors.collect())
}

/// Finds rows that refer to a parent which does not exist, or which is outside of the caller's scope.
fn find_unknown_parents(
    shape: &Shape,
    context: &Context,
    tx: &mut Tx<'_>,
    rows: &[ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let mut violations = Vec::new();
    for Parent { field, shape: parent, .. } in shape.parents {
        let reference = |row: &ProposedRow<'_>| new_reference(row, field);
        let ids: HashSet<Uuid> = rows.iter().filter_map(reference).collect();
        let known = visible(context, tx, parent, &ids.into_iter().collect::<Vec<_>>())?;
        let unknown = rows.iter().enumerate().filter_map(|(row, proposed)| Some((row, reference(proposed)?)));
        violations.extend(unknown.filter(|(_, id)| !known.contains_key(id)).map(|(row, _)| Violation {
            row,
            kind: ProblemKind::InvalidRequest,
            field,
            detail: format!("names no {}", parent.name),
        }));
    }
    Ok(violations)
}

/// The parent of a field, if the reference is new.
fn new_reference(row: &ProposedRow<'_>, field: &Field) -> Option<Uuid> {
    field.id(row.values).filter(|id| row.was.and_then(|was| field.id(&was.values)) != Some(*id))
}

/// Finds rows that refer to a parent which already has the maximum number of rows.
fn find_full_parents(
    shape: &Shape,
    tx: &mut Tx<'_>,
    rows: &[ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let mut violations = Vec::new();
    for Parent { field, shape: parent, most, .. } in shape.parents {
        let Some(most) = *most else { continue };
        let text = format!("SELECT count(*) FROM {} WHERE {} = ?1", shape.table, field.column);
        let mut counted: HashMap<Uuid, usize> = HashMap::new();
        for (row, proposed) in rows.iter().enumerate() {
            let Some(id) = new_reference(proposed, field) else { continue };
            let count = match counted.entry(id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let existing = tx.one(&text, &[Value::Id(id)], |row| row.int(0))?.unwrap_or_default();
                    unknown.insert(usize::try_from(existing).unwrap_or(usize::MAX))
                }
            };
            *count = count.saturating_add(1);
            if *count > most {
                violations.push(Violation {
                    row,
                    kind: ProblemKind::InvalidRequest,
                    field,
                    detail: format!(
                        "is a {} that has {most} of these, the most there can be: delete one first",
                        parent.name
                    ),
                });
            }
        }
    }
    Ok(violations)
}

selectable! {
    /// A child of a row.
    struct NamedChild<'r>(name) {
        parent: Uuid = "p.id",
        name: Option<&'r str> = "c.{name}",
    }
}

/// Finds rows that still have children: the index of each row, and the detail to report.
pub fn find_children(
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: &[StoredRow],
) -> Result<Vec<(usize, String)>, Problem> {
    let key = shape.plan().key;
    let mut children: HashMap<Uuid, Vec<String>> = HashMap::new();
    for Child { noun, table, column, name } in shape.deletes.children {
        let by = if *column == "store" { "rid" } else { "id" };
        for chunk in rows.chunks(LIST) {
            let mut sql = Sql::new(format!(
                "SELECT {} FROM {} p JOIN {table} c ON c.{column} = p.{by} \
                 AND c.rid IN (SELECT f.rid FROM {table} f WHERE f.{column} = p.{by} ORDER BY f.rid LIMIT {}) \
                 WHERE p.id IN ",
                NamedChild::columns(name),
                shape.table,
                MAX_NAMED + 1,
            ));
            sql.add_list(chunk.iter().map(|row| row.value(key).clone()));
            sql.add(" ORDER BY p.id, c.rid");
            tx.query(&sql.text, &sql.parameters, |row| {
                let NamedChild { parent, name } = NamedChild::read(row)?;
                let name = name.map_or_else(String::new, |name| format!(" {name:?}"));
                children.entry(parent).or_default().push(format!("{noun}{name}"));
                Ok(())
            })?;
        }
    }
    let listed = |names: &[String]| {
        let more = if names.len() > MAX_NAMED { ", and more" } else { "" };
        let named: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
        format!("still has {}{more}: delete them first", named.join(", "))
    };
    let with_children = rows.iter().enumerate().filter_map(|(index, row)| match row.value(key) {
        Value::Id(id) => children.get(id).map(|names| (index, listed(names))),
        _ => None,
    });
    Ok(with_children.collect())
}

/// A row that was just written.
pub struct WrittenRow<'a> {
    /// The JSON Pointer of its body.
    pub base: String,
    /// Whether it was just created.
    pub is_new: bool,
    /// Its values.
    pub values: &'a [Value],
}

/// Refuses rows that were just written and are now outside of the scope of the caller's rights: a caller may
/// not create a row, or move one, to where it could not change it.
///
/// # Errors
/// Every such row; a conflict, where one was in scope before.
pub fn confine<'a>(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    rows: impl Iterator<Item = WrittenRow<'a>>,
) -> Result<(), Problem> {
    // a nested part is reached through its owner, which is in scope; rows that every caller reaches are never out of scope
    if !matches!(context.scope, Scope::Parts { .. }) || matches!(shape.reach, Reach::Part | Reach::All) {
        return Ok(());
    }
    let plan = shape.plan();
    let rows: Vec<(WrittenRow<'a>, &Value)> =
        rows.filter_map(|row| row.values.get(plan.key).map(|key| (row, key))).collect();
    let Some(column) = shape.key().map(|key| key.column) else { return Ok(()) };
    let mut in_scope = HashSet::with_capacity(rows.len());
    for chunk in rows.chunks(LIST) {
        let mut sql = shape.begin(context, &format!("SELECT t.{column} FROM {} t WHERE ", shape.source()));
        shape.add_reach(&mut sql, &context.scope, None);
        sql.add(&format!(" AND t.{column} IN "));
        sql.add_list(chunk.iter().map(|(_, key)| (*key).clone()));
        let kind = shape.key().map_or(Kind::Id, |key| key.kind);
        tx.query(&sql.text, &sql.parameters, |row| {
            in_scope.insert(key_name(&row.value(0, &kind)?));
            Ok(())
        })?;
    }
    let out_of_scope = rows.into_iter().filter(|(_, key)| !in_scope.contains(&key_name(key)));
    let (mut errors, mut is_change) = (Vec::new(), false);
    for (WrittenRow { base, is_new, .. }, _) in out_of_scope {
        is_change |= !is_new;
        let detail = if is_new { "is not within what your roles cover" } else { OUT_OF_REACH };
        errors.push(FieldError::new(base, detail));
    }
    match (errors.is_empty(), is_change) {
        (true, _) => Ok(()),
        (false, false) => Err(Problem::wrong(errors)),
        (false, true) => Err(Problem { kind: ProblemKind::Conflict, ..Problem::wrong(errors) }),
    }
}

/// The detail of a change that is refused because its caller could not undo it.
const OUT_OF_REACH: &str = "would be out of what your roles cover; \
    an administrator whose roles cover it before and afterwards can make this change";

/// Registers the postcondition of a written resource, to be checked when the operation ends.
pub fn register_postcondition(context: &Context, shape: &Shape) {
    let Some(postcondition) = shape.writes.postcondition else { return };
    let mut registered = context.postconditions.borrow_mut();
    if !registered.iter().any(|known| std::ptr::fn_addr_eq(*known, postcondition)) {
        registered.push(postcondition);
    }
}

/// Checks the postconditions of all written resources.
///
/// # Errors
/// The problem of the first violated postcondition.
pub fn check_postconditions(context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
    let registered = context.postconditions.take();
    registered.into_iter().try_for_each(|postcondition| postcondition(context, tx))
}
