//! The types that a column of a row is read as.

use chancery_record::{Cell, Timestamp};
use uuid::Uuid;

/// A type that a column is read as. Each accepts the storage classes of both engines.
pub trait FromCell<'r>: Sized {
    /// The type, for the message of an error.
    const EXPECTED: &'static str;

    /// The value; `None` if the cell has another type.
    fn from_cell(cell: Cell<'r>) -> Option<Self>;
}

impl<'r> FromCell<'r> for i64 {
    const EXPECTED: &'static str = "a whole number";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        match cell {
            Cell::Int(value) => Some(value),
            Cell::Bool(value) => Some(value.into()),
            _ => None,
        }
    }
}

impl<'r> FromCell<'r> for u64 {
    const EXPECTED: &'static str = "a whole number of 0 or more";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        i64::from_cell(cell)?.try_into().ok()
    }
}

impl<'r> FromCell<'r> for bool {
    const EXPECTED: &'static str = "a Boolean";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        i64::from_cell(cell).map(|value| value != 0)
    }
}

impl<'r> FromCell<'r> for Timestamp {
    const EXPECTED: &'static str = "a time";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        i64::from_cell(cell).map(Self)
    }
}

impl<'r> FromCell<'r> for Uuid {
    const EXPECTED: &'static str = "a UUID";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        match cell {
            Cell::Id(id) => Some(id),
            Cell::Bytes(bytes) => Self::from_slice(bytes).ok(),
            _ => None,
        }
    }
}

impl<'r> FromCell<'r> for &'r str {
    const EXPECTED: &'static str = "text";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        match cell {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'r> FromCell<'r> for String {
    const EXPECTED: &'static str = "text";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        <&str>::from_cell(cell).map(str::to_owned)
    }
}

impl<'r> FromCell<'r> for &'r [u8] {
    const EXPECTED: &'static str = "bytes";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        match cell {
            Cell::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl<'r> FromCell<'r> for Vec<u8> {
    const EXPECTED: &'static str = "bytes";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        <&[u8]>::from_cell(cell).map(<[u8]>::to_vec)
    }
}

impl<'r> FromCell<'r> for Cell<'r> {
    const EXPECTED: &'static str = "a known type";

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        Some(cell)
    }
}

impl<'r, T: FromCell<'r>> FromCell<'r> for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_cell(cell: Cell<'r>) -> Option<Self> {
        if cell == Cell::Null { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}
