//! Mail against a real SMTP server, from an outbox in a real database.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by it, and read as they are written"
)]

mod conversation;
mod engine;
mod fixture;
mod outbox;
mod program;
