//! Claims between two groups: equal claims are one, and their number and size are bounded.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use crate::{
    Claim, Destination, Exceeded, MAX_CLAIMS, MAX_PATHS, MAX_TEXT_BYTES, MAX_TOTAL_BYTES, rule::CompiledRule,
};

/// The rules that a claim passed, by their indexes in the set: a bit for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    /// The first 128 rules. Most sets have no more, so that a path needs no allocation.
    first: u128,
    more: Vec<u128>,
}

impl Path {
    const WORD: usize = u128::BITS as usize;

    const fn empty() -> Self {
        Self { first: 0, more: Vec::new() }
    }

    fn words(&self) -> impl Iterator<Item = u128> {
        std::iter::once(self.first).chain(self.more.iter().copied())
    }

    fn insert(&mut self, index: usize) {
        let bit = 1 << (index % Self::WORD);
        let Some(word) = (index / Self::WORD).checked_sub(1) else {
            self.first |= bit;
            return;
        };
        if self.more.len() <= word {
            self.more.resize(word + 1, 0);
        }
        if let Some(bits) = self.more.get_mut(word) {
            *bits |= bit;
        }
    }

    fn extend(&mut self, other: &Self) {
        self.first |= other.first;
        if self.more.len() < other.more.len() {
            self.more.resize(other.more.len(), 0);
        }
        for (bits, more) in self.more.iter_mut().zip(&other.more) {
            *bits |= more;
        }
    }

    fn len(&self) -> usize {
        self.words().map(|bits| bits.count_ones() as usize).sum()
    }

    /// The indexes, ascending.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = usize> {
        let indexes = |(word, mut bits): (usize, u128)| {
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * Self::WORD + bit)
            })
        };
        self.words().enumerate().flat_map(indexes)
    }
}

/// What the rules have decided about a claim so far.
#[derive(Clone, Debug)]
pub(crate) struct Disposition {
    pub(crate) destination: Destination,
    pub(crate) on_request: bool,
    /// The rules that the claim passed.
    pub(crate) path: Path,
}

impl Disposition {
    /// The fate of a claim that no rule has looked at.
    pub(crate) const fn fresh() -> Self {
        Self { destination: Destination::IdTokenAndAccessToken, on_request: false, path: Path::empty() }
    }

    /// The fate after a rule: from group to group the narrower counts.
    pub(crate) fn through(&self, index: usize, rule: &CompiledRule) -> Self {
        let mut path = self.path.clone();
        path.insert(index);
        Self {
            destination: self.destination & rule.destination,
            on_request: self.on_request || rule.on_request,
            path,
        }
    }

    /// Joins the fate with that of the same claim, which was `before` its group, after another rule of the group.
    pub(crate) fn merge_through(&mut self, before: &Self, index: usize, rule: &CompiledRule) {
        self.destination = self.destination | (before.destination & rule.destination);
        self.on_request = self.on_request && (before.on_request || rule.on_request);
        self.path.insert(index);
    }

    /// Joins the fates of equal claims of one group: the wider counts.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.destination = self.destination | other.destination;
        self.on_request = self.on_request && other.on_request;
        self.path.extend(&other.path);
    }
}

/// A claim on its way from group to group, with its place among the claims of its pool.
pub(crate) type Numbered = (usize, Claim, Disposition);

/// How many claims there are, with the bytes of their texts and how many rules they passed, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    claims: usize,
    bytes: usize,
    passed: usize,
}

impl Size {
    fn add(&mut self, claim: &Claim, disposition: &Disposition) -> Result<(), Exceeded> {
        if self.claims >= MAX_CLAIMS {
            return Err(Exceeded::Claims);
        }
        if claim.claim_type.len().max(claim.value.len()) > MAX_TEXT_BYTES {
            return Err(Exceeded::Text);
        }
        self.claims += 1;
        self.bytes += claim.claim_type.len() + claim.value.len();
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(Exceeded::Total);
        }
        self.pass(disposition.path.len())
    }

    const fn pass(&mut self, rules: usize) -> Result<(), Exceeded> {
        self.passed += rules;
        if self.passed > MAX_PATHS { Err(Exceeded::Paths) } else { Ok(()) }
    }
}

/// Claims with their fates, numbered by first appearance. Those that a group leaves as they are differ from each other, so only those
/// that it makes are looked up.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    kept: Vec<Numbered>,
    made: HashMap<Claim, (usize, Disposition)>,
    size_of_kept: Size,
    size_of_made: Size,
    next: usize,
}

impl Pool {
    /// A pool that keeps all claims that came to a group, in their order.
    pub(crate) fn of(mut claims: Vec<Numbered>) -> Self {
        let mut pool = Self::default();
        for (number, _, _) in &mut claims {
            *number = pool.number();
        }
        pool.kept = claims;
        pool
    }

    /// The number of the claim that appears next.
    pub(crate) const fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Adds a claim of this number that differs from all that are kept: one that came to the group.
    pub(crate) fn keep(
        &mut self,
        number: usize,
        claim: Claim,
        disposition: Disposition,
    ) -> Result<(), Exceeded> {
        self.size_of_kept.add(&claim, &disposition)?;
        self.kept.push((number, claim, disposition));
        Ok(())
    }

    /// Adds a claim that may be equal to another.
    pub(crate) fn put(&mut self, claim: Claim, disposition: Disposition) -> Result<(), Exceeded> {
        let number = self.number();
        match self.made.entry(claim) {
            Entry::Occupied(mut known) => {
                let known = &mut known.get_mut().1;
                let before = known.path.len();
                known.merge(&disposition);
                self.size_of_made.pass(known.path.len() - before)
            }
            Entry::Vacant(place) => {
                self.size_of_made.add(place.key(), &disposition)?;
                place.insert((number, disposition));
                Ok(())
            }
        }
    }

    /// The claims in the order of first appearance.
    pub(crate) fn into_claims(self) -> Result<Vec<Numbered>, Exceeded> {
        let Self { kept: mut all, mut made, .. } = self;
        if !made.is_empty() {
            let types: HashSet<String> = made.keys().map(|claim| claim.claim_type.clone()).collect();
            for of_type in all.chunk_by_mut(|(_, one, _), (_, next, _)| one.claim_type == next.claim_type) {
                if !of_type.first().is_some_and(|(_, claim, _)| types.contains(&claim.claim_type)) {
                    continue;
                }
                for (number, claim, disposition) in of_type {
                    if let Some((other, more)) = made.remove(claim) {
                        *number = other.min(*number);
                        disposition.merge(&more);
                    }
                }
            }
            let begin = all.len();
            all.extend(made.into_iter().map(|(claim, (number, disposition))| (number, claim, disposition)));
            let by_number = |(number, _, _): &Numbered| *number;
            all.get_mut(begin..).unwrap_or_default().sort_unstable_by_key(by_number);
            // merges two parts that are all but sorted
            all.sort_by_key(by_number);
        }
        let mut size = Size::default();
        for (_, claim, disposition) in &all {
            size.add(claim, disposition)?;
        }
        Ok(all)
    }
}
