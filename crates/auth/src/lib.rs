//! Who may do what: keys, the token endpoint, bearer tokens, roles and permits.

mod bearer;
mod keyring;
mod master;
mod oauth;
mod permit;
mod rights;

pub use bearer::{Audience, Bearer, Seen};
pub use keyring::{Keyring, ensure_keys};
pub use master::MasterKey;
pub use oauth::{OAuthError, TokenGrant, TokenRequest};
pub use permit::{Refused, decide};
pub use rights::{Caller, Known, Place, Rights, Role};

/// The audience of both services.
pub const MANAGEMENT_AUDIENCE: &str = "PlatformManagementService";
/// The audience of the user store service alone.
pub const USER_STORE_AUDIENCE: &str = "PlatformUserStoreService";
