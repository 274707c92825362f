//! Reading a trail of events in order: in chunks after a cursor, with or without waiting for the next event.

use std::time::Duration;

use chancery_record::Value;
use chancery_store::{Tx, selectable};
use serde_json::json;
use uuid::Uuid;

use super::{
    entry::to_json,
    envelope::{Delivered, FEED, StoredEnvelope, VisibleIds, delivered},
};
use crate::{
    Answer, Call, Context, Custom, EventCursor, Mode, Problem, ProblemKind, Purpose, QueryParameter, Reply,
    Request, Scope, Shape, Sql, TrailState, Work, seal::compact::read_text,
};

/// The cursor to continue from.
pub const AFTER: QueryParameter = QueryParameter::optional(
    "after",
    "A cursor: `next` of an earlier response, or X-Event-Cursor of a list. `now` starts after all changes that were answered before. If missing, the feed starts at the oldest retained event.",
    512,
);
/// The maximum number of events.
pub const COUNT: QueryParameter =
    QueryParameter::number("count", "The maximum number of events. 100 if missing.", 1, 1000);
const TYPE: QueryParameter = QueryParameter::several(
    "type",
    "The event types to return. A type that ends in `*` stands for all types with this prefix. Without the parameter, all types are returned.",
    50,
    200,
);
const SUBJECT: QueryParameter =
    QueryParameter::optional("subject", "The key of the object that the events are about.", 500);
/// The time to wait.
pub const WAIT: QueryParameter = QueryParameter::number(
    "wait",
    "The number of seconds to wait for an event if there is none. If missing, the response is returned at once.",
    0,
    30,
);

/// The query parameters of a stream.
pub const STREAM_QUERY: &[QueryParameter] = &[AFTER, TYPE, SUBJECT];
/// The query parameters of a feed.
pub const QUERY: &[QueryParameter] = &[AFTER, COUNT, TYPE, SUBJECT, WAIT];
/// The most events scanned for one answer, where few match the types or the caller's scope.
const MAX_SCANNED: i64 = 10_000;
/// How long `after=now` waits for answered changes to get a position, in milliseconds.
const NOW_TIMEOUT_MS: i64 = 2_000;
/// The longest interval between two polls for pending events.
const NOW_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An operation that reads a feed.
pub const fn reading(run: crate::Run) -> Custom {
    let custom = Custom::reading(run).replying(Reply::Json(&FEED));
    Custom { mode: Mode::Long, works: Some(Purpose::Event), ..custom }
}

/// An operation that reads a chunk of a stream: the edge requests one after another.
pub const fn streaming(run: crate::Run) -> Custom {
    reading(run).replying(Reply::Events)
}

/// The header with the cursor at the end of a stream's chunk.
pub const CURSOR: &str = "x-event-cursor";
/// The header of a stream's chunk after which there is more at once.
pub const MORE: &str = "x-event-more";

/// Answers with the events of a trail after a cursor. `actors` are the resources among whose rows a caller with
/// a partial scope of the configuration may see the actors.
///
/// # Errors
/// Parameters that are malformed; a cursor whose history was changed, or whose next events were pruned.
pub fn read(call: &mut Call, tx: &mut Tx<'_>, trail: i64, actors: &[&Shape]) -> Result<Answer, Problem> {
    let query = EventQuery::read(&call.request)?;
    follow(call, tx, trail, &query, |page, call, tx| page.write(call, tx, actors))
}

