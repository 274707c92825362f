//! Authentication of OAuth clients, what they may request, and how they are answered, as pure functions.
//!
//! Nothing here knows a clock, a database or HTTP: the time, the client's keys and the request are
//! parameters. The caller stores the ids of used assertions and proofs until
//! [`VerifiedAssertion::expires_on`] and [`Proof::expires_on`], so that none is good twice. `aws-lc-rs` alone verifies signatures; the kind of a
//! key decides which algorithms it may verify, never a header.

mod algorithm;
mod assertion;
mod authorize;
mod claims;
mod compact;
mod dpop;
mod exchange;
mod facts;
mod fapi;
mod fitting;
mod half_hash;
mod jwk;
mod jwk_set;
mod key_fault;
mod key_set;
mod logout;
mod nonce;
mod parameters;
mod pkce;
mod profile;
mod public_key;
mod redirect;
mod refusal;
mod scope;
mod spki;
mod target;
mod unserved;

pub use algorithm::Algorithm;
pub use assertion::{
    Expected, Keys, LEEWAY, MAX_LIFETIME, VerifiedAssertion, check_claims, client_of, verify_assertion,
};
pub use authorize::{
    acr::AcrValues,
    addressing::{Addressing, Reply},
    answer::{Answer, Delivery, with_query},
    check::{Checked, SignInFacts, Terms, check_request, grantable_scope, may_have, whole_scope},
    claims_request::{ClaimsRequest, RequestedClaim},
    prompt::{Pages, Prompt},
    request::{AuthorizationRequest, meant},
    request_object::RequestObject,
    response_mode::{ResponseMode, Transport},
    response_type::ResponseType,
};
pub use compact::TokenParts;
pub use dpop::{NoncePolicy, Proof, Request, verify_proof};
pub use exchange::{Actor, TypedToken};
pub use exchange::{
    ActorTokens, Exchange, GRANT_TYPE, TokenType, actors_of, parse_exchange, targets, write_actors,
};
pub use facts::{Authentication, ClientFacts, Encryption, Method, SecurityProfile};
pub use fitting::{KeyMiss, fitting_keys};
pub use half_hash::half_hash;
pub use jwk::{Jwk, Purpose};
pub use jwk_set::{JwkSet, MAX_KEYS, MAX_LENGTH};
pub use key_fault::{KeyFault, KeyProblem};
pub use key_set::Status;
pub use logout::EndSession;
pub use nonce::Nonces;
pub use pkce::{Challenge, verify_pkce};
pub use profile::{Finding, KEY_ENCRYPTION, findings};
pub use public_key::{Curve, PublicKey};
pub use redirect::{RedirectKind, is_claimable, is_registered_redirect};
pub use refusal::{Code, Refusal};
pub use scope::{GROUPS, OFFLINE_ACCESS, OPENID, STANDARD_SCOPES, Scope};
pub use target::{is_same_resource, normal_resource};
pub use unserved::{
    FEDERATED_IDENTITIES, REQUEST_URIS, Unserved, UnservedRows, Use, check_use, unserved, unserved_row,
};

#[cfg(test)]
mod tests;
