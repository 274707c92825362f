//! The log: lines to standard error, written by a thread of their own. Nothing waits for it, and nothing
//! fails by it: what cannot be written is dropped and counted.

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

/// Lines that wait to be written.
const WAITING: usize = 4096;
/// The longest line, in bytes.
const LONGEST: usize = 64 << 10;
/// How long lines that wait are still written at the end.
const LAST_TIME: Duration = Duration::from_secs(1);

static DROPPED: AtomicU64 = AtomicU64::new(0);
static LINES: OnceLock<SyncSender<Line>> = OnceLock::new();

/// What the thread is to do.
enum Line {
    Write(Vec<u8>),
    /// Tell that all before is written.
    Tell(std::sync::mpsc::Sender<()>),
}

/// The log of this process.
pub struct Log {
    filter: Mutex<reload::Handle<EnvFilter, Registry>>,
}

/// Lines that could not be written.
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

impl Log {
    /// Logs what the filter lets through: as JSON, or for people when a terminal reads it.
    ///
    /// # Errors
    /// The filter is none, or there is a log already.
    pub fn start(filter: &str) -> Result<Self, String> {
        let (filter, handle) = reload::Layer::new(read_filter(filter)?);
        let (lines, waiting) = sync_channel(WAITING);
        LINES.set(lines).map_err(|_| "log: it was started before".to_owned())?;
        let write = move || write_lines(&waiting, &mut io::stderr());
        std::thread::Builder::new()
            .name("log".into())
            .spawn(write)
            .map_err(|error| format!("log: {error}"))?;
        let written =
            if io::stderr().is_terminal() { layer().with_writer(Lines).boxed() } else { Json.boxed() };
        // the filter is the outer layer, so that it can be another one later
        let log = tracing_subscriber::registry().with(filter).with(written);
        log.try_init().map_err(|error| format!("log: {error}"))?;
        // the usual hook writes to standard error itself, and waits for it
        std::panic::set_hook(Box::new(|panic| {
            let backtrace = Backtrace::capture();
            let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| display(backtrace));
            tracing::error!(%panic, backtrace, "panicked");
        }));
        Ok(Self { filter: Mutex::new(handle) })
    }

    /// Logs by another filter from now on.
    ///
    /// # Errors
    /// It is none.
    pub fn filter_by(&self, filter: &str) -> Result<(), String> {
        let filter = read_filter(filter)?;
        let handle = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        handle.reload(filter).map_err(|error| format!("log: {error}"))
    }

    /// Waits a moment until what was logged is written.
    pub fn finish() {
        let (written, wait) = channel();
        let Some(lines) = LINES.get() else { return };
        let began = Instant::now();
        // where too many wait some are being written, or none ever will be
        let mut tell = Line::Tell(written);
        while let Err(TrySendError::Full(back)) = lines.try_send(tell) {
            if began.elapsed() > LAST_TIME {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
            tell = back;
        }
        let _ = wait.recv_timeout(LAST_TIME);
    }
}

fn read_filter(filter: &str) -> Result<EnvFilter, String> {
    // the library takes what a client did wrong for an error of ours
    let filter = format!("{filter},webauthn_rs_core=off,webauthn_attestation_ca=off");
    EnvFilter::try_new(filter).map_err(|error| format!("log: {error}"))
}

fn write_lines(waiting: &Receiver<Line>, to: &mut impl Write) {
    while let Ok(line) = waiting.recv() {
        match line {
            Line::Write(line) => {
                if to.write_all(&line).is_err() {
                    drop_line();
                }
            }
            Line::Tell(written) => drop(written.send(())),
        }
    }
}

fn drop_line() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

/// Takes lines of the log.
struct Lines;

impl<'a> MakeWriter<'a> for Lines {
    type Writer = OneLine;
    fn make_writer(&'a self) -> OneLine {
        OneLine(Vec::new())
    }
}

/// A line as it is made; it goes to the thread when it is whole.
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
