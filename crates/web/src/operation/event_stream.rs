//! A feed as server-sent events: an answer without an end. It consists of chunks, each a call of the operation with the
//! caller's current rights, so that a caller who loses a role gets nothing more. A reader near the end gets a chunk of the tail
//! that the process caches for all; a reader further behind, or one whose rights the database alone knows, queries the database.

use std::{sync::Arc, time::Duration};

use chancery_resource::{
    EventCursor, Op, Part, Preconditions, Problem, Request, Tail, Viewer,
    feed::{CURSOR, EventQuery, MORE},
    streamed,
};
use http::{HeaderName, HeaderValue, Response, header, request::Parts};
use http_body_util::BodyExt as _;
use tokio::{sync::mpsc, time::sleep};
use tracing::Instrument as _;

use super::run::{AuthorizedRequest, PATIENCE, run_operation};
use crate::{
    app::App,
    auth::{
        authorization::Authorization,
        rights::{Requirement, Rights},
    },
    message::answer::{AnswerBody, stream},
};

/// How long a stream lasts at most; its reader then connects again.
const MAX_DURATION: Duration = Duration::from_mins(15);
/// After this time without an event a stream sends a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a stream waits where the server is busy.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// Events of one chunk.
const COUNT: &str = "1000";
/// The cursor of a reader that reconnects.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The reader of a stream, and its request.
pub struct Reader {
    /// The operation.
    pub op: &'static Op,
    /// The request.
    pub parts: Parts,
    /// The user store.
    pub store: Option<String>,
    /// Path parameters.
    pub path: Vec<String>,
    /// Query parameters.
    pub query: Vec<(String, String)>,
}

struct Stream {
    app: Arc<App>,
    reader: Reader,
    requirement: Requirement,
    event_query: EventQuery,
    /// The tail of the trail, once the trail is known; none where those of many trails are read.
    tail: Option<Arc<Tail>>,
}

/// Some events, and the cursor after them.
struct Chunk {
    body: AnswerBody,
    next: String,
    has_more: bool,
}

