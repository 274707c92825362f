//! Authentication and authorization of callers: signing keys, the OAuth endpoints, access tokens, roles and
//! permits.

mod authenticate;
mod authenticated_clients;
mod canonical_id;
mod claims;
mod client;
mod error;
mod grant;
mod introspect;
mod issuer;
mod keyring;
mod permit;
mod person;
mod presented;
mod registered;
mod remote_keys;
mod replay;
mod rights;
mod rights_lookup;
mod scim_token;
mod security_context;
mod signer;
mod signing_certificate;
mod stores;
mod token_service;
mod uses;

pub use authenticate::{AuthenticatedClient, authenticate};
pub use canonical_id::canonical_id;
pub use claims::{Audience, Claims, Confirmation};
pub use client::ClientApp;
pub use error::OAuthError;
pub use grant::{GRANTS, PendingToken, TokenGrant, bind, grant};
pub use introspect::{Introspection, introspect, revoke};
pub use issuer::{Issuer, IssuingTenant, issuer_url};
pub use keyring::{Keyring, ensure_keys, ensure_root, wrap_keys};
pub use permit::{AccessDenied, decide};
pub use person::{may_sign_in, session_caller};
pub use presented::{ClientCertificate, EndpointRequest, Proof, certificate_thumbprint};
pub use registered::registered_authentication;
pub use replay::ReplayId;
pub use rights::Rights;
pub use rights_lookup::{RightsLookup, load_store_context};
pub use scim_token::{ScimCaller, find_scim_token};
pub use security_context::{Caller, SecurityContext, StoreContext};
pub use signer::ID_TOKEN;
pub use stores::{has_store_access, may_read_people, store_names};
pub use token_service::{IdTokenHint, TokenService, all_audit_keys};
pub use uses::{CredentialUse, CredentialUses, credential_uses, write_uses};

/// Verification of DPoP proofs, for the services' own endpoints.
pub use chancery_oauth::{ErrorCode, NoncePolicy, Request as ProofRequest, verify_proof};
