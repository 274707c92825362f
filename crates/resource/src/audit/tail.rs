//! The end of a trail, read once for all followers in this process. Events are cached in the form for readers;
//! each reader's visibility is checked when they are taken.

use std::{borrow::Cow, sync::Arc};

use chancery_record::Timestamp;
use chancery_store::{Mode, Store};
use uuid::Uuid;

use super::{
    entry::to_json,
    envelope::{Delivered, actor},
    feed::{EventPage, EventQuery, Outgoing, write_event},
};
use crate::{
    AppContext, Context, EventCursor, Problem, Scope, Tail, TailEvent, TrailState,
    declare::call::tail_cache::{Lookup, MAX_CACHED},
};

/// Bytes of a stream that are written at once.
const CHUNK_SIZE: usize = 64 << 10;

/// A reader of cached events.
#[derive(Clone, Copy)]
pub struct Viewer<'a> {
    /// Its scope.
    pub scope: &'a Scope,
    /// Its id; none for a receiver.
    pub id: Option<Uuid>,
}

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
    fn body(&self, viewer: Viewer<'_>) -> Option<Cow<'_, str>> {
        let Some((actor, range)) = &self.actor else { return Some(self.body.as_str().into()) };
        match viewer.scope {
            scope if matches!(scope, Scope::Everything) || viewer.id == Some(*actor) => {
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

impl Tail {
    /// The events after a cursor, some or all. None where there are none, or the reader is too far behind: then
    /// it reads the database itself.
    pub async fn after(
        &self,
        app: &Arc<AppContext>,
        store: &Store,
        cursor: EventCursor,
        now: Timestamp,
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
            let state = TrailState::load(tx, cursor.trail)?;
            cursor.check(&context, tx, &state)?;
            let page = EventPage::read_all(&context, tx, cursor, &state, MAX_CACHED.0)?;
            page.events.iter().map(|event| TailEvent::of(&context, event)).collect::<Result<Vec<_>, _>>()
        });
        match read.await {
            Ok(events) => {
                self.cache().add(cursor, events);
                Ok(())
            }
            Err(problem) => {
                // an older state may have been restored
                self.cache().clear();
                Err(problem)
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
        if event.is_within(viewer.scope) && query.fits(&event.kind, &event.subject) {
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
    query: &EventQuery,
    scope: &Scope,
) -> Option<(Vec<Outgoing>, EventCursor)> {
    let (mut outgoing, mut next) = (Vec::new(), None);
    for event in events {
        if outgoing.len() >= query.count() {
            break;
        }
        if event.is_within(scope) && query.fits(&event.kind, &event.subject) {
            let body = event.body(Viewer { scope, id: None })?.into_owned();
            let (kind, subject) = (event.kind.clone(), event.subject.clone());
            outgoing.push(Outgoing { at: event.at, id: event.id.clone(), kind, subject, body });
        }
        next = Some(event.at);
    }
    Some((outgoing, next?))
}
