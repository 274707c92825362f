//! Effective permissions and their reasons: each role as a sentence, with its scope and the groups that grant it.

use std::collections::BTreeSet;

use chancery_management::{
    application::APPLICATION_GROUP, customer::CUSTOMER, idp_instance::IDP_INSTANCE,
    role_assignment::ROLE_ASSIGNMENT, subscription::SUBSCRIPTION, tenant::TENANT,
};
use chancery_resource::{Problem, ProblemKind, RoleType, Shape};
use chancery_userstore::group::GROUP;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::{item::read, reference};
use crate::shell::{
    components::{Card, Line},
    directory::{self, Resource, encoded, operation, title_of},
    navigation,
    presentation::Names,
    visit::Visit,
    words::{Words, raised},
};

/// Maximum number of roles: more come from very many groups.
const MAX_ROLES: usize = 50;
/// Maximum number of roles on a card.
const MAX_LINES: usize = 6;
/// Maximum number of groups whose path is looked up.
const MAX_WAYS: usize = 12;
/// Maximum number of resources that a sentence names.
const MAX_THINGS: usize = 3;

/// The shapes of the scopes of roles.
pub static SCOPES: [&Shape; 4] = [&CUSTOMER, &SUBSCRIPTION, &TENANT, &IDP_INSTANCE];

/// The permissions of a role: the resources that it may write, and those that it may only read.
pub struct Allowed {
    writes: Vec<&'static str>,
    reads: Vec<&'static str>,
}

impl Allowed {
    /// The permissions of this role within its scope, in the order of the navigation.
    pub fn by(role: RoleType) -> Self {
        let ops = || directory::operations().filter(|op| role.satisfies(op.permit));
        let writes: BTreeSet<&str> = ops().filter(|op| op.writes()).map(|op| op.shape.name).collect();
        let reads: BTreeSet<&str> =
            ops().map(|op| op.shape.name).filter(|name| !writes.contains(name)).collect();
        let sorted = |names: BTreeSet<&'static str>| {
            let mut names: Vec<&str> = names.into_iter().collect();
            names.sort_by_key(|name| navigation::position(name));
            names
        };
        Self { writes: sorted(writes), reads: sorted(reads) }
    }

    /// The permissions by name.
    pub fn permissions(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let writes = self.writes.iter().map(|name| (*name, format!("{name}.Write")));
        writes.chain(self.reads.iter().map(|name| (*name, format!("{name}.Read"))))
    }
}

/// The names of resources in a sentence: the first ones, and the number of the others.
pub fn resource_list(words: &Words, names: &[&str]) -> String {
    let first: Vec<String> = names.iter().take(MAX_THINGS).map(|name| words.many(name)).collect();
    let first = first.join(", ");
    match names.len().saturating_sub(MAX_THINGS) {
        0 => first,
        more => words.page("rights_more").replace("{things}", &first).replace("{n}", &more.to_string()),
    }
}

/// The permissions of a role, as the start of a sentence.
pub fn role_summary(words: &Words, role: RoleType) -> String {
    if role == RoleType::SystemAdmin {
        return raised(words.page("rights_everything"));
    }
    let allowed = Allowed::by(role);
    let parts = [("rights_writes", &allowed.writes), ("rights_reads", &allowed.reads)];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let phrases: Vec<String> =
        parts.map(|(key, names)| words.page(key).replace("{things}", &resource_list(words, names))).collect();
    if phrases.is_empty() { raised(words.page("rights_nothing")) } else { raised(&phrases.join("; ")) }
}

