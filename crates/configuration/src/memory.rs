//! What a set remembers of a server: what it made there, so that it deletes nothing else, and which secrets it sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a set made on one server, and which secrets it sent there. It holds names and ids, never a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// The rows that were made, by kind: their keys in the interface.
    pub made: BTreeMap<String, Vec<String>>,
    /// The names of the secrets that were sent, by kind, key and member: `Option/0192../value`.
    pub secrets: BTreeMap<String, String>,
}

impl Memory {
    /// The name under which the secret of a row's member is remembered.
    pub fn place(kind: &str, key: &str, member: &str) -> String {
        format!("{kind}/{key}/{member}")
    }

    /// Remembers that a row was made.
    pub fn add(&mut self, kind: &str, key: &str) {
        let made = self.made.entry(kind.to_owned()).or_default();
        if !made.iter().any(|known| known == key) {
            made.push(key.to_owned());
        }
    }

    /// Forgets a row that is gone.
    pub fn remove(&mut self, kind: &str, key: &str) {
        if let Some(made) = self.made.get_mut(kind) {
            made.retain(|known| known != key);
        }
        self.made.retain(|_, made| !made.is_empty());
        let beginning = format!("{kind}/{key}/");
        self.secrets.retain(|place, _| !place.starts_with(&beginning));
    }

    /// Whether a row was made by this set.
    pub fn has_made(&self, kind: &str, key: &str) -> bool {
        self.made.get(kind).is_some_and(|made| made.iter().any(|known| known == key))
    }
}
