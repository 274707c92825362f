//! Records of a SELECT: the fields of a struct, each beside the expression that it is read from.

/// Declares a struct whose fields are read from the columns of a SELECT. Each field stands beside its SQL expression, so that no
/// column is read by a position that the text of the statement has elsewhere.
///
/// `COLUMNS` has the expressions for a statement, and `read` reads a row of it. With `from`, `SELECT` is the statement, or
/// its beginning where a condition is added at run time. The fields of a struct with a lifetime may borrow from the row.
///
/// ```
/// use chancery_store::selectable;
/// use uuid::Uuid;
///
/// selectable! {
///     /// A group of a user.
///     struct Membership from "FROM user_group_member m JOIN user_group g ON g.rid = m.group_rid WHERE m.user_rid = ?1" {
///         group: Uuid = "g.id",
///         name: String = "g.name",
///     }
/// }
///
/// assert_eq!(Membership::COLUMNS, "g.id, g.name");
/// assert!(Membership::SELECT.starts_with("SELECT g.id, g.name FROM user_group_member m "));
/// # let _ = |row: &chancery_store::Row<'_>| Membership::read(row).map(|one| (one.group, one.name));
/// ```
///
/// Where the name of a column is known only at run time, the struct names the parts of its expressions that are, and `columns` takes
/// the place of `COLUMNS`. These parts must not come from a caller.
///
/// ```
/// use chancery_store::selectable;
///
/// selectable! {
///     /// A link between two rows.
///     struct Link(own, other) {
///         own: i64 = "m.{own}",
///         other: i64 = "m.{other}",
///     }
/// }
///
/// assert_eq!(Link::columns("group_rid", "user_rid").to_string(), "m.group_rid, m.user_rid");
/// # let _ = |row: &chancery_store::Row<'_>| Link::read(row).map(|one| (one.own, one.other));
/// ```
#[macro_export]
macro_rules! selectable {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident $(<$row:lifetime>)? from $from:literal { $($body:tt)+ }) => {
        $crate::selectable! { $(#[$meta])* $visibility struct $name $(<$row>)? { $($body)+ } }

        impl $(<$row>)? $name $(<$row>)? {
            /// The statement that reads these rows, or its beginning.
            $visibility const SELECT: &'static str =
                concat!("SELECT ", $crate::selectable!(@columns $($body)+), " ", $from);
        }

        // the whole statement has them, so that they may be needed nowhere else
        const _: &str = $name::COLUMNS;
    };
    ($(#[$meta:meta])* $visibility:vis struct $name:ident $(<$row:lifetime>)? ($($part:ident),+) { $($body:tt)+ }) => {
        $crate::selectable! { @record $(#[$meta])* $visibility struct $name $(<$row>)? { $($body)+ } }

        impl $(<$row>)? $name $(<$row>)? {
            /// The expressions that the fields are read from, in order, with these parts.
            $visibility fn columns<'a>($($part: &'a str),+) -> impl std::fmt::Display {
                struct Columns<'a> {
                    $($part: &'a str),+
                }

                impl std::fmt::Display for Columns<'_> {
                    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, $crate::selectable!(@columns $($body)+), $($part = self.$part),+)
                    }
                }

                Columns { $($part),+ }
            }
        }
    };
    ($(#[$meta:meta])* $visibility:vis struct $name:ident $(<$row:lifetime>)? { $($body:tt)+ }) => {
        $crate::selectable! { @record $(#[$meta])* $visibility struct $name $(<$row>)? { $($body)+ } }

        impl $(<$row>)? $name $(<$row>)? {
            /// The expressions that the fields are read from, in order.
            $visibility const COLUMNS: &'static str = $crate::selectable!(@columns $($body)+);
        }
    };
    (@record $(#[$meta:meta])* $visibility:vis struct $name:ident $(<$row:lifetime>)? {
        $($(#[$field_meta:meta])* $field_visibility:vis $field:ident: $kind:ty = $column:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        $visibility struct $name $(<$row>)? { $($(#[$field_meta])* $field_visibility $field: $kind),+ }

        impl $(<$row>)? $name $(<$row>)? {
            /// Reads a row whose first columns are these.
            ///
            /// # Errors
            /// A column has another type than its field.
            $visibility fn read(row: &$($row)? $crate::Row<'_>) -> Result<Self, $crate::Error> {
                let mut columns = 0..;
                let mut next = || columns.next().unwrap_or_default();
                Ok(Self { $($field: row.get(next())?),+ })
            }
        }
    };
    (@columns $($(#[$meta:meta])* $visibility:vis $field:ident: $kind:ty = $column:literal),+ $(,)?) => {
        $crate::selectable!(@list $($column),+)
    };
    (@list $first:literal $(, $column:literal)*) => { concat!($first $(, ", ", $column)*) };
}
