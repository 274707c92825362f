//! References of a resource to others and to its indexes: owner, parents and children, unique keys.

use chancery_record::{Field, FieldOf, FieldType, Kind, Record};

use crate::{Shape, declare::require};

/// The resource that owns another: its key precedes the other's in the path.
#[derive(Clone, Copy)]
pub struct Owner {
    /// The owning resource.
    pub shape: &'static Shape,
    /// The column with the owner's row number.
    pub column: &'static str,
}

/// Rows that must be deleted before the row, because their column holds its id.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Their name for people, in the singular.
    pub noun: &'static str,
    /// Their table.
    pub table: &'static str,
    /// The column; `store` holds the row number.
    pub column: &'static str,
    /// The column with a name for people; its value may be empty.
    pub name: &'static str,
}

impl Child {
    /// Rows of this resource, by the field with the id and the field with a name for people.
    pub const fn new<R: Record, T: FieldType, N: FieldType>(
        noun: &'static str,
        shape: &'static Shape,
        column: FieldOf<R, T>,
        name: FieldOf<R, N>,
    ) -> Self {
        require(shape.is_of(R::TYPE_NAME), "the fields are of another resource's record");
        Self { noun, table: shape.table, column: column.column(), name: name.column() }
    }

    /// Rows of a table, or of a query in brackets, without a resource here.
    pub const fn in_table(
        noun: &'static str,
        table: &'static str,
        column: &'static str,
        name: &'static str,
    ) -> Self {
        Self { noun, table, column, name }
    }
}

/// A field with the id of a row of another resource, which the caller's scope must cover.
#[derive(Clone, Copy)]
pub struct Parent {
    /// The field.
    pub field: &'static Field,
    /// The other resource.
    pub shape: &'static Shape,
    /// The most rows with the same parent, where that is bounded.
    pub most: Option<usize>,
    /// Whether anyone with access may write the rows, whatever roles the parent carries.
    pub is_open: bool,
}

impl Parent {
    /// The field `field` holds the id of a row of `shape`.
    pub const fn new<R: Record, T: FieldType>(field: FieldOf<R, T>, shape: &'static Shape) -> Self {
        require(matches!(T::KIND, Kind::Id), "the field holds no id");
        Self { field: field.field(), shape, most: None, is_open: false }
    }

    /// The same, with at most `most` rows for one parent: as many as are read at once.
    #[must_use]
    pub const fn of_at_most(self, most: usize) -> Self {
        Self { most: Some(most), ..self }
    }

    /// The same, where rows have no influence on sign-ins by the parent, so that anyone with access may write
    /// them whatever roles it carries.
    #[must_use]
    pub const fn open(self) -> Self {
        Self { is_open: true, ..self }
    }
}

/// A unique index that the values of a body can violate.
#[derive(Clone, Copy, Debug)]
pub struct Unique {
    /// The index: `table__column__column`.
    pub index: &'static str,
    /// The fields behind its columns, in order: the last parts of its name.
    fields: &'static [&'static Field],
    /// The field at which violations are reported.
    pub reported_at: &'static Field,
}

impl Unique {
    /// The index of this name over these fields, after the store or the owner if its name contains one.
    /// Violations are reported at the last field.
    #[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
    pub const fn new(index: &'static str, fields: &'static [&'static Field]) -> Self {
        Self { index, fields, reported_at: fields[fields.len() - 1] }
    }

    /// The same, with violations reported at another field.
    #[must_use]
    pub const fn reported_at<R: Record, T: FieldType>(self, field: FieldOf<R, T>) -> Self {
        Self { reported_at: field.field(), ..self }
    }

    /// The fields behind its columns, in order.
    pub const fn fields(&self) -> &'static [&'static Field] {
        self.fields
    }

