//! One tile of an export: the leaves that it lists, and the entries that follow it.

use crate::{
    check::CheckedEntry,
    export::TILE,
    finding::{FindingKind, Report},
    roots::Roots,
    tree::Hash,
};

/// A tile that is being read.
pub(crate) struct Tile {
    /// The tile's index, from 0.
    pub number: u64,
    /// Whether the file has the tile's line.
    pub announced: bool,
    /// The leaves in the tree's order; `None` when their line is missing or invalid.
    leaves: Option<Vec<Hash>>,
    /// A slot for each position of the tile.
    slots: Vec<Slot>,
    /// The positions in the order of their entries in the file.
    order: Vec<u64>,
}

#[derive(Clone, Default)]
struct Slot {
    /// The entry whose leaf is listed at this position.
    matched: Option<CheckedEntry>,
    /// An entry that states this position, but whose leaf is not the listed one.
    claim: Option<CheckedEntry>,
}

impl Tile {
    /// A tile with as many positions as it has in a tree of this size. A list with another number of
    /// leaves is invalid.
    pub fn new(number: u64, announced: bool, leaves: Option<Vec<Hash>>, size: u64) -> Self {
        let width = size.saturating_sub(number.saturating_mul(TILE)).min(TILE);
        let width = usize::try_from(width).unwrap_or_default();
        let leaves = leaves.filter(|leaves| leaves.len() == width);
        Self { number, announced, leaves, slots: vec![Slot::default(); width], order: Vec::new() }
    }

    /// Whether the tile's line is present, but invalid.
    pub const fn is_invalid(&self) -> bool {
        self.announced && self.leaves.is_none()
    }

    /// Whether every position has an entry.
    pub fn is_full(&self) -> bool {
        self.slots.iter().all(|slot| slot.matched.is_some() || slot.claim.is_some())
    }

    /// The tile's first position.
    pub const fn first(&self) -> u64 {
        self.number * TILE
    }

    /// Assigns an entry to its slot, and reports one that has none in this tile.
    pub fn insert(&mut self, entry: CheckedEntry, size: u64, report: &mut Report<'_>) {
        let CheckedEntry { position, id, leaf, .. } = entry;
        let first = self.first();
        let stated = position.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        let index = self.slot_of(stated, leaf);
        if let Some((at, slot)) = index.and_then(|at| Some((at, self.slots.get_mut(at)?))) {
            if let Some(matched) = slot.matched {
                if matched.leaf == leaf {
                    report.entry(FindingKind::Duplicated, position, id, "it stands there more than once");
                } else {
                    report.entry(FindingKind::Inserted, position, id, "its position has an entry already");
                }
                return;
            }
            slot.matched = Some(entry);
            let actual = first + at as u64;
            self.order.push(actual);
            if actual != position {
                let detail = format!("it says that it stands at {position}, the tree has it at {actual}");
                report.entry(FindingKind::Reordered, actual, id, detail);
            }
            return;
        }
        match stated.and_then(|at| self.slots.get_mut(at)) {
            Some(slot) if slot.claim.is_none() => slot.claim = Some(entry),
            None if position < size => {
                let detail = format!("it stands among the entries of tile {}", self.number);
                report.entry(FindingKind::Reordered, position, id, detail);
            }
            _ => report.entry(FindingKind::Inserted, position, id, "the tree does not have it"),
        }
    }

    /// The slot of a leaf, preferably the one that its entry states. Without a list of leaves the entry alone
    /// decides.
    fn slot_of(&self, stated: Option<usize>, leaf: Option<Hash>) -> Option<usize> {
        let Some(leaves) = &self.leaves else { return stated };
        let is_leaf = |at: &usize| leaf.is_some() && leaves.get(*at).copied() == leaf;
        stated.filter(is_leaf).or_else(|| (0..leaves.len()).find(is_leaf))
    }

    /// Reports entries that precede the line of their tile.
    pub fn report_early(&self, report: &mut Report<'_>) {
        let early = self.slots.iter().filter_map(|slot| slot.matched.or(slot.claim));
        early.for_each(|entry| report_early(&entry, report));
    }

    /// Reports the faults of the complete tile and appends its leaves. Where the file was `cut`, missing
    /// entries at the end are not reported; the first of their positions is returned.
    pub fn close(self, cut: bool, roots: &mut Roots, report: &mut Report<'_>) -> Option<u64> {
        let first = self.first();
        let is_filled = |slot: &Slot| slot.matched.is_some() || slot.claim.is_some();
        let end = if cut {
            self.slots.iter().rposition(is_filled).map_or(0, |last| last + 1)
        } else {
            self.slots.len()
        };
        for (at, slot) in self.slots.iter().enumerate() {
            let position = first + at as u64;
            match (slot.matched, slot.claim) {
                (Some(_), Some(claim)) => {
                    let detail = "the tree does not have it, but another at its position";
                    report.entry(FindingKind::Inserted, position, claim.id, detail);
                }
                // an entry without a leaf was reported as malformed
                (None, Some(claim)) if claim.leaf.is_some() => {
                    let holds = if claim.signed { "its signature holds, but " } else { "" };
                    let detail = format!("{holds}the tree has another leaf at its position");
                    report.entry(FindingKind::Altered, position, claim.id, detail);
                }
                (None, None) if at < end => {
                    report.at(FindingKind::Removed, position, "its entry is missing");
                }
                _ => {}
            }
            let listed = self.leaves.as_ref().and_then(|leaves| leaves.get(at).copied());
            roots.push(listed, slot.matched.or(slot.claim).and_then(|entry| entry.leaf));
        }
        self.report_order(report);
        (end < self.slots.len()).then_some(first + end as u64)
    }

    fn report_order(&self, report: &mut Report<'_>) {
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        for (position, other) in self.order.iter().zip(sorted).filter(|(one, other)| *one != other) {
            let detail = format!("it stands where {other} should");
            report.at(FindingKind::Reordered, *position, detail);
        }
    }
}

/// Reports an entry that precedes the line of its tile.
pub(crate) fn report_early(entry: &CheckedEntry, report: &mut Report<'_>) {
    report.entry(FindingKind::Reordered, entry.position, entry.id, "it stands before its tile");
}
