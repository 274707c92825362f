//! The kinds of the configuration, in the order in which their rows need each other.

use chancery_record::{Column, Field, Kind as Value};
use chancery_resource::{Action, Op, Relation, RelationChange, Shape};

use crate::left_out::LEFT_OUT;

/// A resource that is configuration.
pub struct Kind {
    /// Its name in documents: as the interface calls it.
    pub name: &'static str,
    /// Its shape.
    pub shape: &'static Shape,
    /// Its path, below the service's base.
    pub path: &'static str,
    /// The members that name rows of other kinds.
    pub references: Vec<Reference>,
    /// The fields by which people know its rows.
    pub key: Vec<&'static Field>,
    /// The sets of other rows that belong to its rows.
    pub sets: Vec<Set>,
}

/// A member that holds the id of another row.
#[derive(Clone, Copy)]
pub struct Reference {
    /// The member.
    pub field: &'static Field,
    /// The shape of the other row.
    pub target: &'static Shape,
}

/// A set of other rows, linked by their ids.
#[derive(Clone, Copy)]
pub struct Set {
    /// The relation.
    pub relation: &'static Relation,
    /// The path of its operations, below the service's base.
    pub path: &'static str,
}

impl Kind {
    /// The rows that a member names, if it does.
    pub fn reference(&self, field: &Field) -> Option<&Reference> {
        self.references.iter().find(|reference| reference.field.is(field))
    }

    /// The field of this name on the wire.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.shape.fields.iter().find(|field| field.is_named(name))
    }

    /// The set of this name.
    pub fn set(&self, name: &str) -> Option<&Set> {
        self.sets.iter().find(|set| set.relation.name == name)
    }

    /// The field that is the key of its rows in the interface.
    pub fn id(&self) -> Option<&'static Field> {
        self.shape.fields.iter().find(|field| field.access.key)
    }

    /// Whether its rows are identified by a generated id.
    pub fn has_own_id(&self) -> bool {
        self.id().is_some_and(|id| matches!(id.kind, Value::Id) && self.reference(id).is_none())
    }

    /// The members of a document: those that a caller may write, without generated ids and tokens.
    pub fn members(&self) -> impl Iterator<Item = &'static Field> {
        let own_id = self.has_own_id();
        self.shape
            .fields
            .iter()
            .filter(move |field| (field.access.create || field.access.put) && !(field.access.key && own_id))
            .filter(|field| !field.is_token())
    }

    /// The members whose written value an answer shows.
    pub fn stored_fields(&self) -> impl Iterator<Item = &'static Field> {
        self.members().filter(|field| field.access.shown && field.access.column != Column::Unstored)
    }

    /// Whether its rows depend on those of the other: they name them, or list them at creation.
    pub fn needs(&self, other: &Self) -> bool {
        let named = self.references.iter().map(|reference| reference.target);
        let listed = self.sets.iter().filter(|set| set.relation.listed.at_creation());
        named.chain(listed.map(|set| set.relation.target)).any(|target| is_same(target, other.shape))
    }
}

/// Whether two shapes are of the same resource.
pub fn is_same(one: &Shape, other: &Shape) -> bool {
    one.name == other.name
}

/// The kinds among these operations' resources: those that are listed, created, replaced and deleted in batches and are not
/// [left out](LEFT_OUT). Each comes after those that it depends on, and otherwise in the order of the operations.
pub fn kinds(operations: &[&'static Op]) -> Vec<Kind> {
    let batch = |op: &&&'static Op| matches!(op.action, Action::CreateBatch);
    let shapes: Vec<_> = operations.iter().filter(batch).map(|op| (op.shape, op.path)).collect();
    let shapes: Vec<_> = shapes
        .into_iter()
        .filter(|(shape, _)| !LEFT_OUT.iter().any(|(name, _)| *name == shape.name))
        .collect();
    let mut waiting: Vec<Kind> = shapes
        .iter()
        .map(|(shape, path)| {
            let references = references(shape, &shapes);
            Kind {
                name: shape.name,
                shape,
                path: path.trim_end_matches("/batch"),
                key: key(shape, &references),
                references,
                sets: sets(shape, operations, &shapes),
            }
        })
        .collect();
    let mut ordered: Vec<Kind> = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_ready =
            |kind: &Kind| waiting.iter().all(|other| is_same(kind.shape, other.shape) || !kind.needs(other));
        // rows that depend on each other would leave none that is ready: then the first one is taken
        let next = waiting.iter().position(is_ready).unwrap_or(0);
        ordered.push(waiting.remove(next));
    }
    own_sets(&mut ordered);
    ordered
}

