//! Bodies of requests: received up to a bound and in time, read off the workers where they are large.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use chancery_record::{Json, read_json_within};
use chancery_resource::{Action, Body, Custom, Op, Permit, Problem, ProblemKind, check_body};
use chancery_store::Error;
use http::{HeaderMap, HeaderValue, Version, header, request::Parts};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout, timeout_at},
};

use crate::{activity::STALL_TIME, app::App, door::Door, request::text};

/// A body of a form or of an operation without a token, and one that needs no place of its own, in bytes.
pub const SMALL_BODY: usize = 64 << 10;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_mins(2);
/// How long the rest of a small body is waited for when it is answered before it came.
const REST_TIME: Duration = Duration::from_secs(1);
/// How many times its size a body takes while it is read.
const READ_SIZE: usize = 4;
/// Values of a body that is no batch: `relatedIds` has the most.
const MAX_VALUES: usize = 200_000;

/// The body of a request.
pub struct RequestBody {
    incoming: Incoming,
    is_whole: bool,
}

impl From<Incoming> for RequestBody {
    fn from(incoming: Incoming) -> Self {
        Self { is_whole: incoming.is_end_stream(), incoming }
    }
}

impl RequestBody {
    /// All of it, up to a bound. One that is announced to be larger is not waited for.
    pub async fn receive(
        &mut self,
        door: &Door,
        headers: &HeaderMap,
        bound: usize,
    ) -> Result<Bytes, Problem> {
        if headers.get_all(header::CONTENT_ENCODING).iter().any(|value| value != "identity") {
            let detail = "A body is read as it is: send it without Content-Encoding.";
            let problem = Problem::new(ProblemKind::UnsupportedMediaType, detail);
            return Err(problem.with_header("accept-encoding", "identity"));
        }
        let announced = announced(headers);
        if announced.is_some_and(|length| length > bound) {
            return Err(too_large(bound));
        }
        let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0).min(SMALL_BODY));
        let (end, mut last_call) = (Instant::now() + BODY_TIME, std::pin::pin!(door.last_call()));
        while !self.is_whole {
            let stall = Instant::now() + STALL_TIME;
            let frame = tokio::select! {
                biased;
                frame = timeout_at(stall.min(end), self.incoming.frame()) => frame.map_err(|_| late())?,
                () = &mut last_call => return Err(Error::Unavailable("the server stops".into()).into()),
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|_| Problem::invalid("The body did not arrive whole."))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > bound {
                return Err(too_large(bound));
            }
            bytes.extend_from_slice(&data);
        }
        self.is_whole = true;
        Ok(bytes.freeze())
    }

    /// Ends a request that was answered: of a small body the rest is read, so that the connection can be used
    /// again; else the client is told that it cannot.
    pub async fn finish(&mut self, parts: &Parts, headers: &mut HeaderMap) {
        if self.is_whole || self.incoming.is_end_stream() || parts.version == Version::HTTP_2 {
            return;
        }
        let is_small = announced(&parts.headers).is_some_and(|length| length <= SMALL_BODY);
        // a client that waits to be told sends nothing if it is not
        if is_small && !parts.headers.contains_key(header::EXPECT) {
            let rest = async {
                while let Some(Ok(_)) = self.incoming.frame().await {}
                self.incoming.is_end_stream()
            };
            if timeout(REST_TIME, rest).await == Ok(true) {
                return;
            }
        }
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    text(headers, header::CONTENT_LENGTH)?.parse().ok()
}

fn late() -> Problem {
    Problem::invalid(format!(
        "The body did not arrive: {} seconds passed without a byte of it, or {} in all.",
        STALL_TIME.as_secs(),
        BODY_TIME.as_secs()
    ))
}

fn too_large(bound: usize) -> Problem {
    let detail = format!("A body has at most {bound} bytes here. Send less, or in several calls.");
    Problem::new(ProblemKind::PayloadTooLarge, detail)
}

/// The most bytes of an operation's body.
pub const fn bound_of(app: &App, op: &Op) -> usize {
    match op.action {
        Action::Custom(Custom { body: Body::Bytes(_, bound), .. }) => bound,
        _ if matches!(op.permit, Permit::Public) => SMALL_BODY,
        _ if op.is_batch() => app.limits.batch_body,
        _ => app.limits.body,
    }
}

/// Waits until there is memory for a larger body. Small ones are bounded by the connections.
pub async fn place_for(
    app: &App,
    parts: &Parts,
    bound: usize,
) -> Result<Option<OwnedSemaphorePermit>, Problem> {
    let size = announced(&parts.headers).unwrap_or(bound);
    if size > bound {
        return Err(too_large(bound));
    }
    if size <= SMALL_BODY {
        return Ok(None);
    }
    let places = u32::try_from((size * READ_SIZE).div_ceil(1 << 20)).unwrap_or(u32::MAX);
    let waiting = Arc::clone(&app.bodies).acquire_many_owned(places.min(app.limits.bodies_mib));
    match timeout(STALL_TIME, waiting).await {
        Ok(Ok(permit)) => Ok(Some(permit)),
        _ => Err(Error::Busy.into()),
    }
}

/// The JSON of a body. A large one is read by a thread of few, and refused there if nearly all of it is
/// wrong.
pub async fn read(app: &App, op: &'static Op, bytes: Bytes, merges: bool) -> Result<Json, Problem> {
    if bytes.len() <= SMALL_BODY {
        return parse(op, &bytes);
    }
    off_workers(app, move || {
        let json = parse(op, &bytes)?;
        check_body(op, &json, merges)?;
        Ok(json)
    })
    .await?
}

/// Does what takes too long for a worker, on one of as many threads as there are processors.
pub async fn off_workers<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let place = Arc::clone(&app.readers).acquire_owned().await.map_err(|_| Error::Busy)?;
    let read = tokio::task::spawn_blocking(move || {
        let _place = place;
        work()
    });
    Ok(read.await.map_err(|_| Error::Internal("a body broke its reader".into()))?)
}

fn parse(op: &Op, bytes: &[u8]) -> Result<Json, Problem> {
    let most = if op.is_batch() { chancery_record::MAX_VALUES } else { MAX_VALUES };
    read_json_within(bytes, most)
        .map_err(|error| Problem::invalid(format!("The body is not JSON that is read here: {}.", error.0)))
}
