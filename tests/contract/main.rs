//! The contract, tested through HTTP on both engines: one file a subject. `sign_in/main.rs` is another binary with the tests of
//! people who sign in, so that two processors compile at a time.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::redundant_closure_for_method_calls,
    clippy::format_collect,
    reason = "tests fail by it, and read as they are written"
)]

mod address;
mod audit;
mod auth;
mod backup;
mod bad_input;
mod batch;
mod broken;
mod canary;
mod check_upgrade;
mod compression;
mod conditions;
mod configuration;
mod coverage;
mod customer;
mod delta;
mod documents;
mod documents_link;
mod durability;
mod edge;
mod effects;
mod ending;
mod entries;
mod event;
mod event_catalogue;
mod event_stream;
mod failing_disk;
mod feed;
mod figures;
mod findings;
mod fuzzed;
mod group;
mod identity_replacement;
mod image;
mod jobs;
mod layers;
mod ledger;
mod list;
mod lockout;
mod mail;
mod management;
mod members;
mod migrating;
mod moving;
mod named_files;
mod option;
mod parallel;
mod passkey;
mod passkey_trust;
mod password;
mod password_removal;
mod permissions;
mod pooler;
mod positions;
mod public;
mod quarantine;
mod ready;
mod refusals;
mod reset;
mod schema;
mod search;
mod secrets;
mod server;
mod settings;
mod sources;
mod state;
mod store;
mod subscription;
mod synchronize;
mod texts;
mod tidy;
mod token;
mod trace;
mod tuples;
mod user;
mod v1;
mod wire;
mod words;
mod writer_holds;

use chancery_tests::{
    Random, authenticator, certificate, cost, each, encode, feed_from_now, fixtures, free_address, id,
    instance, jobs_by, pattern, picture, pointers, program, resources, roles, run_job, signer, signing,
    until,
};
