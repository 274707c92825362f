//! Verifying proofs, by the algorithms of RFC 9162, sections 2.1.3.2 and 2.1.4.2 (the proofs are
//! those of RFC 6962).

use crate::tree::{Hash, empty_root, node_hash};

/// Whether a proof shows that `leaf` is at `index` in the tree of this size and root.
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, proof: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut node, mut last) = (index, size - 1);
    let mut hash = *leaf;
    for other in proof {
        if last == 0 {
            return false;
        }
        if is_right(node) || node == last {
            hash = node_hash(other, &hash);
            skip_to_right(&mut node, &mut last);
        } else {
            hash = node_hash(&hash, other);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && hash == *root
}

/// Whether a proof shows that the tree of size `from` is a prefix of the tree of size `to`.
pub fn verify_consistency(from: u64, from_root: &Hash, to: u64, to_root: &Hash, proof: &[Hash]) -> bool {
    if from == 0 {
        return proof.is_empty() && *from_root == empty_root() && (to > 0 || from_root == to_root);
    }
    if from >= to {
        return from == to && proof.is_empty() && from_root == to_root;
    }
    let (first, rest) = if from.is_power_of_two() {
        (from_root, proof)
    } else {
        let Some((first, rest)) = proof.split_first() else { return false };
        (first, rest)
    };
    let (mut node, mut last) = (from - 1, to - 1);
    while is_right(node) {
        node >>= 1;
        last >>= 1;
    }
    let (mut old, mut new) = (*first, *first);
    for other in rest {
        if last == 0 {
            return false;
        }
        if is_right(node) || node == last {
            old = node_hash(other, &old);
            new = node_hash(other, &new);
            skip_to_right(&mut node, &mut last);
        } else {
            new = node_hash(&new, other);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && old == *from_root && new == *to_root
}

const fn is_right(node: u64) -> bool {
    node & 1 == 1
}

/// Moves up from the last node of a level over the levels where it has no sibling.
fn skip_to_right(node: &mut u64, last: &mut u64) {
    while !is_right(*node) && *node != 0 {
        *node >>= 1;
        *last >>= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use ct_merkle::mem_backed_tree::MemoryBackedTree;
    use proptest::prelude::*;
    use sha2::Sha256;

    use super::{verify_consistency, verify_inclusion};
    use crate::tree::{
        Frontier, Hash, Node, consistency_proof, empty_root, inclusion_proof, leaf_hash, node_hash, root,
    };

    /// A store of subtrees that counts its reads.
    #[derive(Default)]
    struct Rows(Vec<Node>, usize);

    impl Rows {
        fn of(leaves: &[Vec<u8>]) -> Self {
            let mut frontier = Frontier::default();
            Self(leaves.iter().flat_map(|leaf| frontier.push(leaf_hash(leaf))).collect(), 0)
        }
        fn numbers(size: u64) -> Self {
            Self::of(&(0..size).map(|number| number.to_be_bytes().to_vec()).collect::<Vec<_>>())
        }
        fn get(&mut self) -> impl FnMut(u8, u64) -> Result<Hash, Infallible> {
            |level, index| {
                self.1 += 1;
                let node = self.0.iter().find(|row| (row.level, row.index) == (level, index));
                Ok(node.expect("a complete subtree").hash)
            }
        }
        fn root(&mut self, size: u64) -> Hash {
            root(size, &mut self.get()).unwrap()
        }
        fn inclusion(&mut self, index: u64, size: u64) -> Vec<Hash> {
            inclusion_proof(index, size, &mut self.get()).unwrap().unwrap()
        }
        fn consistency(&mut self, from: u64, to: u64) -> Vec<Hash> {
            consistency_proof(from, to, &mut self.get()).unwrap().unwrap()
        }
    }

    fn to_usize(number: u64) -> usize {
        usize::try_from(number).unwrap()
    }

    fn hex(text: &str) -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    fn hashes(texts: &[&str]) -> Vec<Hash> {
        texts.iter().map(|text| hex(text).try_into().unwrap()).collect()
    }

    /// The leaves of the test tree of the certificate-transparency reference implementation.
    const LEAVES: [&str; 8] =
        ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];

    /// The roots of its sizes, from 0.
    const ROOTS: [&str; 9] = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    #[test]
    fn the_reference_tree_has_its_known_roots_and_proofs() {
        let mut rows = Rows::of(&LEAVES.map(hex));
        for (size, expected) in hashes(&ROOTS).into_iter().enumerate() {
            assert_eq!(rows.root(size as u64), expected, "size {size}");
        }
        assert_eq!(
            rows.inclusion(0, 8),
            hashes(&[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ])
        );
        assert_eq!(
            rows.inclusion(5, 8),
            hashes(&[
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ])
        );
        assert_eq!(
            rows.consistency(6, 8),
            hashes(&[
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ])
        );
        assert_eq!(
            rows.consistency(2, 5),
            hashes(&[
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ])
        );
    }

    /// Another implementation of the RFC computes the same roots and proofs at every size.
    #[test]
    fn another_implementation_agrees() {
        let mut rows = Rows::numbers(40);
        let mut other = MemoryBackedTree::<Sha256, [u8; 8]>::new();
        for size in 1..=40_u64 {
            other.push((size - 1).to_be_bytes());
            assert_eq!(rows.root(size).as_slice(), other.root().as_bytes().as_slice(), "{size}");
            for index in 0..size {
                let own = rows.inclusion(index, size).concat();
                assert_eq!(own, other.prove_inclusion(to_usize(index)).as_bytes(), "{index} of {size}");
                let own = rows.consistency(index + 1, size).concat();
                let other_proof = other.prove_consistency(to_usize(size - index - 1));
                assert_eq!(own, other_proof.as_bytes(), "{} to {size}", index + 1);
            }
        }
    }

    /// The definition of the RFC, literally.
    fn defined_root(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => empty_root(),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                node_hash(&defined_root(left), &defined_root(right))
            }
        }
    }

    #[test]
    fn every_size_has_the_defined_root_and_can_be_extended() {
        let mut rows = Rows::numbers(70);
        let leaves: Vec<Hash> = (0..70_u64).map(|number| leaf_hash(&number.to_be_bytes())).collect();
        for size in 0..=70 {
            assert_eq!(rows.root(size), defined_root(&leaves[..to_usize(size)]));
            let mut frontier = Frontier::restore(size, &mut rows.get()).unwrap();
            assert_eq!(frontier.size(), size);
            leaves[to_usize(size)..].iter().for_each(|leaf| drop(frontier.push(*leaf)));
            assert_eq!(frontier.root(), defined_root(&leaves));
        }
    }

    #[test]
    fn every_leaf_of_every_size_is_proven() {
        let mut rows = Rows::numbers(70);
        for size in 1..=70 {
            let root = rows.root(size);
            for index in 0..size {
                rows.1 = 0;
                let proof = rows.inclusion(index, size);
                assert!(rows.1 <= 13, "{} rows for {index} of {size}", rows.1);
                let leaf = leaf_hash(&index.to_be_bytes());
                assert!(verify_inclusion(&leaf, index, size, &proof, &root));
                assert!(!verify_inclusion(&leaf_hash(b"x"), index, size, &proof, &root));
                for wrong in (0..=size).filter(|wrong| *wrong != index) {
                    assert!(!verify_inclusion(&leaf, wrong, size, &proof, &root));
                }
            }
        }
        assert_eq!(inclusion_proof(70, 70, &mut rows.get()), Ok(None));
        assert_eq!(inclusion_proof(0, 0, &mut rows.get()), Ok(None));
    }

    #[test]
    fn every_pair_of_sizes_is_consistent() {
        let mut rows = Rows::numbers(70);
        let roots: Vec<Hash> = (0..=70).map(|size| rows.root(size)).collect();
        for to in 0..=70_u64 {
            for from in 0..=to {
                rows.1 = 0;
                let proof = rows.consistency(from, to);
                assert!(rows.1 <= 13, "{} rows from {from} to {to}", rows.1);
                let (old, new) = (&roots[to_usize(from)], &roots[to_usize(to)]);
                assert!(verify_consistency(from, old, to, new, &proof));
                assert!(!verify_consistency(from, &leaf_hash(b"x"), to, new, &proof));
                assert!(from == 0 || !verify_consistency(from, old, to, &leaf_hash(b"x"), &proof));
                let longer = [proof, vec![*new]].concat();
                assert!(!verify_consistency(from, old, to, new, &longer));
            }
        }
        assert_eq!(consistency_proof(5, 4, &mut rows.get()), Ok(None));
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_rejected(size in 2..70_u64, at in any::<prop::sample::Index>(), bit in 0..256_usize) {
            let mut rows = Rows::numbers(size);
            let root = rows.root(size);
            let flip = |proof: &[Hash], which: usize| {
                let mut proof = proof.to_vec();
                proof[which][bit / 8] ^= 1 << (bit % 8);
                proof
            };
            let index = at.index(to_usize(size)) as u64;
            let leaf = leaf_hash(&index.to_be_bytes());
            let proof = rows.inclusion(index, size);
            for which in 0..proof.len() {
                prop_assert!(!verify_inclusion(&leaf, index, size, &flip(&proof, which), &root));
            }
            prop_assert!(!verify_inclusion(&leaf, index, size, &proof[1..], &root));
            let from = index + 1;
            let old = rows.root(from);
            let proof = rows.consistency(from, size);
            for which in 0..proof.len() {
                prop_assert!(!verify_consistency(from, &old, size, &root, &flip(&proof, which)));
                let mut shorter = proof.clone();
                shorter.remove(which);
                prop_assert!(!verify_consistency(from, &old, size, &root, &shorter));
            }
        }
    }
}
