//! The peers that the server is compared with: a bare HTTP server, each engine alone, Keycloak, and where people sign in
//! oidc-provider.

pub mod bare;
pub mod changes;
pub mod keycloak;
pub mod oidc_provider;
pub mod postgres;
pub mod rows;
pub mod sqlite;
