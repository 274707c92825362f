//! The end of a trail, read once for all who follow it in this process. Events are kept as readers get them; what each reader
//! may see of them is judged when they are taken.

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
    entry::written,
    envelope::{Delivered, actor},
    event_cursor::{EventCursor, TrailState},
    feed::{Found, Outgoing, Wanted, write_event},
};
use crate::{AppContext, Context, Problem, Scope};

/// The most events that are kept of a trail, and the most bytes of their envelopes.
const MOST: (usize, usize) = (1_000, 1 << 20);
/// How much of a stream is written at once, in bytes.
const PIECE: usize = 64 << 10;

/// An event as it is kept for all readers.
pub struct TailEvent {
    at: EventCursor,
    id: String,
    /// The cursor behind it, as readers get it.
    cursor: String,
    kind: String,
    subject: String,
    scope: [Option<Uuid>; 4],
    /// Who acted, and where the envelope says so.
    actor: Option<(Uuid, Range<usize>)>,
    /// The envelope, with who acted.
    body: String,
}

/// A reader as far as it matters to what it sees: its scope, and who it is.
pub type Viewer<'a> = (&'a Scope, Option<Uuid>);

impl TailEvent {
    fn of(context: &Context, event: &Delivered) -> Result<Self, Problem> {
        let body = written(event)?;
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

    /// Whether it is within a scope, as [`super::feed`] asks the database.
    fn is_within(&self, scope: &Scope) -> bool {
        let Scope::Parts { customers, subscriptions, tenants, .. } = scope else { return true };
        let covered = [customers, subscriptions, tenants];
        self.scope.iter().zip(covered).any(|(id, covered)| id.is_some_and(|id| covered.contains(&id)))
    }

    /// The envelope for a reader; none where the database alone knows whether the reader may see who acted.
    fn body(&self, (scope, reader): Viewer<'_>) -> Option<Cow<'_, str>> {
        let Some((actor, place)) = &self.actor else { return Some(self.body.as_str().into()) };
        match scope {
            _ if matches!(scope, Scope::Everything) || reader == Some(*actor) => {
                Some(self.body.as_str().into())
            }
            Scope::Store(_) => {
                let (before, after) = (self.body.get(..place.start)?, self.body.get(place.end..)?);
                Some(format!("{before}null{after}").into())
            }
            _ => None,
        }
    }
}

/// The last events of a trail.
pub struct Tail {
    trail: i64,
    /// How far the trail has come, as this process was told.
    placed: watch::Receiver<i64>,
    held: Mutex<Held>,
    /// Who reads what is new: the others wait for it.
    filling: tokio::sync::Mutex<()>,
}

/// Events one behind the other.
struct Held {
    /// Behind what they stand; none where nothing was read yet.
    start: Option<EventCursor>,
    events: VecDeque<Arc<TailEvent>>,
    bytes: usize,
}

/// What is held behind a cursor.
enum Behind {
    Events(Vec<Arc<TailEvent>>),
    /// The cursor is where the next event comes to be read.
    Nothing,
    /// The cursor is before the events that are held, or is none of theirs.
    Elsewhere,
}

impl Tail {
    /// The tail of a trail, of which nothing is read yet.
    pub(super) const fn new(trail: i64, placed: watch::Receiver<i64>) -> Self {
        let held = Held { start: None, events: VecDeque::new(), bytes: 0 };
        Self { trail, placed, held: Mutex::new(held), filling: tokio::sync::Mutex::const_new(()) }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events behind a cursor, some or all. None where there are none, or the reader is too far behind: then it reads for
    /// itself.
    pub async fn behind(
        &self,
        app: &Arc<AppContext>,
        store: &Store,
        (cursor, now): (EventCursor, Timestamp),
    ) -> Option<Vec<Arc<TailEvent>>> {
        if cursor.trail != self.trail || *self.placed.borrow() <= cursor.position {
            return None;
        }
        let mut behind = self.held().behind(cursor);
        if let Behind::Nothing = behind {
            let _alone = self.filling.lock().await;
            // who waited finds what was read meanwhile
            behind = self.held().behind(cursor);
            if let Behind::Nothing = behind {
                self.fill(app, store, (cursor, now)).await.ok()?;
                behind = self.held().behind(cursor);
            }
        }
        if let Behind::Events(events) = behind { Some(events) } else { None }
    }

    /// Reads what is behind the events that are held, or behind the cursor of a reader who is further.
    async fn fill(
        &self,
        app: &Arc<AppContext>,
        store: &Store,
        (cursor, now): (EventCursor, Timestamp),
    ) -> Result<(), Problem> {
        let app = Arc::clone(app);
        let read = store.run("ReadTail", Mode::Long, None, move |tx| {
            let context = Context::of_server(&app, Scope::Everything, now);
            let state = TrailState::read(tx, cursor.trail)?;
            cursor.check(&context, tx, &state)?;
            let found = Found::read_all(&context, tx, (cursor, &state), MOST.0)?;
            found.events.iter().map(|event| TailEvent::of(&context, event)).collect::<Result<Vec<_>, _>>()
        });
        match read.await {
            Ok(events) => {
                self.held().add(cursor, events);
                Ok(())
            }
            Err(problem) => {
                // an older state may have been restored
                *self.held() = Held { start: None, events: VecDeque::new(), bytes: 0 };
                Err(problem)
            }
        }
    }
}

impl Held {
    fn end(&self) -> Option<EventCursor> {
        self.events.back().map(|event| event.at).or(self.start)
    }

    fn behind(&self, cursor: EventCursor) -> Behind {
        let (Some(start), Some(end)) = (self.start, self.end()) else { return Behind::Nothing };
        if cursor == end || cursor.position > end.position {
            return Behind::Nothing;
        }
        let next = self.events.partition_point(|event| event.at.position <= cursor.position);
        let last = next.checked_sub(1).and_then(|last| self.events.get(last));
        if last.map_or(start, |event| event.at) == cursor {
            Behind::Events(self.events.range(next..).cloned().collect())
        } else {
            Behind::Elsewhere
        }
    }

    /// Adds events that stand behind a cursor, in place of all others where these end elsewhere.
    fn add(&mut self, cursor: EventCursor, events: Vec<TailEvent>) {
        if self.end() != Some(cursor) {
            *self = Self { start: Some(cursor), events: VecDeque::new(), bytes: 0 };
        }
        for event in events {
            self.bytes += event.body.len();
            self.events.push_back(Arc::new(event));
            while self.events.len() > MOST.0 || self.bytes > MOST.1 {
                let Some(first) = self.events.pop_front() else { break };
                self.bytes -= first.body.len();
                self.start = Some(first.at);
            }
        }
    }
}

/// What a reader gets of some events, as server-sent events, and the cursor behind them: not all where that is much. None where
/// the database must be asked what the reader may see.
pub fn streamed(events: &[Arc<TailEvent>], wanted: &Wanted, viewer: Viewer<'_>) -> Option<(Vec<u8>, String)> {
    let (mut bytes, mut next) = (Vec::new(), None);
    for event in events {
        if event.is_within(viewer.0) && wanted.fits(&event.kind, &event.subject) {
            write_event(&mut bytes, (&event.cursor, &event.kind), event.body(viewer)?.as_bytes());
        }
        next = Some(&event.cursor);
        if bytes.len() >= PIECE {
            break;
        }
    }
    Some((bytes, next?.clone()))
}

/// Some of these events as receivers of a scope get them, and how far that is. None where the database must be asked what they
/// may see.
pub fn outgoing_of(
    events: &[Arc<TailEvent>],
    (wanted, scope): (&Wanted, &Scope),
) -> Option<(Vec<Outgoing>, EventCursor)> {
    let (mut outgoing, mut next) = (Vec::new(), None);
    for event in events {
        if outgoing.len() >= wanted.count() {
            break;
        }
        if event.is_within(scope) && wanted.fits(&event.kind, &event.subject) {
            let body = event.body((scope, None))?.into_owned();
            let (kind, subject) = (event.kind.clone(), event.subject.clone());
            outgoing.push(Outgoing { at: event.at, id: event.id.clone(), kind, subject, body });
        }
        next = Some(event.at);
    }
    Some((outgoing, next?))
}
