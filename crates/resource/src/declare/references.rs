//! What ties a resource to others and to its indexes: its owner, parents and children, unique keys.

use crate::Shape;

/// The resource that owns another: the path names it before the other's key.
#[derive(Clone, Copy)]
pub struct Owner {
    /// The owning resource.
    pub shape: &'static Shape,
    /// The column with the owner's row number.
    pub column: &'static str,
}

/// What must be gone before a row can go: rows of this table whose column holds its id.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// What they are.
    pub what: &'static str,
    /// Their table.
    pub table: &'static str,
    /// The column; `store` holds the row number.
    pub column: &'static str,
    /// The column that tells one from another to people; it may be empty.
    pub name: &'static str,
}

impl Child {
    /// Rows of this table with a column `name`.
    pub const fn new(what: &'static str, table: &'static str, column: &'static str) -> Self {
        Self { what, table, column, name: "name" }
    }

    /// The same, told by another column.
    #[must_use]
    pub const fn named_by(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

/// A field that names a row of another resource: one that the caller's scope covers.
#[derive(Clone, Copy)]
pub struct Parent {
    /// The column.
    pub column: &'static str,
    /// The other resource.
    pub shape: &'static Shape,
    /// How many rows may name one, where that is bounded.
    pub most: Option<usize>,
}

impl Parent {
    /// This column names a row of this resource.
    pub const fn new(column: &'static str, shape: &'static Shape) -> Self {
        Self { column, shape, most: None }
    }

    /// The same, named by at most so many rows: as many as are read at once where they are needed.
    #[must_use]
    pub const fn of_at_most(self, most: usize) -> Self {
        Self { most: Some(most), ..self }
    }
}

/// A unique index that a body can run into.
#[derive(Clone, Copy, Debug)]
pub struct Unique {
    /// The index: `table__column__column`.
    pub index: &'static str,
    /// The field of the body that collides.
    pub column: &'static str,
}

impl Unique {
    /// This index; a collision is told of this field.
    pub const fn new(index: &'static str, column: &'static str) -> Self {
        Self { index, column }
    }

    /// The columns of the index that are of fields of the resource, each with the place of its field.
    pub(crate) fn columns(&self, shape: &Shape) -> Vec<(&'static str, usize)> {
        let columns = self.index.split("__").skip(1);
        let place = |column: &'static str| {
            let plain = column.strip_suffix("_key").and_then(|plain| shape.field_index(plain));
            shape.field_index(column).or(plain).map(|place| (column, place))
        };
        columns.filter_map(place).collect()
    }
}
