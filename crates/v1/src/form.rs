//! Forms of version 1: some of a resource's members, a few under other names.

use chancery_record::{Access, Field, FieldOf, FieldType, Kind, OPEN, Record};
use chancery_resource::{Listed, NestedFields, Relation, Shape};

/// A member of a form of version 1.
#[derive(Clone, Copy)]
pub struct Member {
    field: &'static Field,
    name: Option<&'static str>,
    is_number: bool,
    is_open: bool,
}

/// The member for this field, with its name in version 2.
pub const fn same<R: Record, T: FieldType>(field: FieldOf<R, T>) -> Member {
    Member { field: field.field(), name: None, is_number: false, is_open: false }
}

impl Member {
    /// Renames the member.
    pub const fn called(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Writes the member, a choice, as its number.
    pub const fn number(self) -> Self {
        Self { is_number: true, ..self }
    }

    /// Makes writable a member that version 2 does not show.
    pub const fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    fn field(self, field: Field) -> Field {
        let kind = match field.kind {
            Kind::Choice(names) if self.is_number => Kind::Numbered(names),
            other => other,
        };
        let access = if self.is_open { Access { audited: true, ..OPEN } } else { field.access };
        let field = field.with(kind, access);
        self.name.map_or(field, |name| field.called(name))
    }
}

/// A set of related resources that version 1 shows, and whether a body replaces it.
pub struct Array {
    name: &'static str,
    of: &'static str,
    listed: Listed,
    target: Option<&'static Shape>,
    shown: Option<NestedFields>,
}

/// A set that a body replaces, with its name in version 2.
pub const fn written(name: &'static str) -> Array {
    Array { listed: Listed::Everywhere, ..shown(name) }
}

/// A set that is only shown, with its name in version 2.
pub const fn shown(name: &'static str) -> Array {
    Array { name, of: name, listed: Listed::Nowhere, target: None, shown: None }
}

impl Array {
    /// Names the set in version 2, where that differs.
    pub const fn of(self, of: &'static str) -> Self {
        Self { of, ..self }
    }

    /// Lets only administrators of more than tenants write the set.
    pub const fn above_tenants(self) -> Self {
        Self { listed: Listed::AboveTenants, ..self }
    }

    /// Shows the set's items in this form.
    pub const fn in_form(self, target: &'static Shape) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Shows these fields of the set's items.
    pub const fn showing(self, fields: &'static [&'static Field]) -> Self {
        Self { shown: Some(NestedFields::Fields(fields)), ..self }
    }
}

/// The legacy view of a resource with these members and sets; `more` are sets that only version 1 has.
pub fn form(whole: &'static Shape, members: &[Member], arrays: &[Array], more: Vec<Relation>) -> Shape {
    let fields = whole.fields.iter().map(|field| {
        let member = members.iter().find(|member| member.field.is(field) && is_there(field, member));
        member.map_or_else(|| hidden(*field), |member| member.field(*field))
    });
    let relations = arrays.iter().filter_map(|array| {
        let relation = whole.relation(array.of)?;
        let (target, shown) =
            (array.target.unwrap_or(relation.target), array.shown.unwrap_or(relation.shown));
        Some(Relation { name: array.name, listed: array.listed, target, shown, ..*relation })
    });
    let relations: Vec<Relation> = relations.chain(more).collect();
    whole.legacy_view(fields.collect(), relations)
}

const fn is_there(field: &Field, member: &Member) -> bool {
    field.access.shown || member.is_open
}

/// A field that version 1 does not have: neither shown nor written, its value stays.
fn hidden(field: Field) -> Field {
    let access = Access { create: false, put: false, patch: false, shown: false, ..field.access };
    field.with(field.kind, access)
}
