//! The end of a trail, read once for all followers in this process. Events are cached in the form for readers;
//! each reader's visibility is checked when they are taken.

use std::{
    borrow::Cow,
    collections::VecDeque,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chancery_record::Timestamp;
use chancery_store::{Mode, Store};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    entry::to_json,
    envelope::{Delivered, actor},
    event_cursor::{EventCursor, TrailState},
    feed::{EventPage, EventQuery, Outgoing, write_event},
};
use crate::{AppContext, Context, Problem, Scope};

/// The most cached events of a trail, and the most bytes of their envelopes.
const MAX_CACHED: (usize, usize) = (1_000, 1 << 20);
/// Bytes of a stream that are written at once.
const CHUNK_SIZE: usize = 64 << 10;

/// An event in the cache, shared by all readers.
pub struct TailEvent {
    at: EventCursor,
    id: String,
    /// The cursor after it, for readers.
    cursor: String,
    kind: String,
    subject: String,
    scope: [Option<Uuid>; 4],
    /// The actor, and its range in the envelope.
    actor: Option<(Uuid, Range<usize>)>,
    /// The envelope, with the actor.
    body: String,
}

/// A reader: its scope, and its id.
pub type Viewer<'a> = (&'a Scope, Option<Uuid>);

impl TailEvent {
    fn of(context: &Context, event: &Delivered) -> Result<Self, Problem> {
        let body = to_json(event)?;
        let actor = actor(&event.data).and_then(|actor| {
            let text = format!("\"actor\":\"{actor}\"");
            let end = body.find(&text)? + text.len();
            Some((actor, end - actor.to_string().len() - 2..end))
        });
        Ok(Self {
            at: event.at,
            id: event.id.clone(),
            cursor: event.at.seal(context),
            kind: event.r#type.clone(),
            subject: event.subject.clone(),
            scope: event.scope,
            actor,
            body,
        })
    }

    /// Whether it is within a scope, by the same condition as [`super::feed`] in SQL.
    fn is_within(&self, scope: &Scope) -> bool {
        let Scope::Parts { customers, subscriptions, tenants, .. } = scope else { return true };
        let scopes = [customers, subscriptions, tenants];
        self.scope.iter().zip(scopes).any(|(id, scopes)| id.is_some_and(|id| scopes.contains(&id)))
    }

    /// The envelope for a reader; none where only the database knows whether the reader may see the actor.
    fn body(&self, (scope, reader): Viewer<'_>) -> Option<Cow<'_, str>> {
        let Some((actor, range)) = &self.actor else { return Some(self.body.as_str().into()) };
        match scope {
            _ if matches!(scope, Scope::Everything) || reader == Some(*actor) => {
                Some(self.body.as_str().into())
            }
            Scope::Store(_) => {
                let (before, after) = (self.body.get(..range.start)?, self.body.get(range.end..)?);
                Some(format!("{before}null{after}").into())
            }
            _ => None,
        }
    }
}

/// The last events of a trail.
pub struct Tail {
    trail: i64,
    /// The highest position of the trail, as far as this process knows.
    head: watch::Receiver<i64>,
    cache: Mutex<TailCache>,
    /// The lock of the reader that reads new events: the others wait for it.
    fill_lock: tokio::sync::Mutex<()>,
}

/// Consecutive events.
struct TailCache {
    /// The cursor before them; none before the first read.
    start: Option<EventCursor>,
    events: VecDeque<Arc<TailEvent>>,
    bytes: usize,
}

/// The cached events after a cursor.
enum Lookup {
    Events(Vec<Arc<TailEvent>>),
    /// The cursor is at the end, where the next event will be.
    AtEnd,
    /// The cursor precedes the cached events, or is not one of them.
    Outside,
}

impl Tail {
    /// The tail of a trail, before the first read.
    pub(super) const fn new(trail: i64, head: watch::Receiver<i64>) -> Self {
        let cache = TailCache { start: None, events: VecDeque::new(), bytes: 0 };
        Self { trail, head, cache: Mutex::new(cache), fill_lock: tokio::sync::Mutex::const_new(()) }
    }

