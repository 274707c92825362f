//! Client apps that proved themselves by a secret, remembered while the security epoch stands.
//!
//! An entry is found by the secret alone: a wrong one finds nothing, so it takes as long as one for a client
//! app that there is not.

use std::sync::Arc;

use chancery_record::Secret;
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::client::ClientApp;

/// How many are remembered.
const REMEMBERED: usize = 10_000;
/// The longest name of a client app that is looked for: an id, or the installation's own name.
const LONGEST: usize = 64;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    client: String,
    digest: Vec<u8>,
    tenant: Option<Uuid>,
}

/// The client apps, each with the epoch that it was so after.
pub struct Proven(Cache<Key, (Arc<ClientApp>, i64)>);

impl Default for Proven {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Proven {
    /// The client app that calls itself so and has proven itself by this secret at the issuer of this tenant, or
    /// of the installation, and the epoch that it was so after.
    pub fn recall(
        &self,
        client: &str,
        digest: &Secret,
        tenant: Option<Uuid>,
    ) -> Option<(Arc<ClientApp>, i64)> {
        self.0.get(&key(client, digest, tenant))
    }

    /// Remembers one that has just proven itself.
    pub fn remember(
        &self,
        client: &str,
        digest: &Secret,
        tenant: Option<Uuid>,
        (app, epoch): (&ClientApp, i64),
    ) {
        if client.len() <= LONGEST {
            self.0.insert(key(client, digest, tenant), (Arc::new(app.proven_by(digest)), epoch));
        }
    }
}

fn key(client: &str, digest: &Secret, tenant: Option<Uuid>) -> Key {
    Key { client: client.to_owned(), digest: digest.expose().to_vec(), tenant }
}
