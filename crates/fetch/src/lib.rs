//! Fetches one document over HTTPS (FIDO's metadata, the keys of a client) or posts one form; and resolves hosts
//! for other outgoing connections.
//!
//! Administrators configure the destinations, and an administrator of one tenant is not an administrator of the network
//! that the server runs in. So names are resolved here, addresses outside the public internet are rejected, and the
//! connection goes to the address that was checked. A pooled connection is reused only while its address passes the same
//! check. Redirects are not followed; size and time are bounded.
//!
//! Functions that send something to other systems ([`post`], [`deliver`]) take a [`Permission`], which cannot be obtained on a copy
//! of an installation.

mod address;
mod connection;
mod failure;
mod get;
mod networks;
mod outbound;
mod tls;

pub use address::is_public;
pub use connection::Connections;
pub use failure::Failure;
pub use get::{Limits, Policy, Pool, PostBody, deliver, exchange, get, post, resolve, send_request};
pub use networks::Networks;
pub use outbound::{Outbound, OutboundDisabled, Permission};
