//! The asynchronous edge: turns a list of operations into routes, limits, problems and documentation, and serves the
//! pages of the OpenID provider. The services are passed in.

mod app;
mod auth;
mod body;
mod connection;
mod endpoints;
mod limits;
mod message;
mod metrics;
mod openapi;
mod operation;
mod pages;
mod routes;
mod server;
mod tls;
pub mod trace;

pub use app::{
    App, AppParts, DEPRECATED_ON, Pages, SIGN_IN, SignInSettings, health::HealthReport, jobs::JobState,
};
pub use auth::{
    authorization::Authorization,
    rights::{Requirement, RightsQuery},
    visitor::{RequestedStore, Visitor},
};
pub use body::{compress::compress, parse::read_form_body};
pub use chancery_signin::{ACR, ConsoleLifetimes};
pub use connection::request_body::RequestBody;
pub use endpoints::discovery::endpoints;
pub use limits::Limits;
pub use message::{
    answer::{AnswerBody, add_headers, respond},
    base_path::BasePath,
    clock::{Clock, now},
    compressed_text::CompressedText,
    peer::{address_of, trace_of},
};
pub use openapi::{
    document,
    event_types::{EventRow, event_rows, schema as event_schema},
};
pub use operation::{
    from_page::{Input, Output},
    from_scim::{Provision, ScimAuthority},
    transaction::OperationTransaction,
};
pub use pages::{Cookies, are_served, languages, sign_out};
pub use routes::{deprecation::Deprecation, system_route::SystemRoute};
pub use server::{
    listener::{Listener, serve},
    startup_probes::answer_probes_during_start,
};
pub use tls::{Tls, TlsFiles};
