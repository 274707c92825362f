//! What version 1 shows of a resource: some of its members, a few under other names.

use chancery_record::{Access, Field, Kind, OPEN};
use chancery_resource::{Listed, Relation, Shape};

/// A member of version 1.
#[derive(Clone, Copy)]
pub struct Member {
    name: &'static str,
    of: &'static str,
    is_number: bool,
    is_open: bool,
}

/// A member that has the same name in version 2.
pub const fn same(name: &'static str) -> Member {
    Member { name, of: name, is_number: false, is_open: false }
}

impl Member {
    /// The member of this name in version 2.
    pub const fn of(self, of: &'static str) -> Self {
        Self { of, ..self }
    }

    /// A choice, told by its number.
    pub const fn number(self) -> Self {
        Self { is_number: true, ..self }
    }

    /// One that version 2 does not know, and that is written here.
    pub const fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    fn field(self, field: Field) -> Field {
        let kind = match field.kind {
            Kind::Choice(names) if self.is_number => Kind::Numbered(names),
            other => other,
        };
        let access = if self.is_open { Access { audited: true, ..OPEN } } else { field.access };
        field.with(kind, access).called(self.name)
    }
}

/// A set of others that version 1 shows, and whether a body replaces it.
pub struct Array {
    name: &'static str,
    of: &'static str,
    listed: Listed,
    target: Option<&'static Shape>,
    shown: Option<&'static [&'static str]>,
}

/// A set that a body replaces, as version 2 calls it.
pub const fn written(name: &'static str) -> Array {
    Array { listed: Listed::Everywhere, ..shown(name) }
}

/// A set that is shown alone.
pub const fn shown(name: &'static str) -> Array {
    Array { name, of: name, listed: Listed::Nowhere, target: None, shown: None }
}

impl Array {
    /// The set of this name in version 2.
    pub const fn of(self, of: &'static str) -> Self {
        Self { of, ..self }
    }

    /// Written only by who administers more than tenants.
    pub const fn above_tenants(self) -> Self {
        Self { listed: Listed::AboveTenants, ..self }
    }

    /// Its items in this form.
    pub const fn in_form(self, target: &'static Shape) -> Self {
        Self { target: Some(target), ..self }
    }

    /// These columns of its items.
    pub const fn showing(self, shown: &'static [&'static str]) -> Self {
        Self { shown: Some(shown), ..self }
    }
}

/// The form of a resource that has these members and sets, and such sets as only version 1 shows.
pub fn form(whole: &'static Shape, members: &[Member], arrays: &[Array], more: Vec<Relation>) -> Shape {
    let fields = whole.fields.iter().map(|field| {
        let member = members.iter().find(|member| field.wire() == member.of && is_there(field, member));
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

/// The field as one that version 1 does not know: kept, and left alone.
fn hidden(field: Field) -> Field {
    let access = Access { create: false, put: false, patch: false, shown: false, ..field.access };
    field.with(field.kind, access)
}
