//! Operations of a subscription besides changes: test it, create a new secret, replay, skip.

use std::sync::Arc;

use chancery_record::{Json, OPEN, ShortText, Timestamp, Value, parse_timestamp, record};
use chancery_resource::{
    Answer, AuditAction, BodyForm, Call, Context, EventCursor, EventType, JsonForm, Problem, Purpose, Scope,
    StateTable, StoredRow, TrailState, Tx, WebhookOutcome, Work, advance, answer_with, event_name,
    event_type,
    feed::{EventQuery, EventSelection, Outgoing, outgoing},
    find_row, load, open_secret, schema_of, update_unversioned,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    signature::{MAX_FORMER, SECRET_LIFE, Signing, former_secrets, former_text},
    state::{self, Attempt, MAX_WAITING, Waiting},
    subscription::{EventSubscription, TABLE, give_secret, store_of, trails},
};

/// The result of a test.
pub static TESTED: JsonForm = JsonForm { name: "EventSubscriptionTest", schema: tested_schema };
/// The events to replay.
pub static REPLAY: JsonForm = JsonForm { name: "EventReplay", schema: replay_schema };
/// The number of replayed events.
pub static REPLAYED: JsonForm = JsonForm { name: "EventReplayed", schema: replayed_schema };
/// The target of a skip.
pub static SKIP: BodyForm = BodyForm::of::<EventSkip>("EventSkip");

record! {
    /// The position to which a subscription skips.
    pub struct EventSkip {
        /// A cursor of the feed. The subscription continues after it, and waiting deliveries from before it are discarded.
        #[de(
            "Bis (Zeiger)",
            "Eine Stelle im Feed. Der Webhook wird dahinter fortgesetzt, und wartende Zustellungen von davor werden verworfen."
        )]
        after: ShortText = OPEN,
    }
}

/// The type of the test event.
const TEST: EventType = event_type!("platform.event.test");
/// The most events of one replay.
const MAX_REPLAYED: usize = 10_000;
/// The most events that a replay names.
const MAX_NAMED: usize = 1_000;

/// The row in the path.
fn find(call: &Call, tx: &mut Tx<'_>) -> Result<StoredRow, Problem> {
    let shape = call.request.op.shape;
    let (_, key) = find_row(&call.context, tx, shape, call.request.parameter(0))?;
    load(&call.context, tx, shape, None, key)
}

/// A test that was sent.
struct SentTest {
    id: String,
    url: String,
    outcome: WebhookOutcome,
}

