//! The shape of a resource, as the engine sees it: its table, fields, relations and rules.

use std::sync::OnceLock;

use chancery_record::{
    Column, Draft, Field, FieldErrors, FieldOf, FieldType, Form, GermanNames, Json, Kind, Others, Record,
    Value, parse_id, read_draft,
};

use crate::{
    Owner, Parent, Problem, Reach, Relation, Unique,
    declare::plan::Plan,
    declare::{deletes::Deletes, reads::Reads, require, writes::Writes},
};

/// Whether rows belong to a person, so that their contents in the audit trail are encrypted under that person's
/// key.
#[derive(Clone, Copy)]
pub enum Personal {
    /// They belong to no person, unless their owner is one.
    No,
    /// The row is the person; its key is in this field.
    Is(&'static Field),
    /// The row belongs to the person of this resource whose id is in this field.
    Of(&'static Shape, &'static Field),
    /// The row is an audit entry, perhaps about a person of one of these resources.
    AuditOf(&'static [&'static Shape]),
}

/// A resource without its Rust types. It is declared by the handles of its record's fields:
///
/// ```
/// use chancery_record::{KEY, Name, OPEN, record};
/// use chancery_resource::{Reach, Shape, Unique};
/// record! {
///     /// A room.
///     pub struct Room {
///         /// Its name.
///         name: Name = KEY,
///     }
/// }
/// record! {
///     /// A house.
///     pub struct House {
///         /// Its name.
///         name: Name = KEY,
///     }
/// }
/// static ROOM: Shape = Shape::of::<Room>("Room", "room", Reach::Store)
///     .unique(&[Unique::new("room__store__name", &[Room::NAME.field()])]);
/// ```
///
/// A field of another record does not compile, nor does an index whose name does not fit its fields:
///
/// ```compile_fail,E0080
/// # use chancery_record::{KEY, Name, OPEN, record};
/// # use chancery_resource::{Reach, Shape, Unique};
/// # record! {
/// #     /// A room.
/// #     pub struct Room {
/// #         /// Its name.
/// #         name: Name = KEY,
/// #     }
/// # }
/// # record! {
/// #     /// A house.
/// #     pub struct House {
/// #         /// Its name.
/// #         name: Name = KEY,
/// #     }
/// # }
/// static ROOM: Shape = Shape::of::<Room>("Room", "room", Reach::Store)
///     .unique(&[Unique::new("room__store__name", &[House::NAME.field()])]);
/// ```
pub struct Shape {
    /// Its name, as in the documents.
    pub name: &'static str,
    /// The resource's description, for the OpenAPI document.
    pub about: &'static str,
    /// Its table.
    pub table: &'static str,
    /// Its German names and description, for the console.
    pub german: Option<GermanNames>,
    /// Its fields.
    pub fields: &'static [Field],
    /// The name of the record of the fields.
    record: &'static str,
    /// The base resource, where this is a legacy view of it: other members of the same rows. Bodies of a legacy
    /// view may contain unknown members and need no token: the last write wins.
    pub base: Option<&'static Shape>,
    /// The condition that limits its rows to a caller's scope.
    pub reach: Reach,
    /// Its owner.
    pub owner: Option<Owner>,
    /// Its relations.
    pub relations: &'static [Relation],
    /// The unique indexes that the values of a body can violate.
    pub unique: &'static [Unique],
    /// Whether it belongs to a person.
    pub personal: Personal,
    /// The fields that hold ids of rows of other resources.
    pub parents: &'static [Parent],
    /// How its rows are read.
    pub reads: Reads,
    /// The checks and effects of its writes.
    pub writes: Writes,
    /// The deletion of its rows, and the rows that prevent it.
    pub deletes: Deletes,
    plan: OnceLock<Plan>,
}

impl Shape {
    /// The resource of a record, in this table.
    pub const fn of<R: Record>(name: &'static str, table: &'static str, reach: Reach) -> Self {
        require(reach.is_of(R::TYPE_NAME), "its reach goes by fields of another record");
        Self {
            name,
            about: R::ABOUT,
            german: R::GERMAN,
            table,
            fields: R::FIELDS,
            record: R::TYPE_NAME,
            base: None,
            reach,
            owner: None,
            relations: &[],
            unique: &[],
            parents: &[],
            personal: Personal::No,
            reads: Reads::new(),
            writes: Writes::new(),
            deletes: Deletes::new(),
            plan: OnceLock::new(),
        }
    }

    /// Whether its fields are of the record of this name.
    pub(crate) const fn is_of(&self, record: &str) -> bool {
        matches!(self.fields, [first, ..] if first.is_of(record))
    }

