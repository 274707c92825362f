//! The standard pattern of version 1: twelve operations a resource.

use chancery_resource::{Action, Body, Custom, Method, Op, Permit, Relating, Reply, Run, Shape};

use crate::{
    patch::{self, patch_many, patch_one},
    upsert::{upsert, upsert_many},
};

/// A resource of version 1.
pub struct Resource {
    /// What its operations are called after.
    pub name: &'static str,
    /// Its form.
    pub shape: &'static Shape,
    /// Its path.
    pub path: &'static str,
    /// The operations of version 2.
    pub successors: Vec<&'static Op>,
    /// Whether the documents list no more than list, create, read and replace.
    pub is_partly_added: bool,
}

/// A word of the pattern: the operation's name before and after the resource's, its method, the end of its
/// path, what it does, what is told of it.
type Word = (&'static str, &'static str, Method, &'static str, Action, &'static str);

fn custom(run: Run, body: Body) -> Custom {
    Custom::writing(run).taking(body)
}

fn words(key: &'static str) -> [Word; 12] {
    use Action as A;
    use Method as M;
    let upserting = A::Custom(custom(upsert, Body::Resource));
    let patching = A::Custom(custom(patch_one, Body::JsonPatch(&patch::ONE)));
    let patching_many = custom(patch_many, Body::JsonPatch(&patch::MANY)).replying(Reply::Many).in_batch();
    let upserting_many = custom(upsert_many, Body::Resources).replying(Reply::Many).in_batch();
    [
        ("Get", "s", M::Get, "", A::List, "Lists every"),
        ("Create", "", M::Post, "", A::Create, "Creates a"),
        ("CreateOrUpdate", "", M::Post, "/createorupdate", upserting, "Creates or replaces a"),
        ("Get", "", M::Get, key, A::Read, "Reads a"),
        ("Update", "", M::Put, key, A::Replace, "Replaces a"),
        ("Delete", "", M::Delete, key, A::Delete, "Deletes a"),
        ("Patch", "", M::Patch, key, patching, "Changes, by a JSON Patch, a"),
        ("Update", "Batch", M::Put, "/batch", A::ReplaceBatch, "Replaces, all or none, many of"),
        ("Create", "Batch", M::Post, "/batch", A::CreateBatch, "Creates, all or none, many of"),
        ("Delete", "Batch", M::Delete, "/batch", A::DeleteBatch, "Deletes, all or none, many of"),
        ("Patch", "Batch", M::Patch, "/batch", A::Custom(patching_many), "Changes, all or none, many of"),
        (
            "CreateOrUpdate",
            "Batch",
            M::Post,
            "/createorupdate/batch",
            A::Custom(upserting_many),
            "Creates or replaces, all or none, many of",
        ),
    ]
}

/// The operations of a resource.
pub fn pattern(resource: &Resource) -> Vec<Op> {
    let Resource { name, shape, path, .. } = *resource;
    let key = if shape.owner.is_some() { "/{key}" } else { "/{id}" };
    let op = |place: usize, (before, after, method, end, action, about): Word| {
        // what lists entries of an owner is not called as what reads one
        let after = if after == "s" && shape.owner.is_some() { "Entries" } else { after };
        let successor = resource.successor(method, action);
        let status = match (before, after) {
            ("CreateOrUpdate", "") => 201,
            ("Patch", _) => 202,
            _ => 0,
        };
        let op = Op {
            successor,
            addition: resource.is_partly_added && !matches!(place, 0..=4),
            ..Op::new(
                leaked(format!("{before}{name}{after}")),
                method,
                leaked(format!("{path}{end}")),
                resource.permit(successor, method),
                shape,
                action,
                leaked(format!("{about} {name}.")),
            )
        };
        if status == 0 { op } else { Op { status, ..op } }
    };
    words(key).into_iter().enumerate().map(|(place, word)| op(place, word)).collect()
}

impl Resource {
    /// The operation of version 2 that does this, or what comes nearest.
    fn successor(&self, method: Method, action: Action) -> Option<&'static Op> {
        let find = |fits: &dyn Fn(&Op) -> bool| self.successors.iter().copied().find(|op| fits(op));
        let same = std::mem::discriminant(&action);
        let exact = || find(&|op| std::mem::discriminant(&op.action) == same && !is_custom(&op.action));
        let patches = || find(&|op| matches!(op.action, Action::Patch));
        let replaces = || find(&|op| matches!(op.action, Action::Replace));
        let creates = || find(&|op| matches!(op.action, Action::Create));
        let lists = || find(&|op| op.method == Method::Get);
        exact()
            .or_else(|| if method == Method::Patch { patches() } else { None })
            .or_else(|| if method == Method::Get { lists() } else { None })
            .or_else(replaces)
            .or_else(creates)
    }

    fn permit(&self, successor: Option<&'static Op>, method: Method) -> Permit {
        let same_kind =
            |op: &&&Op| (op.method == Method::Get) == (method == Method::Get) && is_pattern(&op.action);
        let fallback = self.successors.iter().find(same_kind).copied();
        successor.filter(|op| (op.method == Method::Get) == (method == Method::Get)).or(fallback).map_or(
            // nobody but the administrator of everything, should a list ever have nothing to go by
            Permit::SystemAdmin,
            |op| op.permit,
        )
    }
}

const fn is_custom(action: &Action) -> bool {
    matches!(action, Action::Custom(_))
}

const fn is_pattern(action: &Action) -> bool {
    !matches!(action, Action::Custom(_) | Action::Relate(_, Relating::Set | Relating::Add | Relating::Remove))
}

/// Text that lives as long as the program: the lists are made once.
pub fn leaked(text: String) -> &'static str {
    text.leak()
}
