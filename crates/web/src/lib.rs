//! The asynchronous edge: from a list of operations to routes, limits, problems and
//! documentation. It does not know the services; it is handed their lists.

mod answer;
mod app;
mod authority;
mod client_certificate;
mod complete;
mod compress;
mod deprecation;
mod execute;
mod guard;
mod idempotency;
mod limiter;
mod listener;
mod metrics;
mod openapi;
mod pool;
mod request;
mod route;
mod system;

pub use app::{App, DEPRECATED_ON, Limits, now};
pub use deprecation::Deprecation;
pub use listener::{Listener, TlsFiles, serve};
pub use openapi::document;
pub use system::SystemRoute;
