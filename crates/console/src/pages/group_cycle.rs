//! Explains why a group cannot join another one: the path of memberships by which it already contains that group.

use std::collections::HashMap;

use chancery_resource::{Problem, ProblemKind};
use chancery_userstore::group::Group;
use chancery_web::AnswerBody;
use http::Response;
use serde_json::{Value, json};

use super::{item::read, relate};
use crate::shell::{
    directory::{Resource, encoded, key_of, title_of},
    visit::Visit,
};

/// Maximum number of groups that are searched.
const MAX_SEARCHED: usize = 500;
/// Maximum number of parents of one group that are read.
const PAGE_SIZE: usize = 200;

/// The names on the path from the inner group to the outer one, if the problem is a cycle.
pub async fn find(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    name: &str,
    ids: &[&str],
    problem: &Problem,
) -> Result<Option<Vec<String>>, Problem> {
    let is_nested = problem.kind == ProblemKind::Conflict
        && [Group::PARENT_GROUPS.name, Group::MEMBER_GROUPS.name].contains(&name);
    let Some(upwards) = resource.shape.relation(Group::PARENT_GROUPS.name).filter(|_| is_nested) else {
        return Ok(None);
    };
    // the new member already contains the group: the path leads up from the group to the new member
    let (from, ends): (&[&str], &[&str]) =
        if name == Group::MEMBER_GROUPS.name { (&[key], ids) } else { (ids, &[key]) };
    let mut names: HashMap<String, (String, Option<String>)> = HashMap::new();
    let mut waiting: Vec<String> = Vec::new();
    for id in from {
        let row = read(visit, resource, id).await?;
        names.insert((*id).to_owned(), (title_of(resource, &row), None));
        waiting.push((*id).to_owned());
    }
    let mut next = 0;
    while let Some(id) = waiting.get(next).cloned() {
        if ends.contains(&id.as_str()) {
            return Ok(Some(path(&names, &id)));
        }
        next += 1;
        let linked = relate::linked(visit, resource, upwards, &id, PAGE_SIZE, None).await?;
        for row in linked.unwrap_or_default().0 {
            let above = key_of(resource, &row);
            if names.len() < MAX_SEARCHED && !names.contains_key(&above) {
                names.insert(above.clone(), (title_of(resource, &row), Some(id.clone())));
                waiting.push(above);
            }
        }
    }
    Ok(None)
}

/// The names from the start of the path to this group.
fn path(names: &HashMap<String, (String, Option<String>)>, end: &str) -> Vec<String> {
    let (mut path, mut at) = (Vec::new(), Some(end));
    while let Some((name, below)) = at.and_then(|id| names.get(id)) {
        path.push(name.clone());
        at = below.as_deref();
    }
    path.reverse();
    path
}

/// Shows the path.
pub fn show(
    visit: &Visit<'_>,
    resource: &Resource,
    key: &str,
    name: &str,
    path: &[String],
) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let steps: Vec<Value> = path
        .iter()
        .zip(path.iter().skip(1))
        .map(|(inner, outer)| {
            json!(words.page("circle_step").replace("{inner}", inner).replace("{outer}", outer))
        })
        .collect();
    let heading = words.page("circle_title");
    let text = words.page(if steps.is_empty() { "circle_self" } else { "circle_text" });
    let content = json!({
        "heading": heading, "text": text, "facts": steps, "trace": "",
        "link": { "href": format!("{}/{}/relation/{name}", visit.address(resource), encoded(key)), "label": words.page("back") },
    });
    visit.page(409, "message.html", heading, &content)
}
