//! The log: lines to standard error, written by a thread of its own. Nothing waits for it, and nothing fails
//! because of it: lines that cannot be written are dropped and counted.

mod json;

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, IsTerminal as _, Write},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel},
    },
    time::{Duration, Instant},
};

use tracing::field::display;
use tracing_subscriber::{
    EnvFilter, Registry,
    fmt::{MakeWriter, layer},
    layer::{Layer as _, SubscriberExt as _},
    reload,
    util::SubscriberInitExt as _,
};

use self::json::Json;

use crate::ConfigError;

/// The most lines that wait to be written.
const WAITING: usize = 4096;
/// The longest line, in bytes.
const LONGEST: usize = 64 << 10;
/// The levels, and none.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
/// How long queued lines are still written at the end.
const LAST_TIME: Duration = Duration::from_secs(1);

static DROPPED: AtomicU64 = AtomicU64::new(0);
static LINES: OnceLock<SyncSender<Line>> = OnceLock::new();

/// A message to the writing thread.
enum Line {
    Write(Vec<u8>),
    /// Confirm that all lines before are written.
    Confirm(std::sync::mpsc::Sender<()>),
}

/// The log of this process.
pub struct Log {
    filter: Mutex<reload::Handle<EnvFilter, Registry>>,
}

/// The number of lines that could not be written.
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

impl Log {
    /// Starts the log with this filter: as JSON, or for people when standard error is a terminal.
    ///
    /// # Errors
    /// The filter is invalid, or a log was started already.
    pub fn start(filter: &str) -> Result<Self, ConfigError> {
        let (filter, handle) = reload::Layer::new(read_filter(filter)?);
        let (lines, waiting) = sync_channel(WAITING);
        LINES.set(lines).map_err(|_| ConfigError("log: it was started before".to_owned()))?;
        let write = move || write_lines(&waiting, &mut io::stderr());
        std::thread::Builder::new()
            .name("log".into())
            .spawn(write)
            .map_err(|error| ConfigError(format!("log: {error}")))?;
        let written =
            if io::stderr().is_terminal() { layer().with_writer(Lines).boxed() } else { Json.boxed() };
        // the filter is the outer layer, so that it can be replaced
        let log = tracing_subscriber::registry().with(filter).with(written);
        log.try_init().map_err(|error| ConfigError(format!("log: {error}")))?;
        // the default hook writes to standard error itself, and blocks
        std::panic::set_hook(Box::new(|panic| {
            let backtrace = Backtrace::capture();
            let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| display(backtrace));
            tracing::error!(%panic, backtrace, "panicked");
        }));
        Ok(Self { filter: Mutex::new(handle) })
    }

    /// Replaces the filter.
    ///
    /// # Errors
    /// The filter is invalid.
    pub fn filter_by(&self, filter: &str) -> Result<(), ConfigError> {
        let filter = read_filter(filter)?;
        let handle = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        handle.reload(filter).map_err(|error| ConfigError(format!("log: {error}")))
    }

    /// Waits a moment until all lines logged so far are written.
    pub fn finish() {
        let (written, wait) = channel();
        let Some(lines) = LINES.get() else { return };
        let began = Instant::now();
        // while the queue is full, either some lines are being written or none ever will be
        let mut message = Line::Confirm(written);
        while let Err(TrySendError::Full(back)) = lines.try_send(message) {
            if began.elapsed() > LAST_TIME {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
            message = back;
        }
        let _ = wait.recv_timeout(LAST_TIME);
    }
}

pub fn read_filter(filter: &str) -> Result<EnvFilter, ConfigError> {
    // the library takes any word for a part of the program, which would be all that is logged
    let is_level = |part: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part));
    let words = filter.split(',').map(str::trim).filter(|part| !part.contains(['=', '[', ']', ':']));
    for word in words {
        if !is_level(word) {
            return Err(ConfigError(format!(
                "log is one of {}, or a filter such as warn,chancery_web=debug, not {filter:?}: {word:?} is no level",
                LEVELS.join(", ")
            )));
        }
    }
    // the library logs a client's mistake as an error of this program
    let filter = format!("{filter},webauthn_rs_core=off,webauthn_attestation_ca=off");
    EnvFilter::try_new(filter).map_err(|error| ConfigError(format!("log: {error}")))
}

fn write_lines(waiting: &Receiver<Line>, to: &mut impl Write) {
    while let Ok(line) = waiting.recv() {
        match line {
            Line::Write(line) => {
                if to.write_all(&line).is_err() {
                    drop_line();
                }
            }
            Line::Confirm(written) => drop(written.send(())),
        }
    }
}

fn drop_line() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

/// Queues lines for the writing thread.
struct Lines;

impl<'a> MakeWriter<'a> for Lines {
    type Writer = OneLine;
    fn make_writer(&'a self) -> OneLine {
        OneLine(Vec::new())
    }
}

/// A line being formatted; it is queued when complete.
struct OneLine(Vec<u8>);

impl Write for OneLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for OneLine {
    fn drop(&mut self) {
        let line = std::mem::take(&mut self.0);
        let is_taken = line.is_empty()
            || (line.len() <= LONGEST
                && LINES.get().is_some_and(|lines| lines.try_send(Line::Write(line)).is_ok()));
        if !is_taken {
            drop_line();
        }
    }
}
