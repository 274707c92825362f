//! The server: configuration, first start, the lists put together, a clean stop.

mod config;
mod first_start;
mod jobs;
mod start;

pub use config::{Arguments, Command, Config, ConfigError};
pub use first_start::Welcome;
pub use jobs::prune_piece;
pub use start::{SERVICES, Server, StartError};
