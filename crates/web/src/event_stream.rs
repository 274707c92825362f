//! A feed as server-sent events: an answer that goes on. It is made of pieces, each a call of the operation with the
//! caller's rights as they are then, so that who loses a role gets nothing more. Who is near the end gets a piece of the tail
//! that the process keeps for all; who is further behind, or may see of it what the database alone knows, reads for itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chancery_resource::{
    BoundedCounter, CountGuard, EventCursor, Op, Part, Preconditions, Problem, ProblemKind, Request, Tail,
    feed::{CURSOR, MORE, Wanted},
    streamed,
};
use http::{HeaderName, HeaderValue, Response, header, request::Parts};
use http_body_util::BodyExt as _;
use tokio::{sync::mpsc, time::sleep};
use tracing::Instrument as _;
use uuid::Uuid;

use crate::{
    answer::{AnswerBody, stream},
    app::{App, now},
    authority::{Authorization, Requirement, Rights},
    execute::{AuthorizedRequest, PATIENCE, carry_out},
};

/// The most streams of a client app, and of a process.
const MOST: (usize, usize) = (8, 1000);
/// How long a stream lasts at most; its reader then connects again.
const LONGEST: Duration = Duration::from_mins(15);
/// After how long without an event a stream says that it is still there.
const QUIET: Duration = Duration::from_secs(15);
/// How long a stream rests where the server is busy.
const REST: Duration = Duration::from_secs(1);
/// Events of one piece.
const COUNT: &str = "1000";
/// Where a reader goes on that connects again.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Places for streams.
#[derive(Default)]
pub struct Streams {
    all: BoundedCounter,
    callers: Mutex<HashMap<Uuid, BoundedCounter>>,
}

impl Streams {
    fn take(&self, caller: Uuid) -> Result<(CountGuard, CountGuard), Problem> {
        let full =
            |detail: &str| Problem::new(ProblemKind::Unavailable, detail).with_header("retry-after", "60");
        let in_all = self
            .all
            .take(MOST.1)
            .ok_or_else(|| full("This process has all the streams that it may have."))?;
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, streams| streams.count() > 0);
        let own = callers.entry(caller).or_default().take(MOST.0);
        let own =
            own.ok_or_else(|| full("The client app has 8 streams already. Close one, or read the feed."))?;
        Ok((in_all, own))
    }
}

/// Who reads a stream, and what of it.
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
    wanted: Wanted,
    /// The end of the trail, once it is known which; none where those of many trails are kept.
    tail: Option<Arc<Tail>>,
}

/// Some events, and where they end.
struct Piece {
    body: AnswerBody,
    next: String,
    has_more: bool,
}

