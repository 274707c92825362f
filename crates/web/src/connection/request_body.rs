//! Request bodies, received within bounds and time.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use chancery_resource::{FairShares, Problem, ProblemKind, Share};
use chancery_store::Error;
use http::{HeaderMap, HeaderValue, Version, header, request::Parts};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout, timeout_at},
};
use uuid::Uuid;

use super::{activity::STALL_TIME, connections::Connections};
use crate::message::request::text;

/// The largest form, body without a token, and body that a worker parses, in bytes.
pub const SMALL_BODY: usize = 64 << 10;
/// Bytes that are received without a permit. Connections and their streams bound how many there are.
const TINY_BODY: usize = 8 << 10;
/// Permits for small bodies, of known callers and of unknown ones.
const SMALL_BODIES: (usize, usize) = (4096, 512);
/// Permits (of one MiB each) that a larger body takes for each of its MiB: parsing takes so many times its
/// size.
const READ_SIZE: u32 = 4;
/// The timeout of receiving a body.
const BODY_TIME: Duration = Duration::from_mins(2);
/// How long the rest of a small body is waited for when it is answered before it arrived.
const REST_TIME: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;

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
    /// Receives the body, within its reservation.
    pub async fn receive(
        &mut self,
        connections: &Connections,
        headers: &HeaderMap,
        reservation: &mut Reservation<'_>,
    ) -> Result<Bytes, Problem> {
        check_encoding(headers)?;
        let mut bytes = BytesMut::with_capacity(announced(headers).unwrap_or(0).min(TINY_BODY));
        let (end, mut last_call) = (Instant::now() + BODY_TIME, std::pin::pin!(connections.stop_deadline()));
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
            reservation.grow_to(bytes.len() + data.len()).await?;
            bytes.extend_from_slice(&data);
        }
        self.is_whole = true;
        Ok(bytes.freeze())
    }

    /// Ends an answered request: the rest of a small body is read, so that the connection can be reused;
    /// otherwise the answer says that it closes.
    pub async fn finish(&mut self, parts: &Parts, headers: &mut HeaderMap) {
        if self.is_whole || self.incoming.is_end_stream() || parts.version == Version::HTTP_2 {
            return;
        }
        let is_small = announced(&parts.headers).is_some_and(|length| length <= SMALL_BODY);
        // a client that expects 100 Continue sends nothing without it
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

/// Refuses encoded bodies.
fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get_all(header::CONTENT_ENCODING).iter().all(|value| value == "identity") {
        return Ok(());
    }
    let detail = "A body is read as it is: send it without Content-Encoding.";
    Err(Problem::new(ProblemKind::UnsupportedMediaType, detail).with_header("accept-encoding", "identity"))
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

/// Memory for bodies. A larger body takes it as it arrives: one that is announced and never arrives blocks
/// only its sender, who has at most half of all permits.
pub struct Bodies {
    larger: Arc<Semaphore>,
    /// Each caller's share, by the announced size of its bodies.
    shares: FairShares<Uuid>,
    share: u32,
    known: Arc<Semaphore>,
    unknown: Arc<Semaphore>,
}

impl Bodies {
    /// With this many MiB for larger bodies.
    pub fn of(mib: u32) -> Self {
        let share = (mib / 2).max(1);
        Self {
            larger: Arc::new(Semaphore::new(mib as usize)),
            shares: FairShares::of(share as usize),
            share,
            known: Arc::new(Semaphore::new(SMALL_BODIES.0)),
            unknown: Arc::new(Semaphore::new(SMALL_BODIES.1)),
        }
    }

    /// Reserves memory for a body up to a bound, waiting for the caller's share where the body is large. A body
    /// announced to be larger than the bound is refused at once.
    ///
    /// # Errors
    /// The body is too large, or the caller's own bodies leave no room.
    pub async fn reserve(
        &self,
        caller: Option<Uuid>,
        headers: &HeaderMap,
        bound: usize,
    ) -> Result<Reservation<'_>, Problem> {
        let size = announced(headers).unwrap_or(bound);
        if size > bound {
            return Err(too_large(bound));
        }
        let mib = u32::try_from(size.div_ceil(MIB)).unwrap_or(u32::MAX);
        let share = match caller {
            Some(caller) if size > SMALL_BODY => {
                let share = self.shares.take_many(caller, mib.saturating_mul(READ_SIZE).min(self.share));
                Some(timeout(STALL_TIME, share).await.unwrap_or(Err(Error::Busy))?)
            }
            _ => None,
        };
        let is_known = caller.is_some();
        Ok(Reservation {
            bodies: self,
            bound,
            is_known,
            covered: TINY_BODY,
            taken: 0,
            held: Vec::new(),
            _share: share,
        })
    }
}

