//! The Merkle tree over a store's audit trail, as it is stored.

use chancery_ledger::Hash;
use chancery_record::Value;
use chancery_store::{Error, Tx, selectable};
use uuid::Uuid;

selectable! {
    /// A tree: its size, and its signed checkpoint once it has leaves.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Tree from "FROM audit_tree WHERE store = ?1" {
        /// Number of leaves.
        pub size: u64 = "size",
        /// The signed note of the tree at this size.
        pub checkpoint: Option<String> = "checkpoint",
    }
}

impl Tree {
    /// The tree of a store; 0 is the configuration.
    pub fn load(tx: &mut Tx<'_>, store: i64) -> Result<Self, Error> {
        Ok(tx.one(Self::SELECT, &[Value::Int(store)], Self::read)?.unwrap_or_default())
    }
}

/// The origin of a tree's checkpoints: of the user store with this instance, or of the configuration.
pub fn origin(instance: Option<Uuid>) -> String {
    instance.map_or_else(|| "chancery/management".to_owned(), |id| format!("chancery/userstore/{id}"))
}

/// Returns the root of a complete subtree, by its level and position.
pub type ReadNode<'a> = dyn FnMut(u8, u64) -> Result<Hash, Error> + 'a;

const NODE: &str = "SELECT hash FROM audit_node WHERE store = ?1 AND level = ?2 AND position = ?3";

/// Works with subtrees of a store's tree. All subtrees that `work` requests are read at once, so it runs twice:
/// its requests must not depend on their hashes.
///
/// # Errors
/// A missing subtree.
pub fn with_nodes<T>(
    tx: &mut Tx<'_>,
    store: i64,
    work: impl Fn(&mut ReadNode<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut requested = Vec::new();
    work(&mut |level, position| {
        requested.push([Value::Int(store), Value::Int(level.into()), number(position)]);
        Ok(Hash::default())
    })?;
    let statements: Vec<_> = requested.iter().map(|parameters| (NODE, parameters.as_slice())).collect();
    let mut nodes = vec![None; requested.len()];
    tx.query_all(&statements, &mut |at, row| {
        if let Some(slot) = nodes.get_mut(at) {
            *slot = row.bytes(0)?.try_into().ok();
        }
        Ok(())
    })?;
    let mut hashes = nodes.into_iter();
    work(&mut |level, position| {
        let hash: Option<Hash> = hashes.next().flatten();
        let lost = || {
            let what = format!("the audit tree of store {store} lacks the node {position} of level {level}");
            Error::Internal(what)
        };
        hash.ok_or_else(lost)
    })
}

/// A size or position as a parameter.
pub fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
