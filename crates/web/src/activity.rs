//! What a connection is doing, and until when it may go on so.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::Version;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::door::Stage;

/// How long a client may take for its first head, and for any head it began.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a reader may take nothing, and what is handed out of an answer at once may take to go.
pub const STALL_TIME: Duration = Duration::from_secs(30);
/// How long what stalls is still waited for once the server stops: with the silence that follows a last
/// answer it is gone within ten seconds.
pub const LAST_TIME: Duration = Duration::from_secs(8);
/// What was sent before the server stopped has been seen after this.
pub const MOMENT: Duration = Duration::from_millis(20);
/// What goes through a connection in one go when its reader reads, in bytes. Answers to pings are no such thing.
const FLOW: usize = 16 << 10;
/// How long what comes after the last answer is read and thrown away: in silence, and in all.
const LINGER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));

/// Times that are configured.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long a connection may rest between requests.
    pub idle: Duration,
    /// How long an answer may take to be read.
    pub answer: Duration,
}

/// What is to be done about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// HTTP/2: take no new requests.
    GoAway,
    /// End it, for this reason.
    End(&'static str),
}

/// An answer on its way.
struct Sending {
    number: u64,
    started: Instant,
    /// When the connection last took a part of it.
    moved: Instant,
    /// Whether the connection waits for us to make the next part.
    waits_for_us: bool,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the connection")]
struct State {
    /// Since when nothing is asked: the last answer is whole, or the connection is new.
    since: Instant,
    /// When anything was last read.
    heard: Instant,
    has_asked: bool,
    is_http2: bool,
    /// Requests whose answer is not whole yet.
    running: usize,
    /// Since when a head is coming in.
    reading: Option<Instant>,
    /// Since when the reader takes nothing.
    blocked: Option<Instant>,
    /// What the reader took since it was last noted that answers flow, and when that was.
    taken: usize,
    flowed: Instant,
    /// Whether the handshake is under way.
    is_greeting: bool,
    sending: Vec<Sending>,
    next: u64,
    /// When the last answer was sent and this side closed.
    shut: Option<Instant>,
    stage: Stage,
    /// When the server began to close.
    closing: Option<Instant>,
    told_to_go: Option<Instant>,
    gives_way: bool,
    waker: Option<Waker>,
}

/// What a connection is doing.
pub struct Activity {
    times: Times,
    state: Mutex<State>,
}

impl Activity {
    pub fn new(times: Times, stage: Stage) -> Arc<Self> {
        let now = Instant::now();
        let new = State {
            since: now,
            heard: now,
            has_asked: false,
            is_http2: false,
            running: 0,
            reading: None,
            blocked: None,
            taken: 0,
            flowed: now,
            is_greeting: false,
            sending: Vec::new(),
            next: 0,
            shut: None,
            stage,
            closing: (stage == Stage::Closing).then_some(now),
            told_to_go: None,
            gives_way: false,
            waker: None,
        };
        Arc::new(Self { times, state: Mutex::new(new) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew: what came so far was the handshake.
    pub fn greeted(&self) {
        self.state().since = Instant::now();
    }

    /// Whether it never sent a whole head.
    pub fn is_silent(&self) -> bool {
        let state = self.state();
        !state.has_asked && !state.gives_way
    }

    /// Since when it has nothing to do, if so.
    pub fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.running == 0 && state.shut.is_none()).then_some(state.since)
    }

    /// Ends it, for another one's sake.
    pub fn give_way(&self) {
        self.change(|state| state.gives_way = true);
    }

    /// Tells it how far the stop of the server is.
    pub fn tell(&self, stage: Stage) {
        self.change(|state| {
            state.stage = stage;
            if stage == Stage::Closing {
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

    /// Notes that bytes came.
    pub fn read(&self) {
        let (mut state, now) = (self.state(), Instant::now());
        state.heard = now;
        if state.running == 0 && state.reading.is_none() {
            state.reading = Some(now);
        }
    }

    /// Notes whether the reader took what there was.
    pub fn wrote(&self, takes: bool) {
        let mut state = self.state();
        if takes {
            state.blocked = None;
        } else if state.blocked.is_none() {
            state.blocked = Some(Instant::now());
        }
    }

    /// Notes how many bytes the reader took. One of HTTP/2 that takes much takes it of one answer after
    /// another: those that wait meanwhile do not stall.
    pub fn took(&self, bytes: usize) {
        let mut state = self.state();
        state.taken += bytes;
        if state.taken >= FLOW {
            state.taken = 0;
            state.flowed = Instant::now();
        }
    }

    /// Notes that this side was closed.
    pub fn shut(&self) {
        self.state().shut.get_or_insert_with(Instant::now);
    }

    /// Notes that a whole head came.
    pub fn ask(self: &Arc<Self>, version: Version) -> Answering {
        let mut state = self.state();
        state.has_asked = true;
        state.is_http2 = version == Version::HTTP_2;
        state.reading = None;
        state.running += 1;
        state.next += 1;
        Answering { activity: Arc::clone(self), number: state.next }
    }

    /// What is to be done, as soon as it is.
    pub fn poll(&self, sleep: &mut std::pin::Pin<Box<Sleep>>, context: &mut Context<'_>) -> Poll<Verdict> {
        loop {
            let mut state = self.state();
            let (due, verdict) = state.due(&self.times);
            if due <= Instant::now() {
                if verdict == Verdict::GoAway {
                    state.told_to_go = Some(Instant::now());
                }
                return Poll::Ready(verdict);
            }
            state.waker = Some(context.waker().clone());
            drop(state);
            // one that comes later is looked at when this one is over
            if due < sleep.deadline() || sleep.is_elapsed() {
                sleep.as_mut().reset(due);
            }
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// What comes of a handshake, if it does before the connection is to be ended.
    pub async fn in_time<T>(&self, handshake: impl Future<Output = T>) -> Option<T> {
        let mut timer = Self::timer();
        self.state().is_greeting = true;
        let outcome = tokio::select! {
            biased;
            outcome = handshake => Some(outcome),
            _ = std::future::poll_fn(|context| self.poll(&mut timer, context)) => None,
        };
        self.state().is_greeting = false;
        outcome
    }

    /// A timer for [`Self::poll`].
    pub fn timer() -> std::pin::Pin<Box<Sleep>> {
        Box::pin(sleep_until(Instant::now() + HEAD_TIME))
    }
}

impl State {
    /// When something is to be done next, and what.
    fn due(&self, times: &Times) -> (Instant, Verdict) {
        if self.gives_way {
            return (self.since, Verdict::End("it gave way"));
        }
        if let Some(shut) = self.shut {
            let due = (self.heard.max(shut) + LINGER.0).min(shut + LINGER.1);
            return (due, Verdict::End("it was answered for the last time"));
        }
        if self.stage != Stage::Open && self.is_http2 && self.told_to_go.is_none() {
            return (self.since, Verdict::GoAway);
        }
        let mut due = (self.running == 0).then(|| self.idle_due(times));
        let mut consider = |moment: Instant, reason| {
            if due.is_none_or(|(known, _)| moment < known) {
                due = Some((moment, Verdict::End(reason)));
            }
        };
        if let Some(since) = self.blocked {
            consider(self.stalled_at(since), "its reader takes nothing");
        }
        for sending in &self.sending {
            consider(sending.started + times.answer, "its reader is too slow");
            if !sending.waits_for_us {
                consider(self.stalled_at(sending.moved.max(self.flowed)), "its reader takes nothing");
            }
        }
        due.unwrap_or_else(|| (Instant::now() + HEAD_TIME, Verdict::End("")))
    }

    fn idle_due(&self, times: &Times) -> (Instant, Verdict) {
        let (mut due, mut reason) = match self.reading {
            _ if !self.has_asked => (self.since + HEAD_TIME, "no head came"),
            Some(reading) if !self.is_http2 => (reading + HEAD_TIME, "half a head came"),
            _ => (self.since + times.idle, "it was idle"),
        };
        if let Some(closing) = self.closing {
            let is_coming = self.is_greeting || (self.reading.is_some() && !self.is_http2);
            due = due.min(if is_coming { closing + LAST_TIME } else { closing.max(self.since) + MOMENT });
            reason = "the server stops";
        }
        match self.told_to_go {
            _ if !self.is_http2 => {}
            None => return (due, Verdict::GoAway),
            Some(told) => due = due.max(told + MOMENT).min(told + LINGER.0),
        }
        (due, Verdict::End(reason))
    }

    fn stalled_at(&self, since: Instant) -> Instant {
        let due = since + STALL_TIME;
        self.closing.map_or(due, |closing| due.min(since.max(closing) + LAST_TIME))
    }
}

/// A request that is being answered, until its answer is whole or given up.
pub struct Answering {
    activity: Arc<Activity>,
    number: u64,
}

impl Answering {
    /// Notes that the head of the answer is there.
    pub fn begin(&self) {
        let now = Instant::now();
        let sending = Sending { number: self.number, started: now, moved: now, waits_for_us: false };
        self.activity.state().sending.push(sending);
    }

    /// Notes that the connection asked for a part, and whether there was one.
    pub fn part(&self, is_there: bool) {
        let mut state = self.activity.state();
        if let Some(sending) = state.sending.iter_mut().find(|sending| sending.number == self.number) {
            sending.waits_for_us = !is_there;
            sending.moved = Instant::now();
        }
    }
}

impl Drop for Answering {
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