    /// Whether its name fits: it is of this table, over these fields of this record.
    #[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
    pub(crate) const fn is_named_well(&self, record: &str, table: &str, owner: Option<Owner>) -> bool {
        let mut name = self.index.as_bytes();
        if !strip(&mut name, table.as_bytes()) || !self.reported_at.is_of(record) {
            return false;
        }
        // the store or the owner comes first
        if !strip_part(&mut name, b"store")
            && let Some(owner) = owner
        {
            let _ = strip_part(&mut name, owner.column.as_bytes());
        }
        let mut at = 0;
        while at < self.fields.len() {
            let field = self.fields[at];
            if !field.is_of(record) || !strip(&mut name, b"__") || !strip(&mut name, field.column.as_bytes())
            {
                return false;
            }
            let _ = field.access.folded && strip(&mut name, b"_key");
            at += 1;
        }
        name.is_empty()
    }

    /// The columns of the index that belong to fields of the resource, each with the index of its field.
    pub(crate) fn columns(&self) -> Vec<(&'static str, usize)> {
        let mut names: Vec<&'static str> = self.index.rsplit("__").take(self.fields.len()).collect();
        names.reverse();
        names.into_iter().zip(self.fields).map(|(column, field)| (column, field.index())).collect()
    }
}

/// Removes `__` and this part from an index's name, if the name begins so and other parts follow.
const fn strip_part(name: &mut &[u8], part: &[u8]) -> bool {
    let mut rest = *name;
    if !strip(&mut rest, b"__") || !strip(&mut rest, part) {
        return false;
    }
    let mut others = rest;
    if !strip(&mut others, b"__") {
        return false;
    }
    *name = rest;
    true
}

/// Removes the prefix of a text, if the text begins with it.
#[expect(clippy::indexing_slicing, reason = "both have as many bytes")]
const fn strip(text: &mut &[u8], prefix: &[u8]) -> bool {
    let Some((first, rest)) = text.split_at_checked(prefix.len()) else { return false };
    let mut at = 0;
    while at < prefix.len() {
        if first[at] != prefix[at] {
            return false;
        }
        at += 1;
    }
    *text = rest;
    true
}

#[cfg(test)]
mod tests {
    use chancery_record::{FIXED, KEY, Name, OPEN, Record, Uuid, record};

    use super::{Owner, Unique};
    use crate::{Reach, Shape};

    record! {
        /// A room.
        struct Room {
            /// The room.
            id: Uuid = KEY,
            /// Its name.
            name: Name = OPEN.folded(),
            /// The house.
            house_id: Uuid = FIXED,
            /// What it stores.
            store_key: Name = FIXED,
        }
    }

    static HOUSE: Shape = Shape::of::<Room>("House", "house", Reach::All);

    #[test]
    fn an_index_is_named_after_its_table_and_fields() {
        const NAME: &[&chancery_record::Field] = &[Room::NAME.field()];
        const STORE_KEY: &[&chancery_record::Field] = &[Room::STORE_KEY.field()];
        const BOTH: &[&chancery_record::Field] = &[Room::HOUSE_ID.field(), Room::NAME.field()];
        let owner = Some(Owner { shape: &HOUSE, column: "house_rid" });
        let good = |index, fields, owner| {
            Unique::new(index, fields).is_named_well(<Room as Record>::TYPE_NAME, "room", owner)
        };
        assert!(good("room__name_key", NAME, None) && good("room__store__name", NAME, None));
        assert!(
            good("room__house_id__name_key", BOTH, None) && good("room__house_rid__name_key", NAME, owner)
        );
        for (index, fields) in [
            ("room__naem_key", NAME),
            ("house__name_key", NAME),
            ("room__name_key__house_id", BOTH),
            ("room__house_id__name_key", NAME),
            ("room__house_rid__name_key", NAME),
            ("room__name_key_", NAME),
            ("room", NAME),
        ] {
            assert!(!good(index, fields, None), "{index}");
        }
        assert!(good("room__store_key", STORE_KEY, None), "no store goes before");
        let both = Unique::new("room__house_id__name_key", BOTH);
        assert_eq!(both.columns(), [("house_id", 2), ("name_key", 1)]);
    }
}