/// Answers with a stream. What can be refused is refused before it begins.
pub async fn open(
    app: Arc<App>,
    mut reader: Reader,
    (requirement, allowed): (Requirement, Authorization),
) -> Result<Response<AnswerBody>, Problem> {
    let caller = allowed.caller.as_ref().map(|caller| caller.id).unwrap_or_default();
    let places = app.streams.take(caller)?;
    let last = reader.parts.headers.get(LAST_EVENT_ID).and_then(|last| last.to_str().ok()).map(str::to_owned);
    if let Some(last) = last {
        reader.go_on(&last);
    }
    let wanted = Wanted::read(&reader.request())?;
    let mut stream_of = Stream { app, reader, requirement, wanted, tail: None };
    let first = stream_of.piece(&allowed).await?;
    let cursor = EventCursor::read(&stream_of.app.context, &first.next);
    stream_of.tail = cursor.and_then(|cursor| stream_of.app.context.tails.follow(cursor.trail));
    let (sender, parts) = mpsc::channel(1);
    let run = async move {
        let _places = places;
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
    fn go_on(&mut self, cursor: &str) {
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
    /// The events behind the reader's cursor, as far as they are there.
    async fn piece(&self, allowed: &Authorization) -> Result<Piece, Problem> {
        let caller = allowed.caller.as_ref().map(|caller| (caller.id, caller.subscription));
        let authorized = AuthorizedRequest {
            app: &self.app,
            parts: &self.reader.parts,
            renewed: None,
            requirement: Some(self.requirement.clone()),
            store: self.reader.store.clone(),
            caller,
            now: now(),
        };
        let rights = Rights::Cached(allowed.epoch);
        let (head, body) =
            carry_out(authorized, self.reader.request(), allowed, rights, None).await?.into_parts();
        let next = head.headers.get(CURSOR).and_then(|next| next.to_str().ok()).unwrap_or_default();
        Ok(Piece { body, next: next.to_owned(), has_more: head.headers.contains_key(MORE) })
    }

    /// Sends pieces until the reader leaves, loses its rights, has had its time, or the server stops.
    async fn run(mut self, first: Piece, sender: mpsc::Sender<Part>) {
        let app = Arc::clone(&self.app);
        // a reader of any answer is given up in the end: this one is told before
        let longest = LONGEST.min(app.limits.answer_time * 9 / 10);
        tokio::select! {
            () = self.send(first, &sender) => {}
            () = sender.closed() => {}
            () = app.connections.stopping() => {}
            () = sleep(longest) => {}
        }
        let _ = sender.send_timeout(Part::End, PATIENCE).await;
    }

    async fn send(&mut self, mut piece: Piece, sender: &mpsc::Sender<Part>) {
        let mut is_there = pass(sender, b"retry: 1000\n\n".to_vec()).await;
        while is_there {
            let mut is_empty = true;
            while let Some(part) = piece.body.frame().await {
                let Some(bytes) = part.ok().and_then(|part| part.into_data().ok()) else { return };
                is_empty &= bytes.is_empty();
                is_there = is_there && pass(sender, bytes.into()).await;
            }
            if is_empty {
                // what did not fit need not be looked at again by who connects again
                is_there = is_there && pass(sender, format!("id: {}\n: \n\n", piece.next).into_bytes()).await;
            }
            self.reader.go_on(&piece.next);
            let cursor = EventCursor::read(&self.app.context, &piece.next);
            if let (false, Some(cursor)) = (piece.has_more, cursor) {
                // at most until it is time to say that the stream is still there
                self.app.context.tails.wait(cursor.trail, cursor.position, QUIET).await;
            }
            piece = loop {
                match self.next_piece(cursor).await {
                    Ok(piece) => break piece,
                    Err(problem) if problem.status() == 503 => sleep(REST).await,
                    Err(_) => return,
                }
            };
        }
    }

    async fn next_piece(&self, cursor: Option<EventCursor>) -> Result<Piece, Problem> {
        let store = self.reader.store.as_deref();
        let allowed = self.app.authorize_again(&self.reader.parts, &self.requirement, store, now()).await?;
        match self.shared_piece(cursor, &allowed).await {
            Some(piece) => Ok(piece),
            None => self.piece(&allowed).await,
        }
    }

    /// Some events of the tail that is kept for all readers.
    async fn shared_piece(&self, cursor: Option<EventCursor>, allowed: &Authorization) -> Option<Piece> {
        let (app, tail, cursor) = (&self.app, self.tail.as_ref()?, cursor?);
        if allowed.scope.store() != cursor.trail.max(0) {
            return None;
        }
        let events = tail.behind(&app.context, &app.store, (cursor, now())).await?;
        // read behind the events: rights that are of this epoch held when each of them was committed
        if app.store.epoch().await.ok()? != allowed.epoch {
            return None;
        }
        let viewer = (&allowed.scope, allowed.caller.as_ref().map(|caller| caller.id));
        let (bytes, next) = streamed(&events, &self.wanted, viewer)?;
        let body = AnswerBody::Whole((!bytes.is_empty()).then(|| bytes.into()));
        Some(Piece { body, next, has_more: false })
    }
}

/// Whether the reader took a part in time.
async fn pass(sender: &mpsc::Sender<Part>, bytes: Vec<u8>) -> bool {
    sender.send_timeout(Part::Bytes(bytes), PATIENCE).await.is_ok()
}
