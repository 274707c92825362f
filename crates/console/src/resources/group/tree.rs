//! Nested groups as an expandable tree, upwards and downwards.

use std::{future::Future, pin::Pin};

use chancery_resource::{Problem, Relation, RoleType};
use chancery_userstore::group::Group;
use chancery_userstore::user::USER;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use crate::{
    pages::{batch, item::read, relate},
    shell::{
        directory::{self, Resource, encoded, key_of, title_of},
        visit::Visit,
    },
};

/// Maximum number of shown groups of one group.
const MAX_SHOWN: usize = 100;
/// Maximum number of expanded groups, and of levels.
const MAX_OPEN: usize = 30;
const DEEPEST: usize = 30;

/// Further actions on a group: adding members by name, its tree, and its list of members.
pub fn acts(visit: &Visit<'_>, key: &str, here: &str, protecting_role: Option<RoleType>) -> Vec<Value> {
    let act = |key: &str, icon: &str, page: &str| json!({ "label": visit.words.page(key), "icon": icon, "href": format!("{here}/{page}"), "is_main": false, "is_dangerous": false });
    let mut acts = Vec::new();
    if protecting_role.is_none() && visit.may(batch::add_members_operation()).is_some() {
        acts.push(act("members_title", "user-round-plus", "members"));
    }
    acts.push(act("tree", "network", "tree"));
    let users = directory::of_shape(&USER).filter(|users| visit.may(users.list).is_some());
    acts.extend(users.map(|users| {
        let href = format!("{}?of=memberOfGroups:{}", visit.address(users), encoded(key));
        json!({ "label": visit.words.page("members_list"), "icon": "list", "href": href, "is_main": false, "is_dangerous": false })
    }));
    acts
}

/// A direction of the tree: its query parameter, its relation, and the expanded groups.
struct Side<'a> {
    name: &'static str,
    relation: &'static Relation,
    open: Vec<&'a str>,
}

/// Shows the parents and the members of a group.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let row = read(visit, resource, key).await?;
    let words = visit.words;
    let title = title_of(resource, &row);
    let here = format!("{}/{}", visit.address(resource), encoded(key));
    let mut sides = Vec::new();
    for (name, relation) in [("up", Group::PARENT_GROUPS), ("down", Group::MEMBER_GROUPS)] {
        let Some(relation) = resource.shape.relation(relation.name) else { continue };
        let open = visit.parameter(name).unwrap_or_default().split('.').filter(|id| !id.is_empty());
        let side = Side { name, relation, open: open.take(MAX_OPEN).collect() };
        let (nodes, more) = nodes(visit, resource, &side, key.to_owned(), name.to_owned(), 0).await?;
        sides.push(json!({
            "title": words.field(relation.name), "nodes": nodes, "more": more,
            "edit": format!("{here}/relation/{}", relation.name),
        }));
    }
    let heading = format!("{}: {title}", words.page("tree"));
    let content = json!({ "back": { "href": here, "label": title }, "heading": heading, "sides": sides });
    visit.page(200, "group-tree.html", &heading, &content)
}

type Nodes<'a> = Pin<Box<dyn Future<Output = Result<(Vec<Value>, Option<String>), Problem>> + Send + 'a>>;

/// The related groups of a group, with those of expanded ones; and the link to the others, if there are too many.
fn nodes<'a>(
    visit: &'a Visit<'_>,
    resource: &'static Resource,
    side: &'a Side<'_>,
    key: String,
    parent_anchor: String,
    depth: usize,
) -> Nodes<'a> {
    Box::pin(async move {
        let linked = relate::linked(visit, resource, side.relation, &key, MAX_SHOWN, None).await?;
        let (rows, next) = linked.unwrap_or_default();
        let own = format!("{}/{}", visit.address(resource), encoded(&key));
        let more = next.map(|_| format!("{own}/relation/{}", side.relation.name));
        let mut all = Vec::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            let id = key_of(resource, row);
            let at = format!("{parent_anchor}-{number}");
            let is_open = side.open.contains(&id.as_str()) && depth < DEEPEST;
            let (inner, more) = if is_open {
                nodes(visit, resource, side, id.clone(), at.clone(), depth + 1).await?
            } else {
                (Vec::new(), None)
            };
            all.push(json!({
                "at": at, "label": title_of(resource, row), "is_open": is_open, "nodes": inner, "more": more,
                "href": format!("{}/{}", visit.address(resource), encoded(&id)), "turn": toggle_href(visit, side, &id, &at),
            }));
        }
        Ok((all, more))
    })
}

/// The URL of this page with one group expanded or collapsed.
fn toggle_href(visit: &Visit<'_>, side: &Side<'_>, id: &str, at: &str) -> String {
    let mut open: Vec<&str> = side.open.iter().copied().filter(|one| *one != id).collect();
    if open.len() == side.open.len() {
        open.push(id);
    }
    let other = if side.name == "up" { "down" } else { "up" };
    let pairs = [(side.name, open.join(".")), (other, visit.parameter(other).unwrap_or_default().to_owned())];
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    format!("{}?{query}#{at}", visit.path())
}
