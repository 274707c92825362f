//! Fetches one document over HTTPS: FIDO's metadata, the keys of a client; and finds the addresses that
//! whoever else calls out may connect to.
//!
//! Where to is what an administrator wrote down, and an administrator of one tenant is no
//! administrator of the network that the server stands in. So a name is resolved here, addresses
//! that are not of the public internet are left out, and the connection goes to the very address
//! that was looked at. There are no redirects, and bounds for size and time.

mod address;
mod failure;
mod get;
mod networks;
mod tls;

pub use address::is_public;
pub use failure::Failure;
pub use get::{Limits, Policy, get, resolve};
pub use networks::Networks;
