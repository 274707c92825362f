//! The representations of version 1: some of a resource's members, a few under other names.

use chancery_record::{Access, Field, FieldOf, FieldType, Kind, OPEN, Record};
use chancery_resource::{Listed, NestedFields, Relation, Shape};

/// A member of a form of version 1.
#[derive(Clone, Copy)]
pub struct Member {
    field: &'static Field,
    name: Option<&'static str>,
    is_number: bool,
    opens: bool,
}

/// The member for this field, with its name in version 2.
pub const fn same<R: Record, T: FieldType>(field: FieldOf<R, T>) -> Member {
    Member { field: field.field(), name: None, is_number: false, opens: false }
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

    /// Makes a member writable that version 2 does not return.
    pub const fn writable(self) -> Self {
        Self { opens: true, ..self }
    }

    fn field(self, field: Field) -> Field {
        let kind = match field.kind {
            Kind::Choice(names) if self.is_number => Kind::Numbered(names),
            other => other,
        };
        let access = if self.opens { Access { audited: true, ..OPEN } } else { field.access };
        let field = field.with(kind, access);
        self.name.map_or(field, |name| field.called(name))
    }
}

/// A relation that version 1 returns, and whether a body replaces it.
pub struct Array {
    name: &'static str,
    of: &'static str,
    listed: Listed,
    target: Option<&'static Shape>,
    shown: Option<NestedFields>,
}

/// A relation that a body replaces, with its name in version 2.
pub const fn written(name: &'static str) -> Array {
    Array { listed: Listed::Everywhere, ..shown(name) }
}

/// A read-only relation, with its name in version 2.
pub const fn shown(name: &'static str) -> Array {
    Array { name, of: name, listed: Listed::Nowhere, target: None, shown: None }
}

impl Array {
    /// Names the relation in version 2, where that differs.
    pub const fn of(self, of: &'static str) -> Self {
        Self { of, ..self }
    }

    /// Restricts writing the relation to administrators of more than tenants.
    pub const fn above_tenants(self) -> Self {
        Self { listed: Listed::AboveTenants, ..self }
    }

    /// Renders the relation's items in this form.
    pub const fn in_form(self, target: &'static Shape) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Renders these fields of the relation's items.
    pub const fn showing(self, fields: &'static [&'static Field]) -> Self {
        Self { shown: Some(NestedFields::Fields(fields)), ..self }
    }
}

/// The legacy view of a resource with these members and relations; `more` are relations that only version 1
/// has.
pub fn form(whole: &'static Shape, members: &[Member], arrays: &[Array], more: Vec<Relation>) -> Shape {
    let fields = whole.fields.iter().map(|field| {
        let member = members.iter().find(|member| member.field.is(field) && is_included(field, member));
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

const fn is_included(field: &Field, member: &Member) -> bool {
    field.access.shown || member.opens
}

/// A field that version 1 does not have: neither returned nor written; its value stays.
fn hidden(field: Field) -> Field {
    let access = Access { create: false, put: false, patch: false, shown: false, ..field.access };
    field.with(field.kind, access)
}
