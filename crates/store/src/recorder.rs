//! Records of a test for the scripts: its statements, for `scripts/postgres-tests`, which selects the tests
//! that run on both engines, and how long operations held the writer of SQLite, for `scripts/test-times`. Only
//! in builds with the feature `record-statements`.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

/// The environment variable with the folder for the statements. Nothing is recorded without it.
const STATEMENTS: &str = "CHANCERY_STATEMENTS";
/// The same, for the times.
const HOLDS: &str = "CHANCERY_HOLDS";

/// The test of this process, or that started it, as cargo-nextest names it.
const TEST: &str = "NEXTEST_TEST_NAME";

struct Recorder<T> {
    file: File,
    recorded: T,
}

impl<T: Default> Recorder<T> {
    /// Records to the test's file in the folder of an environment variable.
    fn open(folder: &str) -> Option<Mutex<Self>> {
        let (folder, test) = (std::env::var_os(folder)?, std::env::var(TEST).ok()?);
        let folder = Path::new(&folder);
        fs::create_dir_all(folder).ok()?;
        // a server that a test starts appends to the record of its test
        let file =
            OpenOptions::new().create(true).append(true).open(folder.join(test.replace("::", "."))).ok()?;
        Some(Mutex::new(Self { file, recorded: T::default() }))
    }

    fn write(&mut self, line: &str) {
        // a record that cannot be written shows as statements that no test executes
        let _ = self.file.write_all(line.as_bytes());
    }
}

type RecordedStatements = HashSet<(&'static str, &'static str, String)>;

static RECORDER: LazyLock<Option<Mutex<Recorder<RecordedStatements>>>> =
    LazyLock::new(|| Recorder::open(STATEMENTS));
/// The longest hold of each operation so far.
type Longest = HashMap<&'static str, Duration>;

static LONGEST: LazyLock<Option<Mutex<Recorder<Longest>>>> = LazyLock::new(|| Recorder::open(HOLDS));

/// Records a statement of an operation, once for a process: a line with the engine, the operation and the text.
pub fn record(engine: &'static str, operation: &'static str, sql: &str) {
    let Some(recorder) = &*RECORDER else { return };
    let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
    if recorder.recorded.insert((engine, operation, sql.to_owned())) {
        let text: Vec<&str> = sql.split_whitespace().collect();
        recorder.write(&format!("{engine}\t{operation}\t{}\n", text.join(" ")));
    }
}

/// Records how long an operation held the writer, if it is the longest time of this operation so far: a line
/// with microseconds and the operation.
pub fn record_hold(operation: &'static str, time: Duration) {
    let Some(recorder) = &*LONGEST else { return };
    let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
    if recorder.recorded.get(operation).is_none_or(|longest| *longest < time) {
        recorder.recorded.insert(operation, time);
        recorder.write(&format!("{}\t{operation}\n", time.as_micros()));
    }
}