    fn cache(&self) -> MutexGuard<'_, TailCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events after a cursor, some or all. None where there are none, or the reader is too far behind: then
    /// it reads the database itself.
    pub async fn after(
        &self,
        app: &Arc<AppContext>,
        store: &Store,
        (cursor, now): (EventCursor, Timestamp),
    ) -> Option<Vec<Arc<TailEvent>>> {
        if cursor.trail != self.trail || *self.head.borrow() <= cursor.position {
            return None;
        }
        let mut lookup = self.cache().after(cursor);
        if let Lookup::AtEnd = lookup {
            let _alone = self.fill_lock.lock().await;
            // another reader may have filled the cache in the meantime
            lookup = self.cache().after(cursor);
            if let Lookup::AtEnd = lookup {
                self.fill(app, store, cursor, now).await.ok()?;
                lookup = self.cache().after(cursor);
            }
        }
        if let Lookup::Events(events) = lookup { Some(events) } else { None }
    }

    /// Reads the events after the cached ones, or after the cursor of a reader that is further.
    async fn fill(
        &self,
        app: &Arc<AppContext>,
        store: &Store,
        cursor: EventCursor,
        now: Timestamp,
    ) -> Result<(), Problem> {
        let app = Arc::clone(app);
        let read = store.run("ReadTail", Mode::Long, None, move |tx| {
            let context = Context::of_server(&app, Scope::Everything, now);
            let state = TrailState::read(tx, cursor.trail)?;
            cursor.check(&context, tx, &state)?;
            let page = EventPage::read_all(&context, tx, (cursor, &state), MAX_CACHED.0)?;
            page.events.iter().map(|event| TailEvent::of(&context, event)).collect::<Result<Vec<_>, _>>()
        });
        match read.await {
            Ok(events) => {
                self.cache().add(cursor, events);
                Ok(())
            }
            Err(problem) => {
                // an older state may have been restored
                *self.cache() = TailCache { start: None, events: VecDeque::new(), bytes: 0 };
                Err(problem)
            }
        }
    }
}

impl TailCache {
    fn end(&self) -> Option<EventCursor> {
        self.events.back().map(|event| event.at).or(self.start)
    }

    fn after(&self, cursor: EventCursor) -> Lookup {
        let (Some(start), Some(end)) = (self.start, self.end()) else { return Lookup::AtEnd };
        if cursor == end || cursor.position > end.position {
            return Lookup::AtEnd;
        }
        let next = self.events.partition_point(|event| event.at.position <= cursor.position);
        let last = next.checked_sub(1).and_then(|last| self.events.get(last));
        if last.map_or(start, |event| event.at) == cursor {
            Lookup::Events(self.events.range(next..).cloned().collect())
        } else {
            Lookup::Outside
        }
    }

    /// Adds events after a cursor, in place of all others where these end at another one.
    fn add(&mut self, cursor: EventCursor, events: Vec<TailEvent>) {
        if self.end() != Some(cursor) {
            *self = Self { start: Some(cursor), events: VecDeque::new(), bytes: 0 };
        }
        for event in events {
            self.bytes += event.body.len();
            self.events.push_back(Arc::new(event));
            while self.events.len() > MAX_CACHED.0 || self.bytes > MAX_CACHED.1 {
                let Some(first) = self.events.pop_front() else { break };
                self.bytes -= first.body.len();
                self.start = Some(first.at);
            }
        }
    }
}

/// Some events for a reader, as server-sent events, and the cursor after them: not all where they are large.
/// None where the database must be queried for the reader's visibility.
pub fn streamed(
    events: &[Arc<TailEvent>],
    query: &EventQuery,
    viewer: Viewer<'_>,
) -> Option<(Vec<u8>, String)> {
    let (mut bytes, mut next) = (Vec::new(), None);
    for event in events {
        if event.is_within(viewer.0) && query.fits(&event.kind, &event.subject) {
            write_event(&mut bytes, &event.cursor, &event.kind, event.body(viewer)?.as_bytes());
        }
        next = Some(&event.cursor);
        if bytes.len() >= CHUNK_SIZE {
            break;
        }
    }
    Some((bytes, next?.clone()))
}

/// Some of these events for receivers of a scope, and the cursor after them. None where the database must be
/// queried for their visibility.
pub fn outgoing_of(
    events: &[Arc<TailEvent>],
    (query, scope): (&EventQuery, &Scope),
) -> Option<(Vec<Outgoing>, EventCursor)> {
    let (mut outgoing, mut next) = (Vec::new(), None);
    for event in events {
        if outgoing.len() >= query.count() {
            break;
        }
        if event.is_within(scope) && query.fits(&event.kind, &event.subject) {
            let body = event.body((scope, None))?.into_owned();
            let (kind, subject) = (event.kind.clone(), event.subject.clone());
            outgoing.push(Outgoing { at: event.at, id: event.id.clone(), kind, subject, body });
        }
        next = Some(event.at);
    }
    Some((outgoing, next?))
}