/// The permits that a body holds.
pub struct Reservation<'a> {
    bodies: &'a Bodies,
    bound: usize,
    is_known: bool,
    /// Bytes that the permits cover.
    covered: usize,
    /// Permits taken for a larger body.
    taken: u32,
    held: Vec<OwnedSemaphorePermit>,
    _share: Option<Share>,
}

impl Reservation<'_> {
    /// Waits until there is memory for `size` bytes.
    async fn grow_to(&mut self, size: usize) -> Result<(), Problem> {
        if size > self.bound {
            return Err(too_large(self.bound));
        }
        while self.covered < size {
            let bodies = self.bodies;
            let (permits, count, covered) = if self.covered < SMALL_BODY {
                (if self.is_known { &bodies.known } else { &bodies.unknown }, 1, SMALL_BODY)
            } else {
                // a body that would exceed a share gets the share, and is parsed alone
                let count = READ_SIZE.min(bodies.share - self.taken);
                self.taken += count;
                (&bodies.larger, count, (self.covered / MIB + 1) * MIB)
            };
            let permit = timeout(STALL_TIME, Arc::clone(permits).acquire_many_owned(count)).await;
            self.held.push(permit.ok().and_then(Result::ok).ok_or(Error::Busy)?);
            self.covered = covered;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};
    use uuid::Uuid;

    use super::{Bodies, MIB, Reservation, SMALL_BODIES, SMALL_BODY, TINY_BODY};

    fn announcing(length: usize) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from(length))])
    }

    async fn fits(reservation: &mut Reservation<'_>, size: usize) -> bool {
        reservation.grow_to(size).await.is_ok()
    }

    /// Memory is taken as a body arrives, and no caller takes more than half of it.
    #[tokio::test(start_paused = true)]
    async fn memory_is_taken_as_a_body_arrives() {
        let bodies = Bodies::of(16);
        let unsaid = HeaderMap::new();
        let reservation = |caller: u128| bodies.reserve(Some(Uuid::from_u128(caller)), &unsaid, 4 * MIB);
        let (mut one, mut two, mut three) =
            (reservation(1).await.unwrap(), reservation(2).await.unwrap(), reservation(3).await.unwrap());
        assert!(reservation(1).await.is_err(), "its own is announced to be as large as it may be");
        assert!(fits(&mut one, 4 * MIB).await && fits(&mut three, MIB).await);
        assert!(!fits(&mut one, 4 * MIB + 1).await, "it is too large");
        assert!(!fits(&mut two, 4 * MIB).await && fits(&mut two, SMALL_BODY).await);
        drop(three);
        assert!(fits(&mut two, 4 * MIB).await);
        drop(one);
        assert!(reservation(1).await.is_ok());
    }

    /// Unknown callers have few permits for bodies that are not tiny, and take none from known ones.
    #[tokio::test(start_paused = true)]
    async fn unknown_callers_have_permits_of_their_own() {
        let bodies = Bodies::of(16);
        let mut held = Vec::new();
        for _ in 0..=SMALL_BODIES.1 {
            let mut reservation = bodies.reserve(None, &announcing(SMALL_BODY), SMALL_BODY).await.unwrap();
            assert!(fits(&mut reservation, TINY_BODY).await);
            held.push(reservation);
        }
        let mut last = held.pop().unwrap();
        for reservation in &mut held {
            assert!(fits(reservation, SMALL_BODY).await);
        }
        assert!(!fits(&mut last, TINY_BODY + 1).await);
        let mut known = bodies.reserve(Some(Uuid::nil()), &HeaderMap::new(), MIB).await.unwrap();
        assert!(fits(&mut known, MIB).await);
        drop(held);
        assert!(fits(&mut last, SMALL_BODY).await);
    }
}
