//! Client apps that authenticated by a secret, cached until the security epoch advances.
//!
//! The secret's digest is part of the key: a wrong secret misses, and takes as long as one for a client app that does not
//! exist.

use std::sync::Arc;

use chancery_record::Secret;
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::client::ClientApp;

/// The number of client apps cached.
const CACHED: usize = 10_000;
/// The longest client id that is cached, in bytes: an id, or the installation's own name.
const MAX_CLIENT_ID: usize = 64;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    client: String,
    digest: Vec<u8>,
    tenant: Option<Uuid>,
}

/// The cached client apps, each with the epoch that was read before it.
pub struct AuthenticatedClients(Cache<Key, (Arc<ClientApp>, i64)>);

impl Default for AuthenticatedClients {
    fn default() -> Self {
        Self(Cache::new(CACHED))
    }
}

impl AuthenticatedClients {
    /// The client app that authenticated by this id and secret at the issuer of this tenant, or of the
    /// installation, with the epoch that was read before it.
    pub fn get(&self, client: &str, digest: &Secret, tenant: Option<Uuid>) -> Option<(Arc<ClientApp>, i64)> {
        self.0.get(&key(client, digest, tenant))
    }

    /// Caches a client app that has just authenticated.
    pub fn insert(&self, client: &str, digest: &Secret, tenant: Option<Uuid>, app: &ClientApp, epoch: i64) {
        if client.len() <= MAX_CLIENT_ID {
            self.0.insert(key(client, digest, tenant), (Arc::new(app.authenticated_by(digest)), epoch));
        }
    }
}

fn key(client: &str, digest: &Secret, tenant: Option<Uuid>) -> Key {
    Key { client: client.to_owned(), digest: digest.expose().to_vec(), tenant }
}
