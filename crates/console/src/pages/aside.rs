//! What stands beside a form: what belongs to a row, how it stands, and what can be done with it.

use chancery_oauth::unserved_row;
use chancery_record::Field;
use chancery_resource::{Op, Problem, Relation, RoleType};
use serde_json::{Value, json};

use super::{
    list::{key_of, title_of},
    owned, relate, settings, steps,
};
use crate::{
    arranged,
    carried::is_protected,
    directory::{self, Resource, encoded, operation_name},
    fields::plain,
    parts::{Card, Line},
    visit::Visit,
};

/// The cards that a resource's rows have and no other's.
pub async fn own_cards(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, here, row): (&str, &str, &Value),
    barrier: Option<RoleType>,
) -> Result<Vec<Card>, Problem> {
    match resource.name {
        "CertStore" => Ok(vec![super::certificate::card(visit, resource, row).await?]),
        "User" => {
            let sign_in = super::user::sign_in(visit, resource, (key, here), barrier).await?;
            let passkeys = super::standing::passkeys(visit, (key, here)).await?;
            let recovery = super::recovery::card(visit, key, barrier).await?;
            let there = super::user::in_applications(visit, key).await?;
            Ok(sign_in.into_iter().chain(passkeys).chain(recovery).chain(there).collect())
        }
        "ClientApp" => Box::pin(app_cards(visit, resource, (key, row))).await,
        super::deliveries::NAME => Ok(vec![super::deliveries::card(visit, resource, (key, row))]),
        "IdpInstance" => {
            let unserved = unserved_card(visit, resource, row);
            let works = super::standing::provider(visit, (key, here, row)).await?;
            let there = Box::pin(super::provider::addresses(visit, resource, (key, row))).await?;
            let provisioning = super::standing::provisioning(visit, (key, row)).await?;
            let later = super::provider::later(visit, (key, here, row));
            let told = unserved.into_iter().chain(works).chain(there).chain(provisioning);
            Ok(told.chain(later).collect())
        }
        "Option" => Ok(settings::card_of(visit, row).into_iter().collect()),
        _ => Ok(unserved_card(visit, resource, row).into_iter().collect()),
    }
}

/// The badge of a stored row that is not supported, with what is refused.
fn unserved_card(visit: &Visit<'_>, resource: &Resource, row: &Value) -> Option<Card> {
    let found = unserved_row(resource.name, |member| row[member].as_str())?;
    let words = visit.words;
    let key = format!("unserved_{}_{}", found.resource, found.member);
    let text = format!("{}: {}", words.field(found.member), words.page("unserved"));
    let line = Line { tone: "bad", text, sub: words.page(&key).into(), ..Line::default() };
    let title = words.resource(resource.name);
    Some(Card { title, kind: "checks", lines: vec![line], ..Card::default() })
}

/// The cards of a client app. They are apart from those of others, because the future of a page with many parts needs much stack.
async fn app_cards(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, row): (&str, &Value),
) -> Result<Vec<Card>, Problem> {
    let mut cards = vec![super::safety::card(visit, resource, key).await?];
    cards.extend(Box::pin(super::connecting::refusals(visit, key)).await?);
    cards.extend(Box::pin(super::rotation::card(visit, resource, (key, row))).await?);
    cards.push(super::connecting::addresses(visit));
    Ok(cards)
}

/// What else can be done with what was typed, for who may: its label, and the page that takes the form.
pub fn form_act<'a>(visit: &Visit<'a>, resource: &Resource) -> Option<(&'a str, &'static str)> {
    let (operation, label, page) = arranged::form_act(resource.name)?;
    visit.may(directory::of_name(operation)).map(|_| (visit.words.page(label), page))
}

/// What can be done with one, besides changing it: each has a page of its own. What a role of the row keeps the person from is not
/// among it.
pub fn acts(
    visit: &Visit<'_>,
    resource: &Resource,
    (row, here): (&Value, &str),
    barrier: Option<RoleType>,
) -> Vec<Value> {
    let first = arranged::first_acts(resource.name);
    let is_free = |op: &&Op| barrier.is_none() || !is_protected(op);
    // what is here needs no restoring
    let is_needed =
        |op: &&Op| !op.name.starts_with("Restore") && arranged::has_effect(op, row) && is_free(op);
    let mut offered: Vec<_> = super::act::offered(visit, resource).filter(is_needed).collect();
    offered.sort_by_key(|op| first.iter().position(|name| *name == op.name).unwrap_or(first.len()));
    let mut acts: Vec<Value> = offered
        .into_iter()
        .map(|op| {
            let label = super::act::label(visit, op);
            let (label, href) = match lacks(visit, op, (row, here)) {
                Some((what, href)) => (format!("{label}: {}", visit.words.page(what)), href),
                None => (label, format!("{here}/{}", op.name)),
            };
            json!({ "label": label, "icon": null, "href": href, "is_main": false, "is_dangerous": false })
        })
        .collect();
    for (text, name, wire) in arranged::makes(resource.name) {
        let made =
            directory::find(name, true).filter(|made| visit.may(made.create).is_some_and(|op| is_free(&op)));
        acts.extend(made.map(|made| {
            let key = here.rsplit('/').next().unwrap_or_default();
            let href = format!("{}/new?{wire}={key}", visit.address(made));
            json!({ "label": visit.words.page(text), "icon": null, "href": href, "is_main": false, "is_dangerous": false })
        }));
    }
    acts.splice(0..0, super::provider_trial::act(visit, resource, (row, here)));
    acts.splice(0..0, super::tokens::act(visit, resource, here));
    if settings::are_offered(visit, resource) {
        let label = visit.words.page("settings");
        let href = format!("{here}/settings");
        let act = json!({ "label": label, "icon": "sliders-horizontal", "href": href, "is_main": false, "is_dangerous": false });
        acts.insert(0, act);
    }
    if barrier.is_none() {
        acts.splice(0..0, super::provider_connect::act(visit, resource, (row, here)));
    }
    if visit.may(resource.delete).is_some_and(|op| is_free(&op)) {
        acts.push(json!({
            "label": visit.words.page(arranged::deleting(resource.name).act), "icon": "trash-2",
            "href": format!("{here}/delete"),
            "is_main": false, "is_dangerous": true,
        }));
    }
    acts
}

