//! Typed handles of fields: the record and the type of a field, known at compile time.

use std::{fmt, marker::PhantomData};

use crate::{Field, FieldType, Kind, Mismatch, Record, Value};

/// The handle of a field of the record `R` whose values are of type `T`. [`record!`](crate::record) declares
/// one for each field, such as `Room::NAME`.
pub struct FieldOf<R, T> {
    index: usize,
    types: PhantomData<fn() -> (R, T)>,
}

impl<R, T> Clone for FieldOf<R, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T> Copy for FieldOf<R, T> {}

impl<R: Record, T: FieldType> FieldOf<R, T> {
    /// The handle of the field at this index. Called by [`record!`](crate::record).
    #[doc(hidden)]
    pub const fn at(index: usize) -> Self {
        Self { index, types: PhantomData }
    }

    /// The field without its types, for lists of fields.
    #[expect(clippy::indexing_slicing, reason = "the macro counts the places of the fields that it declares")]
    pub const fn field(self) -> &'static Field {
        &R::FIELDS[self.index]
    }

    /// Its column.
    pub const fn column(self) -> &'static str {
        self.field().column
    }

    /// Its value in a row of `R`.
    ///
    /// # Errors
    /// The values are of another record, or the value is not of the field's type.
    pub fn get(self, values: &[Value]) -> Result<T, Mismatch> {
        match values.get(self.index) {
            Some(value) if values.len() == R::FIELDS.len() => {
                T::from_value(value.clone()).map_err(|_| Mismatch(self.column()))
            }
            _ => Err(Mismatch(self.column())),
        }
    }

    /// Its text in a row, borrowed; `None` where the row has none.
    pub fn text(self, values: &[Value]) -> Option<&str> {
        const {
            let is_text = matches!(T::KIND, Kind::Text(_) | Kind::Choice(_) | Kind::Numbered(_));
            assert!(is_text, "the field holds no text");
        }
        match self.field().value(values) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Sets its value in a row of `R`.
    ///
    /// # Errors
    /// The values are of another record.
    pub fn set(self, values: &mut [Value], value: T) -> Result<(), Mismatch> {
        if values.len() != R::FIELDS.len() {
            return Err(Mismatch(self.column()));
        }
        self.field().set(values, value.into_value());
        Ok(())
    }
}

/// Displays the column, for SQL statements.
impl<R: Record, T: FieldType> fmt::Display for FieldOf<R, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.column())
    }
}

impl<R: Record, T: FieldType> From<FieldOf<R, T>> for &'static Field {
    fn from(handle: FieldOf<R, T>) -> Self {
        handle.field()
    }
}

#[cfg(test)]
mod tests {
    use crate::{FIXED, KEY, Name, OPEN, Record as _, Value};

    crate::record! {
        /// A room.
        struct Room {
            /// Its number.
            number: i64 = KEY,
            /// What the door says.
            door: Option<Name> = OPEN.stored_as("sign"),
            /// What it is for.
            purpose: Name = FIXED,
        }
    }

    #[test]
    fn handles_name_their_fields() {
        let handles = [Room::NUMBER.field(), Room::DOOR.field(), Room::PURPOSE.field()];
        assert_eq!(handles.map(|field| field.column), ["number", "sign", "purpose"]);
        for (field, own) in handles.into_iter().zip(Room::FIELDS) {
            assert!(field.is(own) && !field.is(other::Room::NUMBER.field()), "{}", field.column);
        }
    }

    mod other {
        use crate::KEY;

        crate::record! {
            /// Another room.
            pub struct Room {
                /// Its number.
                number: i64 = KEY,
            }
        }
    }

    #[test]
    fn handles_read_and_write_values() {
        let mut values = vec![Value::Int(7), Value::Null, "hall".into()];
        assert_eq!((Room::NUMBER.get(&values), Room::DOOR.get(&values)), (Ok(7), Ok(None)));
        assert_eq!((Room::PURPOSE.text(&values), Room::DOOR.text(&values)), (Some("hall"), None));
        Room::DOOR.set(&mut values, Name::new("7a").ok()).unwrap();
        assert_eq!(Room::DOOR.text(&values), Some("7a"));
        assert!(other::Room::NUMBER.get(&values).is_err(), "values of another record");
        assert!(other::Room::NUMBER.set(&mut values, 8).is_err());
    }
}
