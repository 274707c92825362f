//! What somebody may do, and why: each role that counts as a sentence, with where it counts and through what it is held.

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
    directory::{self, Resource, encoded, operation, title_of},
    navigation,
    parts::{Card, Line},
    presentation::Names,
    visit::Visit,
    words::{Words, raised},
};

/// Roles that are told: who has more has them through very many groups.
const MOST: usize = 50;
/// Roles that a card tells.
const MOST_LINES: usize = 6;
/// Groups through which the way is looked for.
const MOST_WAYS: usize = 12;
/// Kinds of things that a sentence names.
const MOST_THINGS: usize = 3;

/// The shapes of what roles are given for.
pub static SCOPES: [&Shape; 4] = [&CUSTOMER, &SUBSCRIPTION, &TENANT, &IDP_INSTANCE];

/// What a role allows: the names of what it writes, and of what it reads alone.
pub struct Allowed {
    writes: Vec<&'static str>,
    reads: Vec<&'static str>,
}

impl Allowed {
    /// What this role allows within its scope, those first that people look for first.
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

    /// What it allows, as permissions are called.
    pub fn permissions(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let writes = self.writes.iter().map(|name| (*name, format!("{name}.Write")));
        writes.chain(self.reads.iter().map(|name| (*name, format!("{name}.Read"))))
    }
}

/// The names of things as a sentence has them: the first ones, and how many more there are.
pub fn things(words: &Words, names: &[&str]) -> String {
    let first: Vec<String> = names.iter().take(MOST_THINGS).map(|name| words.many(name)).collect();
    let first = first.join(", ");
    match names.len().saturating_sub(MOST_THINGS) {
        0 => first,
        more => words.page("rights_more").replace("{things}", &first).replace("{n}", &more.to_string()),
    }
}

/// What a role does, as the beginning of a sentence.
pub fn does(words: &Words, role: RoleType) -> String {
    if role == RoleType::SystemAdmin {
        return raised(words.page("rights_everything"));
    }
    let allowed = Allowed::by(role);
    let parts = [("rights_writes", &allowed.writes), ("rights_reads", &allowed.reads)];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let told: Vec<String> =
        parts.map(|(key, names)| words.page(key).replace("{things}", &things(words, names))).collect();
    if told.is_empty() { raised(words.page("rights_nothing")) } else { raised(&told.join("; ")) }
}

