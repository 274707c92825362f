//! The contract, tested through HTTP on both engines: people who sign in, their directories and the console. `contract/main.rs` has
//! the other tests.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::redundant_closure_for_method_calls,
    clippy::format_collect,
    reason = "tests fail by it, and read as they are written"
)]

mod console;
mod escalation;
mod failing_database;
mod history;
mod management;
mod outbound;
mod provider_trial;
mod scim;
mod sign_in;
mod webhook;

use chancery_tests::{
    Random, authenticator, certificate, cost, each, encode, feed_from_now, fixtures, free_address, id,
    instance, jobs_by, pattern, picture, pointers, program, resources, roles, run_job, signer, signing,
    until,
};
