//! Claims between two groups: equal claims are one, and their number and size are bounded.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Claim, Destination, Exceeded, MAX_CLAIMS, MAX_PATHS, MAX_TEXT_BYTES, MAX_TOTAL_BYTES, rule::CompiledRule,
};

/// What the rules have decided about a claim so far.
#[derive(Clone, Debug)]
pub(crate) struct Disposition {
    pub(crate) destination: Destination,
    pub(crate) on_request: bool,
    /// The indexes in the set of the rules that the claim passed.
    pub(crate) path: BTreeSet<usize>,
}

impl Disposition {
    /// The fate of a claim that no rule has looked at.
    pub(crate) const fn fresh() -> Self {
        Self { destination: Destination::IdTokenAndAccessToken, on_request: false, path: BTreeSet::new() }
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

    /// Joins the fates of equal claims of one group: the wider counts.
    fn merge(&mut self, other: Self) {
        self.destination = self.destination | other.destination;
        self.on_request = self.on_request && other.on_request;
        self.path.extend(other.path);
    }
}

/// Claims with their fates, numbered by first appearance.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    claims: BTreeMap<Claim, (usize, Disposition)>,
    bytes: usize,
    /// How many rules the claims passed, added up.
    passed: usize,
}

impl Pool {
    pub(crate) fn put(&mut self, claim: Claim, disposition: Disposition) -> Result<(), Exceeded> {
        if let Some((_, known)) = self.claims.get_mut(&claim) {
            let before = known.path.len();
            known.merge(disposition);
            self.passed += known.path.len() - before;
            return if self.passed > MAX_PATHS { Err(Exceeded::Paths) } else { Ok(()) };
        }
        let number = self.claims.len();
        if number >= MAX_CLAIMS {
            return Err(Exceeded::Claims);
        }
        if claim.claim_type.len().max(claim.value.len()) > MAX_TEXT_BYTES {
            return Err(Exceeded::Text);
        }
        self.bytes += claim.claim_type.len() + claim.value.len();
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(Exceeded::Total);
        }
        self.passed += disposition.path.len();
        if self.passed > MAX_PATHS {
            return Err(Exceeded::Paths);
        }
        self.claims.insert(claim, (number, disposition));
        Ok(())
    }

    /// The claims in the order of first appearance.
    pub(crate) fn into_claims(self) -> Vec<(Claim, Disposition)> {
        let mut claims: Vec<_> = self.claims.into_iter().collect();
        claims.sort_unstable_by_key(|(_, (number, _))| *number);
        claims.into_iter().map(|(claim, (_, disposition))| (claim, disposition)).collect()
    }
}
