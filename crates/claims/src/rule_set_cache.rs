//! A cache of compiled rule sets.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Rule, RuleSet, RuleSetError, TimeCheck};

/// The maximum number of sets in the cache: each client app may have other rules.
const MAX_SETS: usize = 256;
/// The maximum weight of all sets in the cache: two of the heaviest.
const MAX_WEIGHT: u64 = 4_000_000;

/// Compiled rule sets by a key that identifies their rules; the least recently used is evicted.
#[derive(Debug, Default)]
pub struct RuleSetCache {
    /// The sets with their keys, the least recently used first.
    entries: Mutex<Vec<(Vec<u8>, Arc<RuleSet>)>>,
    /// Locked during a compilation, while the cache remains readable.
    compiling: Mutex<()>,
}

impl RuleSetCache {
    /// An empty cache.
    pub const fn new() -> Self {
        Self { entries: Mutex::new(Vec::new()), compiling: Mutex::new(()) }
    }

    /// The compiled rules, if the key is cached. It does not wait for a compilation.
    pub fn get(&self, key: &[u8]) -> Option<Arc<RuleSet>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let index = entries.iter().position(|(known, _)| known == key)?;
        let entry = entries.remove(index);
        let set = Arc::clone(&entry.1);
        entries.push(entry);
        Some(set)
    }

    /// The compiled rules, from the cache if possible. One set is compiled at a time, so that two callers do not compile
    /// the same set.
    pub fn compiled(
        &self,
        key: &[u8],
        rules: &[Rule],
        has_time: TimeCheck<'_>,
    ) -> Result<Arc<RuleSet>, RuleSetError> {
        if let Some(set) = self.get(key) {
            return Ok(set);
        }
        let _compiling = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = self.get(key) {
            return Ok(set);
        }
        let set = Arc::new(RuleSet::new(rules, has_time)?);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push((key.to_vec(), Arc::clone(&set)));
        while entries.len() > MAX_SETS
            || entries.iter().map(|(_, set)| set.weight()).sum::<u64>() > MAX_WEIGHT
        {
            entries.remove(0);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{MAX_SETS, RuleSetCache};
    use crate::{RuleSetError, TimeCheck, tests::heavy};

    const UNLIMITED: TimeCheck<'static> = &|| true;

    #[test]
    fn a_set_is_compiled_once_until_it_is_evicted() {
        let sets = RuleSetCache::new();
        let first = sets.compiled(b"a", &[], UNLIMITED).unwrap();
        assert!(Arc::ptr_eq(&first, &sets.compiled(b"a", &[], UNLIMITED).unwrap()));
        assert!(sets.get(b"b").is_none());
        for number in 0..MAX_SETS {
            sets.compiled(&number.to_be_bytes(), &[], UNLIMITED).unwrap();
        }
        assert!(!Arc::ptr_eq(&first, &sets.compiled(b"a", &[], UNLIMITED).unwrap()));
    }

    /// A6: the weight of the cache is limited, and a compilation that exceeded the time limit is not cached.
    #[test]
    fn heavy_sets_are_evicted_sooner() {
        let sets = RuleSetCache::new();
        let rules: Vec<_> = (1..=5).map(heavy).collect();
        assert_eq!(sets.compiled(b"a", &rules, &|| false).unwrap_err(), RuleSetError::Time);
        let first = sets.compiled(b"a", &rules, UNLIMITED).unwrap();
        for key in [b"b", b"c"] {
            assert!(Arc::ptr_eq(&first, &sets.compiled(b"a", &rules, UNLIMITED).unwrap()));
            sets.compiled(key, &rules, UNLIMITED).unwrap();
        }
        sets.compiled(b"d", &rules, UNLIMITED).unwrap();
        assert!(!Arc::ptr_eq(&first, &sets.compiled(b"a", &rules, UNLIMITED).unwrap()));
    }
}
