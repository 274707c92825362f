//! Writing answers: resources as JSON, in constant memory.

use chancery_record::{Cell, Column, Field, Kind, Sealing, Value, json_of, write_cell};
use chancery_store::Row;

use crate::{
    Context, MasterKey, OwnerRow, Scope, Shape,
    seal::sealed::{
        PersonKey, entry_associated_data, is_sealed, open_personal, open_secret, personal_associated_data,
    },
};

/// Writes a row of [`Shape::select`] as an object without its closing brace, so that nested arrays can
/// follow.
pub fn write_row(
    shape: &Shape,
    master: &MasterKey,
    scope: &Scope,
    owner: Option<&OwnerRow>,
    row: &Row<'_>,
    out: &mut Vec<u8>,
) -> Result<(), chancery_store::Error> {
    let mut column = 0;
    let mut separator = b'{';
    for (field, label) in shape.fields.iter().zip(&shape.plan().labels) {
        if field.access.column.is_read() {
            column += 1;
        }
        if label.is_empty() {
            continue;
        }
        out.push(separator);
        separator = b',';
        out.extend_from_slice(label.as_bytes());
        match field.access.column {
            Column::Unstored => write_cell(&field.kind, Value::Null.cell(), out),
            Column::Own | Column::Derived if field.access.sealing == Sealing::Open => {
                write_cell(&field.kind, row.cell(column)?, out);
            }
            Column::Own | Column::Derived => {
                let value = reveal(master, scope, shape, field, row, column)?;
                write_cell(&field.kind, value.cell(), out);
            }
            Column::Scope => write_cell(&field.kind, Value::from(scope.store_id()).cell(), out),
            Column::Owner => {
                write_cell(&field.kind, Value::from(owner.map(|owner| owner.id)).cell(), out);
            }
        }
    }
    Ok(())
}

/// A member of a row for an answer: decrypted where it is sealed, null where its key was destroyed.
fn reveal(
    master: &MasterKey,
    scope: &Scope,
    shape: &Shape,
    field: &Field,
    row: &Row<'_>,
    column: usize,
) -> Result<Value, chancery_store::Error> {
    let cell = row.cell(column)?;
    Ok(match field.access.sealing {
        Sealing::Open => cell.to_value(),
        Sealing::Secret => {
            let Cell::Text(text) = cell else { return Ok(cell.to_value()) };
            if !is_sealed(text) {
                return Ok(cell.to_value());
            }
            if !scope.reveals() {
                return Ok(Value::Null);
            }
            let key = shape.plan().key_column.map_or(Ok(Value::Null), |at| row.id(at).map(Value::Id))?;
            open_secret(master, shape.table, field.column, &key, text).into()
        }
        Sealing::Person => {
            let (id, key_column) = shape.plan().person_columns;
            if row.is_null(id)? {
                return Ok(cell.to_value());
            }
            if row.is_null(key_column)? {
                return Ok(Value::Null);
            }
            let key = PersonKey::open(master, row.id(id)?, row.bytes(key_column)?);
            let has_id = shape.fields.get(shape.plan().key).is_some_and(|key| matches!(key.kind, Kind::Id));
            let associated_data = match shape.plan().key_column.filter(|_| has_id) {
                Some(at) => personal_associated_data(shape.name, field.column, row.id(at)?),
                None => entry_associated_data(row.int(0)?, field.column),
            };
            key.and_then(|key| open_personal(&key, &associated_data, cell)).unwrap_or(Value::Null)
        }
    })
}

/// Writes values as an object without its closing brace, as [`write_row`] would write the row.
pub fn write_values(shape: &Shape, master: &MasterKey, scope: &Scope, values: &[Value], out: &mut Vec<u8>) {
    let mut separator = b'{';
    for ((field, label), value) in shape.fields.iter().zip(&shape.plan().labels).zip(values) {
        if !label.is_empty() {
            out.push(separator);
            separator = b',';
            out.extend_from_slice(label.as_bytes());
            let visible = visible(shape, master, scope, values, field, value);
            write_cell(&field.kind, visible.as_ref().unwrap_or(value).cell(), out);
        }
    }
}

/// The members that [`write_values`] writes.
pub fn shown_members(
    context: &Context,
    shape: &Shape,
    values: &[Value],
) -> serde_json::Map<String, serde_json::Value> {
    let shown = shape.fields.iter().zip(&shape.plan().labels).filter(|(_, label)| !label.is_empty());
    let members = shown.map(|(field, _)| {
        let value = field.value(values);
        let visible = visible(shape, &context.app.master, &context.scope, values, field, value);
        (field.wire().to_owned(), json_of(&field.kind, visible.as_ref().unwrap_or(value).cell()))
    });
    members.collect()
}

/// The value of a sealed field for the caller: decrypted, or null where the secrets of this row are not shown.
/// `None`: the value as it is.
fn visible(
    shape: &Shape,
    master: &MasterKey,
    scope: &Scope,
    values: &[Value],
    field: &Field,
    value: &Value,
) -> Option<Value> {
    let (Sealing::Secret, Value::Text(text)) = (field.access.sealing, value) else { return None };
    if !scope.reveals() && (shape.writes.secret)(values) {
        return Some(Value::Null);
    }
    let key = values.get(shape.plan().key).unwrap_or(&Value::Null);
    is_sealed(text).then(|| Value::from(open_secret(master, shape.table, field.column, key, text)))
}

/// The value of a row for the caller.
pub fn seen_value(context: &Context, shape: &Shape, values: &[Value], field: &Field) -> Value {
    let value = field.value(values);
    visible(shape, &context.app.master, &context.scope, values, field, value).unwrap_or_else(|| value.clone())
}

/// Writes the nested arrays of a new row, all empty, and closes the object.
pub fn write_no_relations(shape: &Shape, out: &mut Vec<u8>) {
    for (relation, label) in shape.relations.iter().zip(&shape.plan().array_labels) {
        out.extend_from_slice(label.as_bytes());
        out.extend_from_slice(if relation.single { b"null" } else { b"]" });
    }
    out.push(b'}');
}