    /// A field, which must be of this shape's record: any other does not compile.
    pub(super) const fn declared<R: Record, T: FieldType>(&self, field: FieldOf<R, T>) -> &'static Field {
        require(self.is_of(R::TYPE_NAME), "the field is of another record");
        field.field()
    }

    /// The same, owned by another resource.
    #[must_use]
    pub const fn owned(mut self, shape: &'static Self, column: &'static str) -> Self {
        self.owner = Some(Owner { shape, column });
        self
    }

    /// The same, with relations.
    #[must_use]
    pub const fn relations(mut self, relations: &'static [Relation]) -> Self {
        self.relations = relations;
        self
    }

    /// The same, with unique indexes.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
    pub const fn unique(mut self, unique: &'static [Unique]) -> Self {
        let mut at = 0;
        while at < unique.len() {
            let is_named_well = unique[at].is_named_well(self.record, self.table, self.owner);
            require(is_named_well, "the index is not named table__column__column after its fields");
            at += 1;
        }
        self.unique = unique;
        self
    }

    /// The same, where each row is a person, with the person's key in this field.
    #[must_use]
    pub const fn person<R: Record, T: FieldType>(mut self, key: FieldOf<R, T>) -> Self {
        self.personal = Personal::Is(self.declared(key));
        self
    }

    /// The same, where each row belongs to the person of this resource whose id is in this field.
    #[must_use]
    pub const fn of_person<R: Record, T: FieldType>(
        mut self,
        person: &'static Self,
        id: FieldOf<R, T>,
    ) -> Self {
        self.personal = Personal::Of(person, self.declared(id));
        self
    }

    /// The same, as audit entries that may be about a person of one of these resources.
    #[must_use]
    pub const fn audit_of(mut self, persons: &'static [&'static Self]) -> Self {
        self.personal = Personal::AuditOf(persons);
        self
    }

    /// The same, where rows belong to rows of other resources.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
    pub const fn belonging(mut self, parents: &'static [Parent]) -> Self {
        let mut at = 0;
        while at < parents.len() {
            require(parents[at].field.is_of(self.record), "a parent is named by a field of another record");
            at += 1;
        }
        self.parents = parents;
        self
    }

    /// A legacy view of this resource: the same rows, rules and audit trail with these fields, as many and in
    /// the same order, and these relations. It is created once, and lives as long as the program.
    #[must_use]
    pub fn legacy_view(&'static self, fields: Vec<Field>, relations: Vec<Relation>) -> Self {
        Self {
            fields: fields.leak(),
            relations: relations.leak(),
            base: Some(self),
            plan: OnceLock::new(),
            ..*self
        }
    }

    /// The base resource of this view; itself where it is none.
    pub(crate) fn base(&self) -> &Self {
        self.base.unwrap_or(self)
    }

    /// Reads a body of this resource. `base` is the JSON Pointer of the body in its document.
    ///
    /// # Errors
    /// Every member that is unknown, missing, of the wrong type or out of bounds.
    pub fn read(&self, form: Form, body: &Json, base: &str) -> Result<Draft, FieldErrors> {
        let arrays = self.arrays();
        let others = if self.base.is_some() { Others::Any } else { Others::Named(&arrays) };
        read_draft(self.fields, others, form, body, base)
    }

    /// The relation of this name.
    pub fn relation(&self, name: &str) -> Option<&'static Relation> {
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// The names of the nested arrays of the response form.
    pub fn arrays(&self) -> Vec<&'static str> {
        self.relations.iter().map(|relation| relation.name).collect()
    }

    /// Whether its key is an id.
    pub fn has_id(&self) -> bool {
        self.key().is_some_and(|key| matches!(key.kind, Kind::Id))
    }

    /// Whether its key is a location, which takes the rest of a path.
    pub fn is_located(&self) -> bool {
        self.key().is_some_and(|key| matches!(key.kind, Kind::Text(rule) if rule.name == "Location"))
    }

    /// Whether a new row has members that its body does not provide, so that the answer must be read back.
    pub(crate) fn is_read_back(&self) -> bool {
        self.writes.after_insert.is_some()
            || self.relations.iter().any(|relation| relation.listed.at_creation())
            || self.fields.iter().any(|field| field.access.column == Column::Derived)
    }

    /// The field in this view of the resource; `None` for one of another record.
    pub fn own(&self, field: &Field) -> Option<&'static Field> {
        self.fields.get(field.index()).filter(|own| own.is(field))
    }

    /// The plan derived from the declaration: its statements and labels.
    pub(crate) fn plan(&self) -> &Plan {
        self.plan.get_or_init(|| Plan::of(self))
    }

    /// The field that is the key.
    pub(crate) fn key(&self) -> Option<&'static Field> {
        self.fields.get(self.plan().key)
    }

    /// Reads a key of this resource from a path.
    ///
    /// # Errors
    /// The text is no key of this resource.
    pub fn read_key(&self, text: &str) -> Result<Value, Problem> {
        match self.key().map(|key| key.kind) {
            Some(Kind::Id) => parse_id(text).map(Value::Id).ok_or_else(|| {
                Problem::invalid(format!("{text:?} in the path is not a UUID, so it names no {}.", self.name))
            }),
            Some(Kind::Int { .. }) => text.parse().map(Value::Int).map_err(|_| {
                Problem::invalid(format!(
                    "{text:?} in the path is not a number, so it names no {}.",
                    self.name
                ))
            }),
            Some(Kind::Text(rule)) => {
                rule.check(text.to_owned()).map(Value::Text).map_err(|_| Problem::not_found(self.name))
            }
            _ => Err(Problem::not_found(self.name)),
        }
    }
}
