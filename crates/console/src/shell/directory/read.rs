//! Builds the directory of resources from the operations of a service: the path of an operation determines its function.

use chancery_resource::{Action, Method, Op, Service};

use super::{Owned, Resource};
use crate::shell::presentation::Presentation;

/// Adds the resources of a service, each with its operations.
pub fn add(all: &mut Vec<Resource>, service: &'static Service) {
    let is_of_store = service.base.contains("{userstore}");
    for op in service.all() {
        let path = op.path.strip_prefix("/administration").unwrap_or(op.path);
        let path = path.strip_prefix("/passkey-security").unwrap_or(path);
        let mut segments = path.trim_start_matches('/').split('/');
        let Some(path) = segments.next().filter(|name| !name.contains('{')) else { continue };
        let name = if path.contains('-') { op.shape.name } else { path };
        let rest: Vec<&str> = segments.collect();
        // a list below the name of its owner's resource is a subresource
        if let [owner, key, below @ ..] = rest.as_slice()
            && key.starts_with('{')
            && let Some(one) = all
                .iter_mut()
                .find(|one| one.name.eq_ignore_ascii_case(owner) && one.is_of_store == is_of_store)
        {
            let rest: Vec<&str> = [*key, name].into_iter().chain(below.iter().copied()).collect();
            own(&mut one.owned, op, &rest);
            continue;
        }
        let at =
            all.iter().position(|one| one.name.eq_ignore_ascii_case(name) && one.is_of_store == is_of_store);
        let at = at.unwrap_or_else(|| {
            let shape = op.shape;
            all.push(Resource {
                name,
                shape,
                is_of_store,
                list: None,
                search: None,
                read: None,
                create: None,
                patch: None,
                delete: None,
                batches: Vec::new(),
                others: Vec::new(),
                of_all: Vec::new(),
                owned: Vec::new(),
                presentation: &Presentation::STANDARD,
            });
            all.len() - 1
        });
        let Some(one) = all.get_mut(at) else { continue };
        if own(&mut one.owned, op, &rest) {
            continue;
        }
        let slot = match (op.method, rest.as_slice()) {
            (Method::Get, []) if op.reply.is_list() => &mut one.list,
            (Method::Post, []) if matches!(op.action, Action::Create | Action::Custom(_)) => &mut one.create,
            (Method::Get, ["search"]) => &mut one.search,
            (Method::Get, [key]) if key.starts_with('{') => &mut one.read,
            (Method::Patch, [key]) if key.starts_with('{') => &mut one.patch,
            (Method::Delete, [key]) if key.starts_with('{') => &mut one.delete,
            (_, [key, ..]) if key.starts_with('{') => {
                one.others.push(op);
                continue;
            }
            (Method::Post, [.., last]) if *last != "batch" && !op.path.contains("{id}") => {
                one.of_all.push(op);
                continue;
            }
            (_, [.., "batch"]) => {
                one.batches.push(op);
                continue;
            }
            _ => continue,
        };
        slot.get_or_insert(op);
        if op.method == Method::Get && rest.is_empty() {
            one.shape = op.shape;
        }
    }
}

/// Adds an operation to the subresources, if it belongs to one.
fn own(all: &mut Vec<Owned>, op: &'static Op, rest: &[&'static str]) -> bool {
    let Some((parent, [name, below @ ..])) = rest.split_first() else { return false };
    let is_list = op.method == Method::Get && op.reply.is_list() && below.is_empty();
    if !parent.starts_with('{') || matches!(op.action, Action::Relate(..)) {
        return false;
    }
    let at = all.iter().position(|one| one.name == *name && std::ptr::eq(one.shape, op.shape));
    let at = match at {
        Some(at) => at,
        None if is_list => {
            let (list, read, create, change, delete) = (None, None, None, None, None);
            all.push(Owned { name, shape: op.shape, list, read, create, change, delete, others: Vec::new() });
            all.len() - 1
        }
        None => return false,
    };
    let Some(one) = all.get_mut(at) else { return false };
    let is_key = below.first().is_some_and(|key| key.starts_with('{'));
    let slot = match (op.method, below.len()) {
        (Method::Get, 0) => &mut one.list,
        (Method::Post, 0) => &mut one.create,
        (Method::Get, 1) if is_key => &mut one.read,
        // PATCH is preferred to PUT
        (Method::Patch, 1) if is_key => {
            one.change = Some(op);
            return true;
        }
        (Method::Put, 1) if is_key => &mut one.change,
        (Method::Delete, 1) if is_key => &mut one.delete,
        (_, 2) if is_key => {
            one.others.push(op);
            return true;
        }
        _ => return true,
    };
    slot.get_or_insert(op);
    true
}