/// What an act needs and does not have: the key of the text, and where it is set.
fn lacks(visit: &Visit<'_>, operation: &Op, (row, here): (&Value, &str)) -> Option<(&'static str, String)> {
    if !operation_name!("SendPasswordResetEmail").is_of(operation) {
        return None;
    }
    if row["emailAddress"].as_str().is_none_or(str::is_empty) {
        return Some(("lacks_address", format!("{here}#f-emailAddress")));
    }
    if steps::sends_mail(visit) {
        return None;
    }
    Some(("lacks_mail", format!("{}#f-EMailSenderAddress", steps::store_settings(visit)?)))
}

/// What belongs to a row: its relations, and the resources that name it.
pub async fn aside(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, row): (&str, &Value),
    barrier: Option<RoleType>,
) -> Result<Vec<Card>, Problem> {
    let is_linked = |relation: &Relation| {
        let protection = resource.shape.writes.protection;
        barrier.is_none() || !protection.is_some_and(|protection| protection.links.protect(relation))
    };
    let mut cards = Vec::new();
    for relation in resource.shape.relations {
        let other = directory::of_shape(relation.target);
        let read_apart = if is_read_apart(resource) {
            relate::linked(visit, (resource, relation), key, (MOST_LINES, None)).await?
        } else {
            None
        };
        let (rows, is_whole) = match read_apart {
            // how many there are is not counted
            Some((rows, next)) => (rows, next.is_none()),
            None => (relate::nested(row, relation), true),
        };
        let mut lines: Vec<Line> =
            rows.iter().take(MOST_LINES).map(|row| line_of(visit, other, row)).collect();
        let href = format!("{}/{}/relation/{}", visit.address(resource), encoded(key), relation.name);
        if !is_whole {
            lines.push(line(visit.words.page("all"), Some(&href)));
        }
        let count = if is_whole { rows.len() } else { 0 };
        let mut card = card(visit, &visit.words.field(relation.name), lines, count);
        if is_linked(relation) && relate::is_offered(visit, resource, relation) {
            card.more = Some(json!({ "href": href, "label": visit.words.page("edit") }));
        }
        cards.push(card);
    }
    let children = directory::resources().iter().filter_map(|child| {
        let names =
            |field: &&Field| child.referenced(field).is_some_and(|named| std::ptr::eq(named, resource));
        let field = child.shown().find(names)?;
        visit.may(child.list)?;
        let href = format!("{}?of={}:{}", visit.address(child), field.wire(), encoded(key));
        Some(line(&visit.words.resources(child.name), Some(&href)))
    });
    let owned = resource.owned.iter().filter(|owned| visit.may(owned.list).is_some());
    let owned = owned.map(|owned| {
        line(&visit.words.resources(owned.shape.name), Some(&owned::address(visit, (resource, key, owned))))
    });
    let children: Vec<Line> = owned.chain(children).collect();
    if !children.is_empty() {
        cards.push(card(visit, visit.words.page("belongs"), children, 0));
    }
    Ok(cards)
}

/// Whether the sets of one can be so large that they are read apart from it.
pub fn is_read_apart(resource: &Resource) -> bool {
    resource.shape.reads.large && !resource.shape.relations.is_empty()
}

/// The most lines of a card.
const MOST_LINES: usize = 12;

fn line_of(visit: &Visit<'_>, resource: Option<&'static Resource>, row: &Value) -> Line {
    // what has no page of its own is known by what it is elsewhere
    let bare =
        || ["name", "subject", "id"].into_iter().find_map(|name| row[name].as_str()).map(str::to_owned);
    let text = match resource {
        Some(resource) => title_of(resource, row),
        None => bare().unwrap_or_else(|| plain(row)),
    };
    let readable = resource.filter(|resource| resource.read.is_some());
    let href =
        readable.map(|resource| format!("{}/{}", visit.address(resource), encoded(&key_of(resource, row))));
    line(&text, href.as_deref())
}

fn line(text: &str, href: Option<&str>) -> Line {
    Line { text: text.into(), href: href.map(str::to_owned), ..Line::default() }
}

fn card(visit: &Visit<'_>, title: &str, lines: Vec<Line>, count: usize) -> Card {
    let about = if lines.is_empty() { visit.words.page("none") } else { "" };
    Card {
        title: title.into(),
        kind: "lines",
        about: about.into(),
        count: (count > 0).then(|| count.to_string()),
        lines,
        ..Card::default()
    }
}
