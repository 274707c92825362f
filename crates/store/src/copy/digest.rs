//! The digest of a table's rows, the same on both engines.

use aws_lc_rs::digest::{Context, SHA256};
use chancery_record::{Cell, Value};

/// The digest of a table's rows in the order of its key, and their number.
#[derive(Clone)]
pub struct TableDigest {
    context: Context,
    rows: u64,
}

impl Default for TableDigest {
    fn default() -> Self {
        Self { context: Context::new(&SHA256), rows: 0 }
    }
}

impl TableDigest {
    /// Adds rows.
    pub fn add(&mut self, rows: &[Vec<Value>]) {
        for row in rows {
            self.rows += 1;
            for value in row {
                self.add_value(value.cell());
            }
        }
    }

    /// PostgreSQL has types for Booleans and UUIDs; SQLite stores them as numbers and bytes.
    fn add_value(&mut self, value: Cell<'_>) {
        match value {
            Cell::Null => self.context.update(&[0]),
            Cell::Bool(value) => self.add_number(value.into()),
            Cell::Int(value) => self.add_number(value),
            Cell::Text(text) => self.add_bytes(2, text.as_bytes()),
            Cell::Id(id) => self.add_bytes(3, id.as_bytes()),
            Cell::Bytes(bytes) => self.add_bytes(3, bytes),
        }
    }

    fn add_number(&mut self, number: i64) {
        self.context.update(&[1]);
        self.context.update(&number.to_be_bytes());
    }

    fn add_bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.context.update(&[kind]);
        self.context.update(&(bytes.len() as u64).to_be_bytes());
        self.context.update(bytes);
    }

    /// How many rows were added.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of rows, and the digest.
    pub fn finish(self) -> (u64, Vec<u8>) {
        (self.rows, self.context.finish().as_ref().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use chancery_record::Value;
    use uuid::Uuid;

    use super::TableDigest;

    fn of(rows: &[Vec<Value>]) -> (u64, Vec<u8>) {
        let mut digest = TableDigest::default();
        digest.add(rows);
        digest.finish()
    }

    #[test]
    fn equal_rows_have_equal_digests_on_both_engines() {
        let id = Uuid::from_u128(7);
        let one = vec![Value::Bool(true), Value::Id(id), Value::Null, "a".into()];
        let other = vec![Value::Int(1), Value::Bytes(id.as_bytes().to_vec()), Value::Null, "a".into()];
        assert_eq!(of(std::slice::from_ref(&one)), of(&[other]));
        for (a, b) in [
            (vec!["ab".into(), "c".into()], vec!["a".into(), "bc".into()]),
            (vec![Value::Null], vec!["".into()]),
            (vec![Value::Bytes(b"a".to_vec())], vec!["a".into()]),
            (vec![Value::Int(0)], vec![Value::Null]),
        ] {
            assert_ne!(of(&[a]), of(&[b]));
        }
        assert_ne!(of(std::slice::from_ref(&one)), of(&[one.clone(), one]));
    }
}