/// What one may do here, as the interface tells it; `None` where nobody of this resource has roles.
///
/// # Errors
/// The operation's own.
pub async fn effective(visit: &Visit<'_>, resource: &Resource, key: &str) -> Result<Option<Value>, Problem> {
    let told = resource.presentation.rights.as_ref().and_then(|rights| directory::of_name(rights.operation));
    let Some(op) = visit.may(told) else { return Ok(None) };
    match visit.perform(Input::of(op, vec![key.to_owned()])).await {
        Ok(output) => Ok(Some(output.json())),
        // who reads people without administering them is told nothing of their rights
        Err(problem) if problem.kind == ProblemKind::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// The card of one's roles, which leads to the sentences.
///
/// # Errors
/// The operations' own.
pub async fn card(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, row): (&str, &Value),
) -> Result<Option<Card>, Problem> {
    let Some(effective) = effective(visit, resource, key).await? else { return Ok(None) };
    let words = visit.words;
    let told = sentences(visit, resource, row, &effective).await?;
    let lines: Vec<Line> = told
        .iter()
        .take(MOST_LINES)
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
    let count = (told.len() > MOST_LINES).then(|| told.len().to_string());
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

/// Shows what one may do, and why.
///
/// # Errors
/// The operations' own.
pub async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    let row = read(visit, resource, key).await?;
    let effective = effective(visit, resource, key).await?;
    let effective = effective.ok_or_else(|| Problem::not_found("page of rights here"))?;
    let told = sentences(visit, resource, &row, &effective).await?;
    let held = (&effective)["assignments"].as_array().map_or(0, Vec::len);
    let (words, name) = (visit.words, title_of(resource, &row));
    let heading = words.page("rights_title").replace("{name}", &name);
    let more = held.saturating_sub(told.len());
    let are_given = resource.presentation.rights.as_ref().is_some_and(|rights| rights.are_given);
    let grant =
        directory::of_shape(&ROLE_ASSIGNMENT).filter(|roles| are_given && visit.may(roles.create).is_some());
    let content = json!({
        "back": { "href": format!("{}/{}", visit.address(resource), encoded(key)), "label": name }, "heading": heading,
        "sentences": told,
        "more": if more > 0 { words.page("rights_rest").replace("{n}", &more.to_string()) } else { String::new() },
        "grant": grant.map(|roles| json!({ "href": format!("{}/new?principalId={}", visit.address(roles), encoded(key)), "label": words.page("grant_give") })),
    });
    visit.page(200, "rights.html", &heading, &content)
}

/// Each role that counts, as the parts of its sentence.
async fn sentences(
    visit: &Visit<'_>,
    resource: &'static Resource,
    row: &Value,
    effective: &Value,
) -> Result<Vec<Value>, Problem> {
    let all = effective["assignments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let held: Vec<&Value> = all.iter().take(MOST).collect();
    let scopes = held.iter().filter_map(|one| Some((one["scopeType"].as_str()?, one["scopeId"].as_str()?)));
    let names = places(visit, scopes).await?;
    let mut ways: Vec<(String, Vec<Value>)> = Vec::new();
    let mut told = Vec::new();
    for one in held {
        let source = one["sourceId"].as_str().filter(|_| one["source"] == json!("Group")).unwrap_or_default();
        if !source.is_empty() && ways.len() < MOST_WAYS && !ways.iter().any(|(known, _)| known == source) {
            ways.push((source.to_owned(), through(visit, resource, (row, source)).await?));
        }
        let way = ways.iter().find(|(known, _)| known == source).map(|(_, way)| way.clone());
        let role = one["roleType"].as_str().unwrap_or_default();
        let place = place(visit, one["scopeId"].as_str(), &names);
        told.push(sentence(visit, role, (&place, &way.unwrap_or_default())));
    }
    Ok(told)
}

/// A role as the parts of its sentence.
pub fn sentence(visit: &Visit<'_>, role: &str, (place, through): (&Value, &[Value])) -> Value {
    let words = visit.words;
    let kind = RoleType::of(role);
    let allowed = kind.map(Allowed::by);
    let all = |names: Option<&Vec<&str>>| {
        let names = names.map(Vec::as_slice).unwrap_or_default();
        names.iter().map(|name| words.many(name)).collect::<Vec<_>>().join(", ")
    };
    json!({
        "does": kind.map_or_else(String::new, |kind| does(words, kind)), "where": place, "role": words.choice(role),
        "through": through, "writes": all(allowed.as_ref().map(|allowed| &allowed.writes)),
        "reads": all(allowed.as_ref().map(|allowed| &allowed.reads)),
    })
}

/// The names of the places where roles count, by their kinds and ids.
///
/// # Errors
/// The operations' own.
pub async fn places(
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

/// Where a role counts.
pub fn place(visit: &Visit<'_>, id: Option<&str>, names: &Names) -> Value {
    let words = visit.words;
    let Some(id) = id else {
        let (of, text) = (words.page("rights_in"), words.page("rights_here"));
        return json!({ "of": of, "text": text, "alone": words.page("everywhere"), "href": null });
    };
    let (text, href) = names.get(id).cloned().unwrap_or_else(|| (id.to_owned(), None));
    json!({ "of": words.page("rights_of"), "text": text, "alone": text, "href": href })
}

/// The groups through which a role is held: the one that somebody is in, and the one above it that has the role.
async fn through(
    visit: &Visit<'_>,
    resource: &Resource,
    (row, group): (&Value, &str),
) -> Result<Vec<Value>, Problem> {
    let unknown = || vec![json!({ "text": group, "href": null })];
    let Some(groups) = directory::of_shape(&APPLICATION_GROUP) else { return Ok(unknown()) };
    if visit.may(groups.read).is_none() {
        return Ok(unknown());
    }
    let above = read(visit, groups, group).await?;
    let href = format!("{}/{}", visit.address(groups), encoded(group));
    let last = json!({ "text": title_of(groups, &above), "href": href });
    let first = nearest(visit, resource, (row, &above)).await?;
    Ok(first.into_iter().chain([last]).collect())
}

/// The group of the user store that somebody is in and that lies below another group; none where they are in that one.
async fn nearest(
    visit: &Visit<'_>,
    resource: &Resource,
    (row, above): (&Value, &Value),
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
    let filter: Vec<String> = ids.iter().take(MOST).map(|id| format!("id eq {}", json!(id))).collect();
    input.query.extend([("filter".to_owned(), filter.join(" or ")), ("count".to_owned(), "1".to_owned())]);
    let found = visit.perform(input).await?.json();
    let found = found.as_array().and_then(|found| found.first());
    Ok(found.map(|group| {
        let href = format!("{}/{}", visit.address(groups), encoded(group["id"].as_str().unwrap_or_default()));
        json!({ "text": title_of(groups, group), "href": href })
    }))
}

/// Who a platform user or group is in the user store that is shown.
fn subject<'a>(visit: &Visit<'_>, row: &'a Value) -> Option<&'a str> {
    let store = visit.visitor.store.as_ref()?.scope.id.to_string();
    let all = row["identities"].as_array()?;
    let own = all
        .iter()
        .find(|one| one["idpInstanceId"] == json!(store) && one["isUserStoreIdentity"] == json!(true));
    own?["subject"].as_str()
}
