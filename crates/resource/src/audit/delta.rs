//! Deltas: the rows of a user store that changed after a cursor, each once, in its current state
//! (`docs/contract/events.md`).

use std::collections::{BTreeMap, BTreeSet};

use chancery_record::Value;
use chancery_store::{Error, Tx};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::{
    feed::{self, AFTER, COUNT, EventPage, EventQuery, WAIT},
    read::{EntryPosition, read_entries},
};
use crate::{
    Answer, Call, LIST, Problem, ProblemKind, QueryParameter, Shape, read::rows::add_items,
    read::visible::visible,
};

/// The query parameters of a delta.
pub const QUERY: &[QueryParameter] = &[AFTER, COUNT, WAIT];

/// Answers with those rows of the operation's resource that are the subject of events after a cursor, or whose
/// links they changed from the other side: each once, in its current state, or as deleted. `audit` is the trail
/// of the store, whose entries have all links where an event lists only some.
///
/// # Errors
/// As [`feed::read`]; links whose complete list is past its retention.
pub fn read(call: &mut Call, tx: &mut Tx<'_>, audit: &Shape) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let own = format!("{}*", types_of(shape));
    let sides = other_sides(shape);
    let types = std::iter::once(own).chain(sides.keys().cloned()).collect();
    let query = EventQuery::of_types(&call.request, types)?;
    let trail = call.context.scope.store();
    feed::follow(call, tx, trail, &query, |page, call, tx| {
        let affected = affected(call, tx, &page, &sides, audit)?;
        write(call, tx, &page, &affected)
    })
}

/// The prefix of the event types of a user store's resource.
fn types_of(shape: &Shape) -> String {
    format!("platform.userstore.{}.", shape.name.to_lowercase())
}

/// The types of events by which links to rows of a resource change from the other side, each with the relations
/// that lead here.
fn other_sides(shape: &'static Shape) -> BTreeMap<String, Vec<&'static str>> {
    let linked = shape.relations.iter().map(|relation| relation.target);
    let sides = std::iter::once(shape).chain(linked).map(|side| {
        let here = side.relations.iter().filter(|relation| relation.target.name == shape.name);
        (format!("{}related", types_of(side)), here.map(|relation| relation.audited_as).collect())
    });
    sides.collect()
}

/// The ids of the rows that are the subject of events, or whose links they changed.
fn affected(
    call: &Call,
    tx: &mut Tx<'_>,
    page: &EventPage,
    sides: &BTreeMap<String, Vec<&'static str>>,
    audit: &Shape,
) -> Result<BTreeSet<Uuid>, Problem> {
    let own = types_of(call.request.op.shape);
    let (mut affected, mut truncated) = (BTreeSet::new(), Vec::new());
    for event in &page.events {
        if event.r#type.starts_with(&own) {
            affected.extend(event.subject.parse::<Uuid>());
        }
        let relation = event.data.get("relation").and_then(Json::as_str);
        if !sides.get(&event.r#type).is_some_and(|names| relation.is_some_and(|name| names.contains(&name))) {
            continue;
        }
        if event.data.contains_key("complete") {
            truncated.extend(event.id.parse::<i64>().map(|entry| EntryPosition { position: 0, entry }));
        } else {
            affected.extend(ids(event.data.get("added")).chain(ids(event.data.get("removed"))));
        }
    }
    let mut left = truncated.len();
    read_entries(tx, audit, &call.context.app.master, &call.context.scope, &truncated, &mut |_, entry| {
        let entry: Json = serde_json::from_slice(entry).map_err(|_| broken())?;
        let Some(content) = entry.get("currentContent").and_then(Json::as_str) else { return Ok(()) };
        let content: Json = serde_json::from_str(content).map_err(|_| broken())?;
        for links in content.as_object().into_iter().flat_map(|relations| relations.values()) {
            affected.extend(ids(links.get("added")).chain(ids(links.get("removed"))));
        }
        left -= 1;
        Ok(())
    })?;
    if left > 0 { Err(unknown_links(call, page)) } else { Ok(affected) }
}

fn ids(list: Option<&Json>) -> impl Iterator<Item = Uuid> {
    let texts = list.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    texts.filter_map(|text| text.parse().ok())
}

fn broken() -> Error {
    Error::Internal("the content of an audit entry is broken".into())
}

fn unknown_links(call: &Call, page: &EventPage) -> Problem {
    let detail = "More links were changed at once than an event lists, and the audit entry that has them all is kept no \
        longer. Take a full list, and go on from its X-Event-Cursor; oldest is the cursor behind that change.";
    Problem::new(ProblemKind::EventsGone, detail).with_member("oldest", page.next.seal(&call.context))
}

fn write(
    call: &mut Call,
    tx: &mut Tx<'_>,
    page: &EventPage,
    affected: &BTreeSet<Uuid>,
) -> Result<Answer, Problem> {
    let shape = call.request.op.shape;
    let affected: Vec<Uuid> = affected.iter().copied().collect();
    let known = visible(&call.context, tx, shape, &affected)?;
    let (present, deleted): (Vec<Uuid>, Vec<Uuid>) = affected.iter().partition(|id| known.contains_key(id));
    let answer = Answer::new(call.request.op.status);
    call.answer.begin(answer.status, Vec::new());
    call.answer.bytes.extend_from_slice(b"{\"items\":[");
    let mut first = true;
    for chunk in present.chunks(LIST) {
        let these = |sql: &mut crate::Sql| {
            sql.add(" AND t.id IN ");
            sql.add_list(chunk.iter().copied().map(Value::Id));
        };
        add_items(call, tx, shape, None, &these, " ORDER BY t.id", &mut first)?;
    }
    for id in deleted {
        if !std::mem::take(&mut first) {
            call.answer.bytes.push(b',');
        }
        call.answer.bytes.extend_from_slice(json!({ "id": id, "deleted": true }).to_string().as_bytes());
        call.answer.flush_if_large()?;
    }
    call.answer.bytes.push(b']');
    page.end(call);
    Ok(answer)
}

/// The schema of a delta of a resource.
pub fn schema(resource: &str) -> Json {
    json!({
        "type": "object",
        "description": "The changes, and the cursor for the next call.",
        "required": ["items", "next", "hasMore"],
        "properties": {
            "items": {
                "type": "array",
                "description": "The changed items: each one once, in its current state or as deleted.",
                "items": { "anyOf": [
                    { "$ref": format!("#/components/schemas/{resource}") },
                    {
                        "type": "object",
                        "description": "An item that no longer exists.",
                        "required": ["id", "deleted"],
                        "properties": {
                            "id": { "type": "string", "format": "uuid", "description": "The item." },
                            "deleted": { "const": true },
                        },
                    },
                ] },
            },
            "next": {
                "type": "string",
                "description": "The cursor after these changes: `after` of the next call. It is present even if `items` is empty.",
            },
            "hasMore": { "type": "boolean", "description": "Whether more is available now." },
        },
    })
}
