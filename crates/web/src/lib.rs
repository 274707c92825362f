//! The asynchronous edge: turns a list of operations into routes, limits, problems and documentation, and serves the
//! pages of the OpenID provider. The services are passed in.

mod activity;
mod answer;
mod app;
mod authority;
mod body;
mod client_certificate;
mod complete;
mod compress;
mod connection;
mod connections;
mod counts;
mod deprecation;
mod discovery;
mod execute;
mod fair_shares;
mod figures;
mod guard;
mod idempotency;
mod limiter;
mod listener;
mod metrics;
mod openapi;
mod pages;
mod pool;
mod proof_limiter;
mod proxy;
mod request;
mod route;
mod system;
mod tls;
pub mod trace;
mod userinfo;

pub use app::{App, DEPRECATED_ON, Limits, SIGN_IN, SignInSettings, now};
pub use chancery_signin::ACR;
pub use deprecation::Deprecation;
pub use listener::{Listener, serve};
pub use openapi::document;
pub use system::SystemRoute;
pub use tls::{Tls, TlsFiles};
