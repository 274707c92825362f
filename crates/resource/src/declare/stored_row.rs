//! Stored rows, as the rules of a resource and writes read them.

use chancery_record::{Column, FieldOf, FieldType, Mismatch, Record, Value};
use chancery_store::Row;
use uuid::Uuid;

use crate::{Personal, Problem, Scope, Shape};

/// The owning row of an owned resource.
#[derive(Clone, Debug)]
pub struct OwnerRow {
    /// Its number.
    pub rid: i64,
    /// Its id.
    pub id: Uuid,
    /// Its stored, encrypted key, when it is a person.
    pub person_key: Option<Vec<u8>>,
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
