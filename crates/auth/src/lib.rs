//! Who may do what: keys, the token endpoint, bearer tokens, roles and permits.

mod bearer;
mod keyring;
mod oauth;
mod permit;
mod rights;

pub use bearer::{Audience, Bearer, Seen};
pub use keyring::{Keyring, ensure_keys};
pub use oauth::{OAuthError, TokenGrant, TokenRequest};
pub use permit::{Refused, decide};
pub use rights::{Caller, Known, Place, Rights, Role, load_place};

/// The audience of both services.
pub const MANAGEMENT_AUDIENCE: &str = "PlatformManagementService";
/// The audience of the user store service alone.
pub const USER_STORE_AUDIENCE: &str = "PlatformUserStoreService";
