//! A cache of the compiled rule sets that were used last.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{GoOn, Rule, RuleSet, RuleSetError};

/// The most sets in the cache: tokens are issued by other rules at each client app.
const REMEMBERED: usize = 256;
/// The greatest weight of all sets in the cache: two of the heaviest.
const MAX_WEIGHT: u64 = 4_000_000;

/// Compiled rule sets by a key that identifies their rules; the least recently used is evicted.
#[derive(Debug, Default)]
pub struct RuleSets {
    kept: Mutex<Vec<(Vec<u8>, Arc<RuleSet>)>>,
    /// Held while a set is compiled, so that the cache can be read meanwhile.
    compiling: Mutex<()>,
}

impl RuleSets {
    /// An empty cache.
    pub const fn new() -> Self {
        Self { kept: Mutex::new(Vec::new()), compiling: Mutex::new(()) }
    }

    /// The compiled rules, where the key is known. It waits for nothing that is compiled.
    pub fn get(&self, key: &[u8]) -> Option<Arc<RuleSet>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(found);
        let set = Arc::clone(&found.1);
        kept.push(found);
        Some(set)
    }

    /// The compiled rules, from the cache where the key is known. One set is compiled at a time, so that no
    /// two callers compile the same.
    pub fn compiled(
        &self,
        key: &[u8],
        rules: &[Rule],
        go_on: GoOn<'_>,
    ) -> Result<Arc<RuleSet>, RuleSetError> {
        if let Some(set) = self.get(key) {
            return Ok(set);
        }
        let _compiling = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = self.get(key) {
            return Ok(set);
        }
        let set = Arc::new(RuleSet::new(rules, go_on)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((key.to_vec(), Arc::clone(&set)));
        while kept.len() > REMEMBERED || kept.iter().map(|(_, set)| set.weight()).sum::<u64>() > MAX_WEIGHT {
            kept.remove(0);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{REMEMBERED, RuleSets};
    use crate::{GoOn, RuleSetError, tests::heavy};

    const FOR_EVER: GoOn<'static> = &|| true;

    #[test]
    fn a_set_is_compiled_once_until_others_were_used_more() {
        let sets = RuleSets::new();
        let first = sets.compiled(b"a", &[], FOR_EVER).unwrap();
        assert!(Arc::ptr_eq(&first, &sets.compiled(b"a", &[], FOR_EVER).unwrap()));
        assert!(sets.get(b"b").is_none());
        for number in 0..REMEMBERED {
            sets.compiled(&number.to_be_bytes(), &[], FOR_EVER).unwrap();
        }
        assert!(!Arc::ptr_eq(&first, &sets.compiled(b"a", &[], FOR_EVER).unwrap()));
    }

    /// A6: the weight of the cache is bounded, and rules that were not compiled in time are not cached.
    #[test]
    fn heavy_sets_give_way_sooner() {
        let sets = RuleSets::new();
        let rules: Vec<_> = (1..=5).map(heavy).collect();
        assert_eq!(sets.compiled(b"a", &rules, &|| false).unwrap_err(), RuleSetError::Time);
        let first = sets.compiled(b"a", &rules, FOR_EVER).unwrap();
        for key in [b"b", b"c"] {
            assert!(Arc::ptr_eq(&first, &sets.compiled(b"a", &rules, FOR_EVER).unwrap()));
            sets.compiled(key, &rules, FOR_EVER).unwrap();
        }
        sets.compiled(b"d", &rules, FOR_EVER).unwrap();
        assert!(!Arc::ptr_eq(&first, &sets.compiled(b"a", &rules, FOR_EVER).unwrap()));
    }
}
