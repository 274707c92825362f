//! The server: configuration, first start, the lists put together, a clean stop.

mod audit;
mod config;
mod first_start;
mod jobs;
mod jobs_ledger;
mod jobs_purge;
mod mailing;
mod start;

pub use audit::{AuditCommand, ExportError, Exported, export};
pub use config::{Arguments, Command, Config, ConfigError};
pub use first_start::Welcome;
pub use jobs::prune_piece;
pub use jobs_ledger::seal_pending;
pub use jobs_purge::purge_due;
pub use mailing::{Post, deliver};
pub use start::{SERVICES, Server, StartError};