/// Answers with a stream. Refusals come before it begins.
pub async fn open(
    app: Arc<App>,
    mut reader: Reader,
    requirement: Requirement,
    allowed: Authorization,
) -> Result<Response<AnswerBody>, Problem> {
    let caller = allowed.caller.as_ref().map(|caller| caller.id).unwrap_or_default();
    let slots = app.streams.take(caller)?;
    let last = reader.parts.headers.get(LAST_EVENT_ID).and_then(|last| last.to_str().ok()).map(str::to_owned);
    if let Some(last) = last {
        reader.set_cursor(&last);
    }
    let event_query = EventQuery::read(&reader.request())?;
    let mut stream_of = Stream { app, reader, requirement, event_query, tail: None };
    let first = stream_of.chunk(&allowed).await?;
    let cursor = EventCursor::read(&stream_of.app.context, &first.next);
    stream_of.tail = cursor.and_then(|cursor| stream_of.app.context.tails.follow(cursor.trail));
    let (sender, parts) = mpsc::channel(1);
    let run = async move {
        let _slots = slots;
        stream_of.run(first, sender).await;
    };
    tokio::spawn(run.in_current_span());
    let mut response = stream(200, parts);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // a proxy that collects an answer would hold events back
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Reader {
    fn set_cursor(&mut self, cursor: &str) {
        self.query.retain(|(name, _)| name != "after");
        self.query.push(("after".to_owned(), cursor.to_owned()));
    }

    fn request(&self) -> Request {
        let mut query = self.query.clone();
        query.push(("count".to_owned(), COUNT.to_owned()));
        Request {
            op: self.op,
            path: self.path.clone(),
            address: self.parts.uri.to_string(),
            query,
            preconditions: Preconditions::default(),
            body: None,
            bytes: None,
            merge_patch: false,
            dry_run: false,
            reads_later: false,
            minimal: false,
            unchanged: None,
        }
    }
}

impl Stream {
    /// The events after the reader's cursor, as far as they exist.
    async fn chunk(&self, allowed: &Authorization) -> Result<Chunk, Problem> {
        let caller = allowed.caller.as_ref().map(|caller| (caller.id, caller.subscription));
        let authorized = AuthorizedRequest {
            app: &self.app,
            parts: &self.reader.parts,
            renewed: None,
            requirement: Some(self.requirement.clone()),
            store: self.reader.store.clone(),
            caller,
            now: self.app.clock.now(),
        };
        let rights = Rights::Cached(allowed.epoch);
        let (head, body) =
            run_operation(authorized, self.reader.request(), allowed, rights, None).await?.into_parts();
        let next = head.headers.get(CURSOR).and_then(|next| next.to_str().ok()).unwrap_or_default();
        Ok(Chunk { body, next: next.to_owned(), has_more: head.headers.contains_key(MORE) })
    }

    /// Sends chunks until the reader leaves, loses its rights, has had its time, or the server stops.
    async fn run(mut self, first: Chunk, sender: mpsc::Sender<Part>) {
        let app = Arc::clone(&self.app);
        // a reader of any answer is dropped in the end: this one gets an end event before
        let longest = MAX_DURATION.min(app.limits.answer_time * 9 / 10);
        tokio::select! {
            () = self.send(first, &sender) => {}
            () = sender.closed() => {}
            () = app.connections.stopping() => {}
            () = sleep(longest) => {}
        }
        let _ = sender.send_timeout(Part::End, PATIENCE).await;
    }

    async fn send(&mut self, mut chunk: Chunk, sender: &mpsc::Sender<Part>) {
        let mut is_connected = send_part(sender, b"retry: 1000\n\n".to_vec()).await;
        while is_connected {
            let mut is_empty = true;
            while let Some(part) = chunk.body.frame().await {
                let Some(bytes) = part.ok().and_then(|part| part.into_data().ok()) else { return };
                is_empty &= bytes.is_empty();
                is_connected = is_connected && send_part(sender, bytes.into()).await;
            }
            if is_empty {
                // the cursor passes events that did not match, so that a reconnect does not read them again
                is_connected = is_connected
                    && send_part(sender, format!("id: {}\n: \n\n", chunk.next).into_bytes()).await;
            }
            self.reader.set_cursor(&chunk.next);
            let cursor = EventCursor::read(&self.app.context, &chunk.next);
            if let (false, Some(cursor)) = (chunk.has_more, cursor) {
                // at most until the next heartbeat
                self.app.context.tails.wait(cursor.trail, cursor.position, HEARTBEAT).await;
            }
            chunk = loop {
                match self.next_chunk(cursor).await {
                    Ok(chunk) => break chunk,
                    Err(problem) if problem.status() == 503 => sleep(BUSY_PAUSE).await,
                    Err(_) => return,
                }
            };
        }
    }

    async fn next_chunk(&self, cursor: Option<EventCursor>) -> Result<Chunk, Problem> {
        let store = self.reader.store.as_deref();
        let now = self.app.clock.now();
        let allowed = self.app.authorize_again(&self.reader.parts, &self.requirement, store, now).await?;
        match self.shared_chunk(cursor, &allowed).await {
            Some(chunk) => Ok(chunk),
            None => self.chunk(&allowed).await,
        }
    }

    /// Some events of the tail that is cached for all readers.
    async fn shared_chunk(&self, cursor: Option<EventCursor>, allowed: &Authorization) -> Option<Chunk> {
        let (app, tail, cursor) = (&self.app, self.tail.as_ref()?, cursor?);
        if allowed.scope.store() != cursor.trail.max(0) {
            return None;
        }
        let events = tail.after(&app.context, &app.store, cursor, app.clock.now()).await?;
        // read after the events: rights of this epoch held when each of them was committed
        if app.store.epoch().await.ok()? != allowed.epoch {
            return None;
        }
        let viewer = Viewer { scope: &allowed.scope, id: allowed.caller.as_ref().map(|caller| caller.id) };
        let (bytes, next) = streamed(&events, &self.event_query, viewer)?;
        let body = AnswerBody::Whole((!bytes.is_empty()).then(|| bytes.into()));
        Some(Chunk { body, next, has_more: false })
    }
}

/// Whether the reader took a part in time.
async fn send_part(sender: &mpsc::Sender<Part>, bytes: Vec<u8>) -> bool {
    sender.send_timeout(Part::Bytes(bytes), PATIENCE).await.is_ok()
}
