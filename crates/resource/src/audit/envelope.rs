//! Events as readers get them: the envelope that is kept, where it stands, and what it belongs to.

use std::{borrow::Cow, collections::HashSet};

use chancery_store::Tx;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::{entry::written, event::SIGN_INS, event_cursor::EventCursor};
use crate::{Call, Context, JsonForm, Problem, Scope, Shape, write::integrity::visible};

/// The answer of a feed.
pub static FEED: JsonForm = JsonForm { name: "EventFeed", schema: feed_schema };

/// An envelope as it is kept.
#[derive(Deserialize)]
pub struct Kept<'a> {
    id: Cow<'a, str>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The key of what it is about.
    pub subject: Cow<'a, str>,
    time: Cow<'a, str>,
    data: Map<String, Json>,
}

/// An event as it is delivered.
#[derive(Serialize)]
pub struct Delivered {
    /// Where it stands.
    #[serde(skip)]
    pub at: EventCursor,
    /// What it belongs to: customer, subscription, tenant, instance.
    #[serde(skip)]
    pub scope: [Option<Uuid>; 4],
    specversion: &'static str,
    /// Its number.
    pub id: String,
    source: String,
    /// Its type.
    pub r#type: String,
    /// The key of what it is about.
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
        call.answer.bytes.extend_from_slice(written(self)?.as_bytes());
        Ok(())
    }
}

const PARTS: [&str; 4] = ["customerId", "subscriptionId", "tenantId", "idpInstanceId"];

/// An event with where it stands, what it belongs to (customer, subscription, tenant, instance) and the request behind it.
pub fn delivered(
    context: &Context,
    kept: &Kept<'_>,
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
    let mut data = kept.data.clone();
    let known = PARTS.into_iter().zip(scope).filter_map(|(name, id)| Some((name.to_owned(), json!(id?))));
    data.insert("scope".to_owned(), Json::Object(known.collect()));
    Delivered {
        at,
        scope,
        specversion: "1.0",
        id: kept.id.clone().into_owned(),
        source,
        r#type: kept.kind.clone().into_owned(),
        subject: kept.subject.clone().into_owned(),
        time: kept.time.clone().into_owned(),
        datacontenttype: "application/json",
        dataschema: schema_of(&context.app.public_url, &kept.kind),
        sequence: format!("{:020}", at.position),
        traceparent,
        data,
    }
}

/// Of whom a reader learns that they acted.
pub enum Seen {
    /// Of everybody.
    Everybody,
    /// Of these.
    These(HashSet<Uuid>),
}

impl Seen {
    /// Those who acted in these events and whom the caller may see among the rows of these resources.
    pub fn read(
        context: &Context,
        tx: &mut Tx<'_>,
        events: &[Delivered],
        actors: &[&Shape],
    ) -> Result<Self, Problem> {
        if matches!(context.scope, Scope::Everything) {
            return Ok(Self::Everybody);
        }
        let mut seen: HashSet<Uuid> = context.actor.into_iter().collect();
        let named: HashSet<Uuid> = events.iter().filter_map(|event| actor(&event.data)).collect();
        let named: Vec<Uuid> = named.into_iter().collect();
        for shape in actors {
            seen.extend(visible(context, tx, shape, &named)?.into_keys());
        }
        Ok(Self::These(seen))
    }

    /// Takes away who acted where the caller may not see them.
    pub fn hide(&self, data: &mut Map<String, Json>) {
        if let (Self::These(seen), Some(acted)) = (self, actor(data))
            && !seen.contains(&acted)
        {
            data.insert("actor".to_owned(), Json::Null);
        }
    }
}

/// Who acted.
pub fn actor(data: &Map<String, Json>) -> Option<Uuid> {
    data.get("actor").and_then(Json::as_str).and_then(|id| id.parse().ok())
}

/// Where the JSON Schema of a type of events is.
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
            "id": text("Its number. Where the change is audited, that of its entry in the audit trail."),
            "source": text("Where it happened: /userstore/{id of the instance}, /management/{id of the subscription}, /management, /signin/{id of the subscription}."),
            "type": text("What happened, e.g. platform.userstore.user.updated."),
            "subject": text("The key of what it is about."),
            "time": { "type": "string", "format": "date-time", "description": "When it happened." },
            "datacontenttype": { "const": "application/json" },
            "dataschema": text("Where the JSON Schema of events of this type is: at this server."),
            "sequence": text("Its position in the feed, with zeros in front: 20 digits. What is sent to a receiver alone has none."),
            "traceparent": text("The request behind it (W3C Trace Context)."),
            "data": { "type": "object", "description": "Ids and names of members, never values: id, actor (null for who may not see it), changed, relation, added and removed (at most 500 each; addedCount, removedCount and complete: false where there are more), scope." },
        },
    })
}

fn feed_schema() -> Json {
    json!({
        "type": "object",
        "description": "Events in the order of the feed, and how to go on.",
        "required": ["items", "next", "hasMore"],
        "properties": {
            "items": { "type": "array", "maxItems": 1000, "items": { "$ref": "#/components/schemas/Event" } },
            "next": { "type": "string", "description": "The cursor behind these events: after of the next call. It is there when items is empty, too." },
            "hasMore": { "type": "boolean", "description": "Whether there is more at once." },
        },
    })
}
