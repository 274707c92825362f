//! Authentication of OAuth clients, validation of their requests, and the form of the responses, as pure functions.
//!
//! Nothing here reads a clock, a database or HTTP: the time, the client's keys and the request are parameters. The caller
//! stores the ids of used assertions and proofs until [`VerifiedAssertion::expires_on`] and [`Proof::expires_on`], so that
//! none can be used twice. Signatures are verified only by `aws-lc-rs`; the kind of a key decides which algorithms it may
//! verify, never a header.

mod algorithm;
mod assertion;
mod authorize;
mod claims;
mod compact;
mod dpop;
mod error;
mod exchange;
mod facts;
mod fapi;
mod finding;
mod half_hash;
mod jwk;
mod jwk_set;
mod key_fault;
mod key_set;
mod logout;
mod matching_keys;
mod nonce;
mod parameters;
mod pkce;
mod profile;
mod public_key;
mod redirect;
mod scope;
mod spki;
mod target;
mod unsupported;
mod uri;

pub use algorithm::Algorithm;
pub use assertion::{
    AssertionKeys, Expected, LEEWAY, MAX_LIFETIME, VerifiedAssertion, check_claims, unverified_client_id,
    verify_assertion,
};
pub use authorize::{
    acr::AcrValues,
    check::{
        CheckedRequest, RequestSecurity, SignInFacts, check_request, grantable_scope, is_grantable,
        maximum_scope,
    },
    claims_request::{ClaimsRequest, RequestedClaim},
    prompt::{Pages, Prompt},
    request::{AuthorizationRequest, recognized_parameters},
    request_object::RequestObject,
    response::{AuthorizationResponse, Delivery, with_query},
    response_mode::{ResponseMode, Transport},
    response_target::{ResponseOptions, ResponseTarget},
    response_type::ResponseType,
};
pub use compact::TokenParts;
pub use dpop::{NoncePolicy, Proof, Request, verify_proof};
pub use error::{ErrorCode, ProtocolError};
pub use exchange::{Actor, TypedToken};
pub use exchange::{
    ActorTokens, GRANT_TYPE, TokenExchangeRequest, TokenType, act_claim, actors_of, parse_exchange,
    parse_targets,
};
pub use facts::{Authentication, ClientSettings, Encryption, Method, SecurityProfile};
pub use finding::Finding;
pub use half_hash::half_hash;
pub use jwk::{Jwk, MAX_LENGTH, Purpose};
pub use jwk_set::{JwkSet, MAX_KEYS};
pub use key_fault::{KeyFault, KeyProblem};
pub use key_set::KeySetStatus;
pub use logout::LogoutRequest;
pub use matching_keys::{NoMatchingKey, matching_keys};
pub use nonce::Nonces;
pub use pkce::{Challenge, verify_pkce};
pub use profile::{KEY_ENCRYPTION, findings};
pub use public_key::{Curve, PublicKey};
pub use redirect::{RedirectKind, is_claimable, is_registered_redirect};
pub use scope::{GROUPS, OFFLINE_ACCESS, OPENID, STANDARD_SCOPES, Scope};
pub use target::{is_same_resource, normalize_resource};
pub use unsupported::{
    FEDERATED_IDENTITIES, REQUEST_URIS, UnsupportedRows, UnsupportedSetting, Use, check_use, unsupported_row,
    unsupported_settings,
};

#[cfg(test)]
mod tests;
