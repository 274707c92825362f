//! Ends a broken process.

use std::process::exit;

use chancery_store::on_panic;

use crate::Log;

/// The exit status of a broken process (EX_SOFTWARE).
pub const BROKEN: i32 = 70;

/// Ends this process from now on when an essential thread panics, once its log is written.
pub fn exit_on_panic() {
    on_panic(|_| {
        Log::finish();
        exit(BROKEN)
    });
}
