//! The state of a connection, and how long it may stay in it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::Version;
use tokio::time::{Instant, Sleep, sleep_until};

use super::shutdown::ShutdownStage;

/// The timeout of a connection's first head, and of any head that has begun.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a reader may take nothing, and how long a chunk of an answer may take to be sent.
pub const STALL_TIME: Duration = Duration::from_secs(30);
/// How long stalled connections are still waited for at the stop of the server: with the linger after a last answer they
/// are closed within ten seconds.
pub const LAST_TIME: Duration = Duration::from_secs(8);
/// After this time the server has seen the data that clients sent before it stopped.
pub const MOMENT: Duration = Duration::from_millis(20);
/// Bytes that a reader must take for answers to count as flowing. Answers to pings stay below.
const FLOW: usize = 16 << 10;
/// How long input after the last answer is read and discarded: while silent, and in total.
const LINGER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));

/// Configured timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// How long a connection may be idle between requests.
    pub idle: Duration,
    /// How long a client may take to read an answer.
    pub answer: Duration,
}

/// The required action of the server on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// HTTP/2: send GOAWAY, so that the client sends no new requests.
    GoAway,
    /// End the connection, for this reason.
    End(&'static str),
}

/// An answer being sent.
struct Sending {
    number: u64,
    started: Instant,
    /// When the connection last took a chunk of it.
    moved: Instant,
    /// Whether the connection waits for the operation to produce the next chunk.
    waits_for_us: bool,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the connection")]
struct State {
    /// When the connection became idle: when the last answer was complete, or the connection was new.
    since: Instant,
    /// When data last arrived.
    heard: Instant,
    has_sent_head: bool,
    is_http2: bool,
    /// Requests whose answer is not complete yet.
    running: usize,
    /// When the head began that is arriving now.
    reading: Option<Instant>,
    /// Since when the reader takes nothing.
    blocked: Option<Instant>,
    /// Bytes that the reader took since answers last counted as flowing, and when that was.
    taken: usize,
    flowed: Instant,
    /// Whether the handshake is in progress.
    is_handshaking: bool,
    sending: Vec<Sending>,
    next: u64,
    /// When the last answer was sent and this side was closed.
    shut: Option<Instant>,
    stage: ShutdownStage,
    /// When the server began to close.
    closing: Option<Instant>,
    goaway_sent: Option<Instant>,
    is_evicted: bool,
    waker: Option<Waker>,
}

/// The state of a connection.
pub struct Activity {
    timeouts: Timeouts,
    state: Mutex<State>,
}

impl Activity {
    pub fn new(timeouts: Timeouts, stage: ShutdownStage) -> Arc<Self> {
        let now = Instant::now();
        let new = State {
            since: now,
            heard: now,
            has_sent_head: false,
            is_http2: false,
            running: 0,
            reading: None,
            blocked: None,
            taken: 0,
            flowed: now,
            is_handshaking: false,
            sending: Vec::new(),
            next: 0,
            shut: None,
            stage,
            closing: (stage == ShutdownStage::Closing).then_some(now),
            goaway_sent: None,
            is_evicted: false,
            waker: None,
        };
        Arc::new(Self { timeouts, state: Mutex::new(new) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets the state after the TLS handshake.
    pub fn handshake_done(&self) {
        self.state().since = Instant::now();
    }

    /// Whether the client never sent a complete head.
    pub fn is_silent(&self) -> bool {
        let state = self.state();
        !state.has_sent_head && !state.is_evicted
    }

    /// Since when the connection is idle, if it is.
    pub fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.running == 0 && state.shut.is_none()).then_some(state.since)
    }

    /// Ends the connection to make room for another one.
    pub fn evict(&self) {
        self.change(|state| state.is_evicted = true);
    }

    /// Announces the stage of the server's stop.
    pub fn set_stage(&self, stage: ShutdownStage) {
        self.change(|state| {
            state.stage = stage;
            if stage == ShutdownStage::Closing {
                state.closing = Some(Instant::now());
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Records that data arrived.
    pub fn read(&self) {
        let (mut state, now) = (self.state(), Instant::now());
        state.heard = now;
        if state.running == 0 && state.reading.is_none() {
            state.reading = Some(now);
        }
    }

    /// Records whether the reader took the offered bytes.
    pub fn wrote(&self, takes: bool) {
        let mut state = self.state();
        if takes {
            state.blocked = None;
        } else if state.blocked.is_none() {
            state.blocked = Some(Instant::now());
        }
    }

    /// Records how many bytes the reader took. An HTTP/2 client that takes much reads one answer after
    /// another: the others do not stall meanwhile.
    pub fn took(&self, bytes: usize) {
        let mut state = self.state();
        state.taken += bytes;
        if state.taken >= FLOW {
            state.taken = 0;
            state.flowed = Instant::now();
        }
    }

    /// Records that this side was closed.
    pub fn shut(&self) {
        self.state().shut.get_or_insert_with(Instant::now);
    }

    /// Records that a complete head arrived.
    pub fn begin_request(self: &Arc<Self>, version: Version) -> ActiveRequest {
        let mut state = self.state();
        state.has_sent_head = true;
        state.is_http2 = version == Version::HTTP_2;
        state.reading = None;
        state.running += 1;
        state.next += 1;
        ActiveRequest { activity: Arc::clone(self), number: state.next }
    }

    /// The required action on the connection, as soon as it is due.
    pub fn poll(&self, sleep: &mut std::pin::Pin<Box<Sleep>>, context: &mut Context<'_>) -> Poll<Verdict> {
        loop {
            let mut state = self.state();
            let (due, verdict) = state.due(&self.timeouts);
            if due <= Instant::now() {
                if verdict == Verdict::GoAway {
                    state.goaway_sent = Some(Instant::now());
                }
                return Poll::Ready(verdict);
            }
            state.waker = Some(context.waker().clone());
            drop(state);
            // a later time is set when the timer fires
            if due < sleep.deadline() || sleep.is_elapsed() {
                sleep.as_mut().reset(due);
            }
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// The result of a handshake, unless the connection is to be ended before that.
    pub async fn in_time<T>(&self, handshake: impl Future<Output = T>) -> Option<T> {
        let mut timer = Self::timer();
        self.state().is_handshaking = true;
        let outcome = tokio::select! {
            biased;
            outcome = handshake => Some(outcome),
            _ = std::future::poll_fn(|context| self.poll(&mut timer, context)) => None,
        };
        self.state().is_handshaking = false;
        outcome
    }

    /// A timer for [`Self::poll`].
    pub fn timer() -> std::pin::Pin<Box<Sleep>> {
        Box::pin(sleep_until(Instant::now() + HEAD_TIME))
    }
}

impl State {
    /// The next deadline, and the verdict at it.
    fn due(&self, timeouts: &Timeouts) -> (Instant, Verdict) {
        if self.is_evicted {
            return (self.since, Verdict::End("it gave way"));
        }
        if let Some(shut) = self.shut {
            let due = (self.heard.max(shut) + LINGER.0).min(shut + LINGER.1);
            return (due, Verdict::End("it was answered for the last time"));
        }
        if self.stage != ShutdownStage::Open && self.is_http2 && self.goaway_sent.is_none() {
            return (self.since, Verdict::GoAway);
        }
        let mut due = (self.running == 0).then(|| self.idle_due(timeouts));
        let mut consider = |moment: Instant, reason| {
            if due.is_none_or(|(known, _)| moment < known) {
                due = Some((moment, Verdict::End(reason)));
            }
        };
        if let Some(since) = self.blocked {
            consider(self.stalled_at(since), "its reader takes nothing");
        }
        for sending in &self.sending {
            consider(sending.started + timeouts.answer, "its reader is too slow");
            if !sending.waits_for_us {
                consider(self.stalled_at(sending.moved.max(self.flowed)), "its reader takes nothing");
            }
        }
        due.unwrap_or_else(|| (Instant::now() + HEAD_TIME, Verdict::End("")))
    }

    fn idle_due(&self, timeouts: &Timeouts) -> (Instant, Verdict) {
        let (mut due, mut reason) = match self.reading {
            _ if !self.has_sent_head => (self.since + HEAD_TIME, "no head came"),
            Some(reading) if !self.is_http2 => (reading + HEAD_TIME, "half a head came"),
            _ => (self.since + timeouts.idle, "it was idle"),
        };
        if let Some(closing) = self.closing {
            let is_coming = self.is_handshaking || (self.reading.is_some() && !self.is_http2);
            due = due.min(if is_coming { closing + LAST_TIME } else { closing.max(self.since) + MOMENT });
            reason = "the server stops";
        }
        match self.goaway_sent {
            _ if !self.is_http2 => {}
            None => return (due, Verdict::GoAway),
            Some(sent) => due = due.max(sent + MOMENT).min(sent + LINGER.0),
        }
        (due, Verdict::End(reason))
    }

    fn stalled_at(&self, since: Instant) -> Instant {
        let due = since + STALL_TIME;
        self.closing.map_or(due, |closing| due.min(since.max(closing) + LAST_TIME))
    }
}

/// A request in progress, until its answer is complete or given up.
pub struct ActiveRequest {
    activity: Arc<Activity>,
    number: u64,
}

impl ActiveRequest {
    /// Records that the head of the answer is ready.
    pub fn begin(&self) {
        let now = Instant::now();
        let sending = Sending { number: self.number, started: now, moved: now, waits_for_us: false };
        self.activity.state().sending.push(sending);
    }

    /// Records that the connection polled for a chunk, and whether there was one.
    pub fn part(&self, is_there: bool) {
        let mut state = self.activity.state();
        if let Some(sending) = state.sending.iter_mut().find(|sending| sending.number == self.number) {
            sending.waits_for_us = !is_there;
            sending.moved = Instant::now();
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.running = state.running.saturating_sub(1);
        state.sending.retain(|sending| sending.number != self.number);
        if state.running == 0 {
            state.since = Instant::now();
            state.reading = None;
        }
    }
}
