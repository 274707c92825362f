//! Claims between two groups, without duplicates, and with a limited number and size.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use crate::{
    Claim, Destination, LimitExceeded, MAX_CLAIMS, MAX_PATHS, MAX_TEXT_BYTES, MAX_TOTAL_BYTES,
    rule::CompiledRule,
};

/// The rules that forwarded a claim, as a bit set of their indexes in the rule set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    /// The first 128 rules. Most rule sets have no more, so that a path needs no allocation.
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

    /// The indexes in ascending order.
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

/// The effect of the rules on a claim so far.
#[derive(Clone, Debug)]
pub(crate) struct Disposition {
    pub(crate) destination: Destination,
    pub(crate) on_request: bool,
    /// The rules that forwarded the claim.
    pub(crate) path: Path,
}

impl Disposition {
    /// The disposition before any rule.
    pub(crate) const fn initial() -> Self {
        Self { destination: Destination::IdTokenAndAccessToken, on_request: false, path: Path::empty() }
    }

    /// The disposition after a rule: restrictions add up.
    pub(crate) fn after(&self, index: usize, rule: &CompiledRule) -> Self {
        let mut path = self.path.clone();
        path.insert(index);
        Self {
            destination: self.destination & rule.destination,
            on_request: self.on_request || rule.on_request,
            path,
        }
    }

    /// Merges the disposition after another rule of the group; `before` is the one before the group.
    pub(crate) fn merge_after(&mut self, before: &Self, index: usize, rule: &CompiledRule) {
        self.destination = self.destination | (before.destination & rule.destination);
        self.on_request = self.on_request && (before.on_request || rule.on_request);
        self.path.insert(index);
    }

    /// Merges the dispositions of equal claims of one group: the least restriction counts.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.destination = self.destination | other.destination;
        self.on_request = self.on_request && other.on_request;
        self.path.extend(&other.path);
    }
}

/// A claim with its number, in the order of first appearance, and its disposition.
pub(crate) type Numbered = (usize, Claim, Disposition);

/// The number of claims, the total length of their texts, and the total number of rules in their paths.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    claims: usize,
    bytes: usize,
    rules: usize,
}

impl Size {
    fn add(&mut self, claim: &Claim, disposition: &Disposition) -> Result<(), LimitExceeded> {
        if self.claims >= MAX_CLAIMS {
            return Err(LimitExceeded::Claims);
        }
        if claim.claim_type.len().max(claim.value.len()) > MAX_TEXT_BYTES {
            return Err(LimitExceeded::Text);
        }
        self.claims += 1;
        self.bytes += claim.claim_type.len() + claim.value.len();
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(LimitExceeded::Total);
        }
        self.add_rules(disposition.path.len())
    }

    const fn add_rules(&mut self, rules: usize) -> Result<(), LimitExceeded> {
        self.rules += rules;
        if self.rules > MAX_PATHS { Err(LimitExceeded::Paths) } else { Ok(()) }
    }
}

/// Claims with their dispositions, numbered by first appearance. The input claims of a group have no duplicates, so only the created
/// claims are looked up.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    distinct: Vec<Numbered>,
    created: HashMap<Claim, (usize, Disposition)>,
    size_of_distinct: Size,
    size_of_created: Size,
    next: usize,
}

impl Pool {
    /// A pool of all input claims of a group, in their order.
    pub(crate) fn of(mut claims: Vec<Numbered>) -> Self {
        let mut pool = Self::default();
        for (number, _, _) in &mut claims {
            *number = pool.number();
        }
        pool.distinct = claims;
        pool
    }

    /// The number of the next claim.
    pub(crate) const fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Adds an input claim of the group with its number. It must differ from all others of these.
    pub(crate) fn add_distinct(
        &mut self,
        number: usize,
        claim: Claim,
        disposition: Disposition,
    ) -> Result<(), LimitExceeded> {
        self.size_of_distinct.add(&claim, &disposition)?;
        self.distinct.push((number, claim, disposition));
        Ok(())
    }

    /// Adds a created claim, which may be equal to another one.
    pub(crate) fn add(&mut self, claim: Claim, disposition: Disposition) -> Result<(), LimitExceeded> {
        let number = self.number();
        match self.created.entry(claim) {
            Entry::Occupied(mut known) => {
                let known = &mut known.get_mut().1;
                let before = known.path.len();
                known.merge(&disposition);
                self.size_of_created.add_rules(known.path.len() - before)
            }
            Entry::Vacant(entry) => {
                self.size_of_created.add(entry.key(), &disposition)?;
                entry.insert((number, disposition));
                Ok(())
            }
        }
    }

    /// The claims in the order of first appearance.
    pub(crate) fn into_claims(self) -> Result<Vec<Numbered>, LimitExceeded> {
        let Self { distinct: mut all, mut created, .. } = self;
        if !created.is_empty() {
            let types: HashSet<String> = created.keys().map(|claim| claim.claim_type.clone()).collect();
            for of_type in all.chunk_by_mut(|(_, one, _), (_, next, _)| one.claim_type == next.claim_type) {
                if !of_type.first().is_some_and(|(_, claim, _)| types.contains(&claim.claim_type)) {
                    continue;
                }
                for (number, claim, disposition) in of_type {
                    if let Some((other, more)) = created.remove(claim) {
                        *number = other.min(*number);
                        disposition.merge(&more);
                    }
                }
            }
            let start = all.len();
            all.extend(
                created.into_iter().map(|(claim, (number, disposition))| (number, claim, disposition)),
            );
            let by_number = |(number, _, _): &Numbered| *number;
            all.get_mut(start..).unwrap_or_default().sort_unstable_by_key(by_number);
            // merges two parts that are almost sorted
            all.sort_by_key(by_number);
        }
        let mut size = Size::default();
        for (_, claim, disposition) in &all {
            size.add(claim, disposition)?;
        }
        Ok(all)
    }
}
