//! Compiled rule sets that were used last.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Fault, Rule, RuleSet};

/// How many sets are remembered.
const REMEMBERED: usize = 8;

/// Compiled rule sets, each by what tells its rules from others; the one used longest ago gives way.
#[derive(Debug, Default)]
pub struct RuleSets(Mutex<Vec<(Vec<u8>, Arc<RuleSet>)>>);

impl RuleSets {
    /// With nothing in it.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The rules compiled, as they were before where the key is the same. Others wait only for what is
    /// remembered, not for what is compiled.
    pub fn compiled(&self, key: &[u8], rules: &[Rule]) -> Result<Arc<RuleSet>, Vec<Fault>> {
        let found = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let place = kept.iter().position(|(known, _)| known == key);
            place.map(|place| kept.remove(place).1)
        };
        let set = match found {
            Some(set) => set,
            None => Arc::new(RuleSet::new(rules)?),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != key);
        if kept.len() >= REMEMBERED {
            kept.remove(0);
        }
        kept.push((key.to_vec(), Arc::clone(&set)));
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{REMEMBERED, RuleSets};

    #[test]
    fn a_set_is_compiled_once_until_others_were_used_more() {
        let sets = RuleSets::new();
        let first = sets.compiled(b"a", &[]).unwrap();
        assert!(Arc::ptr_eq(&first, &sets.compiled(b"a", &[]).unwrap()));
        for number in 0..REMEMBERED {
            sets.compiled(&[0, u8::try_from(number).unwrap()], &[]).unwrap();
        }
        assert!(!Arc::ptr_eq(&first, &sets.compiled(b"a", &[]).unwrap()));
    }
}
