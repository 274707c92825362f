//! A row of either engine, read without copying.

use chancery_record::{Cell, Kind, Value};
use rusqlite::types::ValueRef;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::{Error, FromCell};

/// One row of a result. Typed reads accept the storage classes of both engines.
pub enum Row<'a> {
    /// A row of SQLite.
    Sqlite(&'a rusqlite::Row<'a>),
    /// A row of PostgreSQL.
    Postgres(&'a tokio_postgres::Row),
}

fn type_mismatch(column: usize, expected: &str) -> Error {
    Error::Internal(format!("column {column} is not {expected}"))
}

impl Row<'_> {
    /// A column's value, borrowed.
    pub fn cell(&self, column: usize) -> Result<Cell<'_>, Error> {
        match self {
            Self::Sqlite(row) => Ok(match row.get_ref(column)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Int(value),
                ValueRef::Text(text) => {
                    Cell::Text(std::str::from_utf8(text).map_err(|_| type_mismatch(column, "UTF-8"))?)
                }
                ValueRef::Blob(bytes) => Cell::Bytes(bytes),
                ValueRef::Real(_) => return Err(type_mismatch(column, "a known type")),
            }),
            Self::Postgres(row) => {
                let kind = row.columns().get(column).map(tokio_postgres::Column::type_);
                let cell = match *kind.ok_or_else(|| type_mismatch(column, "there"))? {
                    Type::INT8 => row.try_get::<_, Option<i64>>(column)?.map(Cell::Int),
                    Type::INT4 => row.try_get::<_, Option<i32>>(column)?.map(|value| Cell::Int(value.into())),
                    Type::BOOL => row.try_get::<_, Option<bool>>(column)?.map(Cell::Bool),
                    Type::UUID => row.try_get::<_, Option<Uuid>>(column)?.map(Cell::Id),
                    Type::BYTEA => row.try_get::<_, Option<&[u8]>>(column)?.map(Cell::Bytes),
                    _ => row.try_get::<_, Option<&str>>(column)?.map(Cell::Text),
                };
                Ok(cell.unwrap_or(Cell::Null))
            }
        }
    }

    /// The value of a column of this kind, owned.
    pub fn value(&self, column: usize, kind: &Kind) -> Result<Value, Error> {
        Ok(match (self.cell(column)?, kind) {
            (Cell::Bytes(bytes), Kind::Id) => {
                Value::Id(Uuid::from_slice(bytes).map_err(|_| type_mismatch(column, "a UUID"))?)
            }
            (Cell::Int(value), Kind::Bool) => Value::Bool(value != 0),
            (cell, _) => cell.to_value(),
        })
    }

    /// A column's value as this type.
    ///
    /// # Errors
    /// The column has another type, or is null where the type is no [`Option`].
    pub fn get<'r, T: FromCell<'r>>(&'r self, column: usize) -> Result<T, Error> {
        T::from_cell(self.cell(column)?).ok_or_else(|| type_mismatch(column, T::EXPECTED))
    }

    /// A whole number.
    pub fn int(&self, column: usize) -> Result<i64, Error> {
        self.get(column)
    }

    /// A Boolean.
    pub fn bool(&self, column: usize) -> Result<bool, Error> {
        self.get(column)
    }

    /// An identifier.
    pub fn id(&self, column: usize) -> Result<Uuid, Error> {
        self.get(column)
    }

    /// An identifier or null.
    pub fn optional_id(&self, column: usize) -> Result<Option<Uuid>, Error> {
        self.get(column)
    }

    /// Text.
    pub fn text(&self, column: usize) -> Result<&str, Error> {
        self.get(column)
    }

    /// Text; `None` where the column is null.
    pub fn optional_text(&self, column: usize) -> Result<Option<String>, Error> {
        self.get(column)
    }

    /// Bytes.
    pub fn bytes(&self, column: usize) -> Result<&[u8], Error> {
        self.get(column)
    }

    /// Whether a column is null.
    pub fn is_null(&self, column: usize) -> Result<bool, Error> {
        Ok(self.cell(column)? == Cell::Null)
    }
}
