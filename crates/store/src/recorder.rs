//! The texts of the statements that a test executes, for `scripts/postgres-tests`, which decides from them
//! which tests run on both engines. Only builds with the feature `record-statements` have it.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::{LazyLock, Mutex, PoisonError},
};

/// The environment variable with the folder for the records. Nothing is recorded without it.
const FOLDER: &str = "CHANCERY_STATEMENTS";

/// The test that this process runs, or that started it, as cargo-nextest names it.
const TEST: &str = "NEXTEST_TEST_NAME";

struct Recorder {
    file: File,
    seen: HashSet<(&'static str, &'static str, String)>,
}

static RECORDER: LazyLock<Option<Mutex<Recorder>>> = LazyLock::new(|| {
    let (folder, test) = (std::env::var_os(FOLDER)?, std::env::var(TEST).ok()?);
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).ok()?;
    // a server that a test starts appends to the record of its test
    let file =
        OpenOptions::new().create(true).append(true).open(folder.join(test.replace("::", "."))).ok()?;
    Some(Mutex::new(Recorder { file, seen: HashSet::new() }))
});

/// Records a statement of an operation, once for a process: a line with the engine, the operation and the text.
pub fn record(engine: &'static str, operation: &'static str, sql: &str) {
    let Some(recorder) = &*RECORDER else { return };
    let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
    if recorder.seen.insert((engine, operation, sql.to_owned())) {
        let text: Vec<&str> = sql.split_whitespace().collect();
        // a record that cannot be written shows as statements that no test executes
        let _ = recorder.file.write_all(format!("{engine}\t{operation}\t{}\n", text.join(" ")).as_bytes());
    }
}
