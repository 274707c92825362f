//! The memory of a set: the rows that it created on a server, so that it deletes nothing else, and the secrets that it sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The rows that a set created on one server, and the secrets that it sent there. It holds names and ids, never a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// The created rows, by kind: their keys in the interface.
    #[serde(rename = "made")]
    pub created: BTreeMap<String, Vec<String>>,
    /// The names of the secrets that were sent, by kind, key and member: `Option/0192../value`.
    pub secrets: BTreeMap<String, String>,
}

impl Memory {
    /// The name under which the secret of a row's member is remembered.
    pub fn secret_path(kind: &str, key: &str, member: &str) -> String {
        format!("{kind}/{key}/{member}")
    }

    /// Remembers a created row.
    pub fn add(&mut self, kind: &str, key: &str) {
        let created = self.created.entry(kind.to_owned()).or_default();
        if !created.iter().any(|known| known == key) {
            created.push(key.to_owned());
        }
    }

    /// Forgets a deleted row.
    pub fn remove(&mut self, kind: &str, key: &str) {
        if let Some(created) = self.created.get_mut(kind) {
            created.retain(|known| known != key);
        }
        self.created.retain(|_, created| !created.is_empty());
        let beginning = format!("{kind}/{key}/");
        self.secrets.retain(|secret_path, _| !secret_path.starts_with(&beginning));
    }

    /// Whether a row was created by this set.
    pub fn has_created(&self, kind: &str, key: &str) -> bool {
        self.created.get(kind).is_some_and(|created| created.iter().any(|known| known == key))
    }
}