/// Sends a test event, and returns the result. A delivered one lets the subscription be activated.
///
/// # Errors
/// There is no such subscription.
pub fn test(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let row = find(call, tx)?;
    let Some(sent) = call.result::<SentTest>() else {
        let id = call.context.app.audit_signer.number(call.context.now, 0).to_string();
        let body = envelope(&call.context, &row, &id, TEST.as_str(), &json!({}))?;
        let signing = Signing::of(&call.context.app.master, &row, call.context.now)?;
        let request = signing.request(&id, body);
        let (app, url) = (Arc::clone(&call.context.app), request.url.clone());
        let sending = async move {
            let outcome = match app.outbound.permission() {
                Ok(permission) => (app.send_webhook)(permission, request).await,
                Err(quiet) => quiet.into(),
            };
            SentTest { id, url, outcome }
        };
        return Ok(Answer::after(Work::waiting(Purpose::Outbound, sending)));
    };
    let subscription = row.get(EventSubscription::ID)?.0;
    let attempt = Attempt {
        event: sent.id.clone(),
        kind: TEST.as_str().to_owned(),
        count: i64::from(sent.outcome.is_delivered()),
        number: 1,
        status: sent.outcome.status,
        reason: sent.outcome.reason(),
        duration: sent.outcome.duration,
    };
    state::note(tx, store_of(&call.context), subscription, &[attempt], call.context.now)?;
    // the address may have changed while the test was under way
    if sent.outcome.is_delivered() && row.text(EventSubscription::URL) == Some(sent.url.as_str()) {
        let mut values = row.values.clone();
        EventSubscription::TESTED_URL.field().set(&mut values, sent.url.as_str().into());
        update_unversioned(&call.context, tx, call.request.op.shape, &row, &values, AuditAction::Silent)?;
    }
    let result = json!({
        "delivered": sent.outcome.is_delivered(),
        "status": sent.outcome.status,
        "durationMs": sent.outcome.duration,
        "problem": sent.outcome.reason(),
    });
    call.answer.bytes.extend_from_slice(result.to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

/// The envelope of an event about the subscription itself.
///
/// # Errors
/// The row is of another record.
pub fn envelope(
    context: &Context,
    row: &StoredRow,
    id: &str,
    kind: &str,
    data: &serde_json::Value,
) -> Result<String, Problem> {
    let subject = row.get(EventSubscription::ID)?.0;
    let source = match (&context.scope, row.get(EventSubscription::SUBSCRIPTION_ID)?) {
        (Scope::Store(store), _) => format!("/userstore/{}", store.id),
        (_, Some(subscription)) => format!("/management/{subscription}"),
        (_, None) => "/management".to_owned(),
    };
    let mut time = Vec::new();
    chancery_record::format_timestamp(context.now, &mut time);
    let envelope = json!({
        "specversion": "1.0", "id": id, "source": source, "type": kind, "subject": subject,
        "time": String::from_utf8(time).unwrap_or_default(), "datacontenttype": "application/json",
        "dataschema": schema_of(&context.app.public_url, kind), "data": data,
    });
    Ok(envelope.to_string())
}

/// Creates a new secret; each former one signs for a day, too.
///
/// # Errors
/// There is no such subscription; the maximum of former secrets still sign.
pub fn create_secret(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let row = find(call, tx)?;
    let key = Value::Id(row.get(EventSubscription::ID)?.0);
    let (master, now) = (&call.context.app.master, call.context.now);
    let mut former = former_secrets(master, &row, now)?;
    if former.len() >= MAX_FORMER {
        return Err(Problem::conflict(format!(
            "{MAX_FORMER} former secrets still sign, each for 24 hours. Make another one when the oldest is over."
        )));
    }
    let until = Timestamp(now.0 + SECRET_LIFE);
    let signing = row
        .text(EventSubscription::SIGNING_SECRET)
        .and_then(|text| open_secret(master, TABLE, EventSubscription::SIGNING_SECRET.column(), &key, text));
    former.extend(signing.map(|secret| (secret, until)));
    let mut values = row.values.clone();
    EventSubscription::FORMER_SECRET.field().set(&mut values, former_text(&former).into());
    EventSubscription::FORMER_UNTIL.set(&mut values, Some(until))?;
    give_secret(&mut values);
    let shape = call.request.op.shape;
    advance(&call.context, tx, shape, &row, values.clone(), event_name!("secret-made"))?;
    answer_with(call, tx, shape, &row.with(values))
}

/// Queues events again, with the same ids, after the waiting ones.
///
/// # Errors
/// There is no such subscription; a body that names no events, or too many.
pub fn replay(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let row = find(call, tx)?;
    let subscription = row.get(EventSubscription::ID)?.0;
    let now = call.context.now;
    let requested = ReplayRequest::read(call.request.body()?, &call.context)?;
    let count = if matches!(requested, ReplayRequest::Dead) {
        let text =
            "SET dead_on = NULL, tries = 0, due_on = ?2 WHERE subscription_id = ?1 AND dead_on IS NOT NULL";
        tx.execute(&StateTable::EventDelivery.update(text), &[Value::Id(subscription), now.0.into()])?
    } else {
        let events = requested.events(&call.context, tx, &row)?;
        let new = i64::try_from(events.len()).unwrap_or(i64::MAX);
        if state::count_waiting(tx, subscription)?.saturating_add(new) > MAX_WAITING {
            return Err(Problem::conflict(format!(
                "More than {MAX_WAITING} deliveries would wait: activate the subscription, or skip what waits."
            )));
        }
        for event in &events {
            state::insert_delivery(tx, subscription, &Waiting::of(event), now)?;
        }
        events.len() as u64
    };
    call.answer.bytes.extend_from_slice(json!({ "count": count }).to_string().as_bytes());
    Ok(Answer::new(call.request.op.status))
}

/// The events to replay.
enum ReplayRequest {
    Dead,
    Numbers(Vec<i64>),
    Cursors(EventCursor, EventCursor),
    Times(i64, i64),
}

impl ReplayRequest {
    fn read(body: &Json, context: &Context) -> Result<Self, Problem> {
        let wrong = || {
            Problem::invalid(
                "Name what is sent again in one of these ways: ids; after and until, two cursors of one feed; from and to, \
                 two times; or dead: true.",
            )
        };
        let Json::Object(members) = body else { return Err(wrong()) };
        let mut named: Vec<(&str, &Json)> =
            members.iter().map(|(name, value)| (name.as_str(), value)).collect();
        named.sort_by_key(|(name, _)| *name);
        let text = |json: &Json| if let Json::Text(text) = json { Ok(text.clone()) } else { Err(wrong()) };
        match named.as_slice() {
            [("dead", Json::Bool(true))] => Ok(Self::Dead),
            [("ids", Json::Array(ids))] if (1..=MAX_NAMED).contains(&ids.len()) => {
                let number = |id: &Json| text(id)?.parse().map_err(|_| wrong());
                ids.iter().map(number).collect::<Result<_, _>>().map(Self::Numbers)
            }
            [("after", after), ("until", until)] => {
                let cursor = |json: &Json| EventCursor::read(&context.app, &text(json)?).ok_or_else(wrong);
                let (after, until) = (cursor(after)?, cursor(until)?);
                if after.trail == until.trail { Ok(Self::Cursors(after, until)) } else { Err(wrong()) }
            }
            [("from", from), ("to", to)] => {
                let moment = |json: &Json| {
                    let moment = parse_timestamp(&text(json)?).ok_or_else(wrong)?;
                    Ok::<_, Problem>(moment.0.saturating_mul(1000))
                };
                Ok(Self::Times(moment(from)?, moment(to)?))
            }
            _ => Err(wrong()),
        }
    }

    /// The events of the subscription among these that still exist.
    fn events(&self, context: &Context, tx: &mut Tx<'_>, row: &StoredRow) -> Result<Vec<Outgoing>, Problem> {
        let types = row.get(EventSubscription::TYPES)?.0;
        let selection = match self {
            Self::Numbers(numbers) => EventSelection::Numbers(numbers.clone()),
            Self::Times(from, to) => EventSelection::Times(*from, *to),
            Self::Cursors(..) | Self::Dead => EventSelection::All,
        };
        let query = EventQuery::some(types.clone(), 1_000);
        let scope = scope_of(context, row)?;
        let within = Context::new(&context.app, scope, context.now, None, None);
        let mut events = Vec::new();
        for trail in trails(store_of(context), &types) {
            let trail_state = TrailState::load(tx, trail)?;
            let (mut cursor, last) = match self {
                Self::Cursors(after, _) if after.trail != trail => continue,
                Self::Cursors(after, until) => (*after, until.position),
                _ => (state::oldest(tx, trail, &trail_state)?, trail_state.last_position),
            };
            cursor.check(context, tx, &trail_state)?;
            let last = last.min(trail_state.last_position);
            while cursor.position < last {
                let (page, next) = outgoing(&within, tx, cursor, &trail_state, &query, &selection, &[])?;
                events.extend(page.into_iter().filter(|event| event.at.position <= last));
                if events.len() > MAX_REPLAYED {
                    return Err(Problem::invalid(format!(
                        "That is more than {MAX_REPLAYED} events: name fewer, and replay again."
                    )));
                }
                cursor = next;
            }
        }
        Ok(events)
    }
}

/// The scope of a subscription's events.
///
/// # Errors
/// The row is of another record.
pub fn scope_of(context: &Context, row: &StoredRow) -> Result<Scope, Problem> {
    if let Scope::Store(_) = &context.scope {
        return Ok(context.scope.clone());
    }
    let id = |id: Option<Uuid>| id.into_iter().collect::<Vec<_>>();
    let tenants = id(row.get(EventSubscription::APPLY_TO_TENANT_ID)?);
    let subscriptions =
        if tenants.is_empty() { id(row.get(EventSubscription::SUBSCRIPTION_ID)?) } else { Vec::new() };
    Ok(Scope::Parts {
        customers: Vec::new(),
        subscriptions,
        tenants,
        instances: Vec::new(),
        assigned: Vec::new(),
        writes: false,
    })
}

/// Gives up deliveries up to a cursor, and continues after it.
///
/// # Errors
/// There is no such subscription; the cursor is of another feed, or before that of the subscription.
pub fn skip(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let row = find(call, tx)?;
    let subscription = row.get(EventSubscription::ID)?.0;
    let types = row.get(EventSubscription::TYPES)?.0;
    let foreign = || Problem::invalid("after is no cursor of the feed of these events.");
    let Some(Json::Text(after)) = call.request.body()?.get("after") else { return Err(foreign()) };
    let cursor = EventCursor::read(&call.context.app, after).ok_or_else(foreign)?;
    if !trails(store_of(&call.context), &types).contains(&cursor.trail) {
        return Err(foreign());
    }
    let trail_state = TrailState::load(tx, cursor.trail)?;
    cursor.check(&call.context, tx, &trail_state)?;
    let current = state::reader(tx, subscription, cursor.trail)?.cursor(cursor.trail);
    if cursor.position > current.position {
        state::advance(tx, subscription, current, cursor)?;
    }
    let text = "WHERE subscription_id = ?1 AND trail = ?2 AND position <= ?3 AND dead_on IS NULL";
    let values = vec![Value::Id(subscription), cursor.trail.into(), cursor.position.into()];
    tx.queue(&StateTable::EventDelivery.delete(text), values)?;
    tx.flush()?;
    let shape = call.request.op.shape;
    let row = find(call, tx)?;
    answer_with(call, tx, shape, &row)
}

fn tested_schema() -> serde_json::Value {
    json!({
        "type": "object", "description": "The result of a test.", "required": ["delivered", "status", "durationMs", "problem"],
        "properties": {
            "delivered": { "type": "boolean", "description": "Whether the receiver answered 2xx within 15 seconds." },
            "status": { "type": ["integer", "null"], "description": "The HTTP status of the response." },
            "durationMs": { "type": "integer", "description": "The duration in milliseconds." },
            "problem": { "type": ["string", "null"], "description": "The reason why the event was not delivered." },
        },
    })
}

fn replay_schema() -> serde_json::Value {
    let cursor =
        json!({ "type": "string", "minLength": 1, "maxLength": 512, "description": "A cursor of the feed." });
    let moment = |about: &str| json!({ "type": "string", "format": "date-time", "description": about });
    let way = |members: serde_json::Value, required: &[&str]| json!({ "type": "object", "additionalProperties": false, "required": required, "properties": members });
    json!({
        "description": "The events to send again, selected in one of four ways.",
        "oneOf": [
            way(json!({ "ids": { "type": "array", "minItems": 1, "maxItems": MAX_NAMED, "description": "The ids of the events.",
                "items": { "type": "string", "pattern": "^[0-9]{1,18}$" } } }), &["ids"]),
            way(json!({ "after": cursor, "until": cursor }), &["after", "until"]),
            way(json!({ "from": moment("Start time, inclusive. It is compared with the time of the events."), "to": moment("End time, exclusive. It is compared with the time of the events.") }), &["from", "to"]),
            way(json!({ "dead": { "const": true, "description": "All deliveries that were given up." } }), &["dead"]),
        ],
    })
}

fn replayed_schema() -> serde_json::Value {
    json!({
        "type": "object", "description": "The result of a replay.", "required": ["count"],
        "properties": { "count": { "type": "integer", "description": "The number of events that are sent again." } },
    })
}
