//! The Merkle tree of RFC 6962, section 2.1, over leaves that are stored outside of it.
//!
//! The complete subtrees are stored, each a [`Node`]: level 0 is the leaves, the node at `(level, index)`
//! covers the leaves from `index << level` to before `(index + 1) << level`. Such a node never changes, so
//! growing only adds rows, and every root and proof of every size that the tree ever had is computed from a few
//! of them: `get(level, index)` is called O(log size) times.

use aws_lc_rs::digest::{Context, SHA256};

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// A complete subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The subtree's height: it covers `1 << level` leaves.
    pub level: u8,
    /// The subtree's index in its level, from 0.
    pub index: u64,
    /// The subtree's root.
    pub hash: Hash,
}

/// SHA-256 over some parts, one after another.
pub(crate) fn sha256(parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    context.finish().as_ref().try_into().unwrap_or_default()
}

/// The hash of a leaf: SHA-256 over 0x00 and its data.
pub fn leaf_hash(data: &[u8]) -> Hash {
    sha256(&[&[0], data])
}

/// The hash of a node: SHA-256 over 0x01 and its two children.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[1], left, right])
}

/// The root of a tree without leaves: SHA-256 over nothing.
pub fn empty_root() -> Hash {
    sha256(&[])
}

/// The right edge of a tree: all that is needed to append leaves and to compute the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// The roots of the complete subtrees that the tree splits into, the largest first.
    peaks: Vec<Hash>,
}

impl Frontier {
    /// The edge of the tree over the first `size` leaves.
    ///
    /// # Errors
    /// The errors of `get`.
    pub fn restore<E>(size: u64, get: &mut impl FnMut(u8, u64) -> Result<Hash, E>) -> Result<Self, E> {
        Ok(Self { size, peaks: peaks(0, size, get)? })
    }

    /// The number of leaves.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf. Returns the subtrees that became complete, to be stored: the leaf first, then those
    /// above it.
    pub fn push(&mut self, leaf: Hash) -> Vec<Node> {
        let mut node = Node { level: 0, index: self.size, hash: leaf };
        let mut complete = vec![node];
        for _ in 0..self.size.trailing_ones() {
            let Some(left) = self.peaks.pop() else { break };
            node = Node { level: node.level + 1, index: node.index >> 1, hash: node_hash(&left, &node.hash) };
            complete.push(node);
        }
        self.peaks.push(node.hash);
        self.size += 1;
        complete
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        fold(&self.peaks)
    }
}

/// The root of the tree over the first `size` leaves.
///
/// # Errors
/// The errors of `get`.
pub fn root<E>(size: u64, get: &mut impl FnMut(u8, u64) -> Result<Hash, E>) -> Result<Hash, E> {
    Ok(Frontier::restore(size, get)?.root())
}

/// The proof that the leaf at `index` is in the tree over the first `size` leaves (RFC 6962,
/// section 2.1.1), the hash next to the leaf first. `None` when there is no such leaf.
///
/// # Errors
/// The errors of `get`.
pub fn inclusion_proof<E>(
    index: u64,
    size: u64,
    get: &mut impl FnMut(u8, u64) -> Result<Hash, E>,
) -> Result<Option<Vec<Hash>>, E> {
    if index >= size {
        return Ok(None);
    }
    let (mut start, mut end) = (0, size);
    let mut proof = Vec::new();
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            proof.push(fold(&peaks(middle, end, get)?));
            end = middle;
        } else {
            proof.push(fold(&peaks(start, middle, get)?));
            start = middle;
        }
    }
    proof.reverse();
    Ok(Some(proof))
}

/// The proof that the tree over the first `from` leaves is a prefix of the tree over the first `to` leaves (RFC
/// 6962, section 2.1.2). It is empty where there is nothing to prove: from size 0, and between equal sizes.
/// `None` when `from` is more than `to`.
///
/// # Errors
/// The errors of `get`.
pub fn consistency_proof<E>(
    from: u64,
    to: u64,
    get: &mut impl FnMut(u8, u64) -> Result<Hash, E>,
) -> Result<Option<Vec<Hash>>, E> {
    if from > to {
        return Ok(None);
    }
    let mut proof = Vec::new();
    if from == 0 {
        return Ok(Some(proof));
    }
    let (mut start, mut end) = (0, to);
    while end != from {
        let middle = start + split(end - start);
        if from <= middle {
            proof.push(fold(&peaks(middle, end, get)?));
            end = middle;
        } else {
            proof.push(fold(&peaks(start, middle, get)?));
            start = middle;
        }
    }
    // a first part that is one complete subtree is the old root, which the verifier has
    if start > 0 {
        proof.push(fold(&peaks(start, end, get)?));
    }
    proof.reverse();
    Ok(Some(proof))
}

/// The largest power of two below `size`, which is at least 2.
const fn split(size: u64) -> u64 {
    1 << (size - 1).ilog2()
}

/// The complete subtrees that the leaves from `start` to before `end` split into, the largest first. `start` is
/// a multiple of the largest one's size, as it always is in the RFC's recursion.
fn peaks<E>(
    mut start: u64,
    end: u64,
    get: &mut impl FnMut(u8, u64) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let mut roots = Vec::new();
    while start < end {
        let level = (end - start).ilog2();
        roots.push(get(u8::try_from(level).unwrap_or_default(), start >> level)?);
        start += 1 << level;
    }
    Ok(roots)
}

/// The root over neighbouring subtrees, the largest first.
fn fold(peaks: &[Hash]) -> Hash {
    let hashes = peaks.iter().rev().copied();
    hashes.reduce(|right, left| node_hash(&left, &right)).unwrap_or_else(empty_root)
}
