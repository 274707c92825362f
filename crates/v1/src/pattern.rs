//! The standard pattern of version 1: twelve operations for each resource.

use std::mem::discriminant;

use chancery_resource::{Action, Body, Custom, Method, Op, Permit, Reply, Run, Shape, article};

use crate::{
    patch::{self, patch_many, patch_one},
    upsert::{upsert, upsert_many},
};

/// A resource of version 1.
#[derive(Clone, Copy)]
pub struct Resource {
    /// The name in the names of its operations.
    pub name: &'static str,
    /// The form of the resource.
    pub shape: &'static Shape,
    /// The path of the resource.
    pub path: &'static str,
    /// The operations of the resource in version 2.
    pub successors: &'static [Op],
    /// Whether the original documents list only list, create, create or update, read and replace: the others are then
    /// additions.
    pub is_partly_added: bool,
}

/// An operation of the pattern.
struct Template {
    /// The operation's name before and after the resource's.
    name: (&'static str, &'static str),
    method: Method,
    /// The end of the operation's path.
    end: &'static str,
    action: Action,
    /// The actions of version 2 that can succeed it, the closest first.
    successors: &'static [Action],
    about: &'static str,
}

const fn template(
    name: (&'static str, &'static str),
    method: Method,
    end: &'static str,
    action: Action,
    successors: &'static [Action],
    about: &'static str,
) -> Template {
    Template { name, method, end, action, successors, about }
}

const fn custom(run: Run, body: Body) -> Custom {
    Custom::writing(run).taking(body).by_rows()
}

fn templates(key: &'static str) -> [Template; 12] {
    use Action as A;
    use Method::{Delete, Get, Patch, Post, Put};
    const UPSERT: &str = "/createorupdate";
    let upserting = A::Custom(custom(upsert, Body::Resource));
    let patching = A::Custom(custom(patch_one, Body::JsonPatch(&patch::ONE)));
    let many = |run, body| A::Custom(custom(run, body).replying(Reply::Many).in_batch());
    let (patching_all, upserting_all) =
        (many(patch_many, Body::JsonPatch(&patch::MANY)), many(upsert_many, Body::Resources));
    [
        template(("Get", "s"), Get, "", A::List, &[A::List], "Lists {name}s."),
        template(("Create", ""), Post, "", A::Create, &[A::Create], "Creates {a} {name}."),
        template(
            ("CreateOrUpdate", ""),
            Post,
            UPSERT,
            upserting,
            &[A::Replace],
            "Creates or replaces {a} {name}.",
        ),
        template(("Get", ""), Get, key, A::Read, &[A::Read, A::List], "Reads {a} {name}."),
        template(("Update", ""), Put, key, A::Replace, &[A::Replace], "Replaces {a} {name}."),
        template(("Delete", ""), Delete, key, A::Delete, &[A::Delete], "Deletes {a} {name}."),
        template(
            ("Patch", ""),
            Patch,
            key,
            patching,
            &[A::Patch, A::Replace],
            "Changes {a} {name} by a JSON Patch.",
        ),
        template(
            ("Update", "Batch"),
            Put,
            "/batch",
            A::ReplaceBatch,
            &[A::ReplaceBatch, A::Replace],
            "Replaces many {name}s, all or none.",
        ),
        template(
            ("Create", "Batch"),
            Post,
            "/batch",
            A::CreateBatch,
            &[A::CreateBatch, A::Create],
            "Creates many {name}s, all or none.",
        ),
        template(
            ("Delete", "Batch"),
            Delete,
            "/batch",
            A::DeleteBatch,
            &[A::DeleteBatch, A::Delete],
            "Deletes many {name}s, all or none.",
        ),
        template(
            ("Patch", "Batch"),
            Patch,
            "/batch",
            patching_all,
            &[A::Patch, A::Replace],
            "Changes many {name}s, all or none.",
        ),
        template(
            ("CreateOrUpdate", "Batch"),
            Post,
            "/createorupdate/batch",
            upserting_all,
            &[A::Replace],
            "Creates or replaces many {name}s, all or none.",
        ),
    ]
}

/// The operations of a resource.
pub fn pattern(resource: &Resource) -> Vec<Op> {
    let Resource { name, shape, path, .. } = *resource;
    let key = if shape.owner.is_some() { "/{key}" } else { "/{id}" };
    let op = |(index, template): (usize, Template)| {
        let Template { name: (before, after), method, end, action, about, .. } = template;
        // the list of an owner's entries must not have the name of the operation that reads one
        let after = if after == "s" && shape.owner.is_some() { "Entries" } else { after };
        let successor = resource.successor(&template);
        let full_name = format!("{before}{name}{after}");
        let (path, about) =
            (format!("{path}{end}"), about.replace("{a}", article(name)).replace("{name}", name));
        // an operation without a successor is for SystemAdmin alone
        let permit = successor.map_or(Permit::SystemAdmin, |op| op.permit);
        let op = Op::new(full_name.leak(), method, path.leak(), permit, shape, action, about.leak());
        let status = match (before, after) {
            ("CreateOrUpdate", "") => 201,
            ("Patch", _) => 202,
            _ => op.status,
        };
        Op { successor, status, addition: resource.is_partly_added && index > 4, ..op }
    };
    templates(key).into_iter().enumerate().map(op).collect()
}

impl Resource {
    /// The operation of version 2 that succeeds this one, or comes nearest to it.
    fn successor(&self, template: &Template) -> Option<&'static Op> {
        let is = |op: &&Op, action: &Action| discriminant(&op.action) == discriminant(action);
        template.successors.iter().find_map(|action| self.successors.iter().find(|op| is(op, action)))
    }
}
