//! The sidebar of a form: related rows, status, and actions.

use chancery_oauth::unsupported_row;
use chancery_record::Field;
use chancery_resource::{Op, Problem, Relation, RoleType};
use serde_json::{Value, json};

use super::{
    owned::{self, OwnedPath},
    relate, settings,
};
use crate::shell::{
    components::{Card, Line},
    directory::{self, Resource, encoded, key_of, title_of},
    fields::plain,
    presentation::{CreationLink, FormAct, Item},
    role_protection::is_protected,
    visit::Visit,
};

/// The cards before the related rows.
pub async fn own_cards(visit: &Visit<'_>, item: Item<'_>) -> Result<Vec<Card>, Problem> {
    let mut cards: Vec<Card> = unsupported_card(visit, item.resource, item.row).into_iter().collect();
    cards.extend((item.resource.presentation.cards)(visit, item).await?);
    Ok(cards)
}

/// The badge of a stored row that is not supported, with what is refused.
fn unsupported_card(visit: &Visit<'_>, resource: &Resource, row: &Value) -> Option<Card> {
    let unsupported = unsupported_row(resource.name, |member| row[member].as_str())?;
    let words = visit.words;
    let key = format!("unserved_{}_{}", unsupported.resource, unsupported.member);
    let text = format!("{}: {}", words.field(unsupported.member), words.page("unserved"));
    let line = Line { tone: "bad", text, sub: words.page(&key).into(), ..Line::default() };
    let title = words.resource(resource.name);
    Some(Card { title, kind: "checks", lines: vec![line], ..Card::default() })
}

/// An additional button of the form, if the user may use it: its label, and the page that receives the form.
pub fn form_act<'a>(visit: &Visit<'a>, resource: &Resource) -> Option<(&'a str, &'static str)> {
    let FormAct { operation, label, page } = resource.presentation.form_act.as_ref()?;
    visit.may(directory::of_name(*operation)).map(|_| (visit.words.page(label), *page))
}

/// The actions on a row besides changing it, each with a page of its own. Actions that a role of the row prevents are
/// omitted.
pub fn acts(
    visit: &Visit<'_>,
    item: Item<'_>,
    before_settings: Vec<Value>,
    after_settings: Vec<Value>,
) -> Vec<Value> {
    let Item { resource, here, row, protecting_role, .. } = item;
    let presentation = resource.presentation;
    let first = presentation.first_acts;
    let is_free = |op: &&Op| protecting_role.is_none() || !is_protected(op);
    // the row is not in quarantine
    let is_needed =
        |op: &&Op| !presentation.is_restoring(op) && (presentation.has_effect)(op, row) && is_free(op);
    let mut offered: Vec<_> = super::act::offered(visit, resource).filter(is_needed).collect();
    offered.sort_by_key(|op| first.iter().position(|name| name.is_of(op)).unwrap_or(first.len()));
    let mut acts: Vec<Value> = offered
        .into_iter()
        .map(|op| {
            let label = super::act::label(visit, op);
            let (label, href) = match (presentation.missing_prerequisite)(visit, op, row, here) {
                Some((what, href)) => (format!("{label}: {}", visit.words.page(what)), href),
                None => (label, format!("{here}/{}", op.name)),
            };
            json!({ "label": label, "icon": null, "href": href, "is_main": false, "is_dangerous": false })
        })
        .collect();
    for CreationLink { label, shape, field } in presentation.creations {
        let target = directory::of_shape(shape)
            .filter(|target| visit.may(target.create).is_some_and(|op| is_free(&op)));
        acts.extend(target.map(|target| {
            let key = here.rsplit('/').next().unwrap_or_default();
            let href = format!("{}/new?{field}={key}", visit.address(target));
            json!({ "label": visit.words.page(label), "icon": null, "href": href, "is_main": false, "is_dangerous": false })
        }));
    }
    acts.splice(0..0, after_settings);
    if settings::are_offered(visit, resource) {
        let label = visit.words.page("settings");
        let href = format!("{here}/settings");
        let act = json!({ "label": label, "icon": "sliders-horizontal", "href": href, "is_main": false, "is_dangerous": false });
        acts.insert(0, act);
    }
    acts.splice(0..0, before_settings);
    if visit.may(resource.delete).is_some_and(|op| is_free(&op)) {
        acts.push(json!({
            "label": visit.words.page(presentation.deleting.act), "icon": "trash-2",
            "href": format!("{here}/delete"),
            "is_main": false, "is_dangerous": true,
        }));
    }
    acts
}

/// The related rows: relations, subresources, and resources that refer to the row.
pub async fn related_cards(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    row: &Value,
    protecting_role: Option<RoleType>,
) -> Result<Vec<Card>, Problem> {
    let is_linked = |relation: &Relation| {
        let protection = resource.shape.writes.protection;
        protecting_role.is_none() || !protection.is_some_and(|protection| protection.links.protect(relation))
    };
    let mut cards = Vec::new();
    for relation in resource.shape.relations {
        let other = directory::of_shape(relation.target);
        let read_apart = if is_read_apart(resource) {
            relate::linked(visit, resource, relation, key, MAX_LINES, None).await?
        } else {
            None
        };
        let (rows, is_whole) = match read_apart {
            // the total is not counted
            Some((rows, next)) => (rows, next.is_none()),
            None => (relate::nested(row, relation), true),
        };
        let mut lines: Vec<Line> =
            rows.iter().take(MAX_LINES).map(|row| line_of(visit, other, row)).collect();
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
        let address = owned::address(visit, OwnedPath { resource, key, owned });
        line(&visit.words.resources(owned.shape.name), Some(&address))
    });
    let children: Vec<Line> = owned.chain(children).collect();
    if !children.is_empty() {
        cards.push(card(visit, visit.words.page("belongs"), children, 0));
    }
    Ok(cards)
}

/// Whether the relations of a row can be so large that they are read separately.
pub fn is_read_apart(resource: &Resource) -> bool {
    resource.shape.reads.large && !resource.shape.relations.is_empty()
}

/// Maximum number of lines of a card.
const MAX_LINES: usize = 12;

fn line_of(visit: &Visit<'_>, resource: Option<&'static Resource>, row: &Value) -> Line {
    // a row without a page is shown by its name in the other system
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
