//! Writing answers: resources as JSON, in constant memory.

use chancery_record::{
    Column, Field, FieldOf, FieldType, Mismatch, Record, Sealing, Value, json_of, write_cell,
};
use chancery_store::Row;

use crate::{
    Context, MasterKey, Personal, Problem, Scope, Shape,
    seal::sealed::{is_sealed, open_secret, reveal},
    write::change::OwnerRow,
};

/// A part of an answer that is sent while the operation is still running.
pub enum Part {
    /// Status and headers, before the first bytes.
    Head(u16, Vec<(&'static str, String)>),
    /// Bytes of the body.
    Bytes(Vec<u8>),
    /// The end of a complete body. Without it the connection must show the recipient that the body is
    /// incomplete.
    End,
}

/// Receives parts of an answer; `false` when the recipient is disconnected.
pub type Sink = Box<dyn FnMut(Part) -> bool + Send>;

/// Bytes of a list collected before they are sent.
const FLUSH_SIZE: usize = 64 << 10;

/// The body of an answer: collected in memory, and sent from there when it grows.
#[derive(Default)]
pub struct Out {
    /// The unsent bytes.
    pub bytes: Vec<u8>,
    /// The `ETag` of the body, where it is not computed from the bytes.
    pub tag: Option<String>,
    sink: Option<Sink>,
    head: Option<(u16, Vec<(&'static str, String)>)>,
    sent: bool,
}

impl Out {
    /// A body that is sent to `sink` when it grows over a bound.
    pub fn streaming(sink: Sink) -> Self {
        Self { sink: Some(sink), ..Self::default() }
    }

    /// Restarts the body, when the operation runs again.
    pub fn restart(&mut self) -> Result<(), Problem> {
        self.bytes.clear();
        self.tag = None;
        if self.sent { Err(disconnected()) } else { Ok(()) }
    }

    /// Allows parts to be sent from now on, with this status and these headers.
    pub fn begin(&mut self, status: u16, headers: Vec<(&'static str, String)>) {
        if !self.sent {
            self.head = Some((status, headers));
        }
    }

    /// Sends the collected bytes if there are many.
    pub fn flush_if_large(&mut self) -> Result<(), Problem> {
        if self.bytes.len() < FLUSH_SIZE {
            return Ok(());
        }
        let Some(sink) = &mut self.sink else { return Ok(()) };
        if let Some((status, headers)) = self.head.take() {
            self.sent = true;
            if !sink(Part::Head(status, headers)) {
                return Err(disconnected());
            }
        }
        if self.sent && !sink(Part::Bytes(std::mem::take(&mut self.bytes))) {
            return Err(disconnected());
        }
        Ok(())
    }

    /// Sends the rest, if a part was sent before.
    pub fn finish(&mut self) {
        if let (true, Some(sink)) = (self.sent, &mut self.sink) {
            let _ = sink(Part::Bytes(std::mem::take(&mut self.bytes))) && sink(Part::End);
        }
    }
}

fn disconnected() -> Problem {
    Problem::invalid("The reader of this answer went away.")
}

/// A row read for a change: its number and the values of its fields.
#[derive(Clone, Debug)]
pub struct StoredRow {
    /// Its number.
    pub rid: i64,
    /// The number of the newest audit entry of its own changes; 0 where there is none.
    pub last_entry: i64,
    /// The values of its fields, in order.
    pub values: Vec<Value>,
    /// Its owner.
    pub owner: Option<OwnerRow>,
}

impl StoredRow {
    /// Reads a row of [`Shape::select`].
    pub(crate) fn read(
        shape: &Shape,
        scope: &Scope,
        owner: Option<&OwnerRow>,
        row: &Row<'_>,
    ) -> Result<Self, chancery_store::Error> {
        let mut column = 0;
        let values = shape.fields.iter().map(|field| {
            Ok(match field.access.column {
                Column::Own | Column::Derived => {
                    column += 1;
                    row.value(column, &field.kind)?
                }
                Column::Unstored => Value::Null,
                Column::Scope => Value::from(scope.store_id()),
                Column::Owner => Value::from(owner.map(|owner| owner.id)),
            })
        });
        let values = values.collect::<Result<_, chancery_store::Error>>()?;
        let last_entry = shape.plan().last_entry_column.map_or(Ok(0), |column| row.int(column))?;
        Ok(Self { rid: row.int(0)?, last_entry, values, owner: owner.cloned() })
    }

    /// The row as the owner of others.
    ///
    /// # Errors
    /// A resource whose key is no id owns nothing.
    pub fn as_owner(&self, shape: &Shape) -> Result<OwnerRow, Problem> {
        let Value::Id(id) = *self.value(shape.plan().key) else {
            return Err(chancery_store::Error::Internal(format!("{} owns nothing", shape.name)).into());
        };
        let person_key = match shape.personal {
            Personal::Is(field) => match field.value(&self.values) {
                Value::Bytes(key) => Some(key.clone()),
                _ => None,
            },
            _ => None,
        };
        Ok(OwnerRow { rid: self.rid, id, person_key })
    }

    /// The same row with other values.
    #[must_use]
    pub fn with(&self, values: Vec<Value>) -> Self {
        Self { rid: self.rid, last_entry: self.last_entry, values, owner: self.owner.clone() }
    }

    /// The value of the field at this index.
    pub(crate) fn value(&self, index: usize) -> &Value {
        self.values.get(index).unwrap_or(&Value::Null)
    }

    /// The value of a field.
    ///
    /// # Errors
    /// The row is of another record, or the value does not fit.
    pub fn get<R: Record, T: FieldType>(&self, field: FieldOf<R, T>) -> Result<T, Mismatch> {
        field.get(&self.values)
    }

    /// The text of a field; `None` where it has none.
    pub fn text<R: Record, T: FieldType>(&self, field: FieldOf<R, T>) -> Option<&str> {
        field.text(&self.values)
    }
}

/// Writes a row of [`Shape::select`] as an object without its closing brace, so that nested arrays can
/// follow.
pub fn write_row(
    (shape, master): (&Shape, &MasterKey),
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
