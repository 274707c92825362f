//! Reading a trail of events in its order: pieces from a cursor on, with or without waiting for the next event.

use std::time::Duration;

use chancery_record::Value;
use chancery_store::Tx;
use serde_json::json;

use super::{
    entry::written,
    envelope::{Delivered, FEED, Kept, Seen, delivered},
    event_cursor::{EventCursor, TrailState},
};
use crate::{
    Answer, Call, Context, Custom, Mode, Problem, ProblemKind, Purpose, QueryParameter, Reply, Request,
    Scope, Shape, Sql, Work,
};

/// Where to go on.
pub const AFTER: QueryParameter = QueryParameter::optional(
    "after",
    "A cursor: next of an earlier answer, or X-Event-Cursor of a list. now: behind all changes that were answered before. \
     Without it the feed begins at the oldest event that is kept.",
    512,
);
/// How much to read.
pub const COUNT: QueryParameter =
    QueryParameter::number("count", "How many events at most; 100 without it.", (1, 1000));
const TYPE: QueryParameter = QueryParameter::several(
    "type",
    "Types of events, which may end in an asterisk; one that fits any of them is answered. All without it.",
    (50, 200),
);
const SUBJECT: QueryParameter =
    QueryParameter::optional("subject", "The key of what the events are about.", 500);
/// How long to wait.
pub const WAIT: QueryParameter = QueryParameter::number(
    "wait",
    "How many seconds to wait for an event where there is none; without it the answer comes at once.",
    (0, 30),
);

/// The query parameters of a stream.
pub const STREAM_QUERY: &[QueryParameter] = &[AFTER, TYPE, SUBJECT];
/// The query parameters of a feed.
pub const QUERY: &[QueryParameter] = &[AFTER, COUNT, TYPE, SUBJECT, WAIT];
/// How many events are looked at for one answer, where few fit the types or the caller's scope.
const MOST_SEEN: i64 = 10_000;
/// How long `after=now` waits for what was answered to be placed, in milliseconds.
const NOW_WAITS: i64 = 2_000;
/// The longest rest between two looks at what is not placed yet.
const NOW_RESTS: Duration = Duration::from_millis(50);

/// An operation that reads a feed.
pub const fn reading(run: crate::Run) -> Custom {
    let custom = Custom::reading(run).replying(Reply::Json(&FEED));
    Custom { mode: Mode::Long, works: Some(Purpose::Event), ..custom }
}

/// An operation that reads a piece of a stream: the edge asks for one after another.
pub const fn streaming(run: crate::Run) -> Custom {
    reading(run).replying(Reply::Events)
}

/// The header of a piece of a stream that says where it ends: a cursor.
pub const CURSOR: &str = "x-event-cursor";
/// The header of a piece of a stream behind which there is more at once.
pub const MORE: &str = "x-event-more";

/// Answers with the events of a trail behind a cursor. `actors` are the resources among whose rows a caller who sees a part of
/// the configuration may see who acted.
///
/// # Errors
/// Parameters that are malformed; a cursor whose history was changed, or whose next events were pruned.
pub fn read(call: &mut Call, tx: &mut Tx<'_>, trail: i64, actors: &[&Shape]) -> Result<Answer, Problem> {
    let wanted = Wanted::read(&call.request)?;
    follow(call, tx, (trail, &wanted), |found, call, tx| found.write(call, tx, actors))
}

