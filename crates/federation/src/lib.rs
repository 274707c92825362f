//! Validation of the responses of external identity providers (OpenID Connect Core 1.0, Discovery 1.0; RFC 6749, 7523, 7636, 9207).
//!
//! Nothing here reads a clock or a network: documents, responses and the time are parameters. Each validation returns a list
//! of [`Check`]s, not only the first that failed: an administrator who tries a provider gets all of them. A sign-in uses only
//! values that passed.

mod adfs;
mod authentication;
mod callback;
mod check;
mod discovery;
mod id_token;
mod keys;
mod provider;
mod request;
mod social;
mod state;
mod token;
mod user_info;

pub use adfs::{adfs_endpoints, check_adfs_token};
pub use authentication::{ClientAuthMethod, SigningKey, choose_client_auth};
pub use callback::check_callback;
pub use check::{Check, has_passed};
pub use discovery::{Discovery, IdentitySource, check_discovery, discovery_url};
pub use id_token::{Expected, check_id_token};
pub use keys::check_keys;
pub use provider::{Client, ProviderAddresses, ProviderKind};
pub use request::{Demands, RequestParameters, authorization_url, check_demands, check_request};
pub use social::{check_profile, fixed_discovery, profile_url};
pub use state::TrialState;
pub use token::{TokenRequest, Tokens, check_token_response, token_request};
pub use user_info::check_user_info;

#[cfg(test)]
mod tests;