/// Answers with the output of `write` for the requested events after a cursor, once there are some or the wait
/// is over.
///
/// # Errors
/// As [`read`], and those of `write`.
pub fn follow(
    call: &mut Call,
    tx: &mut Tx<'_>,
    trail: i64,
    query: &EventQuery,
    write: impl FnOnce(EventPage, &mut Call, &mut Tx<'_>) -> Result<Answer, Problem>,
) -> Result<Answer, Problem> {
    let state = TrailState::load(tx, trail)?;
    let start = call.result::<FeedStart>();
    let start = start.map_or_else(|| FeedStart::first(call, tx, trail, &state), |start| Ok(*start))?;
    if let Some(last) = start.pending_up_to
        && has_pending(tx, trail, last)?
    {
        let is_over = call.context.now.0 - start.at > NOW_TIMEOUT_MS;
        return if is_over {
            Err(not_sequenced())
        } else {
            Ok(wait(call, trail, state.last_position, NOW_POLL_INTERVAL, start))
        };
    }
    let cursor = start.cursor.unwrap_or_else(|| state.end(trail));
    cursor.check(&call.context, tx, &state)?;
    let page = EventPage::read(&call.context, tx, cursor, &state, query, &EventSelection::All)?;
    let left = start.at + query.wait * 1000 - call.context.now.0;
    if page.events.is_empty() && !page.has_more && left > 0 {
        let next = FeedStart { cursor: Some(page.next), pending_up_to: None, ..start };
        let timeout = Duration::from_millis(left.unsigned_abs());
        return Ok(wait(call, trail, page.next.position, timeout, next));
    }
    write(page, call, tx)
}

/// The start of a reader: its cursor and time, by the clock of the call.
#[derive(Clone, Copy)]
struct FeedStart {
    /// None: after the last sequenced event, once nothing up to `pending_up_to` is pending.
    cursor: Option<EventCursor>,
    /// The highest pending number when the reader requested `after=now`.
    pending_up_to: Option<i64>,
    at: i64,
}

impl FeedStart {
    fn first(call: &Call, tx: &mut Tx<'_>, trail: i64, state: &TrailState) -> Result<Self, Problem> {
        let at = call.context.now.0;
        match AFTER.read_optional(&call.request)? {
            Some("now") => Ok(Self { cursor: None, pending_up_to: newest_pending(tx, trail)?, at }),
            Some(text) => Ok(Self {
                cursor: Some(EventCursor::open(&call.context, trail, text)?),
                pending_up_to: None,
                at,
            }),
            None => {
                let text = "SELECT event FROM event_place WHERE trail = ?1 AND position = ?2";
                let key = [Value::Int(trail), Value::Int(state.pruned)];
                let event = tx.one(text, &key, |row| row.int(0))?.unwrap_or(0);
                let cursor = Some(EventCursor { trail, position: state.pruned, event });
                Ok(Self { cursor, pending_up_to: None, at })
            }
        }
    }
}

/// The highest number of a pending event.
fn newest_pending(tx: &mut Tx<'_>, trail: i64) -> Result<Option<i64>, Problem> {
    let last = |table: &str, trail: &str, event: &str| {
        format!(
            "SELECT * FROM (SELECT {event} AS event FROM {table} WHERE {trail} = ?1 ORDER BY {event} DESC LIMIT 1) {table}"
        )
    };
    let (events, before) = (last("event_pending", "trail", "event"), last("audit_pending", "store", "entry"));
    let text = format!("SELECT max(event) FROM ({events} UNION ALL {before}) waiting");
    let read = |row: &crate::Row<'_>| if row.is_null(0)? { Ok(None) } else { row.int(0).map(Some) };
    Ok(tx.one(&text, &[Value::Int(trail)], read)?.flatten())
}

/// Whether an event up to this number is pending.
fn has_pending(tx: &mut Tx<'_>, trail: i64, last: i64) -> Result<bool, Problem> {
    let text = "SELECT 1 FROM event_pending WHERE trail = ?1 AND event <= ?2 \
        UNION ALL SELECT 1 FROM audit_pending WHERE store = ?1 AND entry <= ?2 LIMIT 1";
    Ok(tx.one(text, &[Value::Int(trail), Value::Int(last)], |_| Ok(()))?.is_some())
}

/// Continues once an event follows a position, or after a timeout.
fn wait(call: &Call, trail: i64, position: i64, timeout: Duration, next: FeedStart) -> Answer {
    let arrival = call.context.app.tails.wait(trail, position, timeout);
    Answer::after(Work::waiting(Purpose::Event, async move {
        arrival.await;
        next
    }))
}

fn not_sequenced() -> Problem {
    let detail = "What was changed last has no place in the feed yet. Try again in a moment.";
    Problem::new(ProblemKind::Unavailable, detail).with_header("retry-after", "1")
}

/// The request of a reader.
pub struct EventQuery {
    count: usize,
    /// The types to return; one that ends in `*` stands for all types with this prefix. Empty: all types.
    types: Vec<String>,
    subject: Option<String>,
    /// In seconds.
    wait: i64,
}

impl EventQuery {
    /// Events of these types, as many as the request asks for.
    ///
    /// # Errors
    /// Parameters that are malformed.
    pub fn of_types(request: &Request, types: Vec<String>) -> Result<Self, Problem> {
        let count = COUNT.read_number(request)?.unwrap_or(100);
        let wait = WAIT.read_number(request)?.unwrap_or(0);
        Ok(Self { count: usize::try_from(count).unwrap_or(100), types, subject: None, wait })
    }

    /// Reads a request.
    ///
    /// # Errors
    /// Parameters that are malformed.
    pub fn read(request: &Request) -> Result<Self, Problem> {
        let types = TYPE.read_several(request)?.into_iter().map(str::to_owned).collect();
        let subject = SUBJECT.read_optional(request)?.map(str::to_owned);
        Ok(Self { subject, ..Self::of_types(request, types)? })
    }

    /// At most `count` events of these types.
    pub const fn some(types: Vec<String>, count: usize) -> Self {
        Self { count, types, subject: None, wait: 0 }
    }

    /// The maximum number of events.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Whether an event of this type with this subject matches.
    pub fn fits(&self, kind: &str, subject: &str) -> bool {
        matches_type(&self.types, kind) && self.subject.as_ref().is_none_or(|expected| subject == *expected)
    }
}

/// Whether a type is one of these; one that ends in `*` stands for all types with this prefix. Empty: all types.
fn matches_type(types: &[String], kind: &str) -> bool {
    let fits = |pattern: &String| match pattern.strip_suffix('*') {
        Some(start) => kind.starts_with(start),
        None => kind == *pattern,
    };
    types.is_empty() || types.iter().any(fits)
}

/// An event for a receiver.
pub struct Outgoing {
    /// Its position.
    pub at: EventCursor,
    /// Its number.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// The key of its subject.
    pub subject: String,
    /// The envelope.
    pub body: String,
}

/// The selection of events after a cursor.
pub enum EventSelection {
    /// All.
    All,
    /// Events with these numbers.
    Numbers(Vec<i64>),
    /// Events whose numbers, and so whose times in microseconds, are from the first to the second.
    Times(i64, i64),
}

impl EventSelection {
    fn add(&self, sql: &mut Sql) {
        match self {
            Self::All => {}
            Self::Numbers(numbers) => {
                sql.add(" AND p.event IN ");
                sql.add_list(numbers.iter().map(|number| Value::Int(*number)));
            }
            Self::Times(from, to) => {
                sql.add(" AND p.event >= ");
                sql.add_bound(*from);
                sql.add(" AND p.event <= ");
                sql.add_bound(*to);
            }
        }
    }

    const fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }
}