/// The effective permissions of a principal; `None` if the resource has no roles.
pub async fn effective(visit: &Visit<'_>, resource: &Resource, key: &str) -> Result<Option<Value>, Problem> {
    let operation =
        resource.presentation.rights.as_ref().and_then(|rights| directory::of_name(rights.operation));
    let Some(op) = visit.may(operation) else { return Ok(None) };
    match visit.perform(Input::of(op, vec![key.to_owned()])).await {
        Ok(output) => Ok(Some(output.json())),
        // users who may read people without administering them do not see their permissions
        Err(problem) if problem.kind == ProblemKind::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// The card with the roles of a principal, which links to the sentences.
pub async fn card(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    row: &Value,
) -> Result<Option<Card>, Problem> {
    let Some(effective) = effective(visit, resource, key).await? else { return Ok(None) };
    let words = visit.words;
    let sentences_of_roles = sentences(visit, resource, row, &effective).await?;
    let lines: Vec<Line> = sentences_of_roles
        .iter()
        .take(MAX_LINES)
        .map(|one| {
            let through = one["through"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut names: Vec<&str> =
                one.pointer("/where/alone").and_then(Value::as_str).into_iter().collect();
            names.extend(through.iter().filter_map(|link| link["text"].as_str()));
            Line {
                text: crate::shell::fields::plain(&one["role"]),
                sub: names.join(" · "),
                ..Line::default()
            }
        })
        .collect();
    let about = if lines.is_empty() { words.page("rights_none") } else { "" };
    let count = (sentences_of_roles.len() > MAX_LINES).then(|| sentences_of_roles.len().to_string());
    let more = (!lines.is_empty()).then(|| {
        json!({ "href": format!("{}/{}/rights", visit.address(resource), encoded(key)), "label": words.page("rights_why") })
    });
    Ok(Some(Card {
        title: words.page("rights").into(),
        kind: "lines",
        about: about.into(),
        count,
        lines,
        more,
        ..Card::default()
    }))
}

/// Shows the effective permissions and their reasons.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let row = read(visit, resource, key).await?;
    let effective = effective(visit, resource, key).await?;
    let effective = effective.ok_or_else(|| Problem::not_found("page of rights here"))?;
    let sentences_of_roles = sentences(visit, resource, &row, &effective).await?;
    let held = (&effective)["assignments"].as_array().map_or(0, Vec::len);
    let (words, name) = (visit.words, title_of(resource, &row));
    let heading = words.page("rights_title").replace("{name}", &name);
    let more = held.saturating_sub(sentences_of_roles.len());
    let are_given = resource.presentation.rights.as_ref().is_some_and(|rights| rights.are_given);
    let grant =
        directory::of_shape(&ROLE_ASSIGNMENT).filter(|roles| are_given && visit.may(roles.create).is_some());
    let content = json!({
        "back": { "href": format!("{}/{}", visit.address(resource), encoded(key)), "label": name }, "heading": heading,
        "sentences": sentences_of_roles,
        "more": if more > 0 { words.page("rights_rest").replace("{n}", &more.to_string()) } else { String::new() },
        "grant": grant.map(|roles| json!({ "href": format!("{}/new?principalId={}", visit.address(roles), encoded(key)), "label": words.page("grant_give") })),
    });
    visit.page(200, "rights.html", &heading, &content)
}

/// The template context of the sentences of all roles.
async fn sentences(
    visit: &Visit<'_>,
    resource: &'static Resource,
    row: &Value,
    effective: &Value,
) -> Result<Vec<Value>, Problem> {
    let all = effective["assignments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let held: Vec<&Value> = all.iter().take(MAX_ROLES).collect();
    let scopes = held.iter().filter_map(|one| Some((one["scopeType"].as_str()?, one["scopeId"].as_str()?)));
    let names = scope_names(visit, scopes).await?;
    let mut ways: Vec<(String, Vec<Value>)> = Vec::new();
    let mut all_sentences = Vec::new();
    for one in held {
        let source = one["sourceId"].as_str().filter(|_| one["source"] == json!("Group")).unwrap_or_default();
        if !source.is_empty() && ways.len() < MAX_WAYS && !ways.iter().any(|(known, _)| known == source) {
            ways.push((source.to_owned(), granting_groups(visit, resource, row, source).await?));
        }
        let way = ways.iter().find(|(known, _)| known == source).map(|(_, way)| way.clone());
        let role = one["roleType"].as_str().unwrap_or_default();
        let scope = scope_of(visit, one["scopeId"].as_str(), &names);
        all_sentences.push(sentence(visit, role, &scope, &way.unwrap_or_default()));
    }
    Ok(all_sentences)
}

/// The template context of the sentence of a role.
pub fn sentence(visit: &Visit<'_>, role: &str, scope: &Value, through: &[Value]) -> Value {
    let words = visit.words;
    let kind = RoleType::of(role);
    let allowed = kind.map(Allowed::by);
    let all = |names: Option<&Vec<&str>>| {
        let names = names.map(Vec::as_slice).unwrap_or_default();
        names.iter().map(|name| words.many(name)).collect::<Vec<_>>().join(", ")
    };
    json!({
        "does": kind.map_or_else(String::new, |kind| role_summary(words, kind)), "where": scope, "role": words.choice(role),
        "through": through, "writes": all(allowed.as_ref().map(|allowed| &allowed.writes)),
        "reads": all(allowed.as_ref().map(|allowed| &allowed.reads)),
    })
}

/// The names of the scopes of roles, by type and id.
pub async fn scope_names(
    visit: &Visit<'_>,
    scopes: impl Iterator<Item = (&str, &str)> + Clone,
) -> Result<Names, Problem> {
    let mut names = Names::new();
    for shape in SCOPES {
        let ids: BTreeSet<String> =
            scopes.clone().filter(|(known, _)| *known == shape.name).map(|(_, id)| id.to_owned()).collect();
        if let Some(resource) = directory::of_shape(shape) {
            reference::find(visit, resource, &ids, &mut names).await?;
        }
    }
    Ok(names)
}

/// The template context of the scope of a role.
pub fn scope_of(visit: &Visit<'_>, id: Option<&str>, names: &Names) -> Value {
    let words = visit.words;
    let Some(id) = id else {
        let (of, text) = (words.page("rights_in"), words.page("rights_here"));
        return json!({ "of": of, "text": text, "alone": words.page("everywhere"), "href": null });
    };
    let (text, href) = names.get(id).cloned().unwrap_or_else(|| (id.to_owned(), None));
    json!({ "of": words.page("rights_of"), "text": text, "alone": text, "href": href })
}

/// The groups that grant a role: the user's own group, and the group above it that has the role.
async fn granting_groups(
    visit: &Visit<'_>,
    resource: &Resource,
    row: &Value,
    group: &str,
) -> Result<Vec<Value>, Problem> {
    let unknown = || vec![json!({ "text": group, "href": null })];
    let Some(groups) = directory::of_shape(&APPLICATION_GROUP) else { return Ok(unknown()) };
    if visit.may(groups.read).is_none() {
        return Ok(unknown());
    }
    let above = read(visit, groups, group).await?;
    let href = format!("{}/{}", visit.address(groups), encoded(group));
    let last = json!({ "text": title_of(groups, &above), "href": href });
    let first = nearest(visit, resource, row, &above).await?;
    Ok(first.into_iter().chain([last]).collect())
}

/// The user's own group in the user store below another group; `None` if the user is a direct member of that one.
async fn nearest(
    visit: &Visit<'_>,
    resource: &Resource,
    row: &Value,
    above: &Value,
) -> Result<Option<Value>, Problem> {
    let in_store = resource.presentation.rights.as_ref().and_then(|rights| rights.in_store);
    let own = in_store.and_then(|(shape, relation)| Some((directory::of_shape(shape)?, relation)));
    let (Some((own, relation)), Some(groups)) = (own, directory::of_shape(&GROUP)) else {
        return Ok(None);
    };
    let below = operation!("GetAllGroupMembershipFromGroup");
    let (Some(subject), Some(top), Some(below), Some(_)) =
        (subject(visit, row), subject(visit, above), visit.may(below), visit.may(own.read))
    else {
        return Ok(None);
    };
    let own = &read(visit, own, subject).await?;
    let direct = own[relation].as_array().map(Vec::as_slice).unwrap_or_default();
    let ids: Vec<&str> = direct.iter().filter_map(|group| group["id"].as_str()).collect();
    if ids.is_empty() || ids.contains(&top) {
        return Ok(None);
    }
    let mut input = Input::of(below, vec![top.to_owned()]);
    let filter: Vec<String> = ids.iter().take(MAX_ROLES).map(|id| format!("id eq {}", json!(id))).collect();
    input.query.extend([("filter".to_owned(), filter.join(" or ")), ("count".to_owned(), "1".to_owned())]);
    let groups_below = visit.perform(input).await?.json();
    let groups_below = groups_below.as_array().and_then(|groups_below| groups_below.first());
    Ok(groups_below.map(|group| {
        let href = format!("{}/{}", visit.address(groups), encoded(group["id"].as_str().unwrap_or_default()));
        json!({ "text": title_of(groups, group), "href": href })
    }))
}

/// The id of a platform user or group in the selected user store.
fn subject<'a>(visit: &Visit<'_>, row: &'a Value) -> Option<&'a str> {
    let store = visit.visitor.store.as_ref()?.scope.id.to_string();
    let all = row["identities"].as_array()?;
    let own = all
        .iter()
        .find(|one| one["idpInstanceId"] == json!(store) && one["isUserStoreIdentity"] == json!(true));
    own?["subject"].as_str()
}
