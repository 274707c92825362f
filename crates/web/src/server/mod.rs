//! The server: its listener, and the dispatch of requests.

mod dispatch;
mod forwarded;
pub mod listener;
pub mod startup_probes;
