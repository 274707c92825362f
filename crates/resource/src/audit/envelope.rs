//! Events for readers: the stored envelope with its position and scope.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use chancery_store::Tx;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::{entry::to_json, event::SIGN_INS};
use crate::{Call, Context, EventCursor, JsonForm, Problem, Scope, Shape, read::visible::visible};

/// The answer of a feed.
pub static FEED: JsonForm = JsonForm { name: "EventFeed", schema: feed_schema };

/// A stored envelope.
#[derive(Deserialize)]
pub struct StoredEnvelope<'a> {
    id: Cow<'a, str>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The key of its subject.
    pub subject: Cow<'a, str>,
    time: Cow<'a, str>,
    data: Map<String, Json>,
}

/// An event as delivered to readers.
#[derive(Serialize)]
pub struct Delivered {
    /// Its position.
    #[serde(skip)]
    pub at: EventCursor,
    /// Its scope: customer, subscription, tenant, instance.
    #[serde(skip)]
    pub scope: [Option<Uuid>; 4],
    specversion: &'static str,
    /// Its number.
    pub id: String,
    source: String,
    /// Its type.
    pub r#type: String,
    /// The key of its subject.
    pub subject: String,
    time: String,
    datacontenttype: &'static str,
    dataschema: String,
    sequence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    /// Ids and names of members.
    pub data: Map<String, Json>,
}

impl Delivered {
    /// Writes it into the answer.
    pub fn write(&self, call: &mut Call) -> Result<(), Problem> {
        call.answer.bytes.extend_from_slice(to_json(self)?.as_bytes());
        Ok(())
    }
}

const PARTS: [&str; 4] = ["customerId", "subscriptionId", "tenantId", "idpInstanceId"];

/// An event with its position, its scope (customer, subscription, tenant, instance) and the trace context of
/// its request.
pub fn delivered(
    context: &Context,
    stored: &StoredEnvelope<'_>,
    at: EventCursor,
    scope: [Option<Uuid>; 4],
    traceparent: Option<String>,
) -> Delivered {
    let [_, subscription, _, instance] = scope;
    let source = match (at.trail, subscription, instance) {
        (1.., _, Some(instance)) => format!("/userstore/{instance}"),
        (1.., _, None) => "/userstore".to_owned(),
        (SIGN_INS, Some(subscription), _) => format!("/signin/{subscription}"),
        (SIGN_INS, None, _) => "/signin".to_owned(),
        (_, Some(subscription), _) => format!("/management/{subscription}"),
        (_, None, _) => "/management".to_owned(),
    };
    let mut data = stored.data.clone();
    let known = PARTS.into_iter().zip(scope).filter_map(|(name, id)| Some((name.to_owned(), json!(id?))));
    data.insert("scope".to_owned(), Json::Object(known.collect()));
    Delivered {
        at,
        scope,
        specversion: "1.0",
        id: stored.id.clone().into_owned(),
        source,
        r#type: stored.kind.clone().into_owned(),
        subject: stored.subject.clone().into_owned(),
        time: stored.time.clone().into_owned(),
        datacontenttype: "application/json",
        dataschema: schema_of(&context.app.public_url, &stored.kind),
        sequence: format!("{:020}", at.position),
        traceparent,
        data,
    }
}

/// The ids in events that a reader may see; all, where there is no set.
#[derive(Default)]
pub struct VisibleIds {
    /// Ids of actors.
    actors: Option<HashSet<Uuid>>,
    /// Ids of linked rows.
    linked: Option<HashSet<Uuid>>,
}

impl VisibleIds {
    /// The actors of these events that the caller may see among the rows of these resources, and the linked
    /// rows that the caller may see. Deleted rows are visible to no one.
    pub fn read(
        context: &Context,
        tx: &mut Tx<'_>,
        events: &[Delivered],
        actors: &[&Shape],
    ) -> Result<Self, Problem> {
        if matches!(context.scope, Scope::Everything) {
            return Ok(Self::default());
        }
        let mut visible_actors: HashSet<Uuid> = context.actor.into_iter().collect();
        let actor_ids: HashSet<Uuid> = events.iter().filter_map(|event| actor(&event.data)).collect();
        let actor_ids: Vec<Uuid> = actor_ids.into_iter().collect();
        for shape in actors {
            visible_actors.extend(visible(context, tx, shape, &actor_ids)?.into_keys());
        }
        let linked = match context.scope {
            // a store's readers see all of it
            Scope::Store(_) => None,
            _ => Some(visible_links(context, tx, events)?),
        };
        Ok(Self { actors: Some(visible_actors), linked })
    }

