//! The Merkle trees of an export, compared with checkpoints.

use crate::{
    finding::{FindingKind, Report},
    note::Checkpoint,
    tree::{Frontier, Hash},
};

/// A tree that grows until one of its leaves is unknown.
struct PartialTree(Option<Frontier>);

impl PartialTree {
    fn push(&mut self, leaf: Option<Hash>) {
        match (leaf, &mut self.0) {
            (Some(leaf), Some(frontier)) => drop(frontier.push(leaf)),
            _ => self.0 = None,
        }
    }

    fn root_at(&self, size: u64) -> Option<Hash> {
        self.0.as_ref().filter(|frontier| frontier.size() == size).map(Frontier::root)
    }
}

/// A checkpoint, and the roots of the file at its size.
struct WatchedCheckpoint {
    checkpoint: Checkpoint,
    label: &'static str,
    listed: Option<Hash>,
    own: Option<Hash>,
}

/// Two trees: over the leaves that the tiles list, and over those computed from the entries.
pub(crate) struct Roots {
    listed: PartialTree,
    own: PartialTree,
    watched: Vec<WatchedCheckpoint>,
}

impl Roots {
    /// Empty trees, to be compared with these checkpoints, each with its label in findings.
    pub fn new(checkpoints: impl IntoIterator<Item = (Checkpoint, &'static str)>) -> Self {
        let watch = |(checkpoint, label)| WatchedCheckpoint { checkpoint, label, listed: None, own: None };
        let mut roots = Self {
            listed: PartialTree(Some(Frontier::default())),
            own: PartialTree(Some(Frontier::default())),
            watched: checkpoints.into_iter().map(watch).collect(),
        };
        roots.update_roots();
        roots
    }

    /// Appends a leaf: as listed and as computed from its entry, each where it is known.
    pub fn push(&mut self, listed: Option<Hash>, own: Option<Hash>) {
        self.listed.push(listed);
        self.own.push(own);
        self.update_roots();
    }

    /// Records that leaves are missing.
    pub fn gap(&mut self) {
        self.push(None, None);
    }

    fn update_roots(&mut self) {
        for watched in &mut self.watched {
            watched.listed = watched.listed.or_else(|| self.listed.root_at(watched.checkpoint.size));
            watched.own = watched.own.or_else(|| self.own.root_at(watched.checkpoint.size));
        }
    }

    /// Reports every checkpoint whose root the file does not have. Where neither tree is known at its size, the
    /// missing leaves were reported before.
    pub fn finish(&self, report: &mut Report<'_>) {
        for WatchedCheckpoint { checkpoint, label, listed, own } in &self.watched {
            let (root, size) = (Some(checkpoint.root), checkpoint.size);
            if *listed == root || (listed.is_none() && (own.is_none() || *own == root)) {
                continue;
            }
            if *own == root {
                let detail = format!(
                    "the hashes in the tiles were changed: they do not make the root of {label} at size {size}, \
                     the entries themselves do"
                );
                report.file(FindingKind::Tile, detail);
            } else {
                let detail = format!("at size {size} the trail has not the root of {label}");
                report.file(FindingKind::Root, detail);
            }
        }
    }
}
