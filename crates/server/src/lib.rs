//! The server: configuration, first start, background jobs, start and stop.

mod adopt;
mod arguments;
mod audit;
mod backup;
pub mod build;
mod check_upgrade;
mod config;
mod config_error;
mod configuration;
mod console;
mod copy;
mod database;
mod database_lock;
mod end;
mod erasure_list;
mod first_start;
mod installation;
mod jobs;
mod key;
mod key_file;
mod log;
mod login;
mod options;
mod outbound;
mod private_file;
mod recover;
mod reload;
mod restore;
mod rows;
mod running;
mod server_context;
mod services;
mod start;
mod start_error;
mod text_message;
mod trail_check;
mod variables;
mod webhook;
mod whole_file;

pub use adopt::adopt;
pub use arguments::{Arguments, Command};
pub use audit::{AuditCommand, ExportError, ExportSummary, export};
pub use backup::back_up;
pub use check_upgrade::check_upgrade;
pub use config::Config;
pub use config_error::ConfigError;
pub use configuration::ConfigurationCommand;
pub use copy::CopyCommand;
pub use end::{BROKEN, exit_on_panic};
pub use first_start::{RootAccess, RootClient};
pub use jobs::{
    Job, Leases,
    compact::compact,
    floor::raise as raise_floor,
    heal::heal,
    jobs,
    ledger::append_pending,
    mail::{MailSettings, deliver},
    prune::prune_batch,
    prune_events::prune_events,
    purge::purge_due,
    reseal::reseal,
    revoke::revoke_due,
    supervise,
    trust::refresh_due,
};
pub use key::KeyCommand;
pub use log::Log;
pub use login::{Login, log_out, print_token};
pub use options::ConfigArguments;
pub use reload::Reload;
pub use restore::{
    RestoreOptions,
    endings::{end_audited, end_rows},
    restore,
};
pub use server_context::server_context;
pub use services::services;
pub use start::{Server, console_link, figures, migrate, recover_root};
pub use start_error::{BoxError, StartError};
pub use variables::unknown_variables;