    /// Removes the actor, and linked ids, where the caller may not see them.
    pub fn hide(&self, data: &mut Map<String, Json>) {
        if let (Some(actors), Some(actor_id)) = (&self.actors, actor(data))
            && !actors.contains(&actor_id)
        {
            data.insert("actor".to_owned(), Json::Null);
        }
        let Some(linked) = &self.linked else { return };
        let mut is_complete = true;
        for side in SIDES {
            let Some(Json::Array(listed)) = data.get_mut(side) else { continue };
            let count = listed.len();
            listed.retain(|id| parsed(id).is_some_and(|id| linked.contains(&id)));
            is_complete &= listed.len() == count;
        }
        if !is_complete {
            data.insert("complete".to_owned(), Json::Bool(false));
        }
    }
}

/// The members of an event with linked ids.
const SIDES: [&str; 2] = ["added", "removed"];

/// The linked ids in these events of the configuration that the caller may see.
fn visible_links(context: &Context, tx: &mut Tx<'_>, events: &[Delivered]) -> Result<HashSet<Uuid>, Problem> {
    let mut by_target: HashMap<&str, (&Shape, HashSet<Uuid>)> = HashMap::new();
    for event in events {
        // links of a relation unknown to this release are visible to no one
        let Some(target) = target_of(context, event) else { continue };
        let listed = SIDES.iter().filter_map(|side| event.data.get(*side)?.as_array());
        let (_, ids) = by_target.entry(target.name).or_insert_with(|| (target, HashSet::new()));
        ids.extend(listed.flatten().filter_map(parsed));
    }
    let mut visible_ids = HashSet::new();
    for (target, ids) in by_target.into_values() {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        visible_ids.extend(visible(context, tx, target, &ids)?.into_keys());
    }
    Ok(visible_ids)
}

/// The target of an event's links.
fn target_of(context: &Context, event: &Delivered) -> Option<&'static Shape> {
    let relation = event.data.get("relation")?.as_str()?;
    let name = event.r#type.strip_prefix("platform.management.")?.strip_suffix(".related")?;
    let shapes = context.app.services.iter().flat_map(|service| service.all()).map(|op| op.shape.base());
    let mut shapes = shapes.filter(|shape| shape.name.eq_ignore_ascii_case(name));
    let relation = shapes.find_map(|shape| shape.relations.iter().find(|known| known.audited_as == relation));
    relation.map(|relation| relation.target)
}

fn parsed(id: &Json) -> Option<Uuid> {
    id.as_str()?.parse().ok()
}

/// The actor.
pub fn actor(data: &Map<String, Json>) -> Option<Uuid> {
    data.get("actor").and_then(parsed)
}

/// The URL of the JSON Schema of an event type.
pub fn schema_of(public_url: &str, kind: &str) -> String {
    format!("{}/schemas/event/{kind}/1.json", public_url.trim_end_matches('/'))
}

/// The JSON Schema of all events.
pub fn envelope_schema() -> Json {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "type": "object",
        "description": "An event: a CloudEvents 1.0 envelope.",
        "required": ["specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "sequence", "data"],
        "properties": {
            "specversion": { "const": "1.0" },
            "id": text("The number of the event. If the change is audited, it is the number of its entry in the audit trail."),
            "source": text("The source of the event: /userstore/{id of the instance}, /management/{id of the subscription}, /management, /signin/{id of the subscription}."),
            "type": text("The type of the event, e.g. platform.userstore.user.updated."),
            "subject": text("The key of the object that the event is about."),
            "time": { "type": "string", "format": "date-time", "description": "When it happened." },
            "datacontenttype": { "const": "application/json" },
            "dataschema": text("The address of the JSON Schema of events of this type, at this server."),
            "sequence": text("The position of the event in the feed: 20 digits with leading zeros. An event that is sent only to a receiver has none."),
            "traceparent": text("The trace context of the request that caused the event (W3C Trace Context)."),
            "data": { "type": "object", "description": "Ids and names of members, never values: id, actor (null if the reader may not see it), changed, relation, added and removed (at most 500 each, with addedCount and removedCount if there are more, and only what the reader may see; complete: false if some are left out), scope." },
        },
    })
}

fn feed_schema() -> Json {
    json!({
        "type": "object",
        "description": "Events in the order of the feed, and the cursor for the next call.",
        "required": ["items", "next", "hasMore"],
        "properties": {
            "items": { "type": "array", "maxItems": 1000, "items": { "$ref": "#/components/schemas/Event" } },
            "next": { "type": "string", "description": "The cursor after these events: `after` of the next call. It is present even if `items` is empty." },
            "hasMore": { "type": "boolean", "description": "Whether more is available now." },
        },
    })
}
