//! Relations: sets of other resources that a resource contains nested.

use chancery_record::Field;
use chancery_store::Tx;

use crate::{Problem, Shape};

/// The most ids of one call.
pub const MAX_RELATED: usize = 100_000;

/// New links of a row, as the input of the rule on them.
pub struct NewLinks<'a> {
    /// The resource of the row.
    pub shape: &'a Shape,
    /// The set that the links are added to.
    pub relation: &'a Relation,
    /// The number of the row.
    pub row: i64,
    /// The numbers of the rows that it is linked to.
    pub others: &'a [i64],
}

/// A rule on new links.
pub type Guard = fn(&mut Tx<'_>, &NewLinks<'_>) -> Result<(), Problem>;

/// Pairs of row numbers, as a relation reads them.
#[derive(Clone, Copy, Debug)]
pub struct Pairs {
    /// The table of pairs, or a query of pairs in brackets.
    pub table: &'static str,
    /// Its column with the row number of the owner.
    pub own: &'static str,
    /// Its column with the row number of the linked resource.
    pub other: &'static str,
}

/// A link table: pairs of row numbers of two resources. It has two relations, one of each resource.
#[derive(Clone, Copy, Debug)]
pub struct LinkTable {
    name: &'static str,
    first: &'static str,
    second: &'static str,
}

impl LinkTable {
    /// The table of this name, with the column of either resource's row numbers.
    pub const fn new(name: &'static str, first: &'static str, second: &'static str) -> Self {
        Self { name, first, second }
    }

    /// The links of the first resource to the second.
    pub const fn forward(self) -> Pairs {
        Pairs { table: self.name, own: self.first, other: self.second }
    }

    /// The links of the second resource to the first.
    pub const fn reverse(self) -> Pairs {
        Pairs { table: self.name, own: self.second, other: self.first }
    }
}

/// The bodies of the owner that may list the set, by the ids of the linked resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// None: the set has operations of its own.
    Nowhere,
    /// The body of a creation.
    AtCreation,
    /// The bodies of changes, too: they replace the set.
    Everywhere,
    /// As `Everywhere`, for callers who administer more than tenants.
    AboveTenants,
}

impl Listed {
    /// Whether a create body may list the set.
    pub fn at_creation(self) -> bool {
        self != Self::Nowhere
    }

    /// Whether the body of a change may list the set.
    pub const fn at_change(self) -> bool {
        matches!(self, Self::Everywhere | Self::AboveTenants)
    }
}

/// The fields of the linked resources that are shown nested.
#[derive(Clone, Copy)]
pub enum NestedFields {
    /// Their keys and names.
    Names,
    /// All fields that the linked resources show.
    All,
    /// These fields.
    Fields(&'static [&'static Field]),
}

/// A set of other resources, linked by a table of pairs.
#[derive(Clone, Copy)]
pub struct Relation {
    /// The member of the response form.
    pub name: &'static str,
    /// Its name in the audit trail and in events.
    pub audited_as: &'static str,
    /// The relation's description, for the OpenAPI document.
    pub about: &'static str,
    /// The table of pairs, or a query of pairs in brackets where the linked resources are children.
    pub table: &'static str,
    /// Its column with this resource's row number.
    pub own: &'static str,
    /// Its column with the row number of the linked resource.
    pub other: &'static str,
    /// The linked resource.
    pub target: &'static Shape,
    /// The nested fields of it.
    pub shown: NestedFields,
    /// The rule on new links.
    pub guard: Option<Guard>,
    /// Whether there is at most one, shown as an object or null.
    pub single: bool,
    /// The bodies of the owner that may list them by their ids.
    pub listed: Listed,
}

impl Relation {
    /// A set made of pairs of row numbers, shown by ids and names.
    pub const fn new(name: &'static str, about: &'static str, pairs: Pairs, target: &'static Shape) -> Self {
        let Pairs { table, own, other } = pairs;
        Self {
            name,
            audited_as: name,
            about,
            table,
            own,
            other,
            target,
            shown: NestedFields::Names,
            guard: None,
            single: false,
            listed: Listed::Nowhere,
        }
    }

    /// The same, showing these fields.
    #[must_use]
    pub const fn showing(self, fields: &'static [&'static Field]) -> Self {
        Self { shown: NestedFields::Fields(fields), ..self }
    }

    /// The same, showing all fields that the linked resources show.
    #[must_use]
    pub const fn showing_all(self) -> Self {
        Self { shown: NestedFields::All, ..self }
    }

    /// The same with a rule on new links.
    #[must_use]
    pub const fn guarded(self, guard: Guard) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// The same, where there is at most one.
    #[must_use]
    pub const fn single(self) -> Self {
        Self { single: true, ..self }
    }

    /// The same, which a create body may list.
    #[must_use]
    pub const fn at_creation(self) -> Self {
        Self { listed: Listed::AtCreation, ..self }
    }

    /// The fields of the linked resource that are shown.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let (target, shown) = (self.target, self.shown);
        let named: &[&Field] = if let NestedFields::Fields(fields) = shown { fields } else { &[] };
        let others = target.fields.iter().filter(move |field| match shown {
            NestedFields::Names => field.access.key || field.is_name(),
            NestedFields::All => field.access.shown,
            NestedFields::Fields(_) => false,
        });
        others.chain(named.iter().filter_map(move |field| target.own(field)))
    }
}

/// The relation with children that are deleted with their parent: the parent's table, theirs, their column with
/// the parent's id, and the resource.
#[macro_export]
macro_rules! children {
    ($name:literal, $about:literal, $parent:literal, $table:literal, $column:literal, $target:expr) => {
        $crate::Relation::new(
            $name,
            $about,
            $crate::Pairs {
                table: concat!(
                    "(SELECT p.rid AS own_rid, c.rid AS other_rid FROM ",
                    $parent,
                    " p JOIN ",
                    $table,
                    " c ON c.",
                    $column,
                    " = p.id)"
                ),
                own: "own_rid",
                other: "other_rid",
            },
            $target,
        )
        .showing_all()
    };
}
