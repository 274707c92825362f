//! Running an operation for a request, a page or a directory.

mod event_stream;
pub mod from_http;
pub mod from_page;
pub mod from_scim;
mod idempotency;
mod run;
pub mod transaction;
