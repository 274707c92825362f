//! The end of a process that cannot go on.

use std::process::exit;

use chancery_store::when_broken;

use crate::Log;

/// The exit status of a process that cannot go on (EX_SOFTWARE).
pub const BROKEN: i32 = 70;

/// From now on this process ends when something panics that it cannot do without. Its log is written first.
pub fn end_when_broken() {
    when_broken(|_| {
        Log::finish();
        exit(BROKEN)
    });
}