/// Reads some events that match a query after a cursor, within the context's scope, for receivers; also returns the
/// cursor after them.
pub fn outgoing(
    context: &Context,
    tx: &mut Tx<'_>,
    cursor: EventCursor,
    state: &TrailState,
    query: &EventQuery,
    selection: &EventSelection,
    actors: &[&Shape],
) -> Result<(Vec<Outgoing>, EventCursor), Problem> {
    let mut page = EventPage::read(context, tx, cursor, state, query, selection)?;
    let visible_ids = VisibleIds::read(context, tx, &page.events, actors)?;
    let outgoing = page.events.drain(..).map(|mut event| {
        visible_ids.hide(&mut event.data);
        let body = to_json(&event)?;
        Ok(Outgoing { at: event.at, id: event.id, kind: event.r#type, subject: event.subject, body })
    });
    let events = outgoing.collect::<Result<_, Problem>>()?;
    Ok((events, page.next))
}

selectable! {
    /// An event at its position in a trail.
    struct PlacedEvent<'r> from "FROM event_place p JOIN outbox_event o ON o.id = p.event WHERE p.trail = " {
        position: i64 = "p.position",
        event: i64 = "p.event",
        envelope: &'r str = "o.envelope",
        traceparent: Option<&'r str> = "o.traceparent",
        customer: Option<Uuid> = "o.customer_id",
        subscription: Option<Uuid> = "o.subscription_id",
        tenant: Option<Uuid> = "o.tenant_id",
        instance: Option<Uuid> = "o.idp_instance_id",
    }
}

/// A page of events, with the cursor after them.
pub struct EventPage {
    /// The matching events.
    pub events: Vec<Delivered>,
    /// The cursor after them.
    pub next: EventCursor,
    /// Whether more is available now.
    has_more: bool,
}

impl EventPage {
    /// Reads up to `count` events after a cursor, of all types.
    pub(super) fn read_all(
        context: &Context,
        tx: &mut Tx<'_>,
        cursor: EventCursor,
        state: &TrailState,
        count: usize,
    ) -> Result<Self, Problem> {
        let query = EventQuery::some(Vec::new(), count);
        Self::read(context, tx, cursor, state, &query, &EventSelection::All)
    }

    fn read(
        context: &Context,
        tx: &mut Tx<'_>,
        cursor: EventCursor,
        state: &TrailState,
        query: &EventQuery,
        selection: &EventSelection,
    ) -> Result<Self, Problem> {
        let scan_end =
            if selection.is_all() { cursor.position.saturating_add(MAX_SCANNED) } else { i64::MAX };
        let end = state.last_position.min(scan_end);
        let mut sql = Sql::new(PlacedEvent::SELECT).bind(cursor.trail);
        sql = sql.push(" AND p.position > ").bind(cursor.position).push(" AND p.position <= ").bind(end);
        selection.add(&mut sql);
        add_scope(&mut sql, &context.scope);
        // events that do not match are skipped here: matching ones may be far apart
        let limit = if query.types.is_empty() && query.subject.is_none() { query.count } else { usize::MAX };
        let limit = i64::try_from(limit).unwrap_or(MAX_SCANNED).min(MAX_SCANNED);
        sql.add(&format!(" ORDER BY p.position LIMIT {limit}"));
        let (mut events, mut next) = (Vec::new(), cursor);
        tx.query(&sql.text, &sql.parameters, |row| {
            if events.len() >= query.count {
                return Ok(());
            }
            let placed = PlacedEvent::read(row)?;
            next = EventCursor { trail: cursor.trail, position: placed.position, event: placed.event };
            let broken =
                || chancery_store::Error::Internal(format!("the envelope of event {} is broken", next.event));
            let envelope = read_text(placed.envelope).ok_or_else(broken)?;
            let stored: StoredEnvelope<'_> = serde_json::from_str(&envelope).map_err(|_| broken())?;
            if query.fits(&stored.kind, &stored.subject) {
                let scope = [placed.customer, placed.subscription, placed.tenant, placed.instance];
                let traceparent = placed.traceparent.map(str::to_owned);
                events.push(delivered(context, &stored, next, scope, traceparent));
            }
            Ok(())
        })?;
        if events.len() < query.count && next.position < end {
            let text = "SELECT event FROM event_place WHERE trail = ?1 AND position = ?2";
            let event = tx.one(text, &[Value::Int(cursor.trail), Value::Int(end)], |row| row.int(0))?;
            next = EventCursor { trail: cursor.trail, position: end, event: event.unwrap_or(0) };
        }
        Ok(Self { events, next, has_more: next.position < state.last_position })
    }

    /// Ends an answer with the cursor after the events, and whether there is more.
    pub fn end(&self, call: &mut Call) {
        let end = json!({ "next": self.next.seal(&call.context), "hasMore": self.has_more }).to_string();
        call.answer.bytes.push(b',');
        call.answer.bytes.extend_from_slice(end.as_bytes().get(1..).unwrap_or_default());
    }

    fn write(mut self, call: &mut Call, tx: &mut Tx<'_>, actors: &[&Shape]) -> Result<Answer, Problem> {
        let visible_ids = VisibleIds::read(&call.context, tx, &self.events, actors)?;
        if call.request.op.reply == Reply::Events {
            return self.stream(call, &visible_ids);
        }
        let answer = Answer::new(call.request.op.status);
        call.answer.begin(answer.status, Vec::new());
        call.answer.bytes.extend_from_slice(b"{\"items\":[");
        for (index, event) in self.events.iter_mut().enumerate() {
            if index > 0 {
                call.answer.bytes.push(b',');
            }
            visible_ids.hide(&mut event.data);
            event.write(call)?;
            call.answer.flush_if_large()?;
        }
        call.answer.bytes.push(b']');
        self.end(call);
        Ok(answer)
    }

    /// Writes the events as server-sent events, each with the cursor after it.
    fn stream(self, call: &mut Call, visible_ids: &VisibleIds) -> Result<Answer, Problem> {
        let mut answer = Answer::new(call.request.op.status);
        answer.headers.push((CURSOR, self.next.seal(&call.context)));
        if self.has_more {
            answer.headers.push((MORE, "true".to_owned()));
        }
        call.answer.begin(answer.status, answer.headers.clone());
        for mut event in self.events {
            visible_ids.hide(&mut event.data);
            let head = (event.at.seal(&call.context), &event.r#type);
            write_event(&mut call.answer.bytes, &head.0, head.1, to_json(&event)?.as_bytes());
            call.answer.flush_if_large()?;
        }
        Ok(answer)
    }
}

/// Writes a server-sent event: the cursor after it, its type, and its envelope.
pub fn write_event(bytes: &mut Vec<u8>, cursor: &str, kind: &str, body: &[u8]) {
    bytes.extend_from_slice(format!("id: {cursor}\nevent: {kind}\ndata: ").as_bytes());
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(b"\n\n");
}

/// Limits events of the configuration to those of the caller's scope.
fn add_scope(sql: &mut Sql, scope: &Scope) {
    let Scope::Parts { customers, subscriptions, tenants, .. } = scope else { return };
    sql.add(" AND (FALSE");
    for (column, ids) in
        [("customer_id", customers), ("subscription_id", subscriptions), ("tenant_id", tenants)]
    {
        if !ids.is_empty() {
            sql.add(&format!(" OR o.{column} IN "));
            sql.add_list(ids.iter().copied().map(Value::Id));
        }
    }
    sql.add(")");
}
