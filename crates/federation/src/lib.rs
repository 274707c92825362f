//! What external identity providers answer, judged (OpenID Connect Core 1.0, Discovery 1.0; RFC 6749, 7523, 7636, 9207).
//!
//! Nothing here knows a clock or a network: documents, answers and the time are parameters. Each judgement is a list of
//! [`Check`]s, all that can be told, not only the first that fails: an administrator who tries a provider out gets all of
//! them. What somebody would be signed in by is taken from what passed alone.

mod adfs;
mod answer;
mod authentication;
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

pub use adfs::{adfs_endpoints, judge_adfs_token};
pub use answer::judge_answer;
pub use authentication::{Proof, SigningKey, choose_proof};
pub use check::{Check, has_passed};
pub use discovery::{Discovery, Evidence, discovery_address, judge_discovery};
pub use id_token::{Expected, judge_id_token};
pub use keys::judge_keys;
pub use provider::{Addresses, Client, Kind};
pub use request::{Asked, Demands, authorization_address, judge_demands, judge_request};
pub use social::{fixed_endpoints, judge_profile, profile_address};
pub use state::TrialState;
pub use token::{TokenRequest, Tokens, judge_tokens, token_request};
pub use user_info::judge_user_info;

#[cfg(test)]
mod tests;