/// Answers with what `write` makes of the wanted events behind a cursor, once there are some or the time to wait is over.
///
/// # Errors
/// As [`read`], and those of `write`.
pub fn follow(
    call: &mut Call,
    tx: &mut Tx<'_>,
    (trail, wanted): (i64, &Wanted),
    write: impl FnOnce(Found, &mut Call, &mut Tx<'_>) -> Result<Answer, Problem>,
) -> Result<Answer, Problem> {
    let state = TrailState::read(tx, trail)?;
    let begun = call.result::<Begun>();
    let begun = begun.map_or_else(|| Begun::first(call, tx, (trail, &state)), |begun| Ok(*begun))?;
    if let Some(last) = begun.behind
        && is_waiting(tx, trail, last)?
    {
        let is_over = call.context.now.0 - begun.at > NOW_WAITS;
        return if is_over {
            Err(too_late())
        } else {
            Ok(wait(call, (trail, state.placed), NOW_RESTS, begun))
        };
    }
    let cursor = begun.cursor.unwrap_or_else(|| state.end(trail));
    cursor.check(&call.context, tx, &state)?;
    let found = Found::read(&call.context, tx, (cursor, &state), (wanted, &Which::All))?;
    let left = begun.at + wanted.wait * 1000 - call.context.now.0;
    if found.events.is_empty() && !found.has_more && left > 0 {
        let next = Begun { cursor: Some(found.next), behind: None, ..begun };
        let most = Duration::from_millis(left.unsigned_abs());
        return Ok(wait(call, (trail, found.next.position), most, next));
    }
    write(found, call, tx)
}

/// Where a reader began, and when, by the clock of the call.
#[derive(Clone, Copy)]
struct Begun {
    /// None: behind all that is placed, once nothing up to `behind` waits.
    cursor: Option<EventCursor>,
    /// The highest number that had no position when the reader asked for what happens from now on.
    behind: Option<i64>,
    at: i64,
}

impl Begun {
    fn first(call: &Call, tx: &mut Tx<'_>, (trail, state): (i64, &TrailState)) -> Result<Self, Problem> {
        let at = call.context.now.0;
        match AFTER.read_optional(&call.request)? {
            Some("now") => Ok(Self { cursor: None, behind: newest_waiting(tx, trail)?, at }),
            Some(text) => {
                Ok(Self { cursor: Some(EventCursor::open(&call.context, trail, text)?), behind: None, at })
            }
            None => {
                let text = "SELECT event FROM event_place WHERE trail = ?1 AND position = ?2";
                let key = [Value::Int(trail), Value::Int(state.pruned)];
                let event = tx.one(text, &key, |row| row.int(0))?.unwrap_or(0);
                let cursor = Some(EventCursor { trail, position: state.pruned, event });
                Ok(Self { cursor, behind: None, at })
            }
        }
    }
}

/// The highest number of what waits for a position.
fn newest_waiting(tx: &mut Tx<'_>, trail: i64) -> Result<Option<i64>, Problem> {
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

/// Whether anything up to this number waits for a position.
fn is_waiting(tx: &mut Tx<'_>, trail: i64, last: i64) -> Result<bool, Problem> {
    let text = "SELECT 1 FROM event_pending WHERE trail = ?1 AND event <= ?2 \
        UNION ALL SELECT 1 FROM audit_pending WHERE store = ?1 AND entry <= ?2 LIMIT 1";
    Ok(tx.one(text, &[Value::Int(trail), Value::Int(last)], |_| Ok(()))?.is_some())
}

/// Goes on once something stands behind a position, or after some time.
fn wait(call: &Call, (trail, position): (i64, i64), most: Duration, then: Begun) -> Answer {
    let arrival = call.context.app.tails.wait(trail, position, most);
    Answer::after(Work::waiting(Purpose::Event, async move {
        arrival.await;
        then
    }))
}

fn too_late() -> Problem {
    let detail = "What was changed last has no place in the feed yet. Try again in a moment.";
    Problem::new(ProblemKind::Unavailable, detail).with_header("retry-after", "1")
}

/// What a reader asks for.
pub struct Wanted {
    count: usize,
    /// Their types, which may end in an asterisk; of none, all are.
    types: Vec<String>,
    subject: Option<String>,
    /// In seconds.
    wait: i64,
}

impl Wanted {
    /// Events of these types, as many as the request asks for.
    ///
    /// # Errors
    /// Parameters that are malformed.
    pub fn of_types(request: &Request, types: Vec<String>) -> Result<Self, Problem> {
        let count = COUNT.read_number(request)?.unwrap_or(100);
        let wait = WAIT.read_number(request)?.unwrap_or(0);
        Ok(Self { count: usize::try_from(count).unwrap_or(100), types, subject: None, wait })
    }

    /// What a request asks for.
    ///
    /// # Errors
    /// Parameters that are malformed.
    pub fn read(request: &Request) -> Result<Self, Problem> {
        let types = TYPE.read_several(request)?.into_iter().map(str::to_owned).collect();
        let subject = SUBJECT.read_optional(request)?.map(str::to_owned);
        Ok(Self { subject, ..Self::of_types(request, types)? })
    }

    /// So many events of these types.
    pub const fn some(types: Vec<String>, count: usize) -> Self {
        Self { count, types, subject: None, wait: 0 }
    }

    /// How many events are wanted at most.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Whether an event of this type about this subject is wanted.
    pub fn fits(&self, kind: &str, subject: &str) -> bool {
        is_of(&self.types, kind) && self.subject.as_ref().is_none_or(|wanted| subject == *wanted)
    }
}

/// Whether a type is one of these, which may end in an asterisk; of none, all are.
fn is_of(types: &[String], kind: &str) -> bool {
    let fits = |wanted: &String| match wanted.strip_suffix('*') {
        Some(start) => kind.starts_with(start),
        None => kind == *wanted,
    };
    types.is_empty() || types.iter().any(fits)
}

/// An event as a receiver gets it.
pub struct Outgoing {
    /// Where it stands.
    pub at: EventCursor,
    /// Its number.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// The key of what it is about.
    pub subject: String,
    /// The envelope.
    pub body: String,
}

/// Which events behind a cursor are read.
pub enum Which {
    /// All.
    All,
    /// Those with these numbers.
    Numbers(Vec<i64>),
    /// Those whose numbers, and so whose times in microseconds, are from the first to the second.
    Times(i64, i64),
}

impl Which {
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

/// Reads some events of these types behind a cursor, within the context's scope, as receivers get them; and how far that is.
///
/// # Errors
/// The store's.
pub fn outgoing(
    context: &Context,
    tx: &mut Tx<'_>,
    at: (EventCursor, &TrailState),
    (types, which, count): (&[String], &Which, usize),
    actors: &[&Shape],
) -> Result<(Vec<Outgoing>, EventCursor), Problem> {
    let wanted = Wanted::some(types.to_vec(), count);
    let mut found = Found::read(context, tx, at, (&wanted, which))?;
    let seen = Seen::read(context, tx, &found.events, actors)?;
    let written = found.events.drain(..).map(|mut event| {
        seen.hide(&mut event.data);
        let body = written(&event)?;
        Ok(Outgoing { at: event.at, id: event.id, kind: event.r#type, subject: event.subject, body })
    });
    let events = written.collect::<Result<_, Problem>>()?;
    Ok((events, found.next))
}

/// Events that were found, and how far the reader has come with them.
pub struct Found {
    /// Those that fit.
    pub events: Vec<Delivered>,
    /// How far the reader has come with them.
    pub next: EventCursor,
    /// Whether there is more at once.
    has_more: bool,
}

impl Found {
    /// Reads so many events behind a cursor, of all types.
    pub(super) fn read_all(
        context: &Context,
        tx: &mut Tx<'_>,
        at: (EventCursor, &TrailState),
        count: usize,
    ) -> Result<Self, Problem> {
        Self::read(context, tx, at, (&Wanted::some(Vec::new(), count), &Which::All))
    }

    fn read(
        context: &Context,
        tx: &mut Tx<'_>,
        (cursor, state): (EventCursor, &TrailState),
        (wanted, which): (&Wanted, &Which),
    ) -> Result<Self, Problem> {
        let reaches = if which.is_all() { cursor.position.saturating_add(MOST_SEEN) } else { i64::MAX };
        let end = state.placed.min(reaches);
        let mut sql = Sql::new(
            "SELECT p.position, p.event, o.envelope, o.traceparent, o.customer_id, o.subscription_id, o.tenant_id, \
             o.idp_instance_id FROM event_place p JOIN outbox_event o ON o.id = p.event WHERE p.trail = ",
        );
        sql.add_bound(cursor.trail);
        sql = sql.push(" AND p.position > ").bind(cursor.position).push(" AND p.position <= ").bind(end);
        which.add(&mut sql);
        add_scope(&mut sql, &context.scope);
        // what does not fit is skipped here: a few fitting ones may stand far apart
        let limit =
            if wanted.types.is_empty() && wanted.subject.is_none() { wanted.count } else { usize::MAX };
        let limit = i64::try_from(limit).unwrap_or(MOST_SEEN).min(MOST_SEEN);
        sql.add(&format!(" ORDER BY p.position LIMIT {limit}"));
        let (mut events, mut next) = (Vec::new(), cursor);
        tx.query(&sql.text, &sql.parameters, |row| {
            if events.len() >= wanted.count {
                return Ok(());
            }
            next = EventCursor { trail: cursor.trail, position: row.int(0)?, event: row.int(1)? };
            let broken =
                || chancery_store::Error::Internal(format!("the envelope of event {} is broken", next.event));
            let kept: Kept<'_> = serde_json::from_str(row.text(2)?).map_err(|_| broken())?;
            if wanted.fits(&kept.kind, &kept.subject) {
                let scope =
                    [row.optional_id(4)?, row.optional_id(5)?, row.optional_id(6)?, row.optional_id(7)?];
                let traceparent = row.optional_text(3)?;
                events.push(delivered(context, &kept, next, scope, traceparent));
            }
            Ok(())
        })?;
        if events.len() < wanted.count && next.position < end {
            let text = "SELECT event FROM event_place WHERE trail = ?1 AND position = ?2";
            let event = tx.one(text, &[Value::Int(cursor.trail), Value::Int(end)], |row| row.int(0))?;
            next = EventCursor { trail: cursor.trail, position: end, event: event.unwrap_or(0) };
        }
        Ok(Self { events, next, has_more: next.position < state.placed })
    }

    /// What ends an answer: the cursor behind the events, and whether there is more.
    pub fn end(&self, call: &mut Call) {
        let end = json!({ "next": self.next.seal(&call.context), "hasMore": self.has_more }).to_string();
        call.answer.bytes.push(b',');
        call.answer.bytes.extend_from_slice(end.as_bytes().get(1..).unwrap_or_default());
    }

    fn write(mut self, call: &mut Call, tx: &mut Tx<'_>, actors: &[&Shape]) -> Result<Answer, Problem> {
        let seen = Seen::read(&call.context, tx, &self.events, actors)?;
        if call.request.op.reply == Reply::Events {
            return self.stream(call, &seen);
        }
        let answer = Answer::new(call.request.op.status);
        call.answer.begin(answer.status, Vec::new());
        call.answer.bytes.extend_from_slice(b"{\"items\":[");
        for (index, event) in self.events.iter_mut().enumerate() {
            if index > 0 {
                call.answer.bytes.push(b',');
            }
            seen.hide(&mut event.data);
            event.write(call)?;
            call.answer.flush_if_large()?;
        }
        call.answer.bytes.push(b']');
        self.end(call);
        Ok(answer)
    }

    /// Writes the events as server-sent events, each with the cursor behind it.
    fn stream(self, call: &mut Call, seen: &Seen) -> Result<Answer, Problem> {
        let mut answer = Answer::new(call.request.op.status);
        answer.headers.push((CURSOR, self.next.seal(&call.context)));
        if self.has_more {
            answer.headers.push((MORE, "true".to_owned()));
        }
        call.answer.begin(answer.status, answer.headers.clone());
        for mut event in self.events {
            seen.hide(&mut event.data);
            let head = (event.at.seal(&call.context), &event.r#type);
            write_event(&mut call.answer.bytes, (&head.0, head.1), written(&event)?.as_bytes());
            call.answer.flush_if_large()?;
        }
        Ok(answer)
    }
}

/// Writes a server-sent event: the cursor behind it, its type, and its envelope.
pub fn write_event(bytes: &mut Vec<u8>, (cursor, kind): (&str, &str), body: &[u8]) {
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