/// The members of a shape that hold ids of these shapes: by declaration, else by their names, such as `applyToTenantId`.
fn references(shape: &'static Shape, shapes: &[(&'static Shape, &'static str)]) -> Vec<Reference> {
    let is_id = |field: &&'static Field| matches!(field.kind, Value::Id) && field.access.create;
    let target = |field: &'static Field| {
        let declared = shape.parents.iter().find(|parent| parent.field.is(field)).map(|parent| parent.shape);
        let word = field.wire().trim_start_matches("applyTo").trim_end_matches("Id");
        let named =
            shapes.iter().map(|(other, _)| *other).find(|other| other.name.eq_ignore_ascii_case(word));
        let target = declared.or(named)?;
        shapes.iter().any(|(other, _)| is_same(other, target)).then_some(Reference { field, target })
    };
    shape.fields.iter().filter(is_id).filter_map(target).collect()
}

/// The key fields of a row: those of its unique indexes; without one its create-only references and its name, or
/// its required fields. A hidden field of an index stands for the references of the row.
fn key(shape: &'static Shape, references: &[Reference]) -> Vec<&'static Field> {
    let mut key: Vec<&'static Field> = Vec::new();
    let mut add = |field: &'static Field| {
        if !key.iter().any(|known| known.is(field)) {
            key.push(field);
        }
    };
    let is_reference = |field: &Field| references.iter().any(|reference| reference.field.is(field));
    let is_generated =
        |field: &Field| field.access.key && matches!(field.kind, Value::Id) && !is_reference(field);
    for unique in shape.unique {
        let fields = unique.fields();
        if fields.iter().all(|field| is_generated(field) || !field.access.shown) {
            continue;
        }
        for field in fields.iter().filter_map(|field| shape.own(field)) {
            if field.access.shown {
                add(field);
            } else {
                references.iter().filter(|other| other.field.nullable).for_each(|other| add(other.field));
                shape.fields.iter().filter(|field| field.is_name()).for_each(&mut add);
            }
        }
    }
    if key.is_empty() {
        let fixed = references.iter().map(|reference| reference.field).filter(|field| field.is_create_only());
        let names = || shape.fields.iter().filter(|field| field.is_name());
        let others = shape.fields.iter().filter(|field| names().count() == 0 && field.required());
        for field in fixed.chain(names()).chain(others) {
            if !key.iter().any(|known| known.is(field)) {
                key.push(field);
            }
        }
    }
    key
}

/// The sets of a shape whose other rows are of these shapes, too, each with the path of its operations.
fn sets(
    shape: &'static Shape,
    operations: &[&'static Op],
    shapes: &[(&'static Shape, &'static str)],
) -> Vec<Set> {
    let path = |relation: &Relation| {
        let adds = |op: &&&'static Op| {
            is_same(op.shape, shape)
                && matches!(op.action, Action::Relate(changed, RelationChange::Add) if changed.name == relation.name)
        };
        operations.iter().find(adds).map(|op| op.path)
    };
    let is_kind = |relation: &Relation| shapes.iter().any(|(other, _)| is_same(other, relation.target));
    let relations = shape.relations.iter().filter(|relation| is_kind(relation));
    relations.filter_map(|relation| Some(Set { relation, path: path(relation)? })).collect()
}

/// Leaves each set of pairs to one of its two sides: that whose rows list it at creation, else the later one.
fn own_sets(kinds: &mut [Kind]) {
    let mut owners: Vec<(usize, Set)> = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        for set in &kind.sets {
            let is_other = |(_, other): &&mut (usize, Set)| {
                let (one, other) = (set.relation, other.relation);
                one.table == other.table && one.own == other.other && one.other == other.own
            };
            match owners.iter_mut().find(is_other) {
                Some((_, other)) if other.relation.listed.at_creation() => {}
                Some(owner) => *owner = (index, *set),
                None => owners.push((index, *set)),
            }
        }
    }
    for (index, kind) in kinds.iter_mut().enumerate() {
        kind.sets.retain(|set| {
            owners.iter().any(|(owner, own)| *owner == index && std::ptr::eq(own.relation, set.relation))
        });
    }
}
